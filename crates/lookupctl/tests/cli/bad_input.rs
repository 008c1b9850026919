//! Bad input: one clear line with the file and the place, status 2, no panic.

use std::io::Write;

use crate::common::{Folder, UPDATES, V4, noise};

#[test]
fn lines_that_are_no_routes() {
    let folder = Folder::new();
    for (name, line, says) in [
        ("long", "10.0.0.0/33 a", "33"),
        ("long6", "2001:db8::/129 a", "129"),
        ("host", "10.0.0.1/8 a", "host bits"),
        ("host6", "2001:db8::1/32 a", "host bits"),
        ("word", "ten/8 a", ""),
        ("bare", "10.0.0.0/8", "next hop missing"),
    ] {
        folder.write(name, format!("{V4}{line}\n"));
        for verb in
            [format!("info {name}"), format!("lookup --fib {name} 10.0.0.1"), format!("verify --fib {name}")]
        {
            folder.run(&verb).refused(&[&format!("{name}:8"), says]);
        }
    }
}

#[test]
fn files_that_are_no_tables() {
    let folder = Folder::new();
    folder.write("noise", noise(100_000));
    folder.write("empty", "");
    folder.write("comments", "# nothing\n\n# at all\n");
    for name in ["noise", "empty", "comments", "absent", "."] {
        for verb in
            ["info", "verify --fib", "build -o x.img --fib", "replay --fib", "replay --fib v4 --updates"]
        {
            folder.run(&format!("{verb} {name}")).refused(&[name]);
        }
    }
    folder.run("info updates").refused(&["updates"]);
    folder.run("replay --fib v4 --updates v4").refused(&["v4"]);
}

#[test]
fn compressed_files_that_are_cut_off_or_corrupt() {
    let folder = Folder::new();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    for octet in 0..=255 {
        for next in 0..=255 {
            writeln!(gz, "10.{octet}.{next}.0/24 192.0.2.{}", octet ^ next).unwrap();
        }
    }
    let gz = gz.finish().unwrap();
    folder.write("whole.gz", &gz);
    folder.run("info whole.gz").ok();
    folder.write("cut.gz", &gz[..gz.len() / 2]);
    folder.run("info cut.gz").refused(&["cut.gz:"]);
    let mut corrupt = gz.clone();
    let middle = corrupt.len() / 2;
    corrupt[middle..middle + 64].fill(0x55);
    folder.write("corrupt.gz", &corrupt);
    folder.run("info corrupt.gz").refused(&["corrupt.gz"]);
    // What is whole can be had.
    let report = &folder.run("info cut.gz --lenient --json").ok().json()[0];
    assert!((1..65_536).contains(&report["prefixes"].as_u64().unwrap()), "{report}");
}

#[test]
fn updates_and_traces_that_are_none() {
    let folder = Folder::new();
    folder.write("faulty", format!("{UPDATES}B 10.0.0.0/8\n"));
    folder.run("replay --fib v4 --updates faulty").refused(&["faulty:6"]);
    folder.write("six", "2001:db8::1\n");
    folder.run("replay --fib v4 --trace six").refused(&["six", "IPv6", "IPv4"]);
    folder.write("four", "10.0.0.1\n10.0.0.2\n");
    folder.run("replay --fib v6 --trace four").refused(&["four", "IPv4", "IPv6"]);
    folder.write("words", "10.0.0.1\nten\n");
    folder.run("replay --fib v4 --trace words").refused(&["words:2"]);
    folder.write("odd.bin", [10, 0, 0, 1, 10]);
    folder.run("replay --fib v4 --trace odd.bin").refused(&["odd.bin"]);
    folder.write("empty", "");
    folder.run("replay --fib v4 --trace empty").refused(&["empty"]);
    folder.run("replay --fib v4 --trace absent").refused(&["absent"]);
}

#[test]
fn images_with_a_flipped_byte() {
    let folder = Folder::new();
    folder.run("build --fib v4 -o good.img").ok();
    let good = std::fs::read(folder.path("good.img")).unwrap();
    let header = (0..200).step_by(7);
    for at in header.chain((200..good.len()).step_by(good.len() / 40)).chain([good.len() - 1]) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        folder.write("bad.img", &bad);
        folder.run("lookup --image bad.img 10.0.0.1").refused(&["bad.img: "]);
    }
}

