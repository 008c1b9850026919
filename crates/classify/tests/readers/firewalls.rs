//! Files as ufw, firewalld and docker make them: `tests/data/README.md` says how. Their verdicts were worked
//! out by hand.

use std::path::Path;

use wirespeed_classify::oracle::{Oracle, Right};
use wirespeed_classify::read::{Assumptions, ReadOptions, RuleFile, RuleReport, Source, read_rules};
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, Tuple};

/// A file's chain, under assumptions in words.
fn read<T: Tuple>(name: &str, chain: &str, assume: &str) -> (RuleFile<T>, RuleReport) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let assume = assume.split_whitespace().map(|one| one.parse().expect("an assumption"));
    let options = ReadOptions {
        chain: Some(chain.to_owned()),
        assume: Assumptions::new(assume).expect("no contradiction"),
        ..ReadOptions::default()
    };
    read_rules(&Source::Path(path), &options).expect("a file")
}

/// The verdict on a packet, and those that are in doubt: `DROP`, `DROP? ACCEPT`.
fn verdict<T: Tuple>(file: &RuleFile<T>, tuple: &str) -> String {
    let tuple = tuple.parse().expect("a tuple");
    let answer = Oracle::of(&file.rules).right(&tuple);
    let mut could: Vec<&str> = file
        .doubts(&tuple, answer)
        .map(|one| one.action().map_or("*", |action| &*file.actions[usize::try_from(action).expect("few")]))
        .collect();
    could.sort_unstable();
    could.dedup();
    let given = file.action(answer).unwrap_or("none");
    if could.is_empty() { given.to_owned() } else { format!("{given}? {}", could.join(" ")) }
}

/// Checks a file that is read exactly under assumptions.
fn is_exact<T: Tuple>(name: &str, chain: &str, assume: &str, packets: &[(&str, &str)]) {
    let (file, report) = read::<T>(name, chain, assume);
    assert!(report.left_out.is_empty() && file.doubts.is_empty(), "{name} under {assume}: {report}");
    for (tuple, wanted) in packets {
        assert_eq!(verdict(&file, tuple), *wanted, "{name}, {chain} under {assume}: {tuple}");
    }
}

/// Checks answers of a file of which some are in doubt.
fn is_in_doubt<T: Tuple>(name: &str, chain: &str, assume: &str, packets: &[(&str, &str)]) {
    let (file, report) = read::<T>(name, chain, assume);
    assert!(!report.left_out.is_empty() && !file.doubts.is_empty(), "{name} under {assume}: {report}");
    for (tuple, wanted) in packets {
        assert_eq!(verdict(&file, tuple), *wanted, "{name}, {chain} under {assume}: {tuple}");
    }
}

