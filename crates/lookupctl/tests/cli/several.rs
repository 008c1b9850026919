//! Several tables as the FIBs of virtual routers: `lookup`, `replay` and `info` of more than one.

use serde_json::{Value, json};

use crate::common::{Folder, V4};

/// Routes beside `v4`: other ones, with other next hops for the same addresses.
const OTHER: &str = "\
0.0.0.0/0 gate
10.1.2.0/24 192.0.2.77
10.1.2.4/32 192.0.2.78
2001:db8::/48 fe80::77
";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("other", OTHER);
    folder.write("trace", "10.1.2.3\n10.1.2.3\n11.0.0.1\n11.0.0.1\n10.1.2.4\n10.1.2.4\n");
    folder
}

#[test]
fn lookup_answers_of_the_fib_asked_for() {
    let folder = folder();
    let line =
        |address, prefix, next_hop| json!({"address": address, "prefix": prefix, "next_hop": next_hop});
    for engine in ["", "--engine sail-m"] {
        let of = |id: &str, addresses: &str| {
            folder.run(&format!("lookup --fib v4 --fib other {engine} --json {id} {addresses}"))
        };
        let first = of("--in 0", "10.1.2.3 10.1.2.4").ok();
        assert_eq!(first.json()[0], line("10.1.2.3", "10.1.2.3/32", "core-7"));
        assert_eq!(first.json()[1], line("10.1.2.4", "10.1.2.0/24", "192.0.2.3"));
        assert_eq!(of("", "10.1.2.3 10.1.2.4").ok().stdout, first.stdout);
        let second = of("--in 1", "10.1.2.3 10.1.2.4 9.9.9.9 2001:db8::5").ok();
        assert_eq!(second.json()[0], line("10.1.2.3", "10.1.2.0/24", "192.0.2.77"));
        assert_eq!(second.json()[1], line("10.1.2.4", "10.1.2.4/32", "192.0.2.78"));
        assert_eq!(second.json()[2], line("9.9.9.9", "0.0.0.0/0", "gate"));
        assert_eq!(second.json()[3], line("2001:db8::5", "2001:db8::/48", "fe80::77"));
        // What one FIB has no route for, another may have.
        of("--in 0", "9.9.9.9").status(1);
    }
    let explained = folder.run("lookup --fib v4 --fib other --in 1 --explain 10.1.2.4").ok().stdout;
    assert!(explained.contains("bca16[2561]") && explained.contains("next hop 3"), "{explained}");
}

#[test]
fn one_fib_by_sail_m_is_as_by_any_engine() {
    let folder = folder();
    let by = |engine: &str| {
        folder.run(&format!("lookup --fib v4 --engine {engine} 10.1.2.3 203.0.113.9")).ok().stdout
    };
    assert_eq!(by("sail-m"), by("sail-l"));
    folder.run("build --fib v4 --engine sail-m -o m.img").ok();
    assert_eq!(folder.run("lookup --image m.img 10.1.2.3 203.0.113.9").ok().stdout, by("sail-l"));
}

fn replay(folder: &Folder, arguments: &str) -> Value {
    let mut reports = folder.run(&format!("replay --json --seconds 0.05 {arguments}")).ok().json();
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

#[test]
fn replay_gives_each_fib_its_turn() {
    let folder = folder();
    for options in ["", "--threads 3 --batch 2", "--threads 1 --batch 4 --engine sail-m"] {
        let report = replay(&folder, &format!("--fib v4 --fib other --trace trace {options}"));
        assert_eq!(report["engine"], "sail-m");
        // In turns core-7, 192.0.2.77; none, gate; 192.0.2.3, 192.0.2.78.
        assert_eq!(report["checksum"], (4 + 2) + 1 + (3 + 3), "{options}");
        assert!((report["hit_share"].as_f64().unwrap() - 5.0 / 6.0).abs() < 1e-9, "{report}");
    }
    // A table twice gives what it gives once.
    let twice = replay(&folder, "--fib v4 --fib v4 --trace trace");
    let once = replay(&folder, "--fib v4 --trace trace");
    assert_eq!(twice["checksum"], once["checksum"]);
}

#[test]
fn replay_makes_a_trace_for_each_fib() {
    let folder = folder();
    for (family, trace) in [(4, "prefix"), (4, "random"), (6, "zipf:1.1"), (6, "deepest")] {
        let of = |options: &str| {
            let common = format!("--fib both --fib other --family {family} --trace {trace} --keys 5001");
            replay(&folder, &format!("{common} {options}"))
        };
        let report = of("--threads 1");
        assert_eq!(report["checksum"], of("--threads 2 --batch 33")["checksum"], "{trace}");
        if trace != "random" {
            assert_eq!(report["hit_share"], 1.0, "a key is drawn from the FIB that it is looked up in");
        }
    }
}

#[test]
fn updates_are_of_the_first_fib() {
    let folder = folder();
    // After them 10.1.2.3 leads to 192.0.2.9, number 5, in FIB 0; FIB 1 stays.
    for options in ["", "--rate max", "--rate 1"] {
        let report =
            replay(&folder, &format!("--fib v4 --fib other --trace trace --updates updates {options}"));
        assert_eq!(report["checksum"], (5 + 2) + 1 + (5 + 3), "{options}");
    }
    let report = replay(&folder, "--fib v4 --fib other --updates synth:500 --keys 1k");
    assert_eq!(report["updates"]["applied"], 500);
}

#[test]
fn info_tells_what_they_take_together() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    let folder = folder();
    let reports = folder.run("info v4 other v4 --json").ok().json();
    // IPv4 of each, IPv6 of one, and both together.
    assert_eq!(reports.len(), 4 + 2);
    let (v4, v6) = (&reports[4], &reports[5]);
    assert_eq!((&v4["family"], &v4["fibs"], &v4["prefixes"]), (&json!(4), &json!(3), &json!(6 + 3 + 6)));
    assert_eq!((&v6["family"], &v6["fibs"], &v6["prefixes"]), (&json!(6), &json!(3), &json!(1)));
    let usual = v4["apart"]["engine"].as_str().unwrap();
    let apart: u64 = reports[..4]
        .iter()
        .filter(|report| report["family"] == 4)
        .flat_map(|report| report["engines"].as_array().unwrap())
        .filter(|engine| engine["engine"] == usual)
        .map(|engine| engine["bytes"].as_u64().unwrap())
        .sum();
    assert!(apart > 0 && v4["apart"]["bytes"] == apart, "{v4}");
    assert!(
        v4["overlay"]["engine"] == "sail-m" && v4["overlay"]["bytes"].as_u64().unwrap() > 1 << 16,
        "{v4}"
    );
    let ran = folder.run("info v4 other --family 4").ok();
    let line = ran.stdout.lines().last().unwrap().to_owned();
    assert!(
        line.starts_with("2 FIBs in one, IPv4: 9 prefixes in ")
            && line.contains(&format!("apart by {usual}")),
        "{line}"
    );
    assert_eq!(folder.run("info v4 --json").ok().json().len(), 1);
    let ran = folder.run("info v4 other --memory-cap 1k").ok();
    assert!(ran.stdout.contains("2 FIBs in one, IPv4: can't be built: sail-m"), "{ran:?}");
}

