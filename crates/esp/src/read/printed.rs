//! Printed associations and policies: `ip xfrm state` and `ip xfrm policy`, with `-s` or without. A record
//! becomes the line that adds the same.
//!
//! ```text
//! src 192.0.2.1 dst 192.0.2.2                                     state add src 192.0.2.1 dst 192.0.2.2
//!         proto esp spi 0x00000100 reqid 1 mode tunnel        ─►  proto esp spi 0x00000100 reqid 1 mode tunnel
//!         replay-window 32 flag af-unspec                         replay-window 32 flag af-unspec
//!         anti-replay context: seq 0x0, oseq 0x5, bitmap 0x0      replay-seq 0x0 replay-oseq 0x5
//! ```
//!
//! Counters and times are not read, so limits count anew. The window's bits are not read, either: the numbers
//! up to the highest one count as seen.

use zeroize::Zeroizing;

use super::skip::{Skip, Skipping};

/// Whether a line begins a printed record. It goes on with lines that are indented.
pub(super) fn begins(line: &str) -> bool {
    line.starts_with("src ")
}

/// Whether a line goes on with a record.
pub(super) fn goes_on(line: &str) -> bool {
    line.starts_with([' ', '\t']) && !line.trim().is_empty()
}

/// The part of a record that a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Words as in a command.
    Words,
    /// Sequence numbers and the bits of a window.
    Window,
    Limits,
    /// Counters and times.
    Counters,
}

/// The line that adds the same as a record. It has keys.
pub(super) fn line(record: &str) -> Result<Zeroizing<String>, Skipping> {
    let is_state = record.lines().nth(1).is_some_and(|line| line.trim_start().starts_with("proto "));
    // So large that no copy stays behind where the memory grows.
    let mut made = Zeroizing::new(String::with_capacity(4 * record.len() + 64));
    made.push_str(if is_state { "state add" } else { "policy add" });
    let mut part = Part::Words;
    for line in record.lines() {
        let mut words = line.split_whitespace().peekable();
        let first = words.peek().copied().unwrap_or_default();
        part = match first {
            "anti-replay" => Part::Window,
            "lifetime" if line.contains("config") => Part::Limits,
            "lifetime" | "stats:" | "lastused" => Part::Counters,
            "proto" | "sel" | "tmpl" | "encap" | "aead" | "auth" | "auth-trunc" | "enc" | "dir" | "if_id"
            | "mark" | "output-mark" | "coa" | "crypto" | "security" | "comp" => Part::Words,
            _ => part,
        };
        match part {
            Part::Words => add_words(line, &mut made),
            Part::Window => add_window(line, &mut made)?,
            Part::Limits if first != "lifetime" => add_limits(line, &mut made)?,
            Part::Limits | Part::Counters => {}
        }
    }
    Ok(made)
}

fn add(made: &mut String, words: &[&str]) {
    for word in words {
        made.push(' ');
        made.push_str(word);
    }
}

/// Adds words, without what `-s` says twice: `0x00000100(256)`, `(160 bits)`.
fn add_words(line: &str, made: &mut String) {
    let mut words = line.split_whitespace().peekable();
    let is_encapsulation = words.peek() == Some(&"encap");
    let mut is_within = false;
    while let Some(word) = words.next() {
        let is_number = word.starts_with(|first: char| first.is_ascii_digit());
        if is_within || word.starts_with('(') {
            is_within = !word.ends_with(')');
            continue;
        }
        match (word, words.peek().copied()) {
            // Numbers of the key daemon, and words for what holds anyway.
            ("seq" | "uid", Some(_)) | ("share", Some("any")) => drop(words.next()),
            ("enc-mask" | "auth-mask" | "comp-mask", Some("ffffffff")) => drop(words.next()),
            ("flag", None) => {}
            ("flag", Some(next)) if next.starts_with('(') => {}
            ("type" | "sport" | "dport" | "addr", Some(_)) if is_encapsulation => {}
            _ if is_number => add(made, &[word.split('(').next().unwrap_or(word)]),
            _ => add(made, &[word]),
        }
    }
}

/// Adds sequence numbers and the size of a window.
fn add_window(line: &str, made: &mut String) -> Result<(), Skipping> {
    let mut words = line.split([' ', '\t', ',']).filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        let name = match word {
            "seq" => "replay-seq",
            "seq-hi" => "replay-seq-hi",
            "oseq" => "replay-oseq",
            "oseq-hi" => "replay-oseq-hi",
            "replay_window" => "replay-window",
            "anti-replay" | "esn" | "context:" => continue,
            "bitmap" | "bitmap-length" => {
                words.next();
                continue;
            }
            bits if bits.len() == 8 && bits.bytes().all(|digit| digit.is_ascii_hexdigit()) => continue,
            other => return Err((Skip::Word, other.to_owned())),
        };
        add(made, &[name, words.next().ok_or_else(|| (Skip::End, word.to_owned()))?]);
    }
    Ok(())
}

/// Adds limits: `limit: soft (INF)(bytes), hard 1000(bytes)`, `expire add: soft 0(sec), hard 3600(sec)`.
fn add_limits(line: &str, made: &mut String) -> Result<(), Skipping> {
    let wrong = || (Skip::Value, line.trim().to_owned());
    let (kind, values) = line.trim().split_once(": ").ok_or_else(wrong)?;
    for value in values.split(", ") {
        let (hardness, value) = value.split_once(' ').ok_or_else(wrong)?;
        let (number, unit) = value.trim_end_matches(')').rsplit_once('(').ok_or_else(wrong)?;
        let of = match (kind, unit) {
            ("limit", "bytes") => "byte",
            ("limit", "packets") => "packet",
            ("expire add", "sec") => "time",
            ("expire use", "sec") => "time-use",
            _ => return Err(wrong()),
        };
        let is_none = number == "(INF)" || (unit == "sec" && number == "0");
        if !matches!(hardness, "soft" | "hard") {
            return Err(wrong());
        }
        if !is_none {
            add(made, &["limit", &format!("{of}-{hardness}"), number]);
        }
    }
    Ok(())
}
