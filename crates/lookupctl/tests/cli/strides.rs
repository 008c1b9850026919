//! `--strides`, and `info --strides`.

use serde_json::Value;

use crate::common::Folder;

fn numbers(values: &Value) -> Vec<u64> {
    values.as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).collect()
}

#[test]
fn an_object_for_each_choice() {
    let choices = Folder::new().run("info both --strides --json").ok().json();
    for (family, counts, deepest, prefixes) in [(4, 4..=20, 32, 6), (6, 8..=30, 128, 4)] {
        let mut own: Vec<_> = choices.iter().filter(|choice| choice["family"] == family).collect();
        let fastest = own.pop().unwrap();
        assert_eq!(fastest["choice"], "fastest");
        assert_eq!(own.len(), counts.clone().count());
        for (choice, levels) in own.iter().zip(counts) {
            assert_eq!((&choice["choice"], &choice["prefixes"]), (&"levels".into(), &prefixes.into()));
            assert_eq!(numbers(&choice["strides"]).len(), levels, "{choice}");
        }
        for choice in own.into_iter().chain([fastest]) {
            assert_eq!(numbers(&choice["strides"]).iter().sum::<u64>(), deepest, "{choice}");
            let bytes: u64 =
                choice["levels"].as_array().unwrap().iter().map(|l| l["bytes"].as_u64().unwrap()).sum();
            assert_eq!(choice["bytes"], bytes);
            let per_prefix = bytes as f64 / f64::from(prefixes);
            assert!((choice["bytes_per_prefix"].as_f64().unwrap() - per_prefix).abs() < 1e-9, "{choice}");
            assert!(choice["nanoseconds"].as_f64().unwrap() > 0.0, "{choice}");
        }
    }
}

#[test]
fn choices_for_people() {
    let folder = Folder::new();
    let ran = folder.run("info v4 --strides --transaction 32").ok();
    for part in ["6 prefixes", "transactions of 32 bytes", "fastest", "B a prefix"] {
        assert!(ran.stdout.contains(part), "{part}: {ran:?}");
    }
    assert!(!ran.stdout.contains("sail-l"), "no table is built for it: {ran:?}");
    // Prefixes of 3 bits have no 4 levels.
    folder.write("short", "32.0.0.0/3 a\n");
    let choices = folder.run("info short --strides --json").ok().json();
    assert_eq!(choices.len(), 1, "{choices:?}");
    assert_eq!((&choices[0]["choice"], &choices[0]["strides"]), (&"fastest".into(), &vec![3].into()));
}

#[test]
fn transactions_decide_by_their_size() {
    let folder = Folder::new();
    let of = |bytes: u32| {
        let choices = folder.run(&format!("info v4 --strides --transaction {bytes} --json")).ok().json();
        choices.iter().map(|choice| choice["transactions"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let (small, large) = (of(32), of(128));
    assert!(small.iter().zip(&large).all(|(small, large)| small >= large), "{small:?} {large:?}");
    assert_ne!(small, large);
}

#[test]
fn every_verb_takes_them() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    let folder = Folder::new();
    for strides in ["fastest", "levels=6", "levels=4,transaction=32", "16,8,8"] {
        folder.run(&format!("build --engine gamt --fib v4 --strides {strides} -o table.img")).ok();
        folder.run(&format!("verify --fib v4 --updates updates --strides {strides}")).ok();
        folder.run(&format!("lookup --engine gamt-s --fib v4 --strides {strides} 10.1.2.3")).ok();
        let replay = "replay --engine gamt --fib v4 --keys 1000 --seconds 0.01";
        folder.run(&format!("{replay} --strides {strides}")).ok();
    }
}

#[test]
fn engines_with_levels_of_their_own_refuse_them() {
    let folder = Folder::new();
    for verb in ["build --fib v4 -o x.img", "replay --fib v4", "lookup --fib v4 10.0.0.1", "verify --fib v4"]
    {
        let ran = folder.run(&format!("{verb} --engine sail-l --strides 16,8,8")).status(2);
        assert!(ran.stderr.contains("sail-l has fixed levels"), "{ran:#?}");
    }
}

#[test]
fn bad_strides_are_refused() {
    let folder = Folder::new();
    for (strides, says) in [
        ("slow", "fastest, levels=N"),
        ("16,0,16", "1 to 24 bits"),
        ("16,25", "1 to 24 bits"),
        ("16,,8", "1 to 24 bits"),
        ("levels=0", "1 to 128 levels"),
        ("levels=6,transaction=48", "32, 64 or 128 bytes"),
        ("levels=6,8", "transaction=BYTES"),
    ] {
        for verb in
            ["build --fib v4 -o x.img", "verify --fib v4", "replay --fib v4", "lookup --fib v4 10.0.0.1"]
        {
            let ran = folder.run(&format!("{verb} --strides {strides}")).status(2);
            assert!(ran.stdout.is_empty() && ran.stderr.contains(says), "{strides}: {ran:#?}");
        }
    }
    assert!(!folder.path("x.img").exists());
    folder.run("build --fib v4 -o x.img").ok();
    // What is compiled is cut already.
    folder.run("replay --image x.img --strides 16,8,8").status(2);
    folder.run("lookup --image x.img --strides 16,8,8 10.0.0.1").status(2);
    folder.run("info v4 --strides --transaction 16").status(2);
    folder.run("info v4 --transaction 32").status(2);
}
