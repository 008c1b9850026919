//! `names lookup`.

use serde_json::json;

use super::{TABLE, folder};

#[test]
fn answers_in_json_with_the_users_results() {
    let ran = folder().run("names lookup --table table --json /com/parc/www/a /com/abc").ok();
    assert_eq!(
        ran.json(),
        [
            json!({"name": "/com/parc/www/a", "prefix": "/com/parc/www", "result": "core-3"}),
            json!({"name": "/com/abc", "prefix": "/com", "result": "core-1"}),
        ]
    );
    assert!(
        ran.stdout.starts_with(r#"{"name":"/com/parc/www/a","prefix":"/com/parc/www","result":"core-3"}"#)
    );
}

#[test]
fn names_in_every_form() {
    let ran = folder()
        .run("names lookup --table table --json www.PARC.com http://www.parc.com/a ndn:/com/parc/54=%03")
        .ok();
    assert_eq!(
        ran.json(),
        [
            json!({"name": "/com/parc/www", "asked": "www.PARC.com", "prefix": "/com/parc/www", "result": "core-3"}),
            json!({"name": "/com/parc/www/=a", "asked": "http://www.parc.com/a", "prefix": "/com/parc/www", "result": "core-3"}),
            json!({"name": "/com/parc/54=%03", "asked": "ndn:/com/parc/54=%03", "prefix": "/com/parc", "result": "core-2"}),
        ]
    );
    let text = folder().run("names lookup --table table www.parc.com /org/example").ok().stdout;
    assert_eq!(text, "www.parc.com  /com/parc/www  core-3\n/org/example  /org/example  core-2\n");
    // As a name it is one of its own, as a domain it isn't.
    folder()
        .run("names lookup --table table --as domains /com/parc")
        .refused(&["not a name (domains): \"/com/parc\""]);
}

#[test]
fn a_list_is_asked_for_urls() {
    let ran = folder().run_with(
        "names lookup --table domains",
        b"https://pixel.tracker.example/p.gif?x\nads.news.example # a comment\n\n# another\nother.example\n",
    );
    let wanted = "\
https://pixel.tracker.example/p.gif?x  /example/tracker  member
ads.news.example  /example/news/ads  member
other.example  no match
";
    assert_eq!(ran.status(1).stdout, wanted);
}

#[test]
fn nothing_that_matches_is_null_and_status_1() {
    let folder = folder();
    let ran = folder.run("names lookup --table table --json /net /com").status(1);
    assert_eq!(ran.json()[0], json!({"name": "/net", "prefix": null, "result": null}));
    folder.write("default", "/ all\n");
    let ran = folder.run("names lookup --table default --json / /net").ok();
    assert_eq!(ran.json()[0], json!({"name": "/", "prefix": "/", "result": "all"}));
}

#[test]
fn every_engine_explains_each_step() {
    let folder = folder();
    for engine in ["acta", "mata", "mata-nw", "ata", "ata-2", "stt"] {
        let run = format!("names lookup --table table --engine {engine} --explain --json /com/parc/www/x");
        let json = &folder.run(&run).ok().json()[0];
        let steps = json["steps"].as_array().unwrap();
        assert!(
            steps.len() > 1 && steps.iter().all(|step| step["section"].is_string() && step["index"].is_u64())
        );
        assert!(steps.last().unwrap()["meaning"].as_str().unwrap().contains("result 3"), "{engine}: {json}");
    }
    let ran = folder.run("names lookup --table table --explain /com/parc").ok();
    assert!(ran.stdout.contains("  buckets[") && ran.stdout.lines().count() > 2, "{ran:?}");
}

#[test]
fn an_image_answers_as_its_source() {
    let folder = folder();
    for (table, engine) in [("table", "acta"), ("table", "mata"), ("domains", "acta")] {
        folder.run(&format!("names build --table {table} --engine {engine} -o {table}.img")).ok();
        let names = "/com/parc/www/x /com/ab /com/abc /example/news/ads / /nothing";
        let from_source = folder.run(&format!("names lookup --table {table} --json {names}")).status(1);
        let from_image = folder.run(&format!("names lookup --image {table}.img --json {names}")).status(1);
        assert_eq!(from_source.stdout, from_image.stdout);
        // The table beside it checks the answers.
        folder.run(&format!("names lookup --image {table}.img --table {table} {names}")).status(1);
    }
    let ran = folder.run("names lookup --image table.img --table domains /com/parc").status(1);
    assert!(ran.stderr.contains("mata: /com/parc leads to"), "another table is found out: {ran:?}");
    folder.run("names lookup --image table.img --engine acta /com").status(2);
}

#[test]
fn an_aggregated_table_answers_as_the_whole() {
    let folder = folder();
    let names = "/com/parc/www/x /com/ab/c /com/abc /org/example / /nothing";
    let right = folder.run(&format!("names lookup --table table --json {names}")).status(1).stdout;
    for engine in ["acta", "mata-nw"] {
        let run = format!("names lookup --table table --engine {engine} --aggregate --json {names}");
        assert_eq!(folder.run(&run).status(1).stdout, right);
        folder.run(&format!("names build --table table --engine {engine} --aggregate -o {engine}.img")).ok();
        let run = format!("names lookup --image {engine}.img --json {names}");
        assert_eq!(folder.run(&run).status(1).stdout, right);
        let ran =
            folder.run(&format!("names lookup --image {engine}.img --table domains /com/parc")).status(1);
        assert!(ran.stderr.contains(&format!("{engine}: /com/parc leads to")), "by its own name: {ran:?}");
    }
    folder.run("names lookup --image acta.img --aggregate /com").status(2);
}

#[test]
fn the_table_from_standard_input() {
    let folder = folder();
    let ran = folder.run_with("names lookup --table - /com/ab", TABLE.as_bytes()).ok();
    assert_eq!(ran.stdout, "/com/ab  /com/ab  core-1\n");
    folder.run_with("names lookup --table -", TABLE.as_bytes()).refused(&["standard input"]);
    folder.run("names lookup /com").status(2);
}

#[test]
fn lines_that_are_no_name_are_refused_by_number() {
    let folder = folder();
    let ran = folder.run_with("names lookup --table table", b"/com\n/com//parc\n").status(2);
    assert_eq!(ran.stdout.lines().count(), 1, "what came before is answered: {ran:?}");
    for part in ["standard input:2", "\"/com//parc\"", "component 2 is empty"] {
        assert!(ran.stderr.contains(part), "{part}: {ran:?}");
    }
    folder.run("names lookup --table table www..com").refused(&["\"www..com\"", "a label is empty"]);
    folder.run("names lookup --table table 10.0.0.0/8").refused(&["\"10.0.0.0/8\""]);
}
