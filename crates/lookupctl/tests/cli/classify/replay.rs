//! `classify replay`.

use serde_json::Value;

use super::folder;
use crate::common::Folder;

/// One replay's object, with the keys that scripts rely on.
#[track_caller]
fn replay(folder: &Folder, arguments: &str) -> Value {
    let ran = folder.run(&format!("classify replay --device cpu --json {arguments}")).ok();
    let report = ran.json().remove(0);
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
    report
}

#[test]
fn one_pass_gives_the_sum_of_what_lookup_gives() {
    let folder = folder();
    for options in ["--threads 1", "--threads 3 --batch 2 --shuffle", "--engine bloom", "--engine quilt"] {
        let report = replay(&folder, &format!("--rules rules --trace trace --seconds 0.02 {options}"));
        assert_eq!(report["checksum"], 1 + 2 + 3 + 4, "{options}");
        assert_eq!((&report["hit_share"], &report["keys"]), (&0.8.into(), &5.into()), "{options}");
    }
}

#[test]
fn the_checksum_is_that_of_the_rules_after_the_updates() {
    let folder = folder();
    for engine in ["linear", "tuple", "bloom", "quilt"] {
        for options in ["", "--rate max", "--rate 1 --threads 2 --batch 1"] {
            let arguments =
                format!("--trace trace --updates changes --seconds 0.05 --engine {engine} {options}");
            let report = replay(&folder, &format!("--rules rules {arguments}"));
            // The rules that come after all others are 5 and 6, however often they come.
            assert_eq!(report["checksum"], 1 + 5 + 3 + 4 + 3, "{engine} {options}");
        }
    }
    let again = replay(&folder, "--rules rules --trace trace --updates changes --seconds 0.05 --rate max");
    assert!(again["updates"]["applied"].as_u64().unwrap() > 4, "{again}");
}

/// `applied` counts the updates that were taken, whether there was something to change or not, as with routes
/// and names. Of rules it is told how many changed nothing.
#[test]
fn a_rule_that_is_not_there_is_taken_out_in_vain_and_told() {
    let folder = folder();
    folder.write("vain", "W number=2\nW number=2\nA number=9 udp\nW number=9\nW number=77\n");
    let run = |updates: &str| {
        folder.run(&format!(
            "classify replay --rules rules --trace trace --updates {updates} --seconds 0.05 --json"
        ))
    };
    let ran = run("vain").ok();
    assert_eq!(ran.json()[0]["updates"]["applied"], 5);
    assert!(
        ran.stderr.contains(
            "vain: 5 updates, 2 take out a rule that is not there and change nothing, W number=2 first"
        ),
        "{ran:?}"
    );
    let ran = run("changes").ok();
    assert!(!ran.stderr.contains("not there"), "{ran:?}");
}

#[test]
fn engines_agree_on_made_sets_traces_and_updates() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    let folder = folder();
    for set in [
        "--set fw --set-count 300 --trace flows:5",
        "--set ipc --set-count 300 --tuple ipv6 --trace random",
        "--set classes --set-count 256 --classes 32 --full 4 --matching 8",
    ] {
        let mut sums = Vec::new();
        for options in ["--engine quilt --threads 2 --batch 100", "--engine bloom", "--engine linear"] {
            let report = replay(
                &folder,
                &format!("{set} --count 3k --updates synth:500 --seed 7 --seconds 0.03 {options}"),
            );
            sums.push((report["checksum"].clone(), report["hit_share"].clone()));
        }
        assert!(sums.iter().all(|sum| *sum == sums[0]), "{set}: {sums:?}");
    }
}

#[test]
fn an_image_replays_as_its_source() {
    let folder = folder();
    for rules in ["rules", "flows"] {
        folder.run(&format!("classify build --rules {rules} -o image")).ok();
        let from_source = replay(&folder, &format!("--rules {rules} --keys 1k --seconds 0.02"));
        let from_image = replay(&folder, "--image image --keys 1k --seconds 0.02");
        assert_eq!(from_source["checksum"], from_image["checksum"]);
        assert_eq!(from_image["hit_share"], 1.0);
    }
    folder.run("classify replay --image image --engine quilt").status(2);
    // Names that options had before.
    let before = replay(&folder, "--set fw --size 300 --keys 500 --seconds 0.02");
    let now = replay(&folder, "--set fw --set-count 300 --count 500 --seconds 0.02");
    assert_eq!((&before["checksum"], &before["keys"]), (&now["checksum"], &500.into()));
}

#[test]
fn a_rate_is_held_within_a_bound_and_people_get_text() {
    let folder = folder();
    let bound = "--keys 1k --latency-bound 50ms --batch 64 --threads 1 --seconds 0.05";
    let report = replay(&folder, &format!("--rules rules {bound}"));
    assert_eq!(report["latency_bound"]["us"], 50_000.0);
    assert!(report["latency_us"]["p99"].as_f64().unwrap() <= 50_000.0, "{report}");
    let ran = folder.run("classify replay --count 1k --seconds 0.02 --set-count 100 --set acl").ok();
    for word in ["rate", "latency", "hits", "updates", "checksum"] {
        assert!(ran.stdout.contains(word), "{word}: {ran:?}");
    }
    for word in ["synthetic set (acl): 100 rules", "B a rule", "trace: rules, 1,000 ipv4 tuples", "built in"]
    {
        assert!(ran.stderr.contains(word), "{word}: {ran:?}");
    }
}

#[test]
fn what_this_build_does_not_have_is_refused() {
    let folder = folder();
    let ran = folder.run("classify replay --rules rules --engine acta").status(2);
    assert!(ran.stderr.contains("auto, quilt, linear, bloom, tuple"), "{ran:?}");
    for wrong in [
        "--batch 0",
        "--trace flows:0",
        "--set nat",
        "--tuple ipv5",
        "--set-count 5",
        "--size 5",
        "--rate 5",
        "--count x",
    ] {
        folder.run(&format!("classify replay --rules rules {wrong}")).status(2);
    }
    folder.run("classify replay --rules rules --memory-cap 1k").refused(&["cap"]);
    folder.run("classify replay --rules rules --latency-bound 1ms --updates changes").refused(&["--rate"]);
    folder.run("classify replay --set fw --classes 4").refused(&["--set classes"]);
    folder.run("classify replay --set classes --set-count 4 --classes 9").refused(&["4 rules in 9 classes"]);
}
