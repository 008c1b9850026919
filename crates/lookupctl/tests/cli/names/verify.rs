//! `names verify`.

use wirespeed_image::rounds;

use super::folder;

#[test]
fn every_engine_is_right() {
    if rounds::leaves_to_ci() {
        return;
    }
    let folder = folder();
    for table in ["table", "domains"] {
        let reports = folder.run(&format!("names verify --table {table} --engine every --json")).ok().json();
        let engines: Vec<_> = reports.iter().map(|report| report["engine"].as_str().unwrap()).collect();
        for engine in ["acta", "mata", "mata-nw", "ata", "ata-2", "ata-3", "stt"] {
            assert!(engines.contains(&engine), "{engines:?}");
        }
        for report in reports {
            assert_eq!(report["mismatches"], 0, "{report}");
            assert!(report["names"].as_u64().unwrap() > 20_000, "{report}");
        }
    }
    let ran = folder.run("names verify --table table --engine acta").ok();
    assert!(ran.stdout.starts_with("acta: 5 entries, ") && ran.stdout.contains("all right"), "{ran:?}");
}

#[test]
fn aggregated_tables_are_right_before_updates_and_after() {
    if rounds::leaves_to_ci() {
        return;
    }
    let folder = folder();
    let (engines, least) = if rounds::is_long() { ("every", 7) } else { ("all", 2) };
    for (updates, states) in [("", 1), ("--updates updates", 2)] {
        let reports = folder
            .run(&format!("names verify --table table {updates} --engine {engines} --aggregate --json"))
            .ok()
            .json();
        assert!(reports.len() >= states * least, "{reports:?}");
        assert!(reports.iter().all(|report| report["mismatches"] == 0 && report["device"] == "cpu"));
    }
}

#[test]
fn before_the_updates_and_after() {
    let folder = folder();
    let engines = if rounds::is_long() { "every" } else { "all" };
    let line = format!("names verify --table table --engine {engines} --updates updates --json");
    let reports = folder.run(&line).ok().json();
    assert!(reports.len() >= 4, "{reports:?}");
    for states in reports.chunks(2) {
        let told: Vec<_> = states.iter().map(|report| (&report["updates"], &report["entries"])).collect();
        assert_eq!(told, [(&0.into(), &5.into()), (&4.into(), &4.into())]);
    }
}

#[test]
fn an_engine_that_cannot_be_built_is_said() {
    let folder = folder();
    folder
        .run("names verify --table table --engine acta --memory-cap 100")
        .refused(&["can't be built", "cap"]);
    let ran = folder.run("names verify --table table --engine every --memory-cap 10k --threads 1").ok();
    assert!(ran.stderr.contains("ata-3: not checked: ") && ran.stdout.contains("acta: "), "{ran:?}");
}
