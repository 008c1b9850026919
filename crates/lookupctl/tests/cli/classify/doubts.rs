//! Rules that header fields can't decide: refused, assumed, or left out and told with every answer that they
//! could change.

use serde_json::json;

use crate::common::Folder;

/// A host as ufw sets it up: chains of the user's, the state of connections, interfaces.
const UFW: &str = "\
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:ufw-before-input - [0:0]
:ufw-user-input - [0:0]
-A INPUT -j ufw-before-input
-A INPUT -j ufw-user-input
-A ufw-before-input -i lo -j ACCEPT
-A ufw-before-input -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A ufw-before-input -m conntrack --ctstate INVALID -j DROP
-A ufw-user-input -p tcp -m tcp --dport 443 -j ACCEPT
-A ufw-user-input ! -s 192.0.2.0/24 -p udp -m udp --dport 53 -j ACCEPT
COMMIT
";

const NEW: &str = "--assume ct=new --assume in=eth0";
const TO_443: &str = "src=192.0.2.1 dst=192.0.2.2 dport=443 proto=tcp";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("ufw", UFW);
    folder
}

#[test]
fn jumps_and_negations_are_answered_as_the_kernel_does() {
    let folder = folder();
    folder.write(
        "stateless",
        "*filter\n:INPUT DROP [0:0]\n:ufw-user-input - [0:0]\n-A INPUT -j ufw-user-input\n\
         -A ufw-user-input -p tcp -m tcp --dport 443 -j ACCEPT\n\
         -A ufw-user-input ! -s 192.0.2.0/24 -p udp -m udp --dport 53 -j ACCEPT\nCOMMIT\n",
    );
    for (rules, options, assuming) in
        [("stateless", "", json!([])), ("ufw", NEW, json!(["ct=new", "in=eth0"]))]
    {
        let run = format!("classify lookup --rules {rules} {options} --json");
        let ran = folder.run_with(
            &run,
            b"src=192.0.2.1 dst=192.0.2.2 sport=7 dport=443 proto=tcp\nsrc=192.0.3.5 sport=7 dport=53 udp\n\
              src=192.0.2.5 sport=7 dport=53 udp\nsrc=192.0.2.5 sport=7 dport=22 tcp\n",
        );
        let lines = ran.ok().json();
        let actions: Vec<_> = lines.iter().map(|line| line["action"].clone()).collect();
        assert_eq!(actions, ["ACCEPT", "ACCEPT", "DROP", "DROP"], "{rules}");
        for line in &lines {
            assert_eq!(line["uncertain_because"], json!([]), "{line}");
            assert_eq!(line["assuming"], assuming, "{line}");
        }
        let verified = folder.run(&format!("classify verify --rules {rules} {options} --engine quilt")).ok();
        assert!(verified.stdout.contains("all right") && !verified.stdout.contains("whole"), "{verified:?}");
    }
    let ran = folder.run(&format!("classify lookup --rules ufw {NEW} {TO_443} sport=9")).ok();
    assert!(ran.stdout.starts_with("assuming ") && ran.stderr.contains("ct=new"), "{ran:?}");
    assert!(ran.stdout.contains("(line 11: -A ufw-user-input -p tcp"), "{ran:?}");
    let dropped = folder.run(&format!("classify lookup --rules ufw {NEW} src=192.0.2.1 sport=9 udp")).ok();
    assert!(dropped.stdout.contains("the policy of INPUT"), "{dropped:?}");
    // Packets of a connection that is there already, and those of the machine to itself.
    for (assume, action) in [("ct=established", "ACCEPT"), ("ct=invalid", "DROP")] {
        let run = format!("classify lookup --rules ufw --assume in=eth0 --assume {assume} {TO_443} sport=9");
        assert_eq!(folder.run(&format!("{run} --json")).ok().json()[0]["action"], action, "{assume}");
    }
}

