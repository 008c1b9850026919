//! Tables that are written by hand from a file that people read: each of their numbers is to be in it.

use std::path::Path;

use anyhow::{Context, Result, bail};

const MARK: &str = "<!-- quoted: ";

/// Holds each table behind a mark against the files that the mark names. The first cell of a row is its
/// title, and not held against anything.
pub(super) fn check(text: &str, records: &Path) -> Result<()> {
    for part in text.split(MARK).skip(1) {
        let (names, behind) = part.split_once("-->").context("a mark without -->")?;
        let mut numbers = Vec::new();
        for name in names.split_whitespace() {
            let file = std::fs::read_to_string(records.join(name)).with_context(|| name.to_owned())?;
            numbers.extend(numbers_of(&file).into_iter().map(|(number, _)| number));
        }
        let rows = behind.trim_start().lines().take_while(|line| line.starts_with('|')).skip(2);
        let mut is_any = false;
        for row in rows {
            is_any = true;
            for cell in row.split('|').skip(2) {
                for (quoted, decimals) in numbers_of(&cell.replace(',', "")) {
                    let is_there = |number: &f64| {
                        // Some files say in millions what others say in thousands of millions.
                        [1.0, 1e3, 1e6, 1e9].iter().any(|scale| {
                            let shown = format!("{:.decimals$}", number / scale);
                            shown == format!("{quoted:.decimals$}")
                        })
                    };
                    if !numbers.iter().any(is_there) {
                        bail!("{quoted} of the row {row:?} is not in {names}");
                    }
                }
            }
        }
        if !is_any {
            bail!("no table behind the mark for {names}");
        }
    }
    Ok(())
}

/// The numbers of a text without marks between thousands, with how many decimals each has.
fn numbers_of(text: &str) -> Vec<(f64, usize)> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    text.split(|c: char| !is_part(c))
        .filter_map(|word| {
            let word = word.trim_matches('.');
            let decimals = word.split_once('.').map_or(0, |(_, part)| part.len());
            Some((word.parse().ok()?, decimals))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_not_in_the_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f.txt"), "a 17.814 G/s\nb,1234567,0.9\n").unwrap();
        let of =
            |cells: &str| format!("<!-- quoted: f.txt -->\n| | x |\n|---|---|\n| 99 | {cells} |\n\nbehind");
        for right in ["17.8 · 0.9", "1.23 M", "1,234,567"] {
            check(&of(right), dir.path()).unwrap();
        }
        assert!(check(&of("17.9"), dir.path()).unwrap_err().to_string().contains("17.9"));
        assert!(check("<!-- quoted: f.txt -->\nno table", dir.path()).is_err());
    }
}
