//! `devices`, and `--device` and `--latency-bound` of other verbs, on machines with a GPU and without.

use serde_json::Value;

use crate::common::Folder;

/// Why no GPU is usable here; `None` where one is.
fn why_none(folder: &Folder) -> Option<String> {
    let ran = folder.run("devices --json");
    let reports = ran.json();
    let is_usable = reports.iter().any(|report| report["usable"] == true);
    (!is_usable).then(|| reports[0]["why_not"].as_str().unwrap().to_owned())
}

#[test]
fn devices_are_listed_or_explained() {
    let folder = Folder::new();
    let ran = folder.run("devices");
    match why_none(&folder) {
        None => {
            assert!(ran.ok().stdout.contains("usable"));
            let reports = folder.run("devices --json").ok().json();
            assert!(reports.iter().any(|report| report["usable"] == true && report["name"].is_string()));
        }
        Some(why) => {
            // Without a driver, or without a GPU, nothing is broken.
            let is_well = why.contains("libcuda can't be opened") || why.contains("sees no GPU");
            let ran = ran.status(i32::from(!is_well));
            assert!(ran.stdout.contains(&why) && ran.stdout.contains("usable"), "{ran:?}");
        }
    }
}

#[test]
fn the_choice_for_a_table_is_told() {
    let folder = Folder::new();
    folder.write("fib.txt", "10.0.0.0/8 192.0.2.1\n2001:db8::/32 2001:db8::1\n");
    for (family, options) in [(4, ""), (6, "--family 6")] {
        let ran = folder.run(&format!("devices --fib fib.txt {options} --json")).ok();
        let report = &ran.json()[0];
        assert_eq!(report["family"], family);
        assert!(report["suited_keys"].as_u64().unwrap() > 0);
        let batches = report["batches"].as_array().unwrap();
        match why_none(&folder) {
            Some(why) => assert!(batches.is_empty() && report["cpu_alone"] == why),
            None => assert!(batches.iter().all(|batch| batch["cpu_us"].as_f64().unwrap() > 0.0)),
        }
        let text = folder.run(&format!("devices --fib fib.txt {options}")).ok().stdout;
        assert!(text.starts_with(&format!("IPv{family}, ")), "{text}");
    }
    let files = [
        ("names", "/com/example 1\n/com/other 2\n", "names, "),
        ("hosts", "0.0.0.0 ads.example\n0.0.0.0 more.example\n", "names, "),
        ("rules", "dport=443 proto=tcp action=1\n", "rules, ipv4 tuples, "),
        ("flows", "priority=1,ip actions=drop\n", "rules, openflow tuples, "),
    ];
    for (name, content, start) in files {
        folder.write(name, content);
        let report = &folder.run(&format!("devices --table {name} --json")).ok().json()[0];
        assert!(start.starts_with(report["keys"].as_str().unwrap()), "{report}");
        assert!(report["suited_keys"].as_u64().unwrap() > 0 && report["in_flight"].as_u64().unwrap() > 0);
        assert!(report.get("family").is_none(), "{report}");
        let batches = report["batches"].as_array().unwrap();
        match why_none(&folder) {
            Some(why) => assert!(batches.is_empty() && report["cpu_alone"] == why),
            None => assert!(batches.iter().all(|batch| batch["feed_us"].as_f64().unwrap() > 0.0)),
        }
        let text = folder.run(&format!("devices --table {name}")).ok().stdout;
        assert!(text.starts_with(start), "{text}");
    }
    folder.write("wrong", "0.0.0.0 ads.example\n0.0.0.0 a..b\n0.0.0.0 more.example\n");
    folder.run("devices --table wrong").refused(&["wrong:2"]);
    folder.run("devices --table wrong --lenient").ok();
    folder.run("devices --table rules --family 4").refused(&["rules", "unknown format"]);
    folder.run("devices --fib missing.txt").refused(&["missing.txt"]);
    folder.run("devices --family 6").refused(&["go with --fib"]);
    folder.run("devices --lenient").refused(&["go with --fib"]);
}

