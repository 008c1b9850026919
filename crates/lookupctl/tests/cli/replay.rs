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

/// A table of `auto` grows past the engine of small tables, and the checksum is that of any engine.
#[test]
fn auto_chooses_again_while_updates_go_in() {
    use std::fmt::Write;
    let folder = Folder::new();
    let (mut updates, mut trace) = (String::new(), String::new());
    for n in 0..600 {
        writeln!(updates, "A 10.{}.{}.0/24 192.0.2.{}", n / 256, n % 256, n % 7).unwrap();
        writeln!(updates, "A 2001:db8:{n:x}::/48 192.0.2.{}", n % 5).unwrap();
        writeln!(trace, "10.{}.{}.9\n2001:db8:{n:x}::9", n / 256, n % 256).unwrap();
    }
    folder.write("more", &updates);
    folder.write("trace", &trace);
    let run = |fib: &str, engine: &str| {
        let options = format!("--fib {fib} --trace trace --updates more --seconds 0.05 --engine {engine}");
        replay(&folder, &options)
    };
    let (one, named) = (run("v4", "auto"), run("v4", "fold"));
    assert_eq!((&one["began_with"], &one["engine"]), (&"forest".into(), &"fold".into()), "{one}");
    assert_eq!((&named["began_with"], &one["checksum"]), (&Value::Null, &named["checksum"]), "{named}");
    assert!(one["updates"]["rebuilds"].as_u64() > Some(0), "{one}");
    let (both, named) = (run("both", "auto"), run("both", "fold"));
    assert_eq!((&both["began_with"], &both["engine"]), (&"forest".into(), &"fold".into()), "{both}");
    for family in both["families"].as_array().unwrap() {
        assert_eq!((&family["began_with"], &family["engine"]), (&"forest".into(), &"fold".into()), "{both}");
    }
    assert_eq!(both["checksum"], named["checksum"]);
    // Few updates change nothing.
    let few = replay(&folder, "--fib v4 --trace trace --updates updates --seconds 0.02");
    assert_eq!((&few["began_with"], &few["engine"]), (&Value::Null, &"forest".into()), "{few}");
    let ran = folder.run("replay --fib v4 --trace trace --updates more --seconds 0.02").ok();
    assert!(ran.stdout.contains("engine    forest at the start, fold at the end"), "{ran:?}");
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
    assert_eq!(of("--fib both --trace mixed"), (5, 0), "all keys count");
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

/// A table of both families, its image and a trace of both: any way of driving gives the sum of what each
/// family gives alone.
#[test]
fn both_families_are_replayed_in_one_run() {
    let folder = Folder::new();
    // Next hops of the file by number: 10.1.2.3 core-7 is 4, 203.0.113.1 is 2, 2001:db8:1::9 is 6 and so on.
    folder.write(
        "mixed",
        "10.1.2.3\n2001:db8::1\n203.0.113.1\n2001:db8::2\n::1\n10.9.9.9\n2001:db8:1::9\n11.0.0.1\n10.1.2.9\n",
    );
    folder.run("build --fib both -o both.img").ok();
    let alone = |family: u8| {
        let line = format!("--fib both --trace mixed --family {family} --seconds 0.02");
        let report = replay(&folder, &line);
        assert!(report.get("families").is_none(), "{report}");
        report["checksum"].as_u64().unwrap()
    };
    let sum = alone(4) + alone(6);
    assert!(alone(4) > 0 && alone(6) > 0);
    let options = [
        "--threads 2 --batch 2",
        "--threads 1",
        "--threads 1 --batch 1",
        "--device auto --in-flight 2",
        "--threads 3 --batch 4",
        "--device cpu",
        "--engine waldvogel",
        "--latency-bound 1s --threads 1 --batch 4",
    ];
    for options in options.into_iter().step_by(rounds::plain_step(3)) {
        for table in ["--fib both", "--image both.img"] {
            if table.contains("image") && options.contains("engine") {
                continue;
            }
            let report = replay(&folder, &format!("{table} --trace mixed --seconds 0.02 {options}"));
            let context = format!("{table} {options}: {report}");
            assert_eq!((&report["checksum"], &report["keys"]), (&sum.into(), &9.into()), "{context}");
            assert_eq!(report["hit_share"], 7.0 / 9.0, "{context}");
            let families = report["families"].as_array().unwrap();
            let keys: Vec<_> = families.iter().map(|of| (&of["family"], &of["keys"])).collect();
            assert_eq!(keys, [(&4.into(), &5.into()), (&6.into(), &4.into())], "{context}");
        }
    }
    let ran = folder.run("replay --fib both --trace mixed --seconds 0.02").ok();
    assert!(ran.stdout.contains("families  5 keys of IPv4, 4 keys of IPv6"), "{ran:?}");
    assert!(ran.stderr.contains("taking both") && ran.stderr.contains("5 IPv4 and 4 IPv6 keys"), "{ran:?}");
    let auto = replay(&folder, "--fib both --trace mixed --engine auto --seconds 0.02");
    assert_eq!(auto["engine"], auto["families"][0]["engine"], "one name if both have one engine: {auto}");
    folder.run("replay --fib both --engine rank").refused(&["\"rank\" for IPv6", "--family"]);
}

/// Updates of both families go in together, those that are made, too.
#[test]
fn updates_of_both_families_go_in() {
    let folder = Folder::new();
    folder.write(
        "ups",
        "A 10.1.2.0/24 192.0.2.9\nA 2001:db8:2::/48 192.0.2.9\nW 10.1.2.3/32\nW 2001:db8:1::/48\n",
    );
    folder.write("trace", "10.1.2.3\n2001:db8:2::1\n10.1.2.200\n2001:db8:1::9\n203.0.113.1\n");
    let alone = |family: u8| {
        let line = format!("--fib both --trace trace --updates ups --family {family} --seconds 0.05");
        replay(&folder, &line)["checksum"].as_u64().unwrap()
    };
    let sum = alone(4) + alone(6);
    assert_ne!(replay(&folder, "--fib both --trace trace --seconds 0.02")["checksum"], sum);
    for options in ["", "--rate max", "--rate 1000", "--threads 2 --batch 2"] {
        let line = format!("--fib both --trace trace --updates ups --seconds 0.05 {options}");
        assert_eq!(replay(&folder, &line)["checksum"], sum, "{options}");
    }
    let report = replay(&folder, "--fib both --trace trace --updates ups --seconds 0.05");
    assert_eq!(report["updates"]["applied"], 4);
    let report = replay(&folder, "--fib both --count 1000 --updates synth:100 --seconds 0.05");
    assert_eq!(report["updates"]["applied"], 100);
}

/// Keys that are made are of each family in proportion to its prefixes.
#[test]
fn a_made_trace_is_of_both_families() {
    let folder = Folder::new();
    folder.run("build --fib both -o both.img").ok();
    for table in ["--fib both", "--image both.img"] {
        for trace in ["prefix", "random", "zipf:1", "deepest"] {
            let of = |options: &str| {
                replay(&folder, &format!("{table} --trace {trace} --count 1000 --seconds 0.02 {options}"))
            };
            let (report, again) = (of("--threads 1"), of("--threads 2 --batch 7"));
            assert_eq!(report["checksum"], again["checksum"], "{table} {trace}");
            let keys = |at: usize| report["families"][at]["keys"].as_u64().unwrap();
            assert_eq!((keys(0), keys(1)), (600, 400), "6 and 4 prefixes: {table} {trace}");
        }
    }
    folder.run("replay --fib both --count 1").refused(&["--count 1", "2 keys"]);
}

#[test]
fn keys_miss_in_an_image_of_both_families_without_routes_of_one() {
    let folder = Folder::new();
    let routes = [("10.0.0.0/8".parse::<wirespeed::prelude::IpNet>().unwrap(), wirespeed::NextHop(7))];
    let table = wirespeed::IpTable::builder().routes(routes).build().unwrap();
    table.save(folder.path("four.img")).unwrap();
    folder.write("mixed", "10.1.2.3\n2001:db8::1\n11.0.0.1\n::1\n");
    let ran = folder.run("replay --image four.img --trace mixed --seconds 0.02 --json").ok();
    assert!(ran.stderr.contains("no IPv6 prefix: 2 keys of the trace miss"), "{ran:?}");
    let report = &ran.json()[0];
    assert_eq!((&report["keys"], &report["hit_share"]), (&4.into(), &0.25.into()), "{report}");
    assert_eq!(replay(&folder, "--image four.img --count 10 --seconds 0.02")["hit_share"], 1.0);
}

#[test]
fn packed_keys_for_both_families_need_a_family() {
    let folder = Folder::new();
    folder.run("gen trace --fib v6 --count 100 --to bin -o six.bin").ok();
    std::fs::copy(folder.path("six.bin"), folder.path("six")).unwrap();
    folder.run("build --fib both -o both.img").ok();
    let right = replay(&folder, "--fib both --family 6 --trace six.bin --seconds 0.02")["checksum"].clone();
    assert!(right.as_u64().unwrap() > 0);
    for table in ["--fib both", "--image both.img", "--fib both --fib both"] {
        for trace in ["six.bin", "six"] {
            folder
                .run(&format!("replay {table} --trace {trace}"))
                .refused(&[trace, "--family 4 or --family 6"]);
            let line = format!("{table} --trace {trace} --family 6 --seconds 0.02");
            if !table.ends_with("--fib both --fib both") {
                assert_eq!(replay(&folder, &line)["checksum"], right, "{line}");
            }
        }
    }
    assert_eq!(
        replay(&folder, "--fib v6 --trace six.bin --seconds 0.02")["keys"],
        100,
        "one family is known"
    );
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
        // Each interrupt takes seconds: a plain run does that of a replay alone, and CI looks at the text of
        // replays without more.
        if (!updates.is_empty() || verb.contains("names")) && rounds::is_plain() {
            continue;
        }
        let is_bare = verb.ends_with("--count 1000") && updates.is_empty();
        let formats = if is_bare && !rounds::is_plain() || rounds::is_long() {
            &["--json", ""][..]
        } else {
            &["--json"]
        };
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

#[test]
fn merged_sources_replay_as_their_image() {
    let folder = Folder::new();
    folder.write("list", "10.1.2.0/24\n");
    folder.write("trace", "10.9.9.9\n10.1.2.3\n10.1.2.9\n11.0.0.1\n203.0.113.1\n");
    let merge = "--merge hop=v4 --merge listed=list";
    folder.run(&format!("build {merge} -o all.img")).ok();
    let [of_sources, of_image] = [format!("{merge} --format plain"), "--image all.img".to_owned()]
        .map(|table| replay(&folder, &format!("{table} --trace trace --seconds 0.01")));
    assert_eq!(of_sources["checksum"], of_image["checksum"]);
}