#[test]
fn ufw() {
    let name = "ufw.v4.rules";
    let local = "ct=new in=eth0 dst-type=local limit=under";
    is_exact::<Ipv4Tuple>(
        name,
        "INPUT",
        local,
        &[
            ("src=203.0.113.5 dst=192.0.2.1 dport=22 tcp", "ACCEPT"),
            ("src=203.0.113.5 dst=192.0.2.1 dport=23 tcp", "DROP"),
            ("src=192.0.2.9 dst=192.0.2.1 dport=5432 tcp", "ACCEPT"),
            ("src=192.0.3.9 dst=192.0.2.1 dport=5432 tcp", "DROP"),
            ("src=192.0.2.9 dst=192.0.2.1 dport=5432 udp", "DROP"),
            ("dst=192.0.2.1 dport=80 tcp", "ACCEPT"),
            // The list of ports comes before the address that is denied.
            ("src=198.51.100.7 dst=192.0.2.1 dport=443 tcp", "ACCEPT"),
            ("src=198.51.100.7 dst=192.0.2.1 dport=22 tcp", "ACCEPT"),
            ("src=198.51.100.7 dst=192.0.2.1 dport=2222 tcp", "DROP"),
            ("src=198.51.100.7 dst=192.0.2.1 dport=25 tcp", "DROP"),
            ("dst=192.0.2.1 dport=25 tcp", "REJECT"),
            ("dst=192.0.2.1 dport=8080 tcp", "ACCEPT"),
            ("dst=192.0.2.1 dport=8081 tcp", "DROP"),
            ("dst=192.0.2.1 dport=80 udp", "DROP"),
            // That port is open on another interface.
            ("dst=192.0.2.1 dport=53 udp", "DROP"),
            ("dst=192.0.2.1 dport=2222 tcp", "ACCEPT"),
            ("dst=192.0.2.1 sport=8 proto=icmp", "ACCEPT"),
            ("dst=192.0.2.1 sport=3 dport=4 proto=icmp", "ACCEPT"),
            ("dst=192.0.2.1 sport=13 proto=icmp", "DROP"),
            ("dst=192.0.2.1 sport=67 dport=68 udp", "ACCEPT"),
            ("dst=192.0.2.1 sport=67 dport=69 udp", "DROP"),
            ("dst=224.0.0.251 sport=5353 dport=5353 udp", "ACCEPT"),
            ("dst=192.0.2.1 sport=5353 dport=5353 udp", "DROP"),
            ("dst=239.255.255.250 dport=1900 udp", "ACCEPT"),
            ("dst=192.0.2.1 dport=137 udp", "DROP"),
            ("dst=192.0.2.1 proto=gre", "DROP"),
        ],
    );
    is_exact::<Ipv4Tuple>(
        name,
        "INPUT",
        &local.replace("eth0", "eth1"),
        &[
            ("dst=192.0.2.1 dport=53 udp", "ACCEPT"),
            ("dst=192.0.2.1 dport=53 tcp", "ACCEPT"),
            ("dst=192.0.2.1 dport=54 tcp", "DROP"),
        ],
    );
    is_exact::<Ipv4Tuple>(
        name,
        "INPUT",
        &local.replace("under", "over"),
        &[("dst=192.0.2.1 dport=2222 tcp", "REJECT"), ("dst=192.0.2.1 dport=22 tcp", "ACCEPT")],
    );
    // A packet to another host is not for this one.
    is_exact::<Ipv4Tuple>(
        name,
        "INPUT",
        &local.replace("local", "unicast"),
        &[
            ("dst=192.0.2.77 dport=22 tcp", "DROP"),
            ("dst=192.0.2.77 sport=8 proto=icmp", "ACCEPT"),
            ("dst=224.0.0.251 dport=5353 udp", "ACCEPT"),
        ],
    );
    for (assume, wanted) in
        [("ct=established in=eth0", "ACCEPT"), ("ct=invalid in=eth0", "DROP"), ("in=lo", "ACCEPT")]
    {
        is_exact::<Ipv4Tuple>(
            name,
            "INPUT",
            &format!("{assume} dst-type=local limit=under"),
            &[("dst=192.0.2.1 proto=gre", wanted)],
        );
    }
    is_exact::<Ipv4Tuple>(
        name,
        "FORWARD",
        "ct=new",
        &[("sport=8 proto=icmp", "ACCEPT"), ("dport=22 tcp", "DROP")],
    );
    is_exact::<Ipv4Tuple>(
        name,
        "OUTPUT",
        "ct=new out=eth0",
        &[("dport=22 tcp", "ACCEPT"), ("proto=gre", "ACCEPT")],
    );
    // Who says nothing gets the verdict of what is sure, and what else it could be.
    is_in_doubt::<Ipv4Tuple>(
        name,
        "INPUT",
        "ct=new dst-type=local",
        &[
            ("dst=192.0.2.1 dport=22 tcp", "ACCEPT"),
            ("dst=192.0.2.1 dport=23 tcp", "DROP? ACCEPT"),
            ("dst=192.0.2.1 dport=2222 tcp", "ACCEPT? REJECT"),
        ],
    );
    is_in_doubt::<Ipv4Tuple>(
        name,
        "INPUT",
        "ct=new in=eth0",
        &[
            ("dst=192.0.2.1 sport=8 proto=icmp", "ACCEPT"),
            ("dst=192.0.2.1 dport=22 tcp", "DROP? ACCEPT"),
            ("dst=192.0.2.1 dport=23 tcp", "DROP"),
        ],
    );
    is_in_doubt::<Ipv4Tuple>(name, "INPUT", "", &[("dst=192.0.2.1 dport=22 tcp", "DROP? ACCEPT")]);
}

