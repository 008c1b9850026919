//! `gen`.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::Folder;

#[test]
fn equal_options_make_equal_tables() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    let folder = Folder::new();
    for family in [4, 6] {
        let made = |seed: u64| {
            let options = format!("gen fib --family {family} --count 2k --next-hops 9 --seed {seed}");
            folder.run(&options).ok().stdout
        };
        let table = made(3);
        assert_eq!(table, made(3));
        assert_ne!(table, made(4));
        folder.write("made", &table);
        let report = &folder.run("info made --json").ok().json()[0];
        let counts = (&report["family"], &report["prefixes"], &report["next_hops"]);
        assert_eq!(counts, (&family.into(), &2000.into(), &9.into()));
    }
    folder.run("gen fib --count 50 -o fifty").ok();
    assert_eq!(folder.run("info fifty --json").ok().json()[0]["prefixes"], 50);
}

#[test]
fn a_dash_is_standard_output() {
    let folder = Folder::new();
    folder.write("routes", "10.0.0.0/8 a\n");
    for arguments in
        ["gen fib --count 100", "gen trace --fib routes --count 100", "names gen names --count 100"]
    {
        let said = folder.run(arguments).ok().stdout;
        assert_eq!(folder.run(&format!("{arguments} -o -")).ok().stdout, said);
    }
    let records = "src_ip\n10.1.2.3\n";
    folder.write("records", records);
    let enriched = folder.run("enrich --table t=routes records -o -").ok().stdout;
    assert_eq!(enriched, "src_ip,src_t\n10.1.2.3,a\n");
    assert!(!folder.path("-").exists());
}

#[test]
fn a_table_is_written_in_every_format() {
    let folder = Folder::new();
    let formats = ["plain", "pfx2as", "bgpdump", "ip-route", "ip-route-json", "frr-json", "mmdb", "mrt"];
    for format in formats {
        folder.run(&format!("gen fib --count 50 --to {format} -o made")).ok();
        let report = &folder.run("info made --json --engine sail-l").ok().json()[0];
        // A MaxMind DB has no prefixes within others.
        let prefixes = report["prefixes"].as_u64().unwrap();
        let is_whole = if format == "mmdb" { prefixes >= 50 } else { prefixes == 50 };
        assert!(report["format"] == format && is_whole, "{report}");
    }
    let origins = folder.run("gen fib --count 50 --next-hops 2 --to pfx2as").ok().stdout;
    assert!(origins.lines().all(|line| line.ends_with("\t4200000000") || line.ends_with("\t4200000001")));
}

#[test]
fn traces_replay_as_those_that_replay_makes() {
    let folder = Folder::new();
    for table in ["v4", "v6"] {
        for kind in ["random", "prefix", "zipf:1", "deepest"] {
            let made =
                format!("replay --fib {table} --trace {kind} --keys 5k --seed 9 --seconds 0.01 --json");
            let made = folder.run(&made).ok().json()[0]["checksum"].clone();
            for (to, name) in [("text", "trace"), ("bin", "trace.bin")] {
                let options = format!("--fib {table} --kind {kind} --count 5k --seed 9 --to {to} -o {name}");
                folder.run(&format!("gen trace {options}")).ok();
                let ran =
                    folder.run(&format!("replay --fib {table} --trace {name} --seconds 0.01 --json")).ok();
                assert_eq!(ran.json()[0]["checksum"], made, "{table} {kind} {to}");
                assert_eq!(ran.json()[0]["keys"], 5000);
            }
        }
    }
}

#[test]
fn updates_fit_their_table() {
    let folder = Folder::new();
    let updates = folder.run("gen updates --fib v4 --count 300 --rate 100").ok().stdout;
    assert_eq!(updates.lines().count(), 300);
    assert!(updates.lines().all(|line| line.contains(" A ") || line.contains(" W ")), "{updates}");
    folder.write("made", &updates);
    folder.run("verify --fib v4 --updates made").ok();
    let ran = folder.run("replay --fib v4 --updates made --keys 1k --seconds 0.05 --json").ok();
    assert_eq!(ran.json()[0]["updates"]["applied"], 300);
    folder.run("gen names").status(2);
}

/// Nothing unfinished stays of a file that was not written whole.
#[cfg(unix)]
#[test]
fn a_signal_leaves_the_file_that_was_there() {
    let folder = Folder::new();
    folder.write("made", "old");
    let names = || -> Vec<_> {
        let all = std::fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name());
        all.map(|name| name.into_string().unwrap()).filter(|name| name.starts_with("made")).collect()
    };
    for (signal, status) in [("-TERM", 143), ("-INT", 130)] {
        let child = Command::new(env!("CARGO_BIN_EXE_lookupctl"))
            .args("gen updates --fib v4 --count 1G -o made".split(' '))
            .current_dir(folder.path(""))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while names().len() < 2 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(names().len(), 2, "it has not begun to write");
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let Output { status: ended, stderr, .. } = child.wait_with_output().unwrap();
        let said = String::from_utf8(stderr).unwrap();
        assert_eq!((ended.code(), names()), (Some(status), vec!["made".to_owned()]), "{said}");
        assert!(said.ends_with("lookupctl: interrupted before the file was whole\n"), "{said}");
        assert_eq!(std::fs::read(folder.path("made")).unwrap(), b"old");
    }
}

#[test]
fn a_table_that_cannot_be_is_refused() {
    let folder = Folder::new();
    folder.run("gen fib --prefixes 4G").status(2);
    folder.run("gen fib --count 0 -o none").status(2);
    assert!(!folder.path("none").exists());
    folder.run("gen fib --prefixes 10 --next-hops 0").refused(&["next hop"]);
    folder.run("gen fib --prefixes 10 -o no/such/file").refused(&["no/such/file"]);
}
