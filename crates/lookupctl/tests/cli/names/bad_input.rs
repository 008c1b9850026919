//! Bad input: one clear line with the file and the place, status 2, no panic.

use super::{TABLE, UPDATES, folder};
use crate::common::{V4, noise};

#[test]
fn lines_that_are_no_names() {
    let folder = folder();
    for (name, line, says) in [
        ("slashes", "/com//www 1", "component 2 is empty"),
        ("bare", "/com/www", "result missing"),
        ("columns", "/com/www 1 2", "too many columns"),
        ("relative", "com/www 1", "starts with a slash"),
    ] {
        folder.write(name, format!("{TABLE}{line}\n"));
        for verb in [
            format!("info {name}"),
            format!("lookup --table {name} /com"),
            format!("verify --table {name}"),
            format!("replay --table {name}"),
            format!("build --table {name} -o x.img"),
            format!("gen trace --table {name}"),
        ] {
            folder.run(&format!("names {verb}")).refused(&[&format!("{name}:7"), says]);
        }
    }
    folder.write("domain", "parc.com 1\nparc..com 2\n");
    folder.run("names info domain").refused(&["domain:2", "a label is empty"]);
    folder.write("typed", "ndn:/com 1\nndn:/com/99999=a 2\n");
    folder.run("names info typed").refused(&["typed:2"]);
    folder.run("names info table --format domains").refused(&["table:2"]);
}

#[test]
fn files_that_are_no_tables() {
    let folder = folder();
    folder.write("noise", noise(100_000));
    folder.write("empty", "");
    folder.write("comments", "# nothing\n\n# at all\n");
    for name in ["noise", "empty", "comments", "absent", "."] {
        for verb in [
            "info",
            "verify --table",
            "build -o x.img --table",
            "replay --table",
            "replay --table table --updates",
        ] {
            folder.run(&format!("names {verb} {name}")).refused(&[name]);
        }
    }
    folder.run("names info updates").refused(&["updates"]);
    folder.run("names replay --table table --updates table").refused(&["table"]);
    folder.write("routes", V4);
    folder.run("names info routes").refused(&["routes"]);
}

#[test]
fn updates_and_traces_that_are_none() {
    let folder = folder();
    folder.write("faulty", format!("{UPDATES}B /com\n"));
    folder.run("names replay --table table --updates faulty").refused(&["faulty:5", "neither"]);
    folder.run("names verify --table table --updates faulty").refused(&["faulty:5"]);
    folder.write("words", "/com\n/com//b\n");
    folder.run("names replay --table table --trace words").refused(&["words:2"]);
    folder.write("empty", "");
    folder.run("names replay --table table --trace empty").refused(&["empty"]);
    folder.run("names replay --table table --trace absent").refused(&["absent"]);
    folder.run("names replay --table table --paths absent").refused(&["absent"]);
    folder.run("names replay --table table --updates synth:x").refused(&["synth:x"]);
}

#[test]
fn images_with_a_flipped_byte() {
    let folder = folder();
    folder.run("names build --table table -o good.img").ok();
    let good = std::fs::read(folder.path("good.img")).unwrap();
    let header = (0..200).step_by(7);
    for at in header.chain((200..good.len()).step_by(good.len() / 40)).chain([good.len() - 1]) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        folder.write("bad.img", &bad);
        folder.run("names lookup --image bad.img /com").refused(&["bad.img: "]);
    }
}

#[test]
fn images_that_are_none() {
    let folder = folder();
    folder.run("build --fib v4 -o routes.img").ok();
    folder.run("names build --table table -o names.img").ok();
    let good = std::fs::read(folder.path("names.img")).unwrap();
    folder.write("cut", &good[..good.len() / 2]);
    folder.write("text", TABLE);
    for (name, says) in
        [("cut", "bytes long"), ("text", "not an image"), ("routes.img", "of addresses"), ("absent", "")]
    {
        for verb in ["lookup /com --image", "replay --image"] {
            folder.run(&format!("names {verb} {name}")).refused(&[name, says]);
        }
    }
    folder.run("lookup --image names.img 10.0.0.1").refused(&["names.img", "of names"]);
    folder.run("replay --image names.img").refused(&["names.img", "of names"]);
}