#[test]
fn ufw_of_ipv6() {
    let local = "ct=new in=eth0 dst-type=local limit=under";
    // A routing header of type 0 is seen by no tuple, nor is a hop limit.
    let (file, report) = read::<Ipv6Tuple>("ufw.v6.rules", "INPUT", local);
    assert!(
        report.left_out.iter().all(|one| one.text.contains("-m rt") || one.text.contains("-m hl")),
        "{report}"
    );
    for (tuple, wanted) in [
        ("src=2001:db8::1 dport=22 tcp", "ACCEPT? DROP"),
        ("src=2001:db8::1 dport=23 tcp", "DROP"),
        ("src=2001:db8::1 dport=8080 tcp", "ACCEPT? DROP"),
        ("src=2001:db8::1 sport=128 proto=icmpv6", "ACCEPT? DROP"),
        ("src=2001:db8::1 sport=1 proto=icmpv6", "ACCEPT? DROP"),
        ("src=2001:db8::1 sport=135 proto=icmpv6", "DROP? ACCEPT"),
        ("src=2001:db8::1 sport=130 proto=icmpv6", "DROP"),
        ("src=fe80::1 sport=130 proto=icmpv6", "ACCEPT? DROP"),
        ("src=2001:db8::1 sport=8 proto=icmpv6", "DROP"),
        ("dst=ff02::fb dport=5353 udp", "ACCEPT? DROP"),
    ] {
        assert_eq!(verdict(&file, tuple), wanted, "{tuple}");
    }
}

#[test]
fn firewalld() {
    let name = "firewalld.v4.rules";
    is_exact::<Ipv4Tuple>(
        name,
        "INPUT",
        "ct=new in=eth0",
        &[
            ("dport=22 tcp", "ACCEPT"),
            ("dport=443 tcp", "ACCEPT"),
            ("dport=443 udp", "REJECT"),
            ("dport=8000 tcp", "ACCEPT"),
            ("dport=8080 tcp", "ACCEPT"),
            ("dport=8081 tcp", "REJECT"),
            ("src=198.51.100.9 dport=443 tcp", "DROP"),
            ("src=198.51.100.9 sport=8 proto=icmp", "DROP"),
            ("src=198.51.101.9 dport=443 tcp", "ACCEPT"),
            ("src=192.0.2.3 dport=5432 tcp", "ACCEPT"),
            ("src=192.0.3.3 dport=5432 tcp", "REJECT"),
            ("src=203.0.113.5 dport=9100 tcp", "REJECT"),
            ("src=192.0.2.3 dport=9100 tcp", "REJECT"),
            ("sport=8 proto=icmp", "ACCEPT"),
            ("sport=13 proto=icmp", "REJECT"),
            ("dport=53 udp", "REJECT"),
            ("dst=224.0.0.251 dport=5353 udp", "REJECT"),
            ("proto=gre", "REJECT"),
            // A source of the zone that is trusted.
            ("src=10.9.1.1 dport=23 tcp", "ACCEPT"),
            ("src=10.9.1.1 proto=gre", "ACCEPT"),
            ("src=10.10.1.1 proto=gre", "REJECT"),
        ],
    );
    is_exact::<Ipv4Tuple>(
        name,
        "INPUT",
        "ct=new in=eth1",
        &[
            ("dport=22 tcp", "ACCEPT"),
            ("dport=443 tcp", "REJECT"),
            ("dport=137 udp", "ACCEPT"),
            ("dst=224.0.0.251 dport=5353 udp", "ACCEPT"),
            ("src=198.51.100.9 dport=22 tcp", "ACCEPT"),
        ],
    );
    // An interface of no zone is in the default one.
    is_exact::<Ipv4Tuple>(
        name,
        "INPUT",
        "ct=new in=wlan0",
        &[("dport=443 tcp", "ACCEPT"), ("dport=137 udp", "REJECT")],
    );
    for (assume, wanted) in [
        ("ct=established in=eth0", "ACCEPT"),
        ("ct=new+dnat in=eth0", "ACCEPT"),
        ("ct=invalid in=eth0", "DROP"),
        ("ct=new in=lo", "ACCEPT"),
    ] {
        is_exact::<Ipv4Tuple>(name, "INPUT", assume, &[("proto=gre", wanted)]);
    }
    is_exact::<Ipv4Tuple>(
        name,
        "FORWARD",
        "ct=new in=eth0 out=eth1",
        &[("dport=22 tcp", "REJECT"), ("src=10.9.1.1", "ACCEPT")],
    );
    is_exact::<Ipv4Tuple>(name, "FORWARD", "ct=new in=eth0 out=eth0", &[("dport=22 tcp", "ACCEPT")]);
    // Where zones agree the interface needs not be known.
    is_in_doubt::<Ipv4Tuple>(
        name,
        "INPUT",
        "ct=new",
        &[
            ("dport=22 tcp", "ACCEPT"),
            ("dport=443 tcp", "ACCEPT? REJECT"),
            ("dport=137 udp", "REJECT? ACCEPT"),
            ("dport=23 tcp", "REJECT? ACCEPT"),
            ("src=10.9.1.1 dport=23 tcp", "ACCEPT"),
        ],
    );
    is_in_doubt::<Ipv4Tuple>(
        name,
        "INPUT",
        "in=eth0",
        &[("dport=22 tcp", "ACCEPT? DROP"), ("dport=23 tcp", "REJECT? ACCEPT DROP")],
    );
}

