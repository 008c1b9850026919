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
    let ran = folder.run("info v4").ok();
    for part in ["6 prefixes", "/25", "192.0.2.1", "sail-l", "bcn16", "B a prefix"] {
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
