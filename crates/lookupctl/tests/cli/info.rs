//! `info`.

use crate::common::Folder;

#[test]
fn an_object_for_each_family() {
    let reports = Folder::new().run("info both --json").ok().json();
    assert_eq!(reports.len(), 2);
    for (report, (family, prefixes, bits)) in reports.iter().zip([(4, 6, 32), (6, 4, 128)]) {
        assert_eq!((&report["family"], &report["prefixes"]), (&family.into(), &prefixes.into()));
        assert_eq!(report["by_length"].as_array().unwrap().len(), bits + 1);
        for engine in report["engines"].as_array().unwrap() {
            assert!(engine["engine"].is_string() && engine["build_seconds"].is_f64(), "{engine}");
            assert!(engine["bytes_per_prefix"].as_f64().unwrap() > 0.0, "{engine}");
        }
    }
    let top = &reports[0]["top_next_hop_names"];
    assert_eq!((&top[0]["next_hop"], &top[0]["prefixes"]), (&"192.0.2.1".into(), &2.into()));
}

#[test]
fn text_for_people() {
    let folder = Folder::new();
    let ran = folder.run("info v4 --engine every").ok();
    for part in ["6 prefixes", "/25", "192.0.2.1", "sail-l", "B a prefix"] {
        assert!(ran.stdout.contains(part), "{part}: {ran:?}");
    }
    assert!(!ran.stdout.contains("bcn16"), "a line an engine: {ran:?}");
    let engines = ran.stdout.lines().filter(|line| line.contains("B a prefix")).count();
    assert!(engines > 5 && ran.stdout.lines().count() < 30 + engines, "{ran:?}");
    let ran = folder.run("info v4 --sections --engine sail-l").ok();
    assert!(ran.stdout.contains("  bcn16") && !ran.stdout.contains("gamt"), "{ran:?}");
    assert_eq!(folder.run("info v4 --engine auto").status, Some(2));
    let report = &folder.run("info v4 --engine gamt --json").ok().json()[0];
    assert_eq!(report["engines"].as_array().unwrap().len(), 1, "{report}");
    folder.write("few", "2001:db8::/32 a\n");
    let ran = folder.run("info few --engine fold").ok();
    for part in ["IPv6: 1 prefix, 1 next hop\n", ", under 0.000001 % of the space"] {
        assert!(ran.stdout.contains(part), "{part}: {ran:?}");
    }
    let ran = folder.run("info both --family 6").ok();
    assert!(!ran.stdout.contains("IPv4:") && ran.stdout.contains("IPv6"), "{ran:?}");
}

#[test]
fn what_was_skipped_is_counted() {
    let folder = Folder::new();
    folder.write("faulty", "10.0.0.0/8 a\n10.0.0.1/8 b\n11.0.0.0/33 c\n12.0.0.0/34 c\nx\n");
    let report = &folder.run("info faulty --lenient --json").ok().json()[0];
    let skipped: Vec<_> = report["skipped"].as_array().unwrap().iter().map(|s| s["count"].as_u64()).collect();
    assert_eq!(
        (report["prefixes"].as_u64(), skipped),
        (Some(1), vec![Some(1), Some(2), Some(1)]),
        "{report}"
    );
}

#[test]
fn an_engine_that_cannot_be_built_does_not_hide_the_rest() {
    let ran = Folder::new().run("info v4 --memory-cap 1k").ok();
    assert!(ran.stdout.contains("can't be built") && ran.stdout.contains("6 prefixes"), "{ran:?}");
}

#[test]
fn an_image_is_told() {
    let folder = Folder::new();
    folder.run("build --fib v4 --engine sail-l -o four.img").ok();
    folder.run("build --fib v6 -o six.img").ok();
    folder.run("classify gen rules --count 20 -o rules").ok();
    folder.run("classify build --rules rules -o rules.img").ok();
    let told = folder.run("info four.img six.img rules.img --json").ok().json();
    let keys = |at: usize, keys: [&str; 3]| keys.map(|key| told[at][key].clone());
    assert_eq!(
        keys(0, ["holds", "engine", "entries"]),
        ["addresses".into(), "sail-l".into(), serde_json::json!(6)]
    );
    assert_eq!(keys(0, ["family", "results", "kind"])[..2], [4.into(), serde_json::json!(4)]);
    assert_eq!(keys(1, ["holds", "family", "entries"]), ["addresses".into(), 6.into(), serde_json::json!(4)]);
    assert_eq!(
        keys(2, ["holds", "tuple", "entries"]),
        ["rules".into(), "ipv4".into(), serde_json::json!(20)]
    );
    for (report, name) in told.iter().zip(["four.img", "six.img", "rules.img"]) {
        assert_eq!(report["file_bytes"], std::fs::metadata(folder.path(name)).unwrap().len());
        assert!(!report["sections"].as_array().unwrap().is_empty() && report["kind"].is_string(), "{report}");
    }
    let ran = folder.run("info four.img").ok();
    let first = ran.stdout.lines().next().unwrap();
    assert!(
        first.starts_with("four.img: an image of addresses, sail-l (kind ")
            && first.contains("IPv4, 6 prefixes, 4 next hops"),
        "{first}"
    );
    assert!(ran.stdout.contains("  bcn16"), "{ran:?}");
    // Beside a table each is told.
    assert_eq!(folder.run("info v4 four.img --engine fold --json").ok().json().len(), 2);
}

#[test]
fn an_image_of_vrfs_is_told() {
    let folder = Folder::new();
    folder.vrfs("vrfs.img");
    let told = folder.run("info vrfs.img --json").ok().json();
    for (report, (family, entries)) in told.iter().zip([(4, 3), (6, 1)]) {
        let keys = ["holds", "kind", "engine"].map(|key| report[key].as_str().unwrap().to_owned());
        assert_eq!(keys, ["VRFs", &format!("forest-v{family}"), "forest"]);
        let numbers = ["family", "vrfs", "entries", "results"].map(|key| report[key].as_u64().unwrap());
        assert_eq!(numbers, [family, 2, entries, 2]);
    }
    let ran = folder.run("info vrfs.img").ok();
    let told = "vrfs.img: an image of VRFs, forest (kind forest-v4), IPv4, 2 VRFs, 3 prefixes, 2 next hops";
    assert!(ran.stdout.starts_with(told), "{ran:?}");
    folder.run("replay --image vrfs.img").refused(&["a table of VRFs", "a table of addresses is wanted"]);
}

#[test]
fn engines_have_a_standing_and_those_of_papers_are_asked_for() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    let folder = Folder::new();
    let engines = |options: &str| -> Vec<(String, String)> {
        let report = &folder.run(&format!("info v4 --json {options}")).ok().json()[0];
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let engines = report["engines"].as_array().unwrap();
        engines.iter().map(|engine| (text(&engine["engine"]), text(&engine["standing"]))).collect()
    };
    let (all, every) = (engines(""), engines("--engine every"));
    assert_eq!(all, engines("--engine all"));
    assert!(every.starts_with(&all) && every.len() > all.len(), "{every:?}");
    assert_eq!(all[0], ("fold".to_owned(), "recommended".to_owned()));
    assert!(every[all.len()..].iter().all(|(_, standing)| standing.starts_with("of a paper: ")), "{every:?}");
    let help = folder.run("info --help").ok().stdout;
    assert!(help.find("recommended") < help.find("of a paper"), "{help}");
}
