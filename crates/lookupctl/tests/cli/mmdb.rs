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