#[test]
fn every_verb_refuses_what_is_not_whole() {
    let folder = folder();
    for verb in [
        "lookup --rules ufw tcp",
        "verify --rules ufw",
        "replay --rules ufw",
        "build --rules ufw -o ufw.img",
        "gen trace --rules ufw",
        "gen updates --rules ufw",
    ] {
        let ran = folder.run(&format!("classify {verb}"));
        ran.refused(&[
            "ufw: 3 rules",
            "line 8",
            "line 9",
            "--assume in=eth0",
            "--assume ct=new",
            "--lenient",
        ]);
    }
    assert!(!folder.path("ufw.img").exists());
    folder.run("classify lookup --rules ufw --assume ct=new tcp").refused(&[
        "ufw: 1 rule ",
        "line 8",
        "in=eth0",
    ]);
    // What info does is to describe.
    let ran = folder.run("classify info ufw --engine linear").ok();
    assert!(ran.stdout.contains("left out line 8") && ran.stdout.contains("not whole"), "{ran:?}");
    let told = &folder.run("classify info ufw --engine linear --json").ok().json()[0];
    assert_eq!((&told["whole"], told["left_out"].as_array().unwrap().len()), (&json!(false), 3));
    let told = &folder.run(&format!("classify info ufw --engine linear --json {NEW}")).ok().json()[0];
    assert_eq!((&told["whole"], &told["left_out"]), (&json!(true), &json!([])));
    for (wrong, says) in [
        ("--assume state=new", "nothing can be assumed of"),
        ("--assume ct=open", "established"),
        ("--assume ct", "KEY=VALUE"),
        ("--assume ct=new --assume ct=invalid", "can't both"),
    ] {
        let ran = folder.run(&format!("classify lookup --rules ufw {wrong} tcp")).status(2);
        assert!(ran.stderr.contains(says), "{wrong}: {ran:?}");
    }
}

#[test]
fn lenient_answers_say_what_could_change_them() {
    let folder = folder();
    folder.write("trace", format!("{TO_443} sport=7\nudp sport=7\n"));
    folder.run("classify build --rules ufw --lenient -o ufw.img").ok();
    let told = folder.run("classify build --rules ufw --lenient -o ufw.img --json").ok().json().remove(0);
    assert_eq!((&told["left_out"], &told["assuming"]), (&json!(3), &json!([])));
    for from in ["--rules ufw --lenient", "--image ufw.img"] {
        let ran = folder.run(&format!("classify lookup {from} {TO_443} sport=7 --json")).ok();
        let line = &ran.json()[0];
        assert_eq!((&line["action"], &line["line"]), (&json!("ACCEPT"), &json!(11)), "{line}");
        let because = &line["uncertain_because"];
        // The lines of the interface and of connections accept, too.
        let [one] = &because.as_array().unwrap()[..] else { panic!("{line}") };
        assert_eq!((&one["line"], &one["action"]), (&json!(10), &json!("DROP")), "{line}");
        assert!(one["reason"].as_str().unwrap().contains("conntrack"), "{line}");
        assert!(one["text"].as_str().unwrap().contains("INVALID"), "{line}");
        let ran = folder.run(&format!("classify lookup {from} udp sport=7")).ok();
        assert!(
            ran.stdout.contains("DROP  uncertain: line 8 (") && ran.stdout.contains("could ACCEPT it"),
            "{ran:?}"
        );
        // Answers that are not in doubt stay as they are.
        let certain =
            folder.run(&format!("classify replay {from} --trace trace --seconds 0.02 --device cpu --json"));
        let report = &certain.ok().json()[0];
        assert_eq!((&report["uncertain"], &report["assuming"]), (&json!(2), &json!([])), "{report}");
        let ran =
            folder.run(&format!("classify replay {from} --trace trace --seconds 0.02 --device cpu")).ok();
        assert!(ran.stdout.contains("uncertain 2 of 2 answers"), "{ran:?}");
    }
    let ran = folder.run("classify verify --rules ufw --lenient --engine quilt").ok();
    for part in ["all right", "not whole", " answers are uncertain because of line 8 ("] {
        assert!(ran.stdout.contains(part), "{part}: {ran:?}");
    }
    let report = &folder.run("classify verify --rules ufw --lenient --engine linear --json").ok().json()[0];
    let count = |key: &str| report[key].as_u64().unwrap();
    assert!(0 < count("uncertain") && count("uncertain") <= count("tuples"), "{report}");
    assert_eq!(count("left_out"), 3);
    let told = &folder.run("classify info ufw.img --json").ok().json()[0];
    assert_eq!((&told["whole"], told["left_out"].as_array().unwrap().len()), (&json!(false), 3));
    assert!(folder.run("classify info ufw.img").ok().stdout.contains("not whole: "));
}

