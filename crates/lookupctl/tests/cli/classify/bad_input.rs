//! Bad input: one clear line with the file and the place, status 2, no panic.

use super::{RULES, UPDATES, folder};
use crate::common::{V4, noise};

#[test]
fn lines_that_are_no_rules() {
    let folder = folder();
    for (name, line, says) in [
        ("field", "ttl=3 priority=1", "no field"),
        ("value", "dport=70000", "16 bits"),
        ("range", "dport=9-8", "ends before it starts"),
        ("number", "number=2 tcp", "rule 2 already"),
        ("word", "tcp quic", "FIELD=VALUE"),
        (
            "host-bits",
            "src=10.0.0.1/8",
            "host bits are set in 10.0.0.1/8 of src: without them it is 10.0.0.0/8",
        ),
        ("bare-number", "src=1", "not a value of src"),
        ("octal", "sport=010", "leading zero"),
        ("octal-protocol", "proto=06", "leading zero"),
        ("open-range", "dport=1-", "not a value of dport"),
        ("signed-port", "dport=+1", "not a value of dport"),
        ("decimal-mask", "dport=16/16", "no mask of dport"),
        ("signed", "tcp priority=+1", "no priority"),
        ("no-action", "tcp action=", "no action"),
        ("signed-number", "number=+9 tcp", "not a rule's number"),
        ("number-alone", "number=9", "nothing is said"),
    ] {
        folder.write(name, format!("{RULES}{line}\n"));
        for verb in [
            format!("info {name}"),
            format!("lookup --rules {name} tcp"),
            format!("verify --rules {name}"),
            format!("replay --rules {name}"),
            format!("build --rules {name} -o x.img"),
            format!("gen trace --rules {name}"),
        ] {
            folder.run(&format!("classify {verb}")).refused(&[&format!("{name}:6"), says]);
        }
        let ran = folder.run(&format!("classify info {name} --lenient --engine linear")).ok();
        assert!(ran.stdout.contains("left out line 6"), "{ran:?}");
    }
}

#[test]
fn files_that_are_no_rules() {
    let folder = folder();
    folder.write("noise", noise(100_000));
    folder.write("empty", "");
    folder.write("comments", "# nothing\n\n# at all\n");
    folder.write("routes", V4);
    folder.run("classify build --rules rules -o rules.img").ok();
    for name in ["noise", "empty", "comments", "absent", ".", "routes", "rules.img"] {
        for verb in ["verify --rules", "build -o x.img --rules", "replay --rules"] {
            folder.run(&format!("classify {verb} {name}")).refused(&[name]);
        }
    }
    folder.run("classify info noise").refused(&["noise"]);
    folder.run("classify info saved --chain NAT").refused(&["saved"]);
    folder.run("classify info rules --format nft").refused(&["rules"]);
}

#[test]
fn tuples_updates_and_traces_that_are_none() {
    let folder = folder();
    for (tuple, says) in [
        ("10.0.0.1", "FIELD=VALUE"),
        ("1 2 3", "3 columns"),
        ("dl_vlan=3", "no field"),
        ("dport=x", "dport"),
        ("src=10.0.0.0/8", "not a value of src"),
        ("src=1", "not a value of src"),
        ("dport=010", "leading zero"),
        ("dport=1-2", "not a value"),
        ("proto=06", "leading zero"),
        ("10.0.0.1 192.0.2.7 1 2 tcp x", "behind the five columns"),
        (",", "no field is given"),
    ] {
        folder.run(&format!("classify lookup --rules rules {tuple}")).refused(&["not a tuple", says]);
    }
    folder.run_with("classify lookup --rules rules", b"tcp dport=80\nquic\n").status(2);
    for twice in [
        "lookup --rules - --json",
        "verify --rules - --trace -",
        "replay --rules - --trace -",
        "replay --rules rules --trace - --updates -",
        "info - -",
    ] {
        folder.run(&format!("classify {twice}")).refused(&["standard input"]);
    }
    for (line, says) in [
        ("A", "nothing is said"),
        ("A number=9", "nothing is said"),
        ("A src=10.0.0.1/8", "host bits"),
        ("W number=+2", "not a rule's number"),
        ("W number=02", "not a rule's number"),
    ] {
        folder.write("loose", format!("{UPDATES}{line}\n"));
        folder.run("classify replay --rules rules --updates loose").refused(&["loose:5", says]);
    }
    folder.write("faulty", format!("{UPDATES}B tcp\n"));
    folder.run("classify replay --rules rules --updates faulty").refused(&["faulty:5", "neither"]);
    folder.run("classify verify --rules rules --updates faulty").refused(&["faulty:5"]);
    folder.run("classify replay --rules rules --updates synth:x").refused(&["synth:x"]);
    folder.write("words", "tcp dport=80\nquic\n");
    folder.run("classify replay --rules rules --trace words").refused(&["words:2"]);
    folder.write("empty", "");
    for beside in ["replay --trace", "replay --updates", "verify --trace"] {
        for name in ["empty", "absent"] {
            folder.run(&format!("classify {beside} {name} --rules rules")).refused(&[name]);
        }
    }
}

#[test]
fn images_that_are_none() {
    let folder = folder();
    folder.run("build --fib v4 -o routes.img").ok();
    folder.run("classify build --rules flows --engine bloom -o good.img").ok();
    let good = std::fs::read(folder.path("good.img")).unwrap();
    folder.write("cut", &good[..good.len() / 2]);
    for (name, says) in
        [("cut", "bytes long"), ("rules", "not an image"), ("routes.img", "addresses"), ("absent", "")]
    {
        for verb in ["lookup tcp --image", "replay --image"] {
            folder.run(&format!("classify {verb} {name}")).refused(&[name, says]);
        }
    }
    folder.run("classify info routes.img").refused(&["routes.img", "addresses"]);
    folder.run("lookup --image good.img 10.0.0.1").refused(&["good.img"]);
    for at in (0..200).step_by(13).chain((200..good.len()).step_by(good.len() / 12)).chain([good.len() - 1]) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        folder.write("bad.img", &bad);
        folder.run("classify lookup --image bad.img dl_type=0x0800").refused(&["bad.img: "]);
    }
}