/// The zones of [`firewalld`], written for nftables.
#[test]
fn firewalld_by_nftables() {
    let name = "firewalld.nft.json";
    is_exact::<Ipv4Tuple>(
        name,
        "filter_INPUT",
        "ct=new in=eth0",
        &[
            ("dport=22 tcp", "accept"),
            ("dport=443 tcp", "accept"),
            ("dport=443 udp", "reject"),
            ("dport=8000 tcp", "accept"),
            ("dport=8080 tcp", "accept"),
            ("dport=8081 tcp", "reject"),
            ("src=198.51.100.9 dport=443 tcp", "drop"),
            ("src=198.51.100.9 sport=8 proto=icmp", "drop"),
            ("src=198.51.101.9 dport=443 tcp", "accept"),
            ("src=192.0.2.3 dport=5432 tcp", "accept"),
            ("src=192.0.3.3 dport=5432 tcp", "reject"),
            ("src=203.0.113.5 dport=9100 tcp", "reject"),
            ("src=192.0.2.3 dport=9100 tcp", "reject"),
            ("sport=8 proto=icmp", "accept"),
            ("sport=13 proto=icmp", "reject"),
            ("dport=53 udp", "reject"),
            ("dst=224.0.0.251 dport=5353 udp", "reject"),
            ("proto=gre", "reject"),
            ("src=10.9.1.1 dport=23 tcp", "accept"),
            ("src=10.9.1.1 proto=gre", "accept"),
            ("src=10.10.1.1 proto=gre", "reject"),
        ],
    );
    is_exact::<Ipv4Tuple>(
        name,
        "filter_INPUT",
        "ct=new in=eth1",
        &[
            ("dport=22 tcp", "accept"),
            ("dport=443 tcp", "reject"),
            ("dport=137 udp", "accept"),
            ("dst=224.0.0.251 dport=5353 udp", "accept"),
            ("src=198.51.100.9 dport=22 tcp", "accept"),
        ],
    );
    // Rules of IPv4 say nothing of these.
    is_exact::<Ipv6Tuple>(
        name,
        "filter_INPUT",
        "ct=new in=eth1",
        &[
            ("dport=22 tcp", "accept"),
            ("dst=ff02::fb dport=5353 udp", "accept"),
            ("dst=ff02::fc dport=5353 udp", "reject"),
            ("dst=fe80::1 dport=546 udp", "accept"),
            ("dst=2001:db8::1 dport=546 udp", "reject"),
            ("sport=135 proto=icmpv6", "accept"),
        ],
    );
    is_exact::<Ipv4Tuple>(
        name,
        "filter_INPUT",
        "ct=new in=wlan0",
        &[("dport=443 tcp", "accept"), ("dport=137 udp", "reject")],
    );
    for (assume, wanted) in [
        ("ct=established in=eth0", "accept"),
        ("ct=new+dnat in=eth0", "accept"),
        ("ct=invalid in=eth0", "drop"),
        ("ct=new in=lo", "accept"),
    ] {
        is_exact::<Ipv4Tuple>(name, "filter_INPUT", assume, &[("proto=gre", wanted)]);
    }
    is_exact::<Ipv4Tuple>(
        name,
        "filter_FORWARD",
        "ct=new in=eth0 out=eth1",
        &[("dport=22 tcp", "reject"), ("src=10.9.1.1", "accept")],
    );
    is_exact::<Ipv4Tuple>(name, "filter_FORWARD", "ct=new in=eth0 out=eth0", &[("dport=22 tcp", "accept")]);
    is_exact::<Ipv6Tuple>(
        name,
        "filter_OUTPUT",
        "ct=new out=eth0",
        &[("dst=2002:a00::1 dport=22 tcp", "reject"), ("dst=2001:db8::1 dport=22 tcp", "accept")],
    );
    is_in_doubt::<Ipv4Tuple>(
        name,
        "filter_INPUT",
        "ct=new",
        &[
            ("dport=22 tcp", "accept"),
            ("dport=443 tcp", "accept? reject"),
            ("dport=137 udp", "reject? accept"),
            ("src=10.9.1.1 dport=23 tcp", "accept"),
        ],
    );
}