#[test]
fn a_gpu_that_is_asked_for_has_to_be_there() {
    let folder = Folder::new();
    let Some(why) = why_none(&folder) else {
        eprintln!("skipped: there is a GPU");
        return;
    };
    for verb in [
        "replay --fib v4",
        "replay --fib no-such-file",
        "verify --fib v4",
        "verify --fib v4 --exhaustive",
        "lookup --fib v4 192.0.2.1",
        "route --app esp --sad no-such-file",
    ] {
        folder.run(&format!("{verb} --device gpu")).refused(&["--device gpu", &why]);
    }
    folder.run("build --fib v4 -o v4.img").ok();
    folder.run("replay --image v4.img --device gpu").refused(&["--device gpu", &why]);
    folder.write("names", "/com 1\n");
    folder.run("names build --table names -o names.img").ok();
    for verb in [
        "replay --table names",
        "replay --table no-such-file",
        "replay --image names.img",
        "verify --table names",
        "lookup --table names /com",
        "lookup --image names.img /com",
    ] {
        folder.run(&format!("names {verb} --device gpu")).refused(&["--device gpu", &why]);
    }
    for verb in ["lookup --fib v4 192.0.2.1", "names lookup --table names /com"] {
        folder.run(&format!("{verb} --device gpu --explain")).refused(&["--explain", "--device cpu"]);
    }
}

#[test]
fn several_fibs_stay_on_the_cpu() {
    let folder = Folder::new();
    let both = "replay --fib v4 --fib v4 --keys 1k --seconds 0.02 --json";
    folder.run(&format!("{both} --device gpu")).refused(&["several FIBs", "CPU"]);
    folder.run(&format!("{both} --in-flight 2")).refused(&["--in-flight", "several FIBs"]);
    folder.run("lookup --fib v4 --fib v4 --device gpu 192.0.2.1").refused(&["--device gpu", "one FIB"]);
    assert_eq!(folder.run(both).ok().json()[0]["device"], "cpu");
}

#[test]
fn auto_takes_the_cpu_where_there_is_no_gpu_and_says_so_once() {
    let folder = Folder::new();
    let Some(why) = why_none(&folder) else {
        eprintln!("skipped: there is a GPU");
        return;
    };
    let ran = folder.run("replay --fib v4 --keys 1k --seconds 0.02 --device auto --json").ok();
    assert_eq!(ran.stderr.matches("lookups run on the CPU").count(), 1, "{ran:?}");
    assert!(ran.stderr.contains(&why), "{ran:?}");
    let report = &ran.json()[0];
    assert!(report["device"] == "cpu" && report.get("gpu").is_none(), "{report}");
    let ran = folder.run("names replay --names 1k --count 1k --seconds 0.02 --device auto --json").ok();
    assert_eq!(ran.stderr.matches("lookups run on the CPU").count(), 1, "{ran:?}");
    assert!(ran.stderr.contains(&why) && ran.json()[0]["device"] == "cpu", "{ran:?}");
    for run in [
        "replay --fib v4 --count 1k",
        "replay --fib v4 --count 1k --device cpu",
        "names replay --names 1k --count 1k",
    ] {
        let ran = folder.run(&format!("{run} --seconds 0.02 --json")).ok();
        assert!(!ran.stderr.contains("GPU"), "nobody asked for one: {ran:?}");
        assert_eq!(ran.json()[0]["device"], "cpu");
    }
}

/// Compares checksums of the CPU and of a GPU, where there is one.
#[test]
fn a_gpu_gives_the_checksum_of_the_cpu() {
    let folder = Folder::new();
    if let Some(why) = why_none(&folder) {
        eprintln!("skipped: {why}");
        return;
    }
    for table in ["v4 --updates updates", "v6"] {
        let run = |device: &str| -> Value {
            let common = format!("--fib {table} --keys 100k --seconds 0.2 --json");
            folder.run(&format!("replay {common} --device {device}")).ok().json()[0].clone()
        };
        let (cpu, gpu, auto) = (run("cpu"), run("gpu"), run("auto"));
        assert_eq!((&gpu["checksum"], &auto["checksum"]), (&cpu["checksum"], &cpu["checksum"]));
        assert!(gpu["device"] == "gpu" && gpu["gpu"]["share"] == 1.0, "{gpu}");
        assert!(auto["device"] == "auto" && auto["gpu"]["name"].is_string(), "{auto}");
        folder.run(&format!("verify --fib {table} --device gpu")).ok();
    }
    for options in ["--updates synth:1k", "--aggregate --lengths", "--engine mata-nw"] {
        let run = |device: &str| -> Value {
            let common = format!("--names 10k --keys 100k --seconds 0.2 --json {options}");
            folder.run(&format!("names replay {common} --device {device}")).ok().json()[0].clone()
        };
        let (cpu, gpu, auto) = (run("cpu"), run("gpu"), run("auto"));
        assert_eq!((&gpu["checksum"], &auto["checksum"]), (&cpu["checksum"], &cpu["checksum"]));
        assert_eq!(gpu["matched_length"], cpu["matched_length"]);
        assert!(gpu["device"] == "gpu" && gpu["gpu"]["share"] == 1.0, "{gpu}");
    }
    folder.write("names", "/com 1\n/com/parc 2\n/com/ab 1\n");
    folder.run("names verify --table names --device gpu --aggregate").ok();
    folder.run("names lookup --table names --device gpu /com/parc/www").ok();
}

