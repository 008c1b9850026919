//! `names replay`.

use serde_json::Value;

use super::folder;
use crate::common::Folder;

/// One replay's object, with the keys that scripts rely on.
#[track_caller]
fn replay(folder: &Folder, arguments: &str) -> Value {
    let ran = folder.run(&format!("names replay --json {arguments}")).ok();
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
    report
}

#[test]
fn one_pass_gives_the_sum_of_what_lookup_gives() {
    let folder = folder();
    // Results by first appearance: core-1 is 1, core-2 is 2, core-3 is 3. In any form of names.
    folder.write("trace", "/com/parc/www/a\n/com/abc\n/net\n/org/example/x\n/com/parc\n");
    folder.write("urls", "http://www.parc.com/a\nabc.com\nnet\nexample.org/x\nparc.com:80/\n");
    for options in
        ["--threads 1", "--threads 3 --batch 2", "--threads 7 --batch 1", "--engine mata --device cpu"]
    {
        for trace in ["trace", "urls"] {
            let report = replay(&folder, &format!("--table table --trace {trace} --seconds 0.05 {options}"));
            assert_eq!(report["checksum"], 3 + 1 + 2 + 2, "{options}");
            assert_eq!((&report["hit_share"], &report["keys"]), (&0.8.into(), &5.into()), "{options}");
            assert!(report["matched_length"].is_null());
        }
    }
    let report = replay(&folder, "--table table --trace trace --seconds 0.05 --lengths");
    assert_eq!(
        (&report["checksum"], &report["matched_length"]["sum"]),
        (&8.into(), &(13 + 4 + 12 + 9).into())
    );
    assert_eq!(report["matched_length"]["mean"], 38.0 / 4.0);
}

#[test]
fn the_checksum_is_that_of_the_table_after_the_updates() {
    let folder = folder();
    folder.write("trace", "/com/parc/www/a\n/com/abc\n/net/x\n/com/ab/c\n");
    // core-9 is new and so number 4.
    for engine in ["acta", "mata", "stt"] {
        for options in ["", "--rate max", "--rate 1000", "--rate 1", "--threads 2 --batch 1", "--lengths"] {
            let report = replay(
                &folder,
                &format!(
                    "--table table --trace trace --updates updates --seconds 0.1 --engine {engine} {options}"
                ),
            );
            assert_eq!(report["checksum"], 4 + 1 + 1, "{engine} {options}");
        }
    }
    let once = replay(&folder, "--table table --trace trace --updates updates --seconds 0.1");
    assert_eq!(once["updates"]["applied"], 4);
    let again = replay(&folder, "--table table --trace trace --updates updates --seconds 0.1 --rate max");
    assert!(again["updates"]["applied"].as_u64().unwrap() > 4, "{again}");
}

#[test]
fn engines_agree_on_made_tables_traces_and_updates() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    let folder = folder();
    folder.write("paths", "example.com/a/b\nexample.org/c?d\n");
    for trace in ["average", "heavy", "zipf:1.1", "average --paths paths --misses 0.3", "heavy --paths none"]
    {
        let mut sums = Vec::new();
        for options in [
            "--engine acta --threads 2 --batch 100",
            "--engine mata",
            "--engine ata-2 --threads 1",
            "--engine mata-nw",
        ] {
            let common =
                format!("--names 3k --trace {trace} --keys 5k --updates synth:500 --seed 7 --seconds 0.05");
            let report = replay(&folder, &format!("{common} {options}"));
            sums.push((report["checksum"].clone(), report["hit_share"].clone()));
        }
        assert!(sums.iter().all(|sum| *sum == sums[0]), "{trace}: {sums:?}");
    }
    let misses = replay(&folder, "--names 3k --misses 0.3 --keys 5k --seconds 0.02");
    assert!((0.6..0.8).contains(&misses["hit_share"].as_f64().unwrap()), "{misses}");
}

#[test]
fn an_image_replays_as_its_source() {
    let folder = folder();
    for table in ["table", "domains"] {
        folder.run(&format!("names build --table {table} -o {table}.img")).ok();
        let from_source = replay(&folder, &format!("--table {table} --keys 1k --seconds 0.02"));
        let from_image = replay(&folder, &format!("--image {table}.img --keys 1k --seconds 0.02 --lengths"));
        assert_eq!(from_source["checksum"], from_image["checksum"]);
        assert_eq!(from_image["hit_share"], 1.0);
    }
}

#[test]
fn an_aggregated_table_has_the_checksum_of_the_whole() {
    let folder = folder();
    let common = "--names 3k --keys 5k --seconds 0.05 --misses 0.1";
    for updates in ["", "--updates synth:500"] {
        let whole = replay(&folder, &format!("{common} {updates}"));
        for engine in ["acta", "mata-nw", "stt"] {
            let less = replay(&folder, &format!("{common} {updates} --engine {engine} --aggregate"));
            assert_eq!(
                (&less["checksum"], &less["hit_share"]),
                (&whole["checksum"], &whole["hit_share"]),
                "{engine} {updates}"
            );
        }
    }
    folder.write("trace", "/com/ab/c\n/com/parc\n");
    let report = replay(&folder, "--table table --trace trace --seconds 0.02 --lengths --aggregate");
    assert_eq!(report["matched_length"]["sum"], 4 + 9, "of the names that are left");
    folder.run("names build --table table --aggregate --engine mata-nw -o small.img").ok();
    let report = replay(&folder, "--image small.img --trace trace --seconds 0.02");
    assert_eq!((&report["checksum"], &report["engine"]), (&3.into(), &"mata-nw".into()));
    // A made trace is of all names.
    replay(&folder, "--image small.img --keys 1k --seconds 0.02");
    folder.run("names replay --image small.img --aggregate").status(2);
}

#[test]
fn a_rate_is_held_within_a_bound() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    let report = replay(
        &folder(),
        "--table table --keys 1k --latency-bound 50ms --batch 64 --threads 1 --seconds 0.05",
    );
    assert_eq!(report["latency_bound"]["us"], 50_000.0);
    assert!(report["latency_us"]["p99"].as_f64().unwrap() <= 50_000.0, "{report}");
}

#[test]
fn people_get_text_and_talk_goes_to_stderr() {
    let ran = folder().run("names replay --table table --keys 1k --seconds 0.02 --lengths").ok();
    for word in ["rate", "latency", "hits", "updates", "lengths", "checksum"] {
        assert!(ran.stdout.contains(word), "{word}: {ran:?}");
    }
    for word in ["built in", "B a name", "trace: average, 1,000 names"] {
        assert!(ran.stderr.contains(word), "{word}: {ran:?}");
    }
}

#[test]
fn what_this_build_does_not_have_is_refused() {
    let folder = folder();
    let ran = folder.run("names replay --table table --engine sail-l").status(2);
    assert!(ran.stderr.contains("auto, acta, mata"), "{ran:?}");
    for wrong in [
        "--batch 0",
        "--threads 0",
        "--seconds -1",
        "--rate 5",
        "--keys x",
        "--trace zipf:x",
        "--misses 2",
        "--names 5",
    ] {
        folder.run(&format!("names replay --table table {wrong}")).status(2);
    }
    folder.run("names replay --table table --memory-cap 1k").refused(&["cap"]);
    folder.run("names replay --table table --latency-bound 1ms --updates updates").refused(&["--rate"]);
}
