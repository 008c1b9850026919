//! A record: a CSV file with a header line, whose lines are found by what they hold.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Conditions that a line has to meet: a column and what it holds.
pub(super) type Conditions = BTreeMap<String, String>;

/// A file of figures.
pub(super) struct Record {
    name: String,
    header: Vec<String>,
    lines: Vec<Vec<String>>,
}

impl Record {
    /// Reads a record.
    pub(super) fn read(records: &Path, name: &str) -> Result<Self> {
        let text = std::fs::read_to_string(records.join(name)).with_context(|| name.to_owned())?;
        let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
        let mut lines = text.lines().filter(|line| !line.starts_with('#')).map(cells);
        let header = lines.next().with_context(|| format!("{name} is empty"))?;
        Ok(Self { name: name.to_owned(), header, lines: lines.collect() })
    }

    fn column(&self, name: &str) -> Result<usize> {
        let at = self.header.iter().position(|column| column == name);
        at.with_context(|| format!("{}: no column {name:?}", self.name))
    }

    /// What an expression comes to on the lines that meet the conditions: a column, divided or multiplied by
    /// columns and numbers. `None` where no line does, an error where two lines give different values.
    pub(super) fn value(&self, wanted: &Conditions, expression: &str) -> Result<Option<f64>> {
        let wanted: Vec<_> =
            wanted.iter().map(|(column, value)| Ok((self.column(column)?, value))).collect::<Result<_>>()?;
        let mut found = None;
        for line in &self.lines {
            let holds = |&(at, value): &(usize, &String)| line.get(at) == Some(value);
            if !wanted.iter().all(holds) {
                continue;
            }
            let Some(value) = self.compute(line, expression)? else { continue };
            match found {
                Some(other) if other != value => {
                    bail!("{}: both {other} and {value} for {wanted:?}, {expression:?}", self.name)
                }
                _ => found = Some(value),
            }
        }
        Ok(found)
    }

    /// `None` where the line has no number in that column.
    fn compute(&self, line: &[String], expression: &str) -> Result<Option<f64>> {
        let mut words = expression.split_whitespace();
        let first = words.next().context("an empty expression")?;
        let term = |word: &str| match word.parse::<f64>() {
            Ok(number) => anyhow::Ok(Some(number)),
            Err(_) => Ok(line.get(self.column(word)?).and_then(|cell| cell.parse::<f64>().ok())),
        };
        let Some(mut value) = term(first)? else { return Ok(None) };
        while let Some(sign) = words.next() {
            let word = words.next().with_context(|| format!("{expression:?} ends in {sign:?}"))?;
            let Some(by) = term(word)? else { return Ok(None) };
            match sign {
                "/" => value /= by,
                "*" => value *= by,
                _ => bail!("{expression:?}: {sign:?} is neither / nor *"),
            }
        }
        Ok(Some(value))
    }
}

/// Conditions as a block writes them: `column=value` with blanks between; a value's own blanks are written as
/// `+`.
pub(super) fn conditions(text: &str) -> Result<Conditions> {
    let one = |word: &str| {
        let (column, value) = word.split_once('=').with_context(|| format!("{word:?} is no condition"))?;
        Ok((column.to_owned(), value.replace('+', " ")))
    };
    text.split_whitespace().map(one).collect()
}