#[test]
fn filters_wider_than_said_are_told_with_every_answer_that_is_one() {
    let folder = Folder::new();
    let filters = "@10.0.0.0/8 192.0.2.0/24 0 : 65535 80 : 80 0x06/0xFF 0x0002/0x0002\n\
                   @10.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 0x06/0xFF 0x0000/0x0000\n\
                   @0.0.0.0/0 0.0.0.0/0 0 : 65535 53 : 53 0x00/0x00 0x0010/0x0012\n";
    folder.write("filters", filters);
    folder
        .write("trace", "src=10.0.0.1 dst=192.0.2.1 dport=80 tcp\nsrc=10.0.0.1 dport=80 tcp\ndport=53 udp\n");
    let built = folder.run("classify build --rules filters -o filters.img --json").ok().json().remove(0);
    assert_eq!((&built["left_out"], &built["widened"]), (&json!(0), &json!(2)));
    let built = folder.run("classify build --rules filters -o filters.img").ok();
    assert!(built.stdout.contains("2 rules are wider than said"), "{built:?}");
    for from in ["--rules filters", "--image filters.img"] {
        let run = |tuple: &str| folder.run(&format!("classify lookup {from} {tuple}"));
        let line = run("--json src=10.0.0.1 dst=192.0.2.1 dport=80 tcp").ok().json().remove(0);
        let because = &line["uncertain_because"].as_array().unwrap()[..];
        let [one] = because else { panic!("{line}") };
        assert_eq!((&line["rule"], &line["widened"]), (&json!(1), &json!(2)), "{line}");
        assert_eq!((&one["line"], &one["action"]), (&json!(1), &json!(null)), "{line}");
        assert_eq!(one["reason"], "TCP flags (0x0002/0x0002) are no field of a tuple");
        let certain = run("--json src=10.0.0.1 dport=80 tcp").ok().json().remove(0);
        assert_eq!((&certain["rule"], &certain["uncertain_because"]), (&json!(2), &json!([])));
        let told = run("dport=53 udp").ok();
        assert!(told.stdout.contains("uncertain: line 3 (TCP flags (0x0010/0x0012)"), "{told:?}");
        assert!(told.stdout.contains("need not match it") && told.stderr.contains("wider than"), "{told:?}");
        let replay = format!("classify replay {from} --trace trace --seconds 0.02 --device cpu --json");
        assert_eq!(folder.run(&replay).ok().json()[0]["uncertain"], 2, "{from}");
    }
    for file in ["filters", "filters.img"] {
        let told = &folder.run(&format!("classify info {file} --engine linear --json")).ok().json()[0];
        assert_eq!((&told["whole"], &told["widened"]), (&json!(true), &json!(2)), "{told}");
        let told = folder.run(&format!("classify info {file} --engine linear")).ok();
        assert!(told.stdout.contains("are wider than") && !told.stdout.contains("whole"), "{told:?}");
    }
    let report = &folder.run("classify verify --rules filters --engine linear --json").ok().json()[0];
    let count = |key: &str| report[key].as_u64().unwrap();
    assert!(0 < count("uncertain") && count("uncertain") < count("tuples"), "{report}");
    assert_eq!((count("left_out"), count("widened")), (0, 2));
    let told = folder.run("classify verify --rules filters --engine linear").ok();
    assert!(told.stdout.contains("uncertain because of 2 rules that are wider than said"), "{told:?}");
    assert!(!told.stdout.contains("whole"), "{told:?}");
    // Lines that are no filters are left out, and told beside.
    folder.write("both", format!("{filters}@no filter\n"));
    let told = folder.run("classify verify --rules both --lenient --engine linear").ok();
    assert!(told.stdout.contains("not whole") && told.stdout.contains(", and of 2 rules that"), "{told:?}");
}

