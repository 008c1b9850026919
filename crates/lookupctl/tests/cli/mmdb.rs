//! Tables in MaxMind DB files: written, recognised and looked up, and bad input.

use std::io::Write;

use crate::common::Folder;

#[test]
fn a_written_file_answers_like_its_table() {
    let folder = Folder::new();
    for (format, file) in [("plain", "t.txt"), ("mmdb", "t.mmdb")] {
        folder.run(&format!("gen fib --count 500 --next-hops 9 --to {format} -o {file}")).ok();
    }
    let text = std::fs::read_to_string(folder.path("t.txt")).unwrap();
    let addresses: Vec<&str> = text.lines().step_by(25).filter_map(|line| line.split('/').next()).collect();
    // Networks of such a file don't overlap, so the matched prefixes are other ones.
    let answers = |file: &str| -> Vec<(String, String)> {
        let ran = folder.run(&format!("lookup --fib {file} {}", addresses.join(" "))).ok();
        let answer = |line: &str| {
            let mut words = line.split_whitespace();
            (words.next().unwrap().to_owned(), words.next_back().unwrap().to_owned())
        };
        ran.stdout.lines().map(answer).collect()
    };
    assert_eq!(answers("t.mmdb"), answers("t.txt"));
    assert_eq!(answers("t.mmdb").len(), addresses.len());
}

#[test]
fn types_are_found_or_stated_and_stay() {
    use wirespeed_fib::read::FieldType::{Double, Text, Uint32};
    let folder = Folder::new();
    folder.write(
        "t.csv",
        "network,postal.code,location.latitude,n\n1.0.0.0/24,10115,52.520000,7\n2.0.0.0/24,20095,53.550000,8\n",
    );
    let types = |file: &str, fields: [&str; 3]| {
        let source = wirespeed_fib::read::Source::from_arg(folder.path(file).as_os_str());
        let (_, report) = wirespeed_fib::read::read_fib(&source, &Default::default()).unwrap();
        fields.map(|field| report.field_types.of(field).unwrap())
    };
    let fields = ["postal.code", "location.latitude", "n"];
    folder.run("build --fib t.csv --to mmdb -o found.mmdb").ok();
    assert_eq!(types("found.mmdb", fields), [Some(Uint32), Some(Double), Some(Uint32)]);
    let stated = "--field-types postal.code=text,n=double --database-type Own-City --description sites";
    folder.run(&format!("build --fib t.csv --to mmdb {stated} -o stated.mmdb")).ok();
    let bytes = std::fs::read(folder.path("stated.mmdb")).unwrap();
    assert!(
        bytes.windows(8).any(|part| part == b"Own-City")
            && !bytes.windows(9).any(|part| part == b"Wirespeed")
    );
    let right = [Some(Text), Some(Double), Some(Double)];
    assert_eq!(types("stated.mmdb", fields), right);
    folder.run("build --fib stated.mmdb --to mmdb -o again.mmdb").ok();
    assert_eq!(types("again.mmdb", fields), right);
    folder.run("build --merge zip:postal.code=stated.mmdb --merge geo:location.latitude,n=stated.mmdb --to mmdb -o m.mmdb").ok();
    assert_eq!(types("m.mmdb", ["zip", "location.latitude", "n"]), right);
    for (arguments, said) in [
        (
            "--to mmdb --field-types postal.code=boolean",
            "the field postal.code is boolean, and \"10115\" is no such value",
        ),
        ("--to mmdb --field-types zip=text", "no field zip; there are location.latitude, n, postal.code"),
        ("--to mmdb --field-types n=text,n=double", "--field-types n=... is given twice"),
        ("--to mmdb --field-types n=number", "no type \"number\""),
        ("--to csv --database-type x", "--database-type is for a MaxMind DB"),
        ("--description x", "--description is for a MaxMind DB"),
    ] {
        folder.run(&format!("build --fib t.csv {arguments} -o x")).refused(&[said]);
    }
}

#[test]
fn bad_files_are_one_line() {
    let folder = Folder::new();
    folder.run("gen fib --count 50 --to mmdb -o t.mmdb").ok();
    let whole = std::fs::read(folder.path("t.mmdb")).unwrap();
    folder.write("cut.mmdb", &whole[..whole.len() / 2]);
    folder.run("info cut.mmdb --format mmdb").refused(&["cut.mmdb"]);
    folder.run("info t.mmdb --value-columns nope").refused(&["nope"]);
}

#[test]
fn a_packed_file_that_unpacks_to_much_takes_little_memory() {
    let folder = Folder::new();
    // A database of zeros with no networks at its end: 320 MiB of them.
    let packed = |bytes: &[u8]| {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gz.write_all(bytes).unwrap();
        gz.finish().unwrap()
    };
    let (zeros, end) = (packed(&vec![0; 32 << 20]), packed(b"\xab\xcd\xefMaxMind.com"));
    folder.write("bomb.mmdb.gz", [zeros.repeat(10), end].concat());
    for more in ["", "--lenient"] {
        let says =
            ["bomb.mmdb.gz: unpacks to over 64 MiB and over 100 times its size, which is the limit for gzip"];
        folder.run_within(256, &format!("info bomb.mmdb.gz --format mmdb {more}")).refused(&says);
        folder.run_within(256, &format!("info bomb.mmdb.gz {more}")).refused(&["bomb.mmdb.gz: "]);
    }
}