#[test]
fn bad_use_is_refused() {
    let folder = folder();
    for verb in ["lookup 10.0.0.1", "replay"] {
        folder.run(&format!("{verb} --fib v4 --fib other --engine forest")).refused(&["Vrfs", "sail-m"]);
        folder.run(&format!("{verb} --fib v4 --fib other --engine sail-l")).refused(&[
            "sail-l",
            "2 are given",
            "sail-m",
        ]);
        folder.run(&format!("{verb} --fib v4 --fib absent")).refused(&["absent"]);
        folder.run_with(&format!("{verb} --fib - --fib -"), V4.as_bytes()).refused(&["standard input"]);
    }
    folder.run("lookup --fib v4 --fib other --in 2 10.0.0.1").refused(&["--in 2", "2 FIBs"]);
    folder.run("lookup --fib v4 --in 1 10.0.0.1").refused(&["--in 1", "1 FIB"]);
    folder.run("lookup --fib v4 --in 65536 10.0.0.1").status(2);
    folder.run("lookup --image x.img --in 0 10.0.0.1").status(2);
    folder.run("info").status(2);
    folder.run("replay --fib v4 --fib other --memory-cap 1k").refused(&["sail-m", "cap"]);
    folder.run("replay --fib v4 --fib v6 --family 4").refused(&["FIB 1", "empty"]);
}

#[test]
fn several_fibs_are_the_vrfs_of_one_image() {
    let folder = Folder::new();
    folder.write("red", "10.0.0.0/8 gate-a\n10.1.0.0/16 gate-b\n2001:db8::/32 gate-a\n");
    folder.write("blue", "10.0.0.0/8 gate-b\n10.2.0.0/16 gate-c\n");
    let built = folder.run("build --fib red --fib blue -o vrfs.img --json").ok().json()[0].clone();
    assert_eq!((&built["format"], &built["vrfs"]), (&"image".into(), &2.into()), "{built}");
    assert_eq!((&built["ipv4_prefixes"], &built["ipv6_prefixes"]), (&4.into(), &1.into()), "{built}");
    // Next hops of one text are one, whichever table has them first.
    for (vrf, address, next_hop) in [
        (0, "10.1.2.3", "gate-b"),
        (0, "10.2.0.1", "gate-a"),
        (0, "2001:db8::1", "gate-a"),
        (1, "10.1.2.3", "gate-b"),
        (1, "10.2.0.1", "gate-c"),
    ] {
        let one = folder.run(&format!("lookup --image vrfs.img --vrf {vrf} --json {address}")).ok();
        assert_eq!(one.json()[0]["next_hop"], next_hop, "VRF {vrf}, {address}");
        // The answer is that of the tables themselves.
        let same = folder.run(&format!("lookup --fib red --fib blue --in {vrf} --json {address}")).ok();
        assert_eq!(same.json()[0]["next_hop"], next_hop, "VRF {vrf}, {address}");
    }
    let told = folder.run("build --fib red --fib blue --family 4 --prefix-lookups -o four.img").ok().stdout;
    assert!(told.contains("four.img: image of 2 VRFs, 4 IPv4 and 0 IPv6 prefixes"), "{told}");

    folder.run("build --fib - --fib - -o none.img").refused(&["standard input"]);
    folder.write("holes", "10.0.0.0/8 gate-a\n10.1.0.0/99 gate-b\n");
    for (options, said) in [
        ("--fib blue --engine fold", "--engine fold"),
        ("--fib blue --to csv", "--to csv"),
        ("--fib blue --strides 16,8,8", "--strides"),
        ("--fib holes", "holes"),
        ("--fib holes --lenient", "1 line left out"),
        ("--fib red --memory-cap 1k", "over the cap of 1k"),
    ] {
        folder.run(&format!("build --fib red {options} -o none.img")).refused(&[said]);
        assert!(!folder.path("none.img").exists(), "{options}");
    }
}