/// A file or its name must not steer the terminal that shows a message about it.
#[test]
fn control_characters_are_shown_and_not_sent() {
    let folder = Folder::new();
    let rule = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m com\x1b[31mment -j ACCEPT\n-A INPUT -p tcp -j ACCEPT\nCOMMIT\n";
    folder.write("rules", rule);
    folder.write("flows", "table=0, priority=1,ip,zz\x1b[31m=1 actions=drop\n");
    folder.write("names", "/com/\x1b[31m 1\n/com/b \u{9b}2J\n");
    for (arguments, says) in [
        ("info absent\x1b[31m", "absent\\u{1b}[31m: "),
        ("names lookup --table names /com/b", "\\u{9b}2J"),
        ("names lookup --table names --lenient /com/\x1b[31m", "/com/\\u{1b}[31m"),
        ("classify info rules", "com\\u{1b}[31mment"),
        ("classify lookup --rules rules --lenient tcp", "(com\\u{1b}[31mment)"),
        ("classify lookup --rules flows tcp", "(zz\\u{1b}[31m)"),
    ] {
        let ran = folder.run(arguments);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains(says) && !said.contains(['\x1b', '\u{9b}']), "{ran:?}");
    }
}

#[test]
fn images_that_are_none() {
    let folder = Folder::new();
    folder.run("build --fib v4 -o good.img").ok();
    let good = std::fs::read(folder.path("good.img")).unwrap();
    let mut version = good.clone();
    // The version follows the eight bytes of the magic number.
    version[8] += 1;
    let longer = [&good[..], b"more"].concat();
    for (name, bytes, says) in [
        ("version", &version[..], "version"),
        ("cut", &good[..good.len() / 2], "bytes long"),
        ("header", &good[..40], ""),
        ("longer", &longer, "bytes long"),
        ("empty", b"", ""),
        ("text", V4.as_bytes(), "not an image"),
    ] {
        folder.write(name, bytes);
        for verb in ["lookup 10.0.0.1 --image", "replay --image"] {
            folder.run(&format!("{verb} {name}")).refused(&[&format!("{name}: "), says]);
        }
    }
    folder.run("lookup 10.0.0.1 --image absent").refused(&["absent"]);
    for verb in ["lookup 10.0.0.1 --fib", "replay --fib", "verify --fib", "build -o x.img --fib"] {
        folder.run(&format!("{verb} good.img")).refused(&["good.img: an image, not a table", "--image"]);
    }
    folder.run("info cut").refused(&["cut: "]);
}

#[test]
fn a_wrong_command_line_is_told_in_one_line() {
    let folder = Folder::new();
    for (line, says) in [
        (
            "info --bogus",
            "unexpected argument '--bogus' found; to pass '--bogus' as a value, use '-- --bogus'",
        ),
        ("inf", "unrecognized subcommand 'inf'; a similar subcommand exists: 'info'; try 'lookupctl --help'"),
        ("lookup", "required arguments were not provided: "),
        ("classify lookup", "not provided: --rules <FILE>; try 'lookupctl classify lookup --help'"),
        ("replay --engine foo", "invalid value 'foo' for '--engine <NAME>' [possible values: auto, "),
        ("replay --image a --fib b", "cannot be used with '--fib <FILE>'; try 'lookupctl replay --help'"),
    ] {
        let ran = folder.run(line);
        ran.refused(&[says, "; try 'lookupctl"]);
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    }
    // Help isn't an error.
    let ran = folder.run("info --help").ok();
    assert!(ran.stdout.contains("Usage: lookupctl info") && ran.stderr.is_empty(), "{ran:?}");
    let ran = folder.run("names").status(2);
    assert!(ran.stderr.contains("Usage: lookupctl names"), "{ran:?}");
}

#[test]
fn a_file_that_holds_no_rules_is_not_held_in_memory() {
    let folder = Folder::new();
    // Its end takes no room on the disk.
    std::fs::File::create(folder.path("zeros")).unwrap().set_len(1 << 30).unwrap();
    folder.run_within(256, "classify info zeros").refused(&["zeros: not recognised as rules"]);
    let named = folder.run_within(256, "classify info zeros --format plain");
    named.refused(&["zeros:1: a line of over 262143 bytes"]);
}