#[test]
fn a_rate_is_found_and_held_within_a_bound_on_latency() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    let folder = Folder::new();
    let common = "replay --fib v4 --keys 20k --threads 1 --device cpu --json";
    let plain = folder.run(&format!("{common} --seconds 0.05")).ok().json()[0].clone();
    for options in ["--batch 512", "--batch 512 --updates updates --rate 100"] {
        let ran = folder.run(&format!("{common} --seconds 0.3 --latency-bound 100ms {options}")).ok();
        let report = &ran.json()[0];
        let number = |of: &Value, key: &str| of[key].as_f64().unwrap();
        assert_eq!(number(&report["latency_bound"], "us"), 100_000.0, "{report}");
        assert!(number(&report["latency_us"], "p99") <= 100_000.0, "{report}");
        assert_eq!(report["latency_bound"]["held"], true, "{report}");
        let offered = number(&report["latency_bound"], "mlookups_per_s");
        let came = number(report, "mlookups_per_s");
        assert!(offered > 0.0 && (0.5..1.1).contains(&(came / offered)), "{report}");
        assert_eq!(report["batch"], 512);
        if !options.contains("updates") {
            assert_eq!(report["checksum"], plain["checksum"]);
        } else {
            assert!(report["updates"]["applied"].as_u64().unwrap() > 0, "{report}");
        }
    }
    let text = folder.run("replay --fib v4 --keys 100 --seconds 0.1 --latency-bound 100ms --device cpu").ok();
    assert!(text.stdout.contains("bound     p99 under 100000 µs"), "{text:?}");
}

#[test]
fn a_bound_that_nothing_keeps_is_told() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    let folder = Folder::new();
    let run =
        "replay --fib v4 --keys 400k --batch 400k --threads 1 --seconds 0.1 --device cpu --latency-bound 1us";
    let ran = folder.run(&format!("{run} --json")).ok();
    let report = &ran.json()[0];
    assert_eq!(report["latency_bound"]["held"], false, "{report}");
    assert!(report["latency_us"]["p99"].as_f64().unwrap() > 1.0, "{report}");
    assert!(folder.run(run).ok().stdout.contains("bound     p99 under 1 µs, not held, not even at"));
    // A rate too low for millions is told all the same.
    let one = "replay --fib v4 --keys 1 --threads 1 --seconds 0.01 --device cpu --latency-bound 1us";
    let said = folder.run(one).ok().stdout;
    assert!(!said.contains(" 0.0 M"), "{said}");
}

#[test]
fn a_replay_tells_what_it_costs_the_cpu() {
    let folder = Folder::new();
    let ran = folder.run("replay --fib v4 --keys 100k --threads 1 --seconds 0.5 --device cpu --json").ok();
    let report = &ran.json()[0];
    let number = |key: &str| report[key].as_f64().unwrap();
    // One thread looks up all the time, beside one that waits.
    let cpu = number("cpu_s_per_glookups") * number("mlookups_per_s") / 1e3;
    assert!((0.1..1.3).contains(&cpu), "{cpu} CPU seconds a second: {report}");
}

#[test]
fn bad_values_are_refused() {
    let folder = Folder::new();
    for wrong in [
        "--latency-bound 100",
        "--latency-bound us",
        "--latency-bound 0us",
        "--latency-bound -1ms",
        "--latency-bound 2h",
        "--latency-bound 61s",
        "--latency-bound NaNs",
        "--in-flight 0",
        "--in-flight 2 --device cpu",
        "--transfer mapped --device cpu",
        "--device tpu",
    ] {
        folder.run(&format!("replay --fib v4 {wrong}")).status(2);
    }
    folder.run("verify --fib v4 --device auto").status(2);
    folder
        .run("replay --fib v4 --updates updates --device cpu --latency-bound 1ms")
        .refused(&["--latency-bound", "--rate"]);
}
