//! Queries: tuples as text, in columns like traces, or frames in hex.

use anyhow::{Context, Result, bail};
use wirespeed::engine::RuleTuple;
use wirespeed_classify::read::tuple_of_line;

/// The form of a query.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// Fields of a tuple.
    Words,
    /// A frame, with its ingress port.
    Frame(u16),
}

/// The most bytes of a frame that is read: more than a jumbo frame has.
const MOST: usize = 1 << 16;

impl Form {
    /// Parses a tuple.
    pub(super) fn parse<T: RuleTuple>(self, text: &str) -> Result<T> {
        let shown = || {
            let start: String = text.chars().take(60).collect();
            format!("\"{}\"", start.escape_debug())
        };
        match self {
            Self::Words => tuple_of_line(text).with_context(|| format!("not a tuple: {}", shown())),
            Self::Frame(port) => {
                let bytes = hex(text).with_context(|| format!("not a frame in hex: {}", shown()))?;
                T::of_frame(port, &bytes)
                    .with_context(|| format!("no {} tuple in the frame {}", T::NAME, shown()))
            }
        }
    }
}

/// Joins arguments that are one tuple together: those without a blank or a comma, if no argument has one.
pub(super) fn joined(arguments: &[String], form: Form) -> Vec<String> {
    let is_whole = |argument: &String| argument.contains([' ', '\t', ',']);
    match form {
        Form::Words if !arguments.iter().any(is_whole) => vec![arguments.join(" ")],
        _ => arguments.to_vec(),
    }
}

/// The bytes of pairs of hex digits, with blanks, colons, dashes or nothing between pairs.
fn hex(text: &str) -> Result<Vec<u8>> {
    let text = text.trim();
    let text = text.strip_prefix("0x").unwrap_or(text);
    let mut digits = Vec::with_capacity(text.len());
    for c in text.chars().filter(|c| !matches!(c, ' ' | '\t' | ':' | '-' | '.')) {
        match c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()) {
            Some(digit) => digits.push(digit),
            None => bail!("{c:?} is not a hex digit"),
        }
    }
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        bail!("{} hex digits are not a whole number of bytes", digits.len());
    }
    if digits.len() > 2 * MOST {
        bail!("{} bytes are too many for a frame", digits.len() / 2);
    }
    Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_in_hex() {
        for text in ["00ff10", "0x00ff10", "00:ff:10", " 00 FF 10 ", "00-ff-10", "00ff.10"] {
            assert_eq!(hex(text).unwrap(), [0, 255, 16], "{text}");
        }
        for text in ["", "0", "00f", "0g", "zz", "0x0x00"] {
            assert!(hex(text).is_err(), "{text}");
        }
    }

    #[test]
    fn words_of_one_tuple_and_tuples() {
        let joined = |arguments: &[&str]| {
            joined(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>(), Form::Words)
        };
        assert_eq!(joined(&["src=10.0.0.1", "tcp"]), ["src=10.0.0.1 tcp"]);
        assert_eq!(joined(&["src=10.0.0.1,tcp", "udp"]), ["src=10.0.0.1,tcp", "udp"]);
        assert_eq!(joined(&["10.0.0.1", "192.0.2.7", "1", "2", "tcp"]), ["10.0.0.1 192.0.2.7 1 2 tcp"]);
    }
}
