//! `classify verify`.

use super::folder;

#[test]
fn every_engine_is_right_before_and_after_updates() {
    let folder = folder();
    let reports = folder.run("classify verify --rules rules --engine every --trace trace --json").ok().json();
    assert!(reports.len() >= 4, "{reports:?}");
    for report in reports {
        assert_eq!((&report["mismatches"], &report["device"]), (&0.into(), &"cpu".into()), "{report}");
        assert!(report["tuples"].as_u64().unwrap() > 5_000, "{report}");
    }
    let reports =
        folder.run("classify verify --rules rules --updates changes --engine bloom --json").ok().json();
    let told: Vec<_> =
        reports.iter().map(|report| (report["rules"].as_u64(), report["updates"].as_u64())).collect();
    assert_eq!(told, [(Some(4), Some(0)), (Some(5), Some(4))]);
    let ran = folder.run("classify verify --rules flows --engine quilt --threads 1").ok();
    assert!(ran.stdout.contains("quilt: 3 rules, ") && ran.stdout.contains("tuples: all right"), "{ran:?}");
}

#[test]
fn an_engine_that_cannot_hold_the_rules_is_not_wrong() {
    let folder = folder();
    let ran = folder.run("classify verify --rules rules --memory-cap 20k").ok();
    assert!(ran.stderr.contains("quilt: not checked") && ran.stdout.contains("linear: "), "{ran:?}");
    folder.run("classify verify --rules rules --memory-cap 20k --engine quilt").refused(&["cap"]);
}
