//! Cells of a record between separators, in quotes or not (RFC 4180).

use std::borrow::Cow;

/// Quotes that do not fit: a cell that nothing closes, or text beside its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadQuotes;

/// The character between two cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Separator(u8);

impl Separator {
    /// The separator of a file whose first line is this: a tab, a comma or a semicolon, the first that
    /// appears in this order. A line with none has one column.
    pub fn of(line: &[u8]) -> Self {
        Self([b'\t', b',', b';'].into_iter().find(|byte| line.contains(byte)).unwrap_or(b','))
    }
}

/// A record as it is split: its cells, used again for each record.
#[derive(Debug, Default)]
pub struct Cells {
    cells: Vec<String>,
    len: usize,
}

impl Cells {
    /// The cells of the last record.
    pub fn as_slice(&self) -> &[String] {
        &self.cells[..self.len]
    }

    /// Splits a record. Cells lose the blanks around them, if they are not quoted.
    pub fn split(&mut self, record: &str, separator: Separator) -> Result<(), BadQuotes> {
        let separator = char::from(separator.0);
        self.len = 0;
        let mut rest = Some(record);
        while let Some(text) = rest {
            if self.cells.len() == self.len {
                self.cells.push(String::new());
            }
            let cell = &mut self.cells[self.len];
            cell.clear();
            self.len += 1;
            rest = match text.trim_start_matches(' ').strip_prefix('"') {
                Some(quoted) => after_quotes(quoted, separator, cell)?,
                None => {
                    let (plain, after) = match text.split_once(separator) {
                        Some((plain, after)) => (plain, Some(after)),
                        None => (text, None),
                    };
                    if plain.contains('"') {
                        return Err(BadQuotes);
                    }
                    cell.push_str(plain.trim());
                    after
                }
            };
        }
        Ok(())
    }
}

/// A cell with this text, in quotes if it could be read as another one without.
pub(in crate::read) fn quoted(text: &str) -> Cow<'_, str> {
    let is_plain = text.trim() == text && !text.contains([',', ';', '\t', '"', '\n', '\r']);
    match is_plain {
        true => text.into(),
        false => format!("\"{}\"", text.replace('"', "\"\"")).into(),
    }
}

/// Takes a cell whose first quote is passed. Returns what follows its separator, if it has one.
fn after_quotes<'t>(
    mut text: &'t str,
    separator: char,
    cell: &mut String,
) -> Result<Option<&'t str>, BadQuotes> {
    loop {
        let (part, after) = text.split_once('"').ok_or(BadQuotes)?;
        cell.push_str(part);
        if let Some(more) = after.strip_prefix('"') {
            cell.push('"');
            text = more;
            continue;
        }
        let after = after.trim_start_matches([' ', '\r']);
        return match after.strip_prefix(separator) {
            Some(rest) => Ok(Some(rest)),
            None if after.is_empty() => Ok(None),
            None => Err(BadQuotes),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(record: &str) -> Result<Vec<String>, BadQuotes> {
        let mut cells = Cells::default();
        cells.split("old,cells,of,another", Separator(b','))?;
        cells.split(record, Separator(b','))?;
        Ok(cells.as_slice().to_vec())
    }

    #[test]
    fn cells_with_quotes_and_without() {
        for (record, cells) in [
            ("", &[""][..]),
            ("a", &["a"]),
            (" a , b\r", &["a", "b"]),
            ("a,,", &["a", "", ""]),
            ("\"a,b\",c", &["a,b", "c"]),
            ("\"say \"\"a\"\"\",\"\"", &["say \"a\"", ""]),
            ("\"a\nb\", \"c\" \r", &["a\nb", "c"]),
        ] {
            assert_eq!(split(record).unwrap(), cells, "{record}");
        }
        for bad in ["\"a", "a\"b", "\"a\"b,c", "a,\"", "\"a\"\""] {
            assert_eq!(split(bad), Err(BadQuotes), "{bad}");
        }
    }

    #[test]
    fn separators_by_the_first_line() {
        for (line, separator) in [("a,b", b','), ("a;b", b';'), ("a b\tc,d", b'\t'), ("a", b',')] {
            assert_eq!(Separator::of(line.as_bytes()), Separator(separator));
        }
    }
}
