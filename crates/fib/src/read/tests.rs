//! Helpers of the readers' tests, and what holds for all of them.

use super::*;
use crate::write::{write_fib, write_updates};

pub(crate) fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Fib, ReadReport), ReadError> {
    read_fib_from(bytes, "test", options)
}

pub(crate) fn read_strict(format: Format, bytes: &[u8]) -> Result<(Fib, ReadReport), ReadError> {
    read_with(bytes, &ReadOptions { format: Some(format), ..ReadOptions::default() })
}

/// What strict reading finds, in a text that is also recognised as what it is.
pub(crate) fn strict(format: Format, text: &str) -> (Fib, ReadReport) {
    assert_eq!(Format::recognise(text.as_bytes()), Some(format));
    read_strict(format, text.as_bytes()).unwrap()
}

pub(crate) fn lenient(format: Format, text: &str) -> (Fib, ReadReport) {
    let options = ReadOptions { format: Some(format), lenient: true, ..ReadOptions::default() };
    read_with(text.as_bytes(), &options).unwrap()
}

/// Asserts that strict reading stops at a line for a reason.
pub(crate) fn bad_line(format: Format, text: &str, line: u64, reason: SkipReason) {
    match read_strict(format, text.as_bytes()) {
        Err(ReadError::Bad { place, reason: found, .. }) => {
            assert_eq!((place, found), (Place::Line(line), reason), "{text}");
        }
        other => panic!("{text}: {other:?}"),
    }
}

pub(crate) fn text_of(fib: &Fib) -> String {
    let mut text = Vec::new();
    write_fib(fib, Format::Plain, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

pub(crate) fn updates_of(format: Format, text: &str) -> Result<(String, ReadReport), ReadError> {
    let mut hops = NextHops::new();
    let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
    let (updates, report) = collect_updates_from(text.as_bytes(), "test", &options, &mut hops)?;
    Ok((text_of_updates(&updates, &hops), report))
}

pub(crate) fn text_of_updates(updates: &[TimedUpdate], hops: &NextHops) -> String {
    let mut text = Vec::new();
    write_updates(updates, hops, Format::Updates, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

const GOOD: &str = "10.0.0.0/8 a\n10.1.0.0/16 b\n";

fn message(bytes: &[u8], options: &ReadOptions) -> String {
    read_with(bytes, options).unwrap_err().to_string()
}

#[test]
fn a_file_without_routes_is_refused() {
    let strict = ReadOptions::default();
    for nothing in ["", "\n \n", "# one\n# two\n"] {
        assert_eq!(message(nothing.as_bytes(), &strict), "no routes in test");
    }
    assert_eq!(message(b"[]", &strict), "no routes in test");
    let frr = br#"{"10.0.0.0/8":[{"nexthops":[]}]}"#;
    assert_eq!(message(frr, &strict), "no routes in test (1 record of other kinds)");
    let (fib, _) = read_with(b"", &ReadOptions { lenient: true, ..strict }).unwrap();
    assert!(fib.is_empty());
}

#[test]
fn comments_of_any_length_may_come_first() {
    let text = "# a comment\n".repeat(2 * LOOK_AHEAD) + GOOD;
    assert_eq!(read_with(text.as_bytes(), &ReadOptions::default()).unwrap().0.v4.len(), 2);
}

#[test]
fn what_is_no_format_is_refused_with_its_first_bytes() {
    let strict = ReadOptions::default();
    let noise = message(b"\x7fELF\x02\x01\x01\0\0\0", &strict);
    assert_eq!(noise, r#"test: unknown format; it starts with "\x7fELF\x02\x01\x01\x00\x00\x00""#);
    assert!(message(b"the quick brown fox", &strict).contains("unknown format"));
    assert_eq!(message(b"A 10.0.0.0/8 a\n", &strict), "test: updates holds no routes");
}

#[test]
fn a_wrong_format_is_refused_at_the_first_line() {
    for format in Format::ALL.into_iter().filter(|f| f.holds_routes() && *f != Format::Plain) {
        let error = read_strict(format, GOOD.as_bytes()).unwrap_err();
        // A MaxMind DB has no lines: without its marker it is of no format.
        let is_named = match format {
            Format::Mmdb => matches!(error, ReadError::UnknownFormat { .. } | ReadError::LeftOut { .. }),
            _ => {
                matches!(error, ReadError::Bad { .. } | ReadError::CutOff { .. } | ReadError::Columns { .. })
            }
        };
        assert!(is_named, "{format}: {error}");
    }
}

#[test]
fn compressed_input_that_is_cut_off_is_one_clear_error_or_a_noted_loss() {
    let text: String = (0..50_000u32)
        .map(|i| {
            format!("{}/32 192.0.2.{}\n", std::net::Ipv4Addr::from(i.wrapping_mul(2_654_435_761)), i % 250)
        })
        .collect();
    let packed = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let cut = &packed[..packed.len() / 2];
    match read_with(cut, &ReadOptions::default()).unwrap_err() {
        ReadError::CutOff { place: Place::Line(line), reason, records, routes, .. } => {
            assert_eq!(reason, "the zstd data ends too soon");
            assert_eq!((records, routes), (line - 1, line - 1));
        }
        other => panic!("{other}"),
    }
    let (fib, report) = read_with(cut, &ReadOptions { lenient: true, ..ReadOptions::default() }).unwrap();
    assert_eq!(fib.v4.len() as u64, report.routes);
    assert!(report.routes > 0 && report.truncated.is_some());
    assert!(report.to_string().contains("cut off at test:"));
    // Cut in its very head there is no line at all.
    let message = message(&packed[..6], &ReadOptions::default());
    assert_eq!(message, "test:1: the zstd data ends too soon; 0 whole records before it");
}

#[test]
fn a_missing_file_and_a_directory_are_named() {
    for path in ["/nonexistent/table", "/"] {
        let error = read_fib(&Source::from_arg(path), &ReadOptions::default()).unwrap_err();
        assert!(error.to_string().starts_with(path), "{error}");
        assert!(matches!(error, ReadError::Io { .. }));
    }
}

#[test]
fn the_report_is_for_people() {
    let (_, report) = lenient(Format::Plain, "# note\n10.0.0.0/8 a\n10.0.0.0/8 b\n10.0.0.1/8 c\n");
    assert_eq!(
        report.to_string(),
        "test: plain, 3 records, 2 taken, 1 of them for a prefix already there\n  \
         passed over 1: host bits are set (first at test:4)"
    );
}
