//! `names info`.

use super::folder;

#[test]
fn one_object_with_all_of_it() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    let report = folder().run("names info table --engine every --json").ok().json().remove(0);
    let told =
        (&report["entries"], &report["components"], &report["results"], &report["with_entries_beneath"]);
    assert_eq!(told, (&5.into(), &6.into(), &3.into(), &2.into()));
    assert_eq!(report["by_depth"], serde_json::json!([0, 1, 3, 1]));
    let machine = &report["machines"][0];
    // com/parc/www/, ab/ beneath com/, org/example/: a transition a byte.
    assert_eq!((&machine["stride"], &machine["transitions"]), (&1.into(), &(13 + 3 + 12).into()));
    assert_eq!(machine["stt_bytes"].as_u64(), machine["states"].as_u64().map(|states| states * 1024));
    let engines = report["engines"].as_array().unwrap();
    assert!(engines.len() >= 7);
    for engine in engines {
        assert!(engine["engine"].is_string() && engine["build_seconds"].is_f64(), "{engine}");
        assert!(engine["bytes_per_name"].as_f64().unwrap() > 0.0 && engine["stt_ratio"].is_f64(), "{engine}");
    }
    let mata = engines.iter().find(|engine| engine["engine"] == "mata").unwrap();
    let taken: u64 =
        mata["arrays"].as_array().unwrap().iter().map(|array| array["taken"].as_u64().unwrap()).sum();
    assert_eq!(
        report["machines"][3]["transitions"], taken,
        "a place for each transition of four bytes a step"
    );
}

#[test]
fn aggregation_tells_what_each_rule_leaves_over() {
    let folder = folder();
    let report = folder.run("names info table --aggregate --engine acta --json").ok().json().remove(0);
    // /com/parc, /com/parc/www and /com/ab lie beneath others; /com/ab has the result of /com.
    assert_eq!(report["aggregation"], serde_json::json!({"beneath": 3, "saved": 1, "left": 4}));
    assert_eq!(report["entries"], 5, "all that there are");
    let (all, left) = (folder.run("names info table --engine acta --json").ok().json().remove(0), report);
    let transitions = |report: &serde_json::Value| report["machines"][0]["transitions"].as_u64().unwrap();
    assert_eq!(transitions(&left) + 3, transitions(&all), "without those of ab/");
    assert!(all.get("aggregation").is_none());
    let text = folder.run("names info table --aggregate --engine acta").ok().stdout;
    let told = "aggregation: 3 entries lie beneath others (rule 1), 1 of them have the result of the nearest (rule 2)";
    assert!(text.contains(told) && text.contains("4 are left (80.0 %)"), "{text}");
}

#[test]
fn text_for_people() {
    let ran = folder().run("names info table").ok();
    assert!(ran.stdout.contains("acta: ") && !ran.stdout.contains("  buckets"), "a line an engine: {ran:?}");
    let ran = folder().run("names info table --sections").ok();
    for part in [
        "5 entries",
        "by number of components",
        "1 byte a step",
        "acta: ",
        "buckets",
        "B a name",
        "under the STT",
        "load of each array",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {ran:?}");
    }
    let ran = folder().run("names info domains --engine acta").ok();
    assert!(ran.stdout.contains("domains, ") && !ran.stdout.contains("mata"), "{ran:?}");
}

#[test]
fn what_was_skipped_is_counted_and_an_engine_that_cannot_be_built_hides_no_other() {
    let folder = folder();
    folder.write("faulty", "/a 1\n/b//c 2\n/d\n/e 3 4\n");
    let report = &folder.run("names info faulty --lenient --json").ok().json()[0];
    let skipped: Vec<_> = report["skipped"].as_array().unwrap().iter().map(|s| s["count"].as_u64()).collect();
    assert_eq!((report["entries"].as_u64(), skipped), (Some(1), vec![Some(1); 3]), "{report}");
    let ran = folder.run("names info table --engine every --memory-cap 10k").ok();
    assert!(ran.stdout.contains("ata-3: can't be built") && ran.stdout.contains("acta: "), "{ran:?}");
}