#[test]
fn an_image_repeats_what_was_assumed() {
    let folder = folder();
    let ran = folder.run(&format!("classify build --rules ufw {NEW} -o ufw.img")).ok();
    assert!(ran.stdout.contains("assuming ") && !ran.stdout.contains("whole"), "{ran:?}");
    let ran = folder.run(&format!("classify lookup --image ufw.img {TO_443} sport=7")).ok();
    assert!(ran.stdout.starts_with("assuming ") && ran.stdout.contains("in=eth0"), "{ran:?}");
    assert!(ran.stderr.contains("ct=new") && !ran.stdout.contains("uncertain"), "{ran:?}");
    let line =
        folder.run(&format!("classify lookup --image ufw.img {TO_443} sport=7 --json")).ok().json().remove(0);
    assert_eq!(line["assuming"].as_array().unwrap().len(), 2, "{line}");
    let source = folder.run(&format!("classify lookup --rules ufw {NEW} {TO_443} sport=7 --json")).ok();
    assert_eq!(source.json()[0], line);
    let told = &folder.run("classify info ufw.img --json").ok().json()[0];
    assert_eq!((&told["whole"], told["assuming"].as_array().unwrap().len()), (&json!(true), 2));
    let report = &folder
        .run("classify replay --image ufw.img --count 100 --seconds 0.02 --device cpu --json")
        .ok()
        .json()[0];
    assert_eq!((&report["uncertain"], report["assuming"].as_array().unwrap().len()), (&json!(0), 2));
    let ran = folder.run(&format!("classify verify --rules ufw {NEW} --engine linear --json")).ok();
    assert_eq!(ran.json()[0]["assuming"].as_array().unwrap().len(), 2);
    for verb in ["lookup tcp --image ufw.img", "replay --image ufw.img", "info ufw.img", "replay --set fw"] {
        folder
            .run(&format!("classify {verb} --assume ct=new"))
            .refused(&["--assume is for rules from a file"]);
    }
    // What decides nothing is said to.
    let ran = folder.run(&format!("classify lookup --rules ufw {NEW} --assume mark=3 {TO_443} --json")).ok();
    assert!(ran.stderr.contains("mark=3 decides nothing"), "{ran:?}");
    assert_eq!(ran.json()[0]["assuming"].as_array().unwrap().len(), 2);
}

#[test]
fn flows_are_decided_by_assumptions_and_tell_their_lines() {
    let folder = Folder::new();
    folder.write(
        "flows",
        "table=1,priority=9,ct_state=+est+trk,ip actions=output:1\n\
         table=1,priority=8,ct_state=+new+trk,tcp,tp_dst=22 actions=output:2\n\
         table=1,priority=1 actions=drop\n",
    );
    let tuple = "dl_type=0x0800 nw_proto=tcp tp_dst=22";
    folder.run(&format!("classify lookup --rules flows --flow-table 1 {tuple}")).refused(&[
        "2 rules",
        "line 1",
        "--assume ct=new",
    ]);
    folder.write("one", "ct_state=+trk,ip actions=drop\n");
    folder.run(&format!("classify lookup --rules one {tuple}")).refused(&["no rules", "--assume ct=new"]);
    for (state, action, line) in
        [("new", "output:2", 2), ("established", "output:1", 1), ("untracked", "drop", 3)]
    {
        let assume = format!("--rules flows --flow-table 1 --assume ct={state}");
        folder.run(&format!("classify build {assume} -o flows.img")).ok();
        for from in [&*assume, "--image flows.img"] {
            let told = folder.run(&format!("classify lookup {from} {tuple} --json")).ok().json().remove(0);
            assert_eq!((&told["action"], &told["line"]), (&json!(action), &json!(line)), "{from}: {told}");
            assert_eq!(told["assuming"], json!([format!("ct={state}")]), "{from}");
            assert_eq!(told["uncertain_because"], json!([]), "{from}");
            assert!(told["line_text"].as_str().unwrap().ends_with(action), "{from}");
        }
    }
    let ran = folder.run(&format!("classify lookup --rules flows --flow-table 1 --assume ct=new {tuple}"));
    assert!(ran.ok().stdout.contains("(line 2: table=1,priority=8,"));
}

#[test]
fn ports_may_have_the_names_of_services() {
    let folder = Folder::new();
    folder.write(
        "saved",
        "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp -m tcp --dport https -j ACCEPT\n\
         -A INPUT -p tcp -m tcp --dport ours -j ACCEPT\nCOMMIT\n",
    );
    let run = "classify lookup --rules saved dport=443 tcp";
    folder.run(run).refused(&["1 rule", "line 4", "a name (--destination-port ours)"]);
    assert_eq!(folder.run(&format!("{run} --lenient --json")).ok().json()[0]["action"], "ACCEPT");
}

#[test]
fn options_that_mean_nothing_to_a_format_are_refused() {
    let folder = folder();
    folder.write("sets", "create bad hash:net family inet\n");
    folder.write("words", "proto=tcp action=1\n");
    folder.write("flows", "priority=1 actions=drop\n");
    for (rules, option, format) in [
        ("words", "--ipset sets", "plain"),
        ("words", "--chain INPUT", "plain"),
        ("words", "--flow-table 1", "plain"),
        ("flows", "--table filter", "ovs"),
        ("flows", "--ipset sets", "ovs"),
        ("ufw --lenient", "--flow-table 0", "iptables"),
    ] {
        let name = option.split(' ').next().unwrap();
        let says = format!("{name} does not apply to rules in the format {format}");
        folder.run(&format!("classify lookup --rules {rules} {option} tcp")).refused(&[&says]);
        folder.run(&format!("classify info {rules} {option}")).refused(&[&says]);
    }
    folder.run("classify replay --set fw --flow-table 1").refused(&["--flow-table is for rules from a file"]);
}

