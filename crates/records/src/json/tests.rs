//! The scanner beside `serde_json`, and lines with known members beside the scanner.

use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::*;

fn scanned(line: &[u8], wanted: &[&str]) -> (Records, Content) {
    scanned_with(line, wanted, 0)
}

fn scanned_with(line: &[u8], wanted: &[&str], numbers: u64) -> (Records, Content) {
    let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let members = Members::new(own(wanted), numbers, own(&["src_asn"]));
    let mut records = Records::default();
    records.begin(wanted.len());
    members.scan(line, line.len(), &mut records);
    let content = records.records()[0].content;
    (records, content)
}

#[test]
fn members_by_name_and_by_path() {
    for line in [
        r#"{"id.orig_h":"10.0.0.1","id.resp_h":null}"#,
        r#"{"id":{"orig_h":"10.0.0.1","x":{"orig_h":1}}}"#,
        r#" { "id" : { "\u006frig_h" : "10.0.0\u002e1" } , "ids":[{"id":{"orig_h":2}}]} "#,
    ] {
        let (records, content) = scanned(line.as_bytes(), &["id.orig_h", "id.resp_h"]);
        assert_eq!(content, Content::Whole { is_bare: false }, "{line}");
        assert_eq!(records.cell(line.as_bytes(), 0, 0), b"10.0.0.1", "{line}");
        assert_eq!(records.cell(line.as_bytes(), 0, 1), b"", "{line}");
    }
    assert_eq!(names(br#"{"a":{"b":1,"c":[{"d":1}]},"e.f":2}"#).unwrap(), ["a", "a.b", "a.c", "e.f"]);
}

#[test]
fn members_that_may_be_numbers() {
    let line = br#"{"port":443,"src":"10.0.0.1","proto":"tcp"}"#;
    let wanted = ["src", "port", "proto"];
    let (records, content) = scanned_with(line, &wanted, 0b110);
    assert_eq!(content, Content::Whole { is_bare: false });
    assert_eq!([0, 1, 2].map(|at| records.cell(line, 0, at)), [&b"10.0.0.1"[..], b"443", b"tcp"]);
    assert_eq!(scanned_with(line, &wanted, 0b100).1, Content::Flawed(Flaw::NotText(1)));
    assert_eq!(scanned_with(line, &["port", "port"], 0b01).1, Content::Flawed(Flaw::NotText(1)));
    assert_eq!(scanned_with(br#"{"port":[443]}"#, &["port"], 1).1, Content::Flawed(Flaw::NotText(0)));
}

#[test]
fn the_first_byte_of_a_kind_at_every_place() {
    for byte in 0..=255u8 {
        for len in 0..20 {
            for at in 0..len {
                let mut bytes = vec![b'5'; len];
                bytes[at] = byte;
                let is_plain = byte >= b' ' && !matches!(byte, b'"' | b'\\');
                assert_eq!(plain(&bytes), if is_plain { len } else { at });
                assert_eq!(digits(&bytes), if byte.is_ascii_digit() { len } else { at });
            }
        }
    }
}

#[test]
fn wrong_records() {
    for (line, flaw) in [
        (r#"{"a":"1","a":"2"}"#, Flaw::Twice(0)),
        (r#"{"b.c":"1","b":{"c":"2"}}"#, Flaw::Twice(1)),
        (r#"{"a":1}"#, Flaw::NotText(0)),
        (r#"{"src_asn":1}"#, Flaw::Taken(0)),
        ("[1]", Flaw::NotObject),
        (r#"{"x":01}"#, Flaw::NotJson { what: "no comma", byte: 7 }),
        (r#"{"x":1}}"#, Flaw::NotJson { what: "more after the end", byte: 8 }),
        ("{\"x\":\"\u{1}\"}", Flaw::NotJson { what: "a control character in a string", byte: 7 }),
    ] {
        assert_eq!(scanned(line.as_bytes(), &["a", "b.c"]).1, Content::Flawed(flaw), "{line}");
    }
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    assert!(matches!(scanned(deep.as_bytes(), &[]).1, Content::Flawed(Flaw::NotJson { .. })));
    assert!(matches!(scanned(b"{\"x\":\"\xff\"}", &[]).1, Content::Flawed(Flaw::NotJson { .. })));
}

/// The records of a block, each with the bytes of its cells.
fn told(records: &Records, block: &[u8]) -> Vec<(Record, Vec<Vec<u8>>)> {
    let cells = |at| (0..records.wanted).map(|wanted| records.cell(block, at, wanted).to_vec()).collect();
    records.records().iter().enumerate().map(|(at, &record)| (record, cells(at))).collect()
}

const NAMES: &[&str] = &[
    "\"a\"",
    "\"a\"",
    "\"port\"",
    "\"id\"",
    "\"id.x\"",
    "\"x\"",
    "\"x\"",
    "\"\"",
    "\"\\u0061\"",
    "\"src_asn\"",
    "\"a name that is longer than the thirty-two bytes\"",
    "\"a name that is longer than the sixty-four bytes that are the most that is kept\"",
    "\"a\"\"",
];
const VALUES: &[&str] = &[
    "\"10.0.0.1\"",
    "\"192.0.2.255\"",
    "\"\"",
    "\"a text that is longer than the sixty-four bytes that are looked at together, and so goes on and on\"",
    "\"\\u0041b\"",
    "\"\\x\"",
    "\"é\"",
    "\"\u{1}\"",
    "\"open",
    "443",
    "0",
    "-17.25",
    "1234567890123456789012345678901234567890123456789012345678901234567890.5",
    "1e5",
    "1.5E-7",
    "01",
    "-",
    "1.",
    "1.e5",
    "true",
    "false",
    "null",
    "nul",
    "nullx",
    "[1,{\"a\":2}]",
    "{\"x\":\"1\",\"y\":{}}",
    "{\"x\":1}",
    "{ \"x\":{\"y\":null, \"x\": \"2\" } } ",
    "{\"y\":{\"x\":\"3\"},\"\":{\"a\":[],\"src_asn\":{\"x\":{}}}}",
    "{\"x\":\"7\"",
    "{\"x\":\"8\"}}",
    "{\"x\":}",
    "{",
    "",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() })]

    /// Lines with known members give what they give without, in a block and in parts of it.
    #[test]
    fn records_with_known_members_and_without(
        shapes in prop::collection::vec(
            (
                prop::collection::vec(prop::sample::select(NAMES), 0..6),
                prop::sample::select(&[("{", ",", ":", "}\n"), ("{", ", ", ": ", "}\r\n"), (" {\t", " , ", " : ", " } \n"),
                    ("{", ",", ":", "}"), ("{", ",,", ":", "}\n"), ("{", ",", "", "}\n"), ("{", ",", ":", "},\n"), ("[", ",", ":", "]\n"), ("", "\n", "\r", "\n")]),
            ),
            1..4,
        ),
        lines in prop::collection::vec((0usize..4, prop::collection::vec(prop_oneof![3 => 0..3usize, 2 => 9..12usize, 2 => 25..29usize, 1 => 0..VALUES.len()], 6)), 0..60),
        part in 1usize..3000,
    ) {
        let mut text = String::new();
        for (shape, values) in &lines {
            let (names, (open, comma, colon, end)) = &shapes[shape % shapes.len()];
            text.push_str(open);
            for (at, (name, &value)) in names.iter().zip(values).enumerate() {
                text.extend([if at > 0 { comma } else { "" }, name, colon, VALUES[value]]);
            }
            text.push_str(end);
        }
        let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let members = Members::new(own(&["a", "id.x", "port", "id.x.x", "x.y.x"]), 0b100, own(&["src_asn"]));
        for block in [text.as_bytes(), text.trim_end().as_bytes()] {
            let (mut known, mut right) = (Records::default(), Records::default());
            // What is known stays.
            for _ in 0..2 {
                known.begin(5);
                members.scan(block, block.len(), &mut known);
            }
            right.begin(5);
            members.scan_lines(block, block.len(), &mut right, false);
            prop_assert_eq!(told(&known, block), told(&right, block));
            prop_assert_eq!(known.lines(), right.lines());
            let (mut at, mut parts) = (0, Vec::new());
            while at < block.len() {
                let rest = &block[at..];
                known.begin(5);
                members.scan(rest, part, &mut known);
                parts.extend(told(&known, rest).into_iter().map(|(mut record, cells)| {
                    record.start += at;
                    record.insert += at;
                    record.end += at;
                    (record, cells)
                }));
                at += known.end();
            }
            prop_assert_eq!(parts, told(&right, block));
        }
    }

    #[test]
    fn takes_what_serde_json_takes(line in r#"[{}\[\]",:\\a0-1.eEu tnrlf\-]{1,24}"#) {
        let right = serde_json::from_str::<IgnoredAny>(&line).is_ok();
        prop_assume!(!line.trim().is_empty());
        let found = scanned(line.as_bytes(), &[]).1;
        let is_ours = matches!(found, Content::Whole { .. } | Content::Flawed(Flaw::NotObject));
        prop_assert_eq!(is_ours, right, "{:?}", found);
    }

    #[test]
    fn strings_are_those_of_serde_json(text in "\\PC{0,12}|[\"\\\\/\u{8}\n\t\u{1f600}]{0,6}", nest: bool) {
        let value = if nest {
            serde_json::json!({"b": 1, "a": {"c": text}})
        } else {
            serde_json::json!({"a.c": text, "z": [text]})
        };
        let line = value.to_string();
        let (records, content) = scanned(line.as_bytes(), &["a.c"]);
        prop_assert_eq!(content, Content::Whole { is_bare: false });
        prop_assert_eq!(records.cell(line.as_bytes(), 0, 0), text.as_bytes());
        let insert = records.records()[0].insert;
        let longer = format!("{},\"n\":1{}", &line[..insert], &line[insert..]);
        prop_assert_eq!(&serde_json::from_str::<Value>(&longer).unwrap()["n"], 1);
    }
}
