//! `replay`.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use wirespeed_image::rounds;

use crate::common::Folder;

/// One replay's object, with the keys that scripts rely on.
#[track_caller]
fn replay(folder: &Folder, arguments: &str) -> Value {
    let ran = folder.run(&format!("replay --json {arguments}")).ok();
    let json = ran.json();
    assert_eq!(json.len(), 1, "{ran:?}");
    let report = json[0].clone();
    for key in ["engine", "device"] {
        assert!(report[key].is_string(), "{key}: {report}");
    }
    for key in ["threads", "batch", "lookups", "matched", "checksum"] {
        assert!(report[key].is_u64(), "{key}: {report}");
    }
    for key in ["seconds", "mlookups_per_s"] {
        assert!(report[key].as_f64().unwrap() > 0.0, "{key}: {report}");
    }
    let latency = |key: &str| report["latency_us"][key].as_f64().unwrap();
    assert!(0.0 < latency("p50") && latency("p50") <= latency("p99") && latency("p99") <= latency("max"));
    assert!(report["updates"]["applied"].is_u64() && report["updates"]["per_s"].is_number(), "{report}");
    assert!(report["matched"].as_u64() <= report["lookups"].as_u64());
    let rate = report["lookups"].as_f64().unwrap() / report["seconds"].as_f64().unwrap() / 1e6;
    assert!((rate / report["mlookups_per_s"].as_f64().unwrap() - 1.0).abs() < 1e-6, "{report}");
    report
}

#[test]
fn one_pass_gives_the_sum_of_what_lookup_gives() {
    let folder = Folder::new();
    // Next hops by first appearance: 192.0.2.1 is 1, .2 is 2, .3 is 3, core-7 is 4.
    folder.write("trace", "10.9.9.9\n10.1.2.3\n10.1.2.9\n11.0.0.1\n203.0.113.1\n");
    for options in
        ["--threads 1", "--threads 3 --batch 2", "--threads 7 --batch 1", "--engine sail-l --device cpu"]
    {
        let report = replay(&folder, &format!("--fib v4 --trace trace --seconds 0.05 {options}"));
        assert_eq!(report["checksum"], 1 + 4 + 3 + 2, "{options}");
        assert_eq!(report["hit_share"], 0.8, "{options}");
    }
}

#[test]
fn matched_is_a_share_of_all_lookups() {
    let folder = Folder::new();
    folder.write("trace", "10.9.9.9\n11.0.0.1\n10.1.2.9\n11.0.0.1\n");
    let report = replay(&folder, "--fib v4 --trace trace --seconds 0.05 --threads 1 --batch 2");
    assert_eq!(report["matched"].as_u64().unwrap() * 2, report["lookups"].as_u64().unwrap());
}

#[test]
fn the_checksum_is_that_of_the_table_after_the_updates() {
    let folder = Folder::new();
    folder.write("after", "10.0.0.0/8 1\n203.0.113.0/24 2\n10.1.2.9/32 3\n10.1.2.128/25 1\n10.1.2.0/24 5\n");
    folder.write("trace", "10.1.2.3\n10.1.2.200\n198.51.100.9\n10.1.200.1\n10.1.1.1\n203.0.113.1\n");
    // 192.0.2.9 is new and so number 5; 10.1.128.0/17 comes without a next hop and gets number 1.
    for options in ["", "--rate max", "--rate 1000", "--rate 1", "--threads 2 --batch 1"] {
        let report =
            replay(&folder, &format!("--fib v4 --trace trace --updates updates --seconds 0.1 {options}"));
        assert_eq!(report["checksum"], 5 + 1 + 1 + 1 + 1 + 2, "{options}");
    }
    let once = replay(&folder, "--fib v4 --trace trace --updates updates --seconds 0.1");
    assert_eq!(once["updates"]["applied"], 5);
    let again = replay(&folder, "--fib v4 --trace trace --updates updates --seconds 0.1 --rate max");
    assert!(again["updates"]["applied"].as_u64().unwrap() > 5, "{again}");
}

#[test]
fn traces_that_are_made_are_alike_for_alike_seeds() {
    let folder = Folder::new();
    for table in ["v4", "v6"] {
        for trace in ["random", "prefix", "zipf:1.1", "deepest"] {
            let checksum = |options: &str| {
                let common = format!("--fib {table} --trace {trace} --keys 20k --seconds 0.02");
                replay(&folder, &format!("{common} {options}"))["checksum"].clone()
            };
            assert_eq!(
                checksum("--seed 7 --threads 1"),
                checksum("--seed 7 --threads 2 --batch 100"),
                "{trace}"
            );
        }
    }
}

#[test]
fn an_image_replays_as_its_source() {
    let folder = Folder::new();
    for table in ["v4", "v6"] {
        folder.run(&format!("build --fib {table} -o {table}.img")).ok();
        let from_source = replay(&folder, &format!("--fib {table} --keys 10k --seconds 0.02"));
        let from_image = replay(&folder, &format!("--image {table}.img --keys 10k --seconds 0.02"));
        assert_eq!(from_source["checksum"], from_image["checksum"]);
        assert_eq!(from_source["hit_share"], 1.0);
    }
}

