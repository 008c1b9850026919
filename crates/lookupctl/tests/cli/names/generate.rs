//! `names gen`.

use super::folder;

#[test]
fn equal_options_make_equal_tables() {
    let folder = folder();
    let made =
        |seed: u64| folder.run(&format!("names gen names --names 2k --results 9 --seed {seed}")).ok().stdout;
    let table = made(3);
    assert_eq!(table, made(3));
    assert_ne!(table, made(4));
    folder.write("made", &table);
    let report = &folder.run("names info made --engine acta --json").ok().json()[0];
    assert_eq!((&report["entries"], &report["results"]), (&2000.into(), &9.into()));
    folder.write("list", "*.tracker.example\nads.news.example\n");
    folder.run("names gen names --names 50 --results 0 --table list -o fifty").ok();
    let list = std::fs::read_to_string(folder.path("fifty")).unwrap();
    assert_eq!((list.lines().count(), list.contains(' ')), (50, false), "{list}");
    assert!(list.contains("/example/news/ads\n"), "what was there stays");
}

#[test]
fn traces_replay_as_those_that_replay_makes() {
    let folder = folder();
    for load in ["average", "heavy", "zipf:1"] {
        let options = "--seed 9 --misses 0.2";
        let made =
            format!("names replay --table table --trace {load} --keys 2k {options} --seconds 0.01 --json");
        let made = folder.run(&made).ok().json()[0]["checksum"].clone();
        folder
            .run(&format!("names gen trace --table table --load {load} --count 2k {options} -o trace"))
            .ok();
        let ran = folder.run("names replay --table table --trace trace --seconds 0.01 --json").ok();
        assert_eq!((&ran.json()[0]["checksum"], &ran.json()[0]["keys"]), (&made, &2000.into()), "{load}");
    }
}

#[test]
fn updates_fit_their_table() {
    let folder = folder();
    let updates = folder.run("names gen updates --table table --count 300 --rate 100").ok().stdout;
    assert_eq!(updates.lines().count(), 300);
    assert!(updates.lines().all(|line| line.contains(" A ") || line.contains(" W ")), "{updates}");
    folder.write("made", &updates);
    folder.run("names verify --table table --updates made --engine acta").ok();
    let ran = folder.run("names replay --table table --updates made --keys 1k --seconds 0.05 --json").ok();
    assert_eq!(ran.json()[0]["updates"]["applied"], 300);
}

#[test]
fn what_cannot_be_made_is_refused() {
    let folder = folder();
    folder.run("names gen names --names 0").status(2);
    folder.run("names gen names --names 10 --results 5G").refused(&["--results"]);
    folder.run("names gen names --names 10 -o no/such/file").refused(&["no/such/file"]);
    folder.run("names gen trace --table table --load random").status(2);
}
