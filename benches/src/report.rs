//! Results as rows: a table for the screen, CSV for the record.

use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use crate::machine::Machine;

/// The conditions that a set of rows was measured in.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Name of the table.
    pub table: String,
    /// Prefixes in it.
    pub prefixes: usize,
    /// Distinct next hops.
    pub next_hops: usize,
    /// Kind of trace; empty where there is none.
    pub trace: String,
    /// Keys in the trace, or updates.
    pub items: usize,
    /// Its seed.
    pub seed: u64,
    /// Sum of all results, where they were checked.
    pub checksum: Option<u64>,
}

/// One measurement.
#[derive(Clone, Debug)]
pub struct Row {
    /// The conditions that it was measured in.
    pub setting: Setting,
    /// The engine or rival.
    pub engine: String,
    /// `build`, `single`, `batch` or `update`.
    pub what: &'static str,
    /// Keys or updates a call; 0 where that says nothing.
    pub batch: usize,
    /// Each round's figure.
    pub rounds: Vec<f64>,
    /// The unit of the figures: `keys/s`, `updates/s` or `s`.
    pub unit: &'static str,
    /// Bytes held.
    pub memory: u64,
    /// Seconds to build.
    pub build_seconds: f64,
    /// Median over the rounds of this figure by the reference's in the same round.
    pub ratio: Option<f64>,
}

/// A table's name, and what building it cost.
#[derive(Clone, Copy, Debug)]
pub struct Costs<'a> {
    /// The name in tables and records.
    pub name: &'a str,
    /// Bytes held.
    pub memory: u64,
    /// Seconds that building took.
    pub build_seconds: f64,
}

impl Setting {
    /// A table without a trace.
    pub fn of_table(table: &str, prefixes: usize, next_hops: usize) -> Self {
        Self {
            table: table.to_owned(),
            prefixes,
            next_hops,
            trace: String::new(),
            items: 0,
            seed: 0,
            checksum: None,
        }
    }

    /// The table with a trace, whose right results are these.
    pub fn on_trace(&self, trace: &str, seed: u64, results: impl ExactSizeIterator<Item = u32>) -> Self {
        Self {
            trace: trace.to_owned(),
            items: results.len(),
            seed,
            checksum: Some(results.fold(0, |sum, result| sum.wrapping_add(u64::from(result)))),
            ..self.clone()
        }
    }
}

/// The middle value; of an even number the lower of the two. 0 of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

/// Median over rounds of one figure by another.
pub fn ratio(of: &[f64], by: &[f64]) -> f64 {
    let ratios: Vec<f64> = of.iter().zip(by).map(|(of, by)| of / by).collect();
    median(&ratios)
}

impl Row {
    /// A measurement of a table, without a ratio.
    pub fn of(
        setting: &Setting,
        costs: Costs<'_>,
        what: &'static str,
        batch: usize,
        rounds: Vec<f64>,
        unit: &'static str,
    ) -> Self {
        let Costs { name, memory, build_seconds } = costs;
        let (setting, engine) = (setting.clone(), name.to_owned());
        Self { setting, engine, what, batch, rounds, unit, memory, build_seconds, ratio: None }
    }

    fn least(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn most(&self) -> f64 {
        self.rounds.iter().copied().fold(0.0, f64::max)
    }
}

/// The rows of one setting and kind as a table for people, with its heading.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let Some(first) = rows.first() else { return text };
    let Setting { table, prefixes, next_hops, trace, items, seed, checksum } = &first.setting;
    write!(text, "\n{table}: {prefixes} prefixes, {next_hops} next hops; {}", first.what)
        .expect("a string takes all");
    if first.batch > 1 {
        write!(text, " of {}", first.batch).expect("a string takes all");
    }
    if !trace.is_empty() {
        write!(text, ", {trace} (seed {seed}, {items})").expect("a string takes all");
    }
    if let Some(checksum) = checksum {
        write!(text, ", checksum {checksum}").expect("a string takes all");
    }
    let (scale, unit) = if first.unit == "s" { (1.0, "s") } else { (1e-6, "M/s") };
    let (engine, memory, prefix, build, ratio) = ("engine", "MiB", "B/prefix", "build s", "ratio");
    write!(
        text,
        "\n{engine:28} {memory:>8} {prefix:>9} {build:>8} {:>9} {:>9} {:>9} {ratio:>7}",
        format!("min {unit}"),
        format!("med {unit}"),
        format!("max {unit}"),
    )
    .expect("a string takes all");
    for row in rows {
        let memory = row.memory as f64;
        write!(
            text,
            "\n{:28} {:8.1} {:9.1} {:8.3} {:9.2} {:9.2} {:9.2} {:>7}",
            row.engine,
            memory / f64::from(1 << 20),
            memory / (*prefixes).max(1) as f64,
            row.build_seconds,
            row.least() * scale,
            median(&row.rounds) * scale,
            row.most() * scale,
            row.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
        )
        .expect("a string takes all");
    }
    text
}

