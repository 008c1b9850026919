//! Tables in the forms that they come in: lists of prefixes, netmasks, host bits, VRFs, peers; and what only
//! looks like a table.

use serde_json::{Value, json};

use crate::common::{Folder, V4};

#[test]
fn a_list_of_prefixes_is_a_table_of_members() {
    let folder = Folder::new();
    folder.write("list", "# networks\n1.0.0.0/24\n1.0.4.0/22\n2001:db8::/32\n192.0.2.7\n");
    let ran = folder.run("lookup --fib list --json 1.0.5.9 192.0.2.7 9.9.9.9 2001:db8::1").status(1);
    let told: Vec<_> =
        ran.json().into_iter().map(|line| (line["prefix"].clone(), line["next_hop"].clone())).collect();
    let member = |prefix: &str| (json!(prefix), json!("member"));
    assert_eq!(
        told,
        [member("1.0.4.0/22"), member("192.0.2.7/32"), (Value::Null, Value::Null), member("2001:db8::/32")]
    );
    assert!(ran.stderr.contains("a list of prefixes without next hops"), "{ran:?}");
    let report = &folder.run("info list --family 4 --json --engine fold").ok().json()[0];
    assert_eq!(
        (&report["format"], &report["prefixes"], &report["next_hops"]),
        (&"plain".into(), &3.into(), &1.into())
    );
    folder.run("build --fib list -o list.img").ok();
    let line = folder.run("lookup --image list.img 1.0.0.9").ok().stdout;
    assert_eq!(line, "1.0.0.9  1.0.0.0/24  member\n");
    // It is the one or the other.
    folder.write("mixed", "1.0.0.0/24\n1.0.4.0/22 192.0.2.1\n");
    folder.run("info mixed").refused(&["mixed:2: a next hop, but the lines before have none"]);
    folder.write("mixed", "1.0.0.0/24 192.0.2.1\n1.0.4.0/22\n");
    folder.run("info mixed").refused(&["mixed:2: next hop missing"]);
}

#[test]
fn netmasks_are_lengths() {
    let folder = Folder::new();
    folder.write(
        "masks",
        "10.0.0.0/255.0.0.0 a\n10.1.0.0 255.255.0.0 b\n0.0.0.0 0.0.0.0 c\n192.0.2.7 255.255.255.255\n",
    );
    folder.run("info masks").refused(&["masks:4: next hop missing"]);
    folder.write("masks", "10.0.0.0/255.0.0.0 a\n10.1.0.0 255.255.0.0 b\n0.0.0.0 0.0.0.0 c\n");
    let ran = folder.run("lookup --fib masks 10.1.2.3 10.2.0.1 11.0.0.1").ok();
    assert_eq!(ran.stdout, "10.1.2.3  10.1.0.0/16  b\n10.2.0.1  10.0.0.0/8  a\n11.0.0.1  0.0.0.0/0  c\n");
    for (line, says) in [
        ("10.0.0.0/255.0.255.0 a", "not a netmask"),
        ("10.0.0.0 0.255.255.255 a", "not a netmask"),
        ("10.0.0.1 255.0.0.0 a", "host bits are set"),
        ("10.0.0.0/8,a", "looks like CSV"),
        ("10.0.0.0/8;a", "looks like CSV"),
    ] {
        folder.write("odd", format!("{V4}{line}\n"));
        folder.run("info odd").refused(&["odd:8: ", says]);
        folder.write("odd", format!("{line}\n"));
        folder.run("info odd").refused(&["odd:1: ", says]);
    }
}

#[test]
fn host_bits_are_masked_on_request_and_counted() {
    let folder = Folder::new();
    folder.write("hosts", "10.1.2.3/8 a\n10.1.2.3 255.255.0.0 b\n2001:db8::1/32 c\n203.0.113.0/24 d\n");
    let says = "hosts:1: host bits are set: \"10.1.2.3/8 a\" (--mask-host-bits clears them)";
    folder.run("info hosts").refused(&[says]);
    folder.write("table", "10.0.0.0/8 a\n");
    folder.write("updates", "A 10.1.2.3/8 a\n");
    let says = ["updates:1: host bits are set", "(--mask-host-bits clears them)"];
    folder.run("replay --fib table --updates updates --seconds 0.01 --device cpu").refused(&says);
    let ran = folder.run("lookup --fib hosts --mask-host-bits 10.9.9.9 10.1.9.9 2001:db8:9::").ok();
    let prefixes: Vec<_> = ran.stdout.lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(prefixes, ["10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32"]);
    assert!(ran.stderr.contains("4 taken, 3 of them with host bits that were masked"), "{ran:?}");
    let report = &folder.run("info hosts --mask-host-bits --engine fold --json").ok().json()[0];
    assert_eq!((&report["masked"], &report["skipped"]), (&3.into(), &json!([])));
    let report = &folder.run("info hosts --lenient --engine fold --json").ok().json()[0];
    assert_eq!((&report["masked"], &report["skipped"][0]["count"]), (&0.into(), &3.into()));
}

