//! `classify gen`.

use super::folder;

#[test]
fn what_is_made_is_read() {
    let folder = folder();
    for (options, tuple, rules) in [
        ("--set fw --count 200", "ipv4", 200),
        ("--set acl --count 100 --to classbench", "ipv4", 100),
        ("--set ipc --size 100 --tuple ipv6 --to classbench", "ipv6", 100),
        ("--set classes --count 128 --classes 16 --matching 4", "openflow", 128),
    ] {
        let again = |to: &str| {
            folder.run(&format!("classify gen rules {options} --seed 5 -o {to}")).ok();
            std::fs::read(folder.path(to)).unwrap()
        };
        assert_eq!(again("one"), again("two"), "{options}");
        let report = &folder.run("classify info one --engine linear --json").ok().json()[0];
        assert_eq!((&report["tuple"], &report["rules"]), (&tuple.into(), &rules.into()), "{options}");
        folder.run("classify gen trace --rules one --count 500 --kind flows:4 -o t").ok();
        folder.run("classify gen updates --rules one --count 300 -o u").ok();
        let run = "classify replay --device cpu --rules one --trace t --updates u --seconds 0.02 --json";
        let report = &folder.run(run).ok().json()[0];
        assert_eq!((&report["keys"], &report["updates"]["applied"]), (&500.into(), &300.into()), "{options}");
    }
    let trace = |options: &str| folder.run(&format!("classify gen trace --count 200 {options}")).ok().stdout;
    let (ordered, shuffled) =
        (trace("--rules rules --kind flows:9"), trace("--rules rules --kind flows:9 --shuffle"));
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert!(ordered != shuffled && sorted(&ordered) == sorted(&shuffled));
    // Each tuple matches so many classes.
    folder.run("classify gen rules --set classes --count 64 --classes 8 --matching 8 -o all").ok();
    folder.write("trace", trace("--set classes --set-count 64 --classes 8 --matching 8"));
    let input = std::fs::read(folder.path("trace")).unwrap();
    let ran = folder.run_with("classify lookup --rules all --json --nearly 1", &input).ok();
    assert!(ran.json().iter().all(|line| line["also_match"].as_u64() >= Some(7)), "{ran:?}");
}

#[test]
fn whoever_has_enough_of_it_is_no_failure() {
    use std::process::{Command, Stdio};
    for what in ["rules", "trace", "updates"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lookupctl"))
            .args(["classify", "gen", what, "--count", "20k"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success() && !stderr.contains("lookupctl: "), "{what}: {stderr}");
    }
}