const HEADER: &str = "date,machine,table,prefixes,next_hops,trace,items,seed,checksum,engine,what,batch,rounds,min,median,max,unit,\
                      memory_bytes,build_seconds,ratio_to_reference\n";

/// All rows as CSV.
pub fn csv(rows: &[Row], machine: &Machine) -> String {
    let mut text = HEADER.to_owned();
    let (date, machine) = (date(), machine.slug());
    for row in rows {
        let Setting { table, prefixes, next_hops, trace, items, seed, checksum } = &row.setting;
        writeln!(
            text,
            "{date},{machine},{table},{prefixes},{next_hops},{trace},{items},{seed},{},{},{},{},{},{:.6e},{:.6e},{:.6e},{},{},{:.4},{}",
            checksum.map_or_else(String::new, |sum| sum.to_string()),
            row.engine,
            row.what,
            row.batch,
            row.rounds.len(),
            row.least(),
            median(&row.rounds),
            row.most(),
            row.unit,
            row.memory,
            row.build_seconds,
            row.ratio.map_or_else(String::new, |ratio| format!("{ratio:.4}")),
        )
        .expect("a string takes all");
    }
    text
}

/// A table of computed figures: a title and columns for people, the same columns as CSV.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// The title, which says what the sheet shows.
    pub title: String,
    /// Names of the columns; the first is of words, the others are mostly of numbers.
    pub columns: &'static [&'static str],
    /// Rows of as many cells as there are columns, none of them with a comma.
    pub rows: Vec<Vec<String>>,
}

impl fmt::Display for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |at: usize| {
            let cells = self.rows.iter().map(|row| row[at].len());
            cells.chain([self.columns[at].len()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        writeln!(f, "\n{}", self.title)?;
        let heading: Vec<String> = self.columns.iter().map(|&column| column.to_owned()).collect();
        for row in std::iter::once(&heading).chain(&self.rows) {
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if at == 0 {
                    write!(f, "{cell:width$}")?;
                } else {
                    write!(f, "  {cell:>width$}")?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl Sheet {
    /// The sheet in CSV, each row with the date and the machine in front.
    pub fn csv(&self, machine: &Machine) -> String {
        let (date, machine) = (date(), machine.slug());
        let mut text = format!("date,machine,{}\n", self.columns.join(","));
        for row in &self.rows {
            writeln!(text, "{date},{machine},{}", row.join(",")).expect("a string takes all");
        }
        text
    }
}

/// Writes `MACHINE/NAME.csv` and `MACHINE/machine.txt` under a directory; where the CSV went. A second record
/// of one name replaces the first.
pub fn write(directory: &Path, machine: &Machine, name: &str, csv: &str) -> Result<PathBuf> {
    let directory = directory.join(machine.slug());
    fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    fs::write(directory.join("machine.txt"), machine.describe())?;
    let path = directory.join(format!("{name}.csv"));
    fs::write(&path, csv).with_context(|| path.display().to_string())?;
    Ok(path)
}

/// Today, in UTC, as year-month-day.
pub fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a number of days since 1970-01-01.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_453), (2025, 12, 31));
    }

    #[test]
    fn sheets_align_and_separate() {
        let cells = |row: [&str; 2]| row.map(str::to_owned).to_vec();
        let rows = vec![cells(["lulea", "7"]), cells(["pbf", "12345678"])];
        let sheet = Sheet { title: "Rates".into(), columns: &["engine", "rate"], rows };
        assert_eq!(sheet.to_string(), "\nRates\nengine      rate\nlulea          7\npbf     12345678\n");
        let csv = sheet.csv(&Machine::here());
        let lines: Vec<_> = csv.lines().collect();
        assert_eq!(lines[0], "date,machine,engine,rate");
        assert!(lines[1].starts_with(&date()) && lines[1].ends_with(",lulea,7"));
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0]), 1.0);
        assert_eq!(ratio(&[10.0, 30.0, 20.0], &[5.0, 10.0, 20.0]), 2.0);
    }
}