#[test]
fn what_is_passed_over_is_counted_by_reason() {
    let folder = Folder::new();
    folder.write("faulty", "10.0.0.0/8 a\n10.0.0.1/8 b\n11.0.0.0/33 c\n12.0.0.0/34 c\nx\n10.0.0.2/8 b\n");
    let ran = folder.run("lookup --fib faulty --lenient 10.1.1.1").ok();
    for line in [
        "passed over 2: host bits are set (first at faulty:2)",
        "passed over 2: a prefix length of 33",
        "passed over 1: not an address (first at faulty:5)",
        "6 records, 1 taken",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {ran:?}");
    }
    folder.write("one", "10.0.0.0/8 a\n");
    let ran = folder.run("lookup --fib one 10.1.1.1").ok();
    assert!(ran.stderr.contains("1 record, 1 taken") && ran.stderr.contains("1 next hop,"), "{ran:?}");
}

#[test]
fn a_vrf_of_several_is_chosen() {
    let folder = Folder::new();
    let route = |prefix: &str, vrf: &str, hop: &str| {
        format!(
            r#""{prefix}":[{{"prefix":"{prefix}","vrfName":"{vrf}","selected":true,"installed":true,"nexthops":[{{"fib":true,"ip":"{hop}","active":true}}]}}]"#
        )
    };
    let (main, red) = (route("10.0.0.0/8", "default", "192.0.2.1"), route("10.0.0.0/8", "red", "192.0.2.2"));
    folder.write("all", format!(r#"{{"default":{{{main}}},"red":{{{red}}}}}"#));
    folder.write("joined", format!("{{{main}}}\n{{{red}}}\n"));
    for name in ["all", "joined"] {
        folder
            .run(&format!("info {name}"))
            .refused(&[name, "several VRFs: choose one with --vrf: default, red"]);
        for (vrf, hop) in [("default", "192.0.2.1"), ("red", "192.0.2.2")] {
            let ran = folder.run(&format!("lookup --fib {name} --vrf {vrf} 10.1.1.1")).ok();
            assert_eq!(ran.stdout, format!("10.1.1.1  10.0.0.0/8  {hop}\n"));
        }
        folder.run(&format!("info {name} --vrf blue")).refused(&["no VRF blue; there are default, red"]);
    }
    folder.run("info v4 --vrf red").refused(&["--vrf red", "FRR"]);
}

/// Tables and updates of bgpdump: of the peers .1, .2 and .3, of which .2 has the most updates.
fn of_peers() -> Folder {
    let folder = Folder::new();
    let line = |kind: &str, action: &str, peer: u8, prefix: &str| {
        format!("{kind}|1|{action}|192.0.2.{peer}|6450{peer}|{prefix}|1|IGP|192.0.2.{peer}|0|0||NAG||\n")
    };
    let table = [
        line("TABLE_DUMP2", "B", 1, "10.0.0.0/8"),
        line("TABLE_DUMP2", "B", 1, "10.1.0.0/16"),
        line("TABLE_DUMP2", "B", 3, "10.0.0.0/8"),
    ];
    folder.write("table", table.concat());
    folder.write("other", line("TABLE_DUMP2", "B", 9, "10.0.0.0/8"));
    let updates = [
        line("BGP4MP", "A", 1, "198.51.100.0/24"),
        line("BGP4MP", "W", 2, "10.1.0.0/16"),
        line("BGP4MP", "A", 2, "203.0.113.0/24"),
        line("BGP4MP", "A", 2, "203.0.113.0/25"),
    ];
    folder.write("changes", updates.concat());
    folder
}

#[test]
fn updates_are_those_of_the_tables_peer() {
    let folder = of_peers();
    let applied = |options: &str| {
        let ran = folder.run(&format!("replay --count 100 --seconds 0.02 --json {options}")).ok();
        (ran.json()[0]["updates"]["applied"].as_u64().unwrap(), ran.stderr)
    };
    let (count, told) = applied("--fib table --updates changes");
    assert_eq!(count, 1, "{told}");
    assert!(told.contains("taken from peer 192.0.2.1 AS64501, one of 2 peers"), "{told}");
    // Where the table says nothing of peers, of the one with most.
    let (count, told) = applied("--fib v4 --updates changes");
    assert_eq!(count, 3, "{told}");
    assert_eq!(applied("--fib v4 --updates changes --peer 192.0.2.1").0, 1);
    // The table's peer has none there.
    let (count, told) = applied("--fib other --updates changes");
    assert_eq!(count, 3, "{told}");
    assert!(told.contains("changes has no IPv4 updates of the table's peer 192.0.2.9 AS64509"), "{told}");
    assert_eq!(applied("--fib table --updates changes --peer all").0, 4);
    let told = applied("--fib table --updates changes --peer all --verbose").1;
    for line in
        ["taken from 2 of 2 peers, mixed", "  peer 192.0.2.2 AS64502: 3 IPv4, 0 IPv6, taken for IPv4\n"]
    {
        assert!(told.contains(line), "{line}: {told}");
    }
    let told = applied("--fib table --updates changes --verbose").1;
    assert!(told.contains("  peer 192.0.2.2 AS64502: 3 IPv4, 0 IPv6\n"), "{told}");
    folder.run("verify --fib table --updates changes --engine fold").ok();
    folder.run("verify --fib table --updates changes --peer AS9").refused(&["no peer AS9"]);
}

#[test]
fn a_peer_where_nothing_names_peers_is_an_error() {
    let folder = of_peers();
    for run in [
        "info v4 --peer 3",
        "lookup --fib v4 --peer 3 10.0.0.1",
        "build --fib v4 -o x.img --peer AS3",
        "verify --fib v4 --peer 3",
        "verify --fib v4 --updates updates --peer 3",
        "replay --fib v4 --peer 3",
        "gen trace --count 5 --peer 3",
    ] {
        folder.run(run).refused(&["--peer ", "names peers"]);
    }
    for run in ["info table --peer all", "replay --fib table --updates updates --peer all"] {
        folder.run(run).refused(&["--peer all"]);
    }
    assert!(!folder.path("x.img").exists());
    folder.run("info table --peer 192.0.2.3").ok();
    folder.run("replay --fib v4 --updates changes --peer 192.0.2.2 --count 10 --seconds 0.01").ok();
}

#[test]
fn one_thing_comes_from_standard_input() {
    let folder = Folder::new();
    folder.write("names", "/com 1\n");
    for (run, what) in [
        ("info - -", ["the table", "twice"]),
        ("lookup --fib - --fib - 10.0.0.1", ["the table", "twice"]),
        ("lookup --fib -", ["the table", "the addresses"]),
        ("replay --fib - --trace -", ["the table", "the trace"]),
        ("replay --fib - --updates -", ["the table", "the updates"]),
        ("replay --fib v4 --trace - --updates -", ["the trace", "the updates"]),
        ("replay --fib - --fib -", ["the table", "twice"]),
        ("verify --fib - --updates -", ["the table", "the updates"]),
        ("names replay --table - --trace -", ["the table", "the trace"]),
        ("names replay --table - --updates -", ["the table", "the updates"]),
        ("names replay --table names --paths - --updates -", ["the paths", "the updates"]),
        ("names verify --table - --updates -", ["the table", "the updates"]),
        ("names gen trace --table - --paths -", ["the table", "the paths"]),
    ] {
        folder.run_with(run, V4.as_bytes()).refused(&[&["standard input"], &what[..]].concat());
    }
}

#[test]
fn options_have_one_name_and_keep_their_old_ones() {
    let folder = Folder::new();
    folder.write("names", "/com 1\n/com/parc 2\n");
    for (run, new, old) in [
        ("replay --fib v4 --seconds 0.01", "--count", "--keys"),
        ("gen fib", "--count", "--prefixes"),
        ("names gen names", "--count", "--names"),
        ("names replay --table names --seconds 0.01", "--count", "--keys"),
        ("classify gen rules", "--count", "--size"),
        ("classify replay --size 10 --seconds 0.01", "--count", "--keys"),
    ] {
        folder.run(&format!("{run} {new} 50")).ok();
        folder.run(&format!("{run} {old} 50")).ok();
        let verb: Vec<_> = run.split(" --").next().unwrap().split(' ').collect();
        let help = folder.run(&format!("{} --help", verb.join(" "))).ok().stdout;
        assert!(help.contains(new), "{help}");
        // That of sets of rules is also of other verbs, where --count is of something else.
        assert!(old == "--size" || !help.contains(&format!("{old} <")), "{help}");
    }
    let script = folder.run("completions bash").ok().stdout;
    for option in ["--count", "--vrf", "--mask-host-bits", "--verbose", "--sections"] {
        assert!(script.contains(option), "{option}");
    }
}

#[test]
fn a_cap_is_told_as_it_was_asked_for() {
    let folder = Folder::new();
    for (run, says) in [
        ("replay --fib v4 --memory-cap 1k", "over the cap of 1k, of which each of 2 copies may take 512"),
        ("build --fib v4 -o x.img --memory-cap 1KiB", "over the cap of 1KiB"),
        ("build --fib v4 -o x.img --memory-cap 1000", "over the cap of 1000"),
    ] {
        let ran = folder.run(run);
        ran.refused(&[says]);
        assert!(ran.stderr.trim_end().ends_with(says), "{ran:?}");
    }
    let ran = folder.run("info v4 --memory-cap 1k").ok();
    assert!(ran.stdout.contains("over the cap of 1k\n"), "{ran:?}");
}