#[test]
fn updates_that_rank_first_end_doubts() {
    let folder = folder();
    folder.write("trace", format!("{TO_443} sport=7\nudp sport=7\n"));
    folder.write("changes", "A udp priority=5 action=0\n");
    let run = "classify replay --rules ufw --lenient --trace trace --updates changes --seconds 0.02 --device cpu --json";
    assert_eq!(folder.run(run).ok().json()[0]["uncertain"], 1);
    let ran =
        folder.run("classify verify --rules ufw --lenient --updates changes --engine linear --json").ok();
    let uncertain: Vec<_> = ran.json().iter().map(|report| report["uncertain"].as_u64().unwrap()).collect();
    assert!(uncertain[1] < uncertain[0], "{uncertain:?}");
}

#[test]
fn chains_and_tables_are_chosen_and_sets_are_read() {
    let folder = folder();
    folder.write(
        "more",
        "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p udp -m udp --dport 53 -j DROP\nCOMMIT\n\
         *filter\n:INPUT DROP [0:0]\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m set --match-set bad src -j DROP\nCOMMIT\n",
    );
    folder.write("sets", "create bad hash:net family inet\nadd bad 192.0.2.0/24\n");
    let action = |options: &str, tuple: &str| {
        let ran = folder.run(&format!("classify lookup --rules more {options} {tuple} --json"));
        ran.ok().json()[0]["action"].clone()
    };
    assert_eq!(action("--table raw --chain PREROUTING", "udp sport=5 dport=53"), "DROP");
    assert_eq!(action("--table raw --chain PREROUTING", "udp sport=5 dport=54"), "ACCEPT");
    assert_eq!(action("--chain FORWARD --ipset sets", "src=192.0.2.9 tcp"), "DROP");
    assert_eq!(action("--chain FORWARD --ipset sets", "src=192.0.3.9 tcp"), "ACCEPT");
    folder.run("classify lookup --rules more --chain FORWARD tcp").refused(&["line 8", "bad"]);
    folder.run("classify lookup --rules more --chain NONE tcp").refused(&["more"]);
    folder.run("classify lookup --rules more --table mangle tcp").refused(&["more"]);
    folder.run("classify lookup --rules more --ipset absent tcp").refused(&["absent"]);
    folder.run("classify lookup --rules - --ipset - tcp").refused(&["standard input"]);
}

/// Files that ufw, docker and firewalld made.
fn made(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../classify/tests/data").join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn an_ordinary_host_takes_what_its_refusal_suggests() {
    let folder = folder();
    for (file, chain, tuple, verdict) in [
        ("ufw.v4.rules", "INPUT", "src=203.0.113.5 dst=192.0.2.1 sport=4000 dport=22 tcp", "ACCEPT"),
        ("ufw.v4.rules", "INPUT", "src=203.0.113.5 dst=192.0.2.1 sport=4000 dport=23 tcp", "DROP"),
        ("docker.v4.rules", "FORWARD", "src=203.0.113.5 dst=172.17.0.2 sport=4000 dport=80 tcp", "DROP"),
        ("firewalld.v4.rules", "INPUT", "src=203.0.113.5 dst=192.0.2.1 sport=4000 dport=22 tcp", "ACCEPT"),
    ] {
        let run = format!("classify lookup --rules {} --chain {chain} {tuple} --json", made(file));
        let refused = folder.run(&run).status(2);
        let words: Vec<_> = refused.stderr.split([' ', ',', ':']).collect();
        let suggested = words.windows(2).filter(|pair| pair[0] == "--assume");
        let suggested: String = suggested.map(|pair| format!(" --assume {}", pair[1])).collect();
        assert!(suggested.contains("ct=new"), "{refused:?}");
        let ran = folder.run(&format!("{run}{suggested}")).ok();
        let line = &ran.json()[0];
        assert_eq!(
            (&line["action"], &line["uncertain_because"]),
            (&json!(verdict), &json!([])),
            "{file}: {ran:?}"
        );
        let lenient = folder.run(&format!("{run} --lenient")).ok();
        assert!(
            !lenient.json()[0]["uncertain_because"].as_array().unwrap().is_empty(),
            "{file}: {lenient:?}"
        );
    }
}
