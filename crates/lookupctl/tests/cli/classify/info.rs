//! `classify info`.

use serde_json::json;

use super::folder;

#[test]
fn one_object_with_all_of_it() {
    let report = folder().run("classify info rules --engine every --json").ok().json().remove(0);
    assert_eq!((&report["format"], &report["tuple"]), (&"plain".into(), &"ipv4".into()));
    let told = (&report["rules"], &report["patterns"], &report["priorities"], &report["actions"]);
    // 1024-65535 is six prefixes.
    assert_eq!(told, (&4.into(), &9.into(), &3.into(), &3.into()));
    let dport = &report["fields"][3];
    assert_eq!((&dport["any"], &dport["exact"], &dport["range"]), (&1.into(), &2.into(), &1.into()));
    assert_eq!((&dport["range_prefixes"], &report["patterns_of_ranges"]), (&6.into(), &6.into()));
    let classes = &report["classes"];
    assert_eq!((&classes["count"], &classes["by_size"]), (&9.into(), &json!([9])));
    let engines = report["engines"].as_array().unwrap();
    assert!(engines.len() >= 4);
    for engine in engines {
        assert!(
            engine["build_seconds"].is_f64() && !engine["loads"].as_array().unwrap().is_empty(),
            "{engine}"
        );
        assert!(
            engine["bytes_per_rule"].as_f64().unwrap() > 0.0 && engine["sections"].is_array(),
            "{engine}"
        );
    }
    let of = |name: &str| engines.iter().find(|engine| engine["engine"] == name).unwrap();
    assert!((0.0..0.02).contains(&of("bloom")["expected_false_positives"].as_f64().unwrap()));
    assert!(of("tuple").get("expected_false_positives").is_none());
    let subtables = of("tuple")["loads"].as_array().unwrap();
    assert_eq!(subtables.len(), 3);
    let taken: u64 = subtables.iter().map(|load| load["taken"].as_u64().unwrap()).sum();
    assert_eq!(taken, 9, "a slot for each pattern");
}

#[test]
fn text_for_people_and_what_could_not_be_expressed() {
    let folder = folder();
    let ran = folder.run("classify info saved flows --engine every --sections").ok();
    for part in [
        "left out line 4: an interface (-i): -A INPUT -i lo",
        "conntrack",
        "ipv4 tuples",
        "3 rules, 1 priority, 3 actions",
        "1 range of 6 prefixes",
        "classes by number of patterns: 1: 8",
        "openflow tuples",
        "of 1,000 pass that a class does not match",
        "bits of filters",
        "quilt: ",
        "linear: ",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {ran:?}");
    }
    // Without --sections an engine is a line.
    let short = folder.run("classify info flows --engine every").ok();
    let engines = |start: &str| short.stdout.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!((engines("linear: "), engines("quilt: ")), (1, 1), "{short:?}");
    let after = short.stdout.lines().skip_while(|line| !line.contains(": ") || !line.contains("built in"));
    assert!(after.clone().count() >= 4 && after.clone().all(|line| !line.starts_with(' ')), "{short:?}");
    let report = &folder.run("classify info saved --engine linear --json").ok().json()[0];
    assert_eq!(
        (&report["left_out"][1]["line"], &report["engines"][1]),
        (&5.into(), &serde_json::Value::Null)
    );
    let cap = folder.run("classify info rules --memory-cap 1k").ok();
    assert!(cap.stdout.contains("quilt: can't be built") && cap.stdout.contains("linear: "), "{cap:?}");
}
