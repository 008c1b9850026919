//! `build`.

use crate::common::Folder;

#[test]
fn tells_what_was_written() {
    let folder = Folder::new();
    let report = &folder.run("build --fib v4 --engine sail-l -o table.img --json").ok().json()[0];
    assert_eq!((&report["engine"], &report["prefixes"]), (&"sail-l".into(), &6.into()));
    let length = std::fs::metadata(folder.path("table.img")).unwrap().len();
    assert_eq!(report["file_bytes"], length);
    assert!(report["sections"].as_array().unwrap().iter().any(|section| section["name"] == "bcn16"));
    let ran = folder.run("build --fib both --family 6 -o table.img").ok();
    assert!(ran.stdout.contains("IPv6, 4 prefixes"), "an image that is there is replaced: {ran:?}");
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 5, "nothing is left beside it");
}

#[test]
fn what_cannot_be_written_is_said() {
    let folder = Folder::new();
    folder.run("build --fib v4 -o no/such/folder.img").refused(&["no/such/folder.img"]);
    folder.run("build --fib v4 -o cap.img --memory-cap 1000").refused(&["cap of 1000"]);
    assert!(!folder.path("cap.img").exists());
    folder.run("build --fib v4").status(2);
}
