//! `lookup`.

use serde_json::json;

use crate::common::{Folder, V4, noise};

#[test]
fn answers_in_json_with_the_users_next_hops() {
    let ran = Folder::new().run("lookup --fib both --json 10.1.2.3 10.200.0.1 2001:db8:1:2:3::9").ok();
    assert_eq!(
        ran.json(),
        [
            json!({"address": "10.1.2.3", "prefix": "10.1.2.3/32", "next_hop": "core-7"}),
            json!({"address": "10.200.0.1", "prefix": "10.0.0.0/8", "next_hop": "192.0.2.1"}),
            json!({"address": "2001:db8:1:2:3::9", "prefix": "2001:db8:1:2:3::/80", "next_hop": "fe80::3"}),
        ]
    );
    assert!(ran.stdout.starts_with(r#"{"address":"10.1.2.3","prefix":"10.1.2.3/32","next_hop":"core-7"}"#));
}

/// Prefixes come from a file, from an image with its routes, and from one of several FIBs.
#[test]
fn all_prefixes_of_an_address() {
    let folder = Folder::new();
    folder.run("build --fib both -o both.img").ok();
    for from in ["--fib both", "--image both.img", "--fib v6 --fib both --in 1"] {
        let ran = folder.run(&format!("lookup {from} --all --json 10.1.2.3 11.0.0.1")).status(1);
        let all = |at: usize| ran.json()[at]["all"].clone();
        let prefixes: Vec<_> = all(0).as_array().unwrap().iter().map(|one| one["prefix"].clone()).collect();
        assert_eq!(prefixes, ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3/32"], "{from}");
        assert_eq!(all(0)[3], json!({"prefix": "10.1.2.3/32", "next_hop": "core-7"}), "{from}");
        assert_eq!(all(1), json!([]), "{from}");
    }
    let text = folder.run("lookup --fib v4 --all 10.200.0.1").ok().stdout;
    assert_eq!(text, "10.200.0.1  10.0.0.0/8  192.0.2.1\n  10.0.0.0/8  192.0.2.1\n");
}

#[test]
fn nothing_that_matches_is_null_and_status_1() {
    let folder = Folder::new();
    let ran = folder.run("lookup --fib v4 --json 11.0.0.1 10.0.0.1").status(1);
    assert_eq!(ran.json()[0], json!({"address": "11.0.0.1", "prefix": null, "next_hop": null}));
    // A family without a route is an empty table, not an error.
    folder.run("lookup --fib v4 --json 2001:db8::1").status(1);
    let text = folder.run("lookup --fib v4 11.0.0.1").status(1).stdout;
    assert_eq!(text, "11.0.0.1  no route\n");
}

#[test]
fn addresses_from_standard_input() {
    let input = b"10.1.2.129\n\n# a comment\n 203.0.113.7 # another\r\n10.1.3.4";
    let ran = Folder::new().run_with("lookup --fib v4 --engine sail-l", input).ok();
    let wanted = "\
10.1.2.129  10.1.2.128/25  192.0.2.1
203.0.113.7  203.0.113.0/24  192.0.2.2
10.1.3.4  10.1.0.0/16  192.0.2.2
";
    assert_eq!(ran.stdout, wanted);
}

#[test]
fn the_table_from_standard_input() {
    let folder = Folder::new();
    let ran = folder.run_with("lookup --fib - 10.1.2.3", V4.as_bytes()).ok();
    assert_eq!(ran.stdout, "10.1.2.3  10.1.2.3/32  core-7\n");
    folder.run_with("lookup --fib -", V4.as_bytes()).refused(&["standard input"]);
}

#[test]
fn explains_each_step() {
    let folder = Folder::new();
    let ran = folder.run("lookup --fib v4 --engine sail-l --explain 10.1.2.3").ok();
    assert!(ran.stdout.contains("bcn16[2561]") && ran.stdout.lines().count() > 2, "{ran:?}");
    let json = &folder.run("lookup --fib v4 --engine sail-l --explain --json 10.1.2.3").ok().json()[0];
    let steps = json["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["section"].is_string() && step["index"].is_u64()));
    assert!(steps.last().unwrap()["meaning"].as_str().unwrap().contains("next hop 4"), "{json}");
}

#[test]
fn an_image_answers_as_its_source() {
    let folder = Folder::new();
    for (table, addresses) in [
        ("v4", "10.1.2.3 10.1.2.4 10.1.2.200 10.9.9.9 203.0.113.255 11.0.0.0 0.0.0.0 255.255.255.255"),
        ("v6", "2001:db8::1 2001:db8::2 2001:db8:1::5 2001:db8:1:2:3::4 2001:db9::1 ::"),
    ] {
        folder.run(&format!("build --fib {table} -o {table}.img")).ok();
        let from_source = folder.run(&format!("lookup --fib {table} --json {addresses}")).status(1);
        let from_image = folder.run(&format!("lookup --image {table}.img --json {addresses}")).status(1);
        assert_eq!(from_source.stdout, from_image.stdout);
    }
    folder.run("lookup --image v4.img 2001:db8::1").refused(&["v4.img", "IPv4", "IPv6"]);
    folder.run("lookup --image v4.img --engine sail-l 10.0.0.1").status(2);
}

#[test]
fn lines_that_are_no_address_are_refused_by_number() {
    let folder = Folder::new();
    let ran = folder.run_with("lookup --fib v4", b"10.0.0.1\n10.0.0.999\n").status(2);
    assert_eq!(ran.stdout.lines().count(), 1, "what came before is answered: {ran:?}");
    assert!(ran.stderr.contains("standard input:2: not an address: \"10.0.0.999\""), "{ran:?}");
    folder.run("lookup --fib v4 10.0.0.0/8").status(2);
    folder.run_with("lookup --fib v4", &noise(20_000)).refused(&["standard input:1"]);
}

#[test]
fn a_stream_goes_on_after_a_line_that_is_no_address() {
    let folder = Folder::new();
    let asked = b"10.0.0.1\nbogus\n# note\n203.0.113.1\n10.0.0.999\n11.0.0.1\n";
    let ran = folder.run_with("lookup --fib v4 --lenient", asked).status(2);
    let answers =
        "10.0.0.1  10.0.0.0/8  192.0.2.1\n203.0.113.1  203.0.113.0/24  192.0.2.2\n11.0.0.1  no route\n";
    assert_eq!(ran.stdout, answers);
    for line in [
        "standard input:2: passed over: not an address: \"bogus\"",
        "standard input:5: passed over: not an address: \"10.0.0.999\"",
        "lookupctl: standard input: 2 of 6 lines could not be answered\n",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {ran:?}");
    }
    // Without a bad line it ends as without --lenient.
    folder.run_with("lookup --fib v4 --lenient", b"10.0.0.1\n").ok();
    folder.run_with("lookup --fib v4 --lenient", b"11.0.0.1\n").status(1);
    // An address that an image has no table for is such a line, and so is an endless one.
    folder.run("build --fib v4 -o v4.img").ok();
    let ran = folder.run_with("lookup --image v4.img --lenient", b"::1\n10.0.0.1\n").status(2);
    assert_eq!(ran.stdout.lines().count(), 1, "{ran:?}");
    let long = [&vec![b'1'; 100_000][..], b"\n10.0.0.1\n"].concat();
    let ran = folder.run_with("lookup --fib v4 --lenient", &long).status(2);
    assert_eq!((ran.stdout.lines().count(), ran.stderr.matches("passed over").count()), (1, 1), "{ran:?}");
    assert!(ran.stderr.contains("1 of 2 lines"), "{ran:?}");
    let many = folder.run_with("lookup --fib v4 --lenient", "x\n".repeat(1_000).as_bytes()).status(2);
    assert!(many.stderr.lines().count() < 40 && many.stderr.contains("1000 of 1,000 lines"), "{many:?}");
}

#[test]
fn an_image_of_vrfs_answers_for_the_one_that_is_chosen() {
    let folder = Folder::new();
    folder.vrfs("vrfs.img");
    let answer = |vrf: &str, address: &str| {
        let ran = folder.run(&format!("lookup --image vrfs.img --vrf {vrf} --json {address}"));
        ["prefix", "next_hop"].map(|key| ran.json()[0][key].as_str().map(str::to_owned))
    };
    let found = |prefix: &str, next_hop: &str| [Some(prefix.to_owned()), Some(next_hop.to_owned())];
    assert_eq!(answer("7", "10.1.2.3"), found("10.1.0.0/16", "blue-gate"));
    assert_eq!(answer("7", "2001:db8::1"), found("2001:db8::/32", "red-gate"));
    assert_eq!(answer("4000", "10.1.2.3"), found("10.0.0.0/8", "blue-gate"));
    assert_eq!(answer("4000", "2001:db8::1"), [None, None]);
    let all = folder.run("lookup --image vrfs.img --vrf 7 --all 10.1.2.3").ok();
    assert_eq!(all.stdout.lines().count(), 3, "{all:?}");

    let lookup = |options: &str| folder.run(&format!("lookup --image vrfs.img {options} 10.1.2.3"));
    lookup("").refused(&["vrfs.img: an image of VRFs: choose one with --vrf"]);
    lookup("--vrf 8").refused(&["vrfs.img: there is no VRF 8"]);
    lookup("--vrf red").refused(&["there is no VRF red"]);
    lookup("--vrf 7 --explain").refused(&["--explain", "VRFs"]);
    folder.run("build --fib v4 -o four.img").ok();
    folder.run("lookup --image four.img --vrf 7 10.1.2.3").refused(&["--vrf 7: no input names VRFs"]);
}

#[test]
fn sources_are_merged_to_one_table() {
    let folder = Folder::new();
    folder.write("own.csv", "prefix,site,rack\n10.1.0.0/16,Kiel,7\n");
    folder.write("list", "10.1.2.0/24\n");
    let merge = "--merge own:site=own.csv --merge hop=v4 --merge listed=list";
    let ran = folder.run(&format!("lookup {merge} --json 10.1.2.9 10.200.0.1")).ok();
    let next_hops: Vec<_> = ran.json().iter().map(|line| line["next_hop"].clone()).collect();
    assert_eq!(next_hops, ["own=Kiel,hop=192.0.2.3,listed=true", "hop=192.0.2.1"]);
    assert!(ran.stderr.contains("merged 3 sources"), "{ran:?}");
    // As the image that `build` makes of them.
    folder.run(&format!("build {merge} -o all.img")).ok();
    let of_image = folder.run("lookup --image all.img --json 10.1.2.9 10.200.0.1").ok();
    assert_eq!(of_image.json(), ran.json());
    for (arguments, said) in [
        ("--merge own=own.csv --fib v4 10.1.2.3", "--fib"),
        ("--merge own.csv 10.1.2.3", "a source is NAME=FILE"),
        ("--merge hop:a=v4 10.1.2.3", "v4"),
        ("--merge a=nosuch 10.1.2.3", "nosuch"),
        ("--merge a=-", "standard input"),
    ] {
        let ran = folder.run(&format!("lookup {arguments}")).status(2);
        assert!(ran.stderr.contains(said) && ran.stdout.is_empty(), "{ran:?}");
    }
}