#[test]
fn people_get_text_and_talk_goes_to_stderr() {
    let ran = Folder::new().run("replay --fib both --family 6 --keys 1k --seconds 0.02").ok();
    for word in ["rate", "latency", "hits", "updates", "checksum"] {
        assert!(ran.stdout.contains(word), "{word}: {ran:?}");
    }
    assert!(ran.stderr.contains("built in") && ran.stderr.contains("IPv6"), "{ran:?}");
}

#[test]
fn what_this_build_does_not_have_is_refused() {
    let folder = Folder::new();
    let ran = folder.run("replay --fib v4 --engine poptrie").status(2);
    assert!(ran.stderr.contains("auto, fold"), "{ran:?}");
    for wrong in
        ["--batch 0", "--threads 0", "--seconds -1", "--rate 5", "--keys x", "--trace zipf:x", "--family 5"]
    {
        folder.run(&format!("replay --fib v4 {wrong}")).status(2);
    }
    folder.run("replay --fib v4 --memory-cap 1k").refused(&["cap"]);
}

#[test]
fn addresses_of_the_other_family_are_passed_over_and_counted() {
    let folder = Folder::new();
    folder.write("mixed", "10.1.2.3\n2001:db8::1\n203.0.113.1\n2001:db8::2\n::1\n");
    folder.write("six", "2001:db8::1\n2001:db8:1::9\n");
    let of = |options: &str| {
        let report = replay(&folder, &format!("--seconds 0.02 {options}"));
        (report["keys"].as_u64().unwrap(), report["other_family"].as_u64().unwrap())
    };
    assert_eq!(of("--fib v4 --trace mixed"), (2, 3));
    assert_eq!(of("--fib v6 --trace mixed"), (3, 2));
    assert_eq!(of("--fib both --trace mixed"), (2, 3));
    assert_eq!(of("--fib both --trace mixed --family 6"), (3, 2));
    assert_eq!(of("--fib both --trace six"), (2, 0), "the family that the trace has");
    assert_eq!(of("--fib both --count 10"), (10, 0));
    assert_eq!(of("--fib both --fib both --trace six"), (2, 0));
    folder.run("build --fib v4 -o v4.img").ok();
    assert_eq!(of("--image v4.img --trace mixed"), (2, 3));
    let six = std::fs::read(folder.path("six")).unwrap();
    let ran = folder.run_with("replay --fib both --trace - --seconds 0.02 --json", &six).ok();
    assert_eq!(
        ran.json()[0]["checksum"],
        replay(&folder, "--fib both --family 6 --trace six --seconds 0.02")["checksum"]
    );
    assert!(ran.stderr.contains("taking IPv6"), "{ran:?}");
    let ran = folder.run("replay --fib v4 --trace mixed --seconds 0.02").ok();
    assert!(ran.stderr.contains("3 of the other family skipped"), "{ran:?}");
    assert!(ran.stdout.contains("others    3 addresses of the trace are of the other family"), "{ran:?}");
    folder.run("replay --fib v4 --trace six").refused(&["six", "IPv6"]);
    folder.run("replay --fib both --family 4 --trace six").refused(&["six", "IPv6"]);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_it_with_what_was_measured() {
    let folder = Folder::new();
    folder.write("names", "/com 1\n/com/parc 2\n");
    for (verb, updates) in [
        ("replay --fib v4 --count 1000", ""),
        ("replay --fib v4 --count 1000", "--updates updates --rate 100"),
        ("replay --fib v4 --count 1000 --batch 64 --threads 1", "--latency-bound 1s"),
        ("names replay --table names --count 1000", ""),
    ] {
        // A plain run looks at the text of plain replays alone: each interrupt takes seconds.
        let is_plain = verb.ends_with("--count 1000") && updates.is_empty();
        let formats = if is_plain || rounds::is_long() { &["--json", ""][..] } else { &["--json"] };
        for json in formats {
            let line = format!("{verb} {updates} --seconds 600 {json}");
            let began = Instant::now();
            let child = Command::new(env!("CARGO_BIN_EXE_lookupctl"))
                .args(line.split_whitespace())
                .current_dir(folder.path(""))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            // Far longer than building takes; of a bound, than finding one.
            std::thread::sleep(Duration::from_secs(if updates.contains("bound") { 12 } else { 2 }));
            Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
            let ended = child.wait_with_output().unwrap();
            assert!(began.elapsed() < Duration::from_secs(60), "{line}: {:?}", began.elapsed());
            let (stdout, stderr) =
                (String::from_utf8(ended.stdout).unwrap(), String::from_utf8(ended.stderr).unwrap());
            assert_eq!(ended.status.code(), Some(130), "{line}: {stdout} {stderr}");
            if updates.contains("bound") && stdout.is_empty() {
                // A machine so busy that no rate was found by then.
                assert!(stderr.contains("interrupted before a rate was found"), "{line}: {stderr}");
                continue;
            }
            if json.is_empty() {
                assert!(stdout.starts_with("interrupted") && stdout.contains("checksum"), "{line}: {stdout}");
                continue;
            }
            let report: Value = serde_json::from_str(&stdout).unwrap();
            assert_eq!(report["interrupted"], true);
            assert!(report["lookups"].as_u64().unwrap() > 0, "{report}");
            assert!((0.01..60.0).contains(&report["seconds"].as_f64().unwrap()), "{report}");
        }
    }
    assert!(replay(&folder, "--fib v4 --count 100 --seconds 0.01").get("interrupted").is_none());
    assert!(folder.run("replay --help").ok().stdout.contains("130"));
}