#[test]
fn docker() {
    let name = "docker.v4.rules";
    is_exact::<Ipv4Tuple>(
        name,
        "FORWARD",
        "ct=new in=eth0 out=docker0",
        &[
            ("src=192.0.2.1 dst=172.17.0.2 dport=80 tcp", "ACCEPT"),
            ("src=192.0.2.1 dst=172.17.0.2 dport=81 tcp", "DROP"),
            ("src=192.0.2.1 dst=172.17.0.2 dport=53 udp", "ACCEPT"),
            ("src=192.0.2.1 dst=172.17.0.2 dport=53 tcp", "DROP"),
            ("src=192.0.2.1 dst=172.17.0.3 dport=80 tcp", "DROP"),
            ("src=198.51.100.1 dst=172.17.0.2 dport=80 tcp", "DROP"),
            ("src=192.0.2.1 dst=172.17.0.2 dport=25 tcp", "REJECT"),
            ("src=198.51.100.1 dst=172.17.0.2 dport=25 tcp", "REJECT"),
            ("src=192.0.2.1 dst=172.30.0.9 dport=443 tcp", "DROP"),
        ],
    );
    is_exact::<Ipv4Tuple>(
        name,
        "FORWARD",
        "ct=new in=eth0 out=br-app",
        &[
            ("src=192.0.2.1 dst=172.30.0.9 dport=443 tcp", "ACCEPT"),
            ("src=192.0.2.1 dst=172.30.0.9 dport=444 tcp", "DROP"),
        ],
    );
    is_exact::<Ipv4Tuple>(
        name,
        "FORWARD",
        "ct=new in=docker0 out=eth0",
        &[
            ("src=172.17.0.2 dport=443 tcp", "ACCEPT"),
            ("src=172.17.0.2 dport=25 tcp", "REJECT"),
            ("src=198.51.100.1 dport=443 tcp", "DROP"),
        ],
    );
    // Networks of containers are kept apart.
    is_exact::<Ipv4Tuple>(
        name,
        "FORWARD",
        "ct=new in=docker0 out=br-app",
        &[
            ("src=172.17.0.2 dst=172.30.0.9 dport=443 tcp", "DROP"),
            ("src=172.17.0.2 dst=172.30.0.9 dport=25 tcp", "REJECT"),
        ],
    );
    is_exact::<Ipv4Tuple>(
        name,
        "FORWARD",
        "ct=established in=docker0 out=br-app",
        &[("src=172.17.0.2 dst=172.30.0.9 tcp", "DROP")],
    );
    is_exact::<Ipv4Tuple>(name, "FORWARD", "ct=new in=br-app out=br-app", &[("dport=9 tcp", "ACCEPT")]);
    is_exact::<Ipv4Tuple>(name, "FORWARD", "ct=new in=eth0 out=eth1", &[("dport=9 tcp", "DROP")]);
    is_exact::<Ipv4Tuple>(
        name,
        "FORWARD",
        "ct=established in=eth0 out=docker0",
        &[("dport=9 tcp", "ACCEPT")],
    );
    is_exact::<Ipv4Tuple>(name, "INPUT", "", &[("dport=9 tcp", "ACCEPT")]);
    is_in_doubt::<Ipv4Tuple>(
        name,
        "FORWARD",
        "ct=new in=eth0",
        &[
            ("src=192.0.2.1 dst=172.17.0.2 dport=80 tcp", "DROP? ACCEPT"),
            ("src=192.0.2.1 dst=172.17.0.2 dport=81 tcp", "DROP"),
            ("dport=25 tcp", "REJECT"),
        ],
    );
    is_in_doubt::<Ipv4Tuple>(
        name,
        "FORWARD",
        "",
        &[("dport=25 tcp", "REJECT"), ("src=198.51.100.1 tcp", "DROP"), ("dport=9 tcp", "DROP? ACCEPT")],
    );
}
