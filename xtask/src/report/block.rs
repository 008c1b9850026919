//! The blocks of a document, and their tables.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::record::{Conditions, Record, conditions};

const START: &str = "<!-- figures: ";
const END: &str = "<!-- end -->";

/// A document with the tables of its blocks made anew.
pub(super) fn fill(text: &str, records: &Path) -> Result<String> {
    let (mut made, mut rest, mut known) = (String::new(), text, HashMap::new());
    while let Some(at) = rest.find(START) {
        let behind = &rest[at + START.len()..];
        let (spec, behind) = behind.split_once("-->").context("a block without -->")?;
        let (_, after) = behind.split_once(END).with_context(|| format!("a block without {END}"))?;
        made.push_str(&rest[..at + START.len()]);
        made.push_str(spec);
        made.push_str("-->\n");
        made.push_str(&table(spec, records, &mut known)?);
        made.push_str(END);
        rest = after;
    }
    Ok(made + rest)
}

/// The table of a block.
fn table(spec: &str, records: &Path, known: &mut HashMap<String, Record>) -> Result<String> {
    let mut lines = spec.lines();
    let own = lines.next().context("a block without a record")?.trim().to_owned();
    let (mut all, mut columns, mut rows) = (Conditions::new(), Vec::new(), Vec::new());
    for line in lines {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells[..] {
            ["all", wanted] => all = conditions(wanted)?,
            ["column", title, wanted, value] => columns.push((title, conditions(wanted)?, value)),
            ["row", title, wanted] => rows.push((title, conditions(wanted)?)),
            _ => bail!("not a line of a block: {line:?}"),
        }
    }
    let first = "";
    let mut text = format!("| {first} |{}\n|---|", join(columns.iter().map(|column| column.0.to_owned())));
    text.push_str(&"---|".repeat(columns.len()));
    text.push('\n');
    for (title, of_row) in &rows {
        let mut cells = Vec::new();
        for (_, of_column, value) in &columns {
            let mut wanted = all.clone();
            wanted.extend(of_column.clone());
            wanted.extend(of_row.clone());
            let name = wanted.remove("record").unwrap_or_else(|| own.clone());
            if !known.contains_key(&name) {
                known.insert(name.clone(), Record::read(records, &name)?);
            }
            cells.push(known[&name].value(&wanted, value)?);
        }
        if cells.iter().all(Option::is_none) {
            bail!("{own}: no figure for the row {title:?}");
        }
        let shown = cells.into_iter().map(|cell| cell.map_or_else(|| "–".to_owned(), show));
        text.push_str(&format!("| {title} |{}\n", join(shown)));
    }
    Ok(text)
}

fn join(cells: impl Iterator<Item = String>) -> String {
    cells.map(|cell| format!(" {cell} |")).collect()
}

/// Three digits that count, and whole numbers whole.
pub(super) fn show(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let (whole, part) =
        text.split_once('.').map_or((text.as_str(), None), |(whole, part)| (whole, Some(part)));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) && digit.is_ascii_digit() {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    part.map_or(grouped.clone(), |part| format!("{grouped}.{part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let text = "engine,what,median,bytes,n\na,batch,1234567,,\na,build,0.5,100,8\nb,batch,2500000,,\n";
        std::fs::write(dir.path().join("r.csv"), text).unwrap();
        dir
    }

    const SPEC: &str = "<!-- figures: r.csv\ncolumn | M/s | what=batch | median / 1000000\ncolumn | bytes | what=build | bytes / n\nrow | `a` | engine=a\nrow | `b` | engine=b\n-->\nold\n<!-- end -->";

    #[test]
    fn a_table_is_made_of_its_record_and_stays_as_it_is() {
        let dir = records();
        let made = fill(&format!("before {SPEC} after"), dir.path()).unwrap();
        assert!(made.contains("| `a` | 1.23 | 12.5 |\n| `b` | 2.50 | – |\n<!-- end --> after"), "{made}");
        assert_eq!(fill(&made, dir.path()).unwrap(), made);
    }

    #[test]
    fn rows_without_figures_and_two_figures_for_a_cell_are_errors() {
        let dir = records();
        let none = SPEC.replace("engine=b", "engine=c");
        assert!(fill(&none, dir.path()).unwrap_err().to_string().contains("no figure for the row"));
        let two = SPEC.replace("engine=b", "");
        assert!(fill(&two, dir.path()).unwrap_err().to_string().contains("both"));
        assert!(fill(&SPEC.replace("what=batch", "wat=batch"), dir.path()).is_err());
    }

    #[test]
    fn numbers_have_three_digits_that_count() {
        let shown = [1234.5, 61.234, 4.0, 0.0709, 1042325.0].map(show);
        assert_eq!(shown, ["1,234", "61.2", "4.00", "0.071", "1,042,325"]);
    }
}
