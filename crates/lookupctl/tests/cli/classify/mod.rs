//! `classify`: the verbs for sets of rules.

mod bad_input;
mod build;
mod doubts;
mod generate;
mod hostile;
mod info;
mod lookup;
mod replay;
mod verify;

use crate::common::Folder;

/// A small set in words.
const RULES: &str = "\
# what, priority, action
src=10.0.0.0/8 dport=443 proto=tcp priority=20 action=1
src=10.66.0.0/16 priority=30 action=2
dport=1024-65535 proto=udp priority=10 action=3
dst=192.0.2.0/24 dport=80 proto=tcp priority=10 action=1
";

/// A trace of five packets, in words and in columns. They match rule 1, 2, 3, 4 and none.
const TRACE: &str = "\
src=10.0.0.1 dst=192.0.2.7 sport=4000 dport=443 proto=tcp
src=10.66.0.1 dst=192.0.2.7 sport=4000 dport=443 proto=tcp
3232235777 3221225991 53 5353 17 0 99
192.168.1.1 192.0.2.7 4000 80 tcp
src=192.168.1.1 dst=192.0.2.7 sport=53 dport=53 udp
";

/// Updates of it: rule 2 is gone, 3 is for all of UDP, 5 and 6 are new.
const UPDATES: &str = "\
W number=2
A number=3 udp priority=10 action=4
A src=10.66.0.0/16 dport=443 priority=40 action=5
A src=10.66.0.0/16 priority=1 action=6
";

/// A saved chain, of which two rules can't be expressed.
const SAVED: &str = "\
*filter
:INPUT DROP [0:0]
:FORWARD ACCEPT [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT
-A INPUT -s 10.0.0.0/8 -p tcp -m tcp --dport 22 -j ACCEPT
-A INPUT -p udp --dport 1024:2000 -j REJECT
COMMIT
";

/// What answers those two.
const NEW: &str = "--assume ct=new --assume in=eth0";

/// Flows of a switch.
const FLOWS: &str = "\
NXST_FLOW reply (xid=0x4):
 cookie=0x0, duration=3.1s, table=0, n_packets=0, n_bytes=0, priority=100,tcp,in_port=1,nw_dst=10.0.0.0/8 actions=output:2
 cookie=0x0, duration=3.1s, table=0, n_packets=0, n_bytes=0, priority=50,arp actions=NORMAL
 cookie=0x0, duration=3.1s, table=0, n_packets=0, n_bytes=0, priority=0 actions=drop
";

/// A folder with these files: `rules`, `trace`, `updates` (named `changes`), `saved`, `flows`.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("rules", RULES);
    folder.write("trace", TRACE);
    folder.write("changes", UPDATES);
    folder.write("saved", SAVED);
    folder.write("flows", FLOWS);
    folder
}

#[test]
fn help_teaches_by_example() {
    let folder = folder();
    assert!(folder.run("--help").ok().stdout.contains("lookupctl classify "));
    assert!(folder.run("classify --help").ok().stdout.contains("  lookupctl classify replay "));
    for verb in ["info", "lookup", "replay", "verify", "build", "gen"] {
        let help = folder.run(&format!("classify {verb} --help")).ok().stdout;
        assert!(
            help.contains("Examples:\n") && help.contains(&format!("  lookupctl classify {verb}")),
            "{verb}: {help}"
        );
    }
    folder.run("classify").status(2);
    folder.run("classify route").status(2);
    assert!(
        folder.run("completions bash").ok().stdout.contains("lookupctl__subcmd__classify"),
        "completed, too"
    );
}
