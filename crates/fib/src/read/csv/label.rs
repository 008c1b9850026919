//! Cells as the text of a next hop, which holds no blank.
//!
//! ```text
//! one column        United States            ──►  United%20States
//! several columns   13335, US, "A, B"        ──►  asn=13335,country=US,org=A%2C%20B
//! ```
//!
//! Bytes that the text can't hold are written as `%` and two hex digits: blanks, control characters, `#`, and
//! a `%` before two hex digits; among several values `,` and `=`, too. So the text tells the cells.

use crate::read::NO_VALUE;

/// Writes the cells of these columns into `into`, whose old content goes. Leaves it empty if every cell is.
///
/// `is_one` says that one column makes the text, whose name is then left out.
pub fn write<'c>(into: &mut String, is_one: bool, columns: impl Iterator<Item = (&'c str, &'c str)>) {
    into.clear();
    for (name, cell) in columns.filter(|(_, cell)| !cell.is_empty()) {
        if is_one {
            escape(into, cell, |_| false);
            continue;
        }
        if !into.is_empty() {
            into.push(',');
        }
        escape(into, name, is_mark);
        into.push('=');
        escape(into, cell, is_mark);
    }
}

/// The names and values of a text of several columns. `None` if it is none as [`write`] makes it.
pub(in crate::read) fn fields(text: &str) -> Option<Vec<(String, String)>> {
    if text == NO_VALUE {
        return Some(Vec::new());
    }
    let pair = |part: &str| {
        let (name, value) =
            part.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty())?;
        Some((unescaped(name)?, unescaped(value)?))
    };
    let pairs: Vec<_> = text.split(',').map(pair).collect::<Option<_>>()?;
    let mut again = String::new();
    write(&mut again, false, pairs.iter().map(|(name, value)| (&**name, &**value)));
    (again == text).then_some(pairs)
}

/// A text without its escapes. `None` if it is no text then.
pub(in crate::read) fn unescaped(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|hex| byte == b'%' && hex.iter().all(u8::is_ascii_hexdigit));
        match hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()) {
            Some(escaped) => {
                bytes.push(escaped);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// Whether a byte separates the values of several columns.
fn is_mark(byte: char) -> bool {
    matches!(byte, ',' | '=')
}

fn escape(into: &mut String, text: &str, is_more: fn(char) -> bool) {
    const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    for (at, symbol) in text.char_indices() {
        match u8::try_from(symbol) {
            Ok(byte) if is_unfit(byte, &text.as_bytes()[at + 1..]) || is_more(symbol) => {
                into.extend(['%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
            _ => into.push(symbol),
        }
    }
}

/// Whether a byte can't stand as it is before these.
fn is_unfit(byte: u8, after: &[u8]) -> bool {
    match byte {
        b'#' | 0x7f | 0..=b' ' => true,
        b'%' => after.len() >= 2 && after[..2].iter().all(u8::is_ascii_hexdigit),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_become_words() {
        for (columns, text) in [
            (&[("c", "United States")][..], "United%20States"),
            (&[("c", "a,b=c#%\u{7f}\n")], "a,b=c%23%%7F%0A"),
            (&[("c", "fe80::1%eth0")], "fe80::1%eth0"),
            (&[("c", "50%20")], "50%2520"),
            (
                &[("asn", "13335"), ("country", ""), ("org name", "A, B=C caf\u{e9}")],
                "asn=13335,org%20name=A%2C%20B%3DC%20caf\u{e9}",
            ),
            (&[("a", ""), ("b", "")], ""),
        ] {
            let mut into = "old".to_owned();
            write(&mut into, columns.len() == 1, columns.iter().copied());
            assert_eq!(into, text);
            assert!(into.is_empty() || crate::read::text::next_hop(into.as_bytes()).is_ok());
        }
    }
}
