//! Records of RFC 4180 over one line or several.

use wirespeed_input::{Input, Line};

use crate::read::error::{End, Fault, Place, Reason};
use crate::read::report::{Ledger, Take};

/// The most bytes of a record; one with a quote that nothing closes ends here.
const LONGEST_RECORD: usize = 64 << 10;

/// Gives every record that is neither empty nor a comment to `take`, and the answer of `take` to the ledger.
/// The place of a record is its first line.
pub fn each_record<F, R: Reason>(
    input: &mut Input<'_>,
    ledger: &mut Ledger<F, R>,
    mut take: impl FnMut(&str, Place, &mut Ledger<F, R>) -> Result<(), Fault<F, R>>,
) -> Result<(), End<F, R>> {
    records(input, ledger, &mut take)
}

#[inline(never)] // one copy for all crates
fn records<F, R: Reason>(
    input: &mut Input<'_>,
    ledger: &mut Ledger<F, R>,
    take: Take<'_, str, F, R>,
) -> Result<(), End<F, R>> {
    let mut open = Vec::new();
    let mut is_open = false;
    let mut start = Place::Line(1);
    loop {
        let place = Place::Line(input.lines_read() + 1);
        let line = match input.next_line() {
            Ok(Some(Line::Whole(line))) if place == Place::Line(1) => {
                line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
            }
            Ok(Some(Line::Whole(line))) => line,
            Ok(Some(Line::TooLong)) => {
                ledger.report.records += 1;
                ledger.fault(R::LINE_TOO_LONG.into(), place, "")?;
                open.clear();
                is_open = false;
                continue;
            }
            Ok(None) if open.is_empty() => return Ok(()),
            Ok(None) => {
                ledger.report.records += 1;
                return ledger.fault(R::QUOTES.into(), start, open);
            }
            Err(error) => return ledger.broken(place, error),
        };
        if open.is_empty() {
            start = place;
            match line.iter().find(|b| !b.is_ascii_whitespace()) {
                None => {
                    ledger.pass(R::BLANK, place);
                    continue;
                }
                Some(b'#') => {
                    ledger.pass(R::COMMENT, place);
                    continue;
                }
                Some(_) => {}
            }
        } else {
            open.push(b'\n');
        }
        open.extend_from_slice(line);
        is_open = ends_in_quotes(line, is_open);
        if is_open && open.len() <= LONGEST_RECORD {
            continue;
        }
        ledger.report.records += 1;
        let taken = match std::str::from_utf8(&open) {
            _ if is_open => Err(R::QUOTES.into()),
            Ok(record) => take(record, start, ledger),
            Err(_) => Err(R::NOT_TEXT.into()),
        };
        if let Err(fault) = taken {
            ledger.fault(fault, start, &open)?;
        }
        open.clear();
        is_open = false;
    }
}

/// Whether a line ends within quotes, after a line that did so or not. Only a quote at the start of a cell,
/// or right after another one, opens quotes: one in the midst of text makes its own line wrong, and must not
/// take the lines after it along.
fn ends_in_quotes(line: &[u8], mut is_open: bool) -> bool {
    let mut before = b',';
    for &byte in line {
        if byte == b'"' {
            is_open = !is_open && matches!(before, b',' | b';' | b'\t' | b'"');
        }
        if byte != b' ' {
            before = byte;
        }
    }
    is_open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_open_at_the_start_of_a_cell() {
        for (line, before, after) in [
            ("a,\"b", false, true),
            ("a, \"b", false, true),
            ("\"b\"", false, false),
            ("\"a\"\"", false, true),
            ("a,5\" pipe", false, false),
            ("b\",c", true, false),
            ("b,c", true, true),
        ] {
            assert_eq!(ends_in_quotes(line.as_bytes(), before), after, "{line}");
        }
    }
}
