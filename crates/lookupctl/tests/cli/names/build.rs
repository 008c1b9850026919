//! `names build`.

use super::folder;

#[test]
fn tells_what_was_written() {
    let folder = folder();
    let report = &folder.run("names build --table table --engine acta -o table.img --json").ok().json()[0];
    assert_eq!((&report["engine"], &report["names"]), (&"acta".into(), &5.into()));
    let length = std::fs::metadata(folder.path("table.img")).unwrap().len();
    assert_eq!(report["file_bytes"], length);
    let sections: Vec<_> =
        report["sections"].as_array().unwrap().iter().map(|section| &section["name"]).collect();
    assert!(sections.contains(&&"buckets".into()) && sections.contains(&&"labels".into()), "{sections:?}");
    let ran = folder.run("names build --table domains --engine mata -o table.img").ok();
    assert!(ran.stdout.contains("mata, 3 names"), "an image that is there is replaced: {ran:?}");
}

#[test]
fn an_aggregated_table_is_told_by_how_many_names_it_compiles() {
    let folder = folder();
    let build = "names build --table table -o table.img";
    let report = &folder.run(&format!("{build} --aggregate --json")).ok().json()[0];
    assert_eq!((&report["names"], &report["compiled"]), (&5.into(), &4.into()));
    assert!(folder.run(&format!("{build} --json")).ok().json()[0].get("compiled").is_none());
    let text = folder.run(&format!("{build} --aggregate")).ok().stdout;
    assert!(text.contains("5 names, 4 of them compiled"), "{text}");
}

#[test]
fn several_lists_are_one() {
    let folder = folder();
    folder.write("ads.hosts", "0.0.0.0 ads.example\n192.0.2.1 www.example.org\n");
    folder.write("filter.txt", "! own\n||tracker.example^\n@@||ads.example^\n");
    folder.write("last.hosts", "192.0.2.2 www.example.org\n");
    let lists = "--table ads.hosts --table filter.txt --table last.hosts";
    let ran = folder.run(&format!("names build {lists} -o all.img")).ok();
    for said in ["ads.hosts: ", "filter.txt: ", "last.hosts: "] {
        assert!(ran.stderr.contains(said), "{ran:?}");
    }
    let ran =
        folder.run("names lookup --image all.img a.tracker.example www.example.org x.ads.example --json");
    let found: Vec<_> = ran.json().iter().map(|found| found["result"].clone()).collect();
    assert_eq!(found, ["blocked".into(), "192.0.2.2".into(), serde_json::Value::Null], "{ran:?}");
    folder
        .run("names build --table ads.hosts --table domains -o x.img")
        .refused(&["domains: ", "several tables are read as one if all are lists of domains"]);
    folder
        .run("names build --table ads.hosts --table filter.txt --icann -o x.img")
        .refused(&["--icann is for"]);
    folder
        .run("names build --table ads.hosts --table filter.txt --format domains -o x.img")
        .refused(&["--format domains"]);
    folder.run("names build --table - --table - -o x.img").refused(&["a list is - twice"]);
    // What one list leaves out counts beside the others.
    folder.write("wrong.hosts", "0.0.0.0 b.example\nnonsense\n");
    let ran = folder
        .run("names build --table wrong.hosts --table ads.hosts --format hosts --lenient -o x.img --json")
        .ok();
    assert_eq!(ran.json()[0]["left_out"], 1);
}

#[test]
fn equal_seeds_make_equal_images() {
    let folder = folder();
    for name in ["one", "two"] {
        folder.run(&format!("names build --table table --seed 5 -o {name}")).ok();
    }
    let [one, two] = ["one", "two"].map(|name| std::fs::read(folder.path(name)).unwrap());
    assert_eq!(one, two);
}

#[test]
fn an_image_tells_how_many_lines_were_left_out() {
    let folder = folder();
    folder.write(
        "holes",
        "www.parc.com 1
parc..com 2
",
    );
    folder.write(
        "list",
        "||ads.example^
||ads.example^$script
",
    );
    for (table, name) in [("holes", "www.parc.com"), ("list", "ads.example")] {
        folder.run(&format!("names build --table {table} --lenient -o table.img")).ok();
        let info = &folder.run("names info table.img --json").ok().json()[0];
        assert_eq!(info["left_out"], 1, "{table}");
        let ran = folder.run(&format!("names lookup --image table.img --json {name}")).ok();
        assert_eq!((&ran.json()[0]["left_out"], ran.stderr.lines().count()), (&1.into(), 1), "{ran:?}");
        assert!(ran.stderr.starts_with("table.img: built without 1 line that"), "{ran:?}");
    }
}

#[test]
fn what_cannot_be_written_is_said() {
    let folder = folder();
    folder.run("names build --table table -o no/such/folder.img").refused(&["no/such/folder.img"]);
    folder.run("names build --table table -o cap.img --memory-cap 1000").refused(&["cap of 1000"]);
    assert!(!folder.path("cap.img").exists());
    folder.run("names build --table table").status(2);
}
