//! Tables of names to measure on, and the traces that are looked up in them (MATA paper, 5.3 and 5.4).
//!
//! Results are next hops: each domain's address is looked up in an IP FIB. There is no DNS here, so addresses
//! are made by a seed; the resolver says so, and so do the records (`addresses made`).

use std::path::PathBuf;

use anyhow::Result;
use wirespeed_namelookup::generate::{self, Load, Paths, Resolver, TableSpec, TraceSpec};
use wirespeed_namelookup::read::{self, NameFib, NameFormat, ReadOptions, Source as Input};
use wirespeed_namelookup::{Name, NameBatch, NameTable};

use crate::data::{directory, sources};
use crate::report::Setting;

/// Real lists have lines that are no names; a benchmark goes on without them.
fn lenient() -> ReadOptions {
    ReadOptions { lenient: true, ..ReadOptions::default() }
}

/// Names of the large table.
pub const TEN_MILLION: usize = 10_000_000;
/// Names of the small table, where it is made.
const AS_REAL: usize = 3_600_000;
const SEED: u64 = 1;

/// A table of names, by what it is called in records.
pub struct Table {
    /// The name in records.
    pub name: String,
    /// The names.
    pub names: NameTable,
    /// The number of next hops.
    pub next_hops: usize,
}

impl Table {
    /// The table without a trace, for the rows of a record.
    pub fn setting(&self) -> Setting {
        Setting::of_table(&self.name, self.names.len(), self.next_hops)
    }
}

fn file(name: &str) -> Option<PathBuf> {
    let path = directory().join("names").join(name);
    path.is_file().then_some(path)
}

/// Whether there are real domains.
pub fn is_real() -> bool {
    file("domains-3.6m.txt.zst").is_some()
}

/// Domains with their own numbers as results: the real ones where they are, at most so many made ones
/// otherwise; and what they are called.
fn domains(most: usize) -> Result<(String, NameFib)> {
    match file("domains-3.6m.txt.zst") {
        Some(path) => {
            let options = ReadOptions { format: Some(NameFormat::Domains), ..lenient() };
            Ok(("domains".into(), read::read_table(&Input::Path(path), &options)?.0))
        }
        None => {
            let spec = TableSpec { names: AS_REAL.min(most), results: 0, seed: SEED };
            Ok(("synthetic".into(), generate::table(&spec)?))
        }
    }
}

/// The table of real domains, or of at most so many: what stands for the paper's "3M name table".
pub fn small(most: usize) -> Result<Table> {
    let (name, fib) = domains(most)?;
    let table = routed(name, &fib.names)?;
    Ok(if table.names.len() > most { subset(&table, most) } else { table })
}

/// The table of real domains and of made names up to ten million: what stands for the paper's "10M name
/// table".
pub fn large(names: usize) -> Result<Table> {
    let (name, mut fib) = domains(names)?;
    generate::extend(&mut fib, &TableSpec { names, results: 0, seed: SEED })?;
    let name = if name == "synthetic" { name } else { format!("{name}-and-made") };
    routed(name, &fib.names)
}

/// A made table.
pub fn made(names: usize) -> Result<Table> {
    let fib = generate::table(&TableSpec { names, results: 0, seed: SEED })?;
    routed("synthetic".into(), &fib.names)
}

/// Names with the next hops of their addresses as results.
fn routed(name: String, names: &NameTable) -> Result<Table> {
    let fib =
        sources().first().map_or_else(|| Ok(wirespeed_fib::Fib::default()), crate::data::Source::read)?;
    let (table, _) = generate::via_fib(names, &Resolver::stand_in(&fib, SEED)?, &fib)?;
    let name = format!("{name}-{}", rounded(table.names.len()));
    Ok(Table { name, names: table.names, next_hops: table.labels.len() })
}

/// A count in words: `3.6m`, `100k`.
pub fn rounded(count: usize) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", count / 1_000),
        _ if count % 1_000_000 < 50_000 => format!("{}m", count / 1_000_000),
        _ => format!("{}.{}m", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// Every n-th name of a table, so that about so many are left.
pub fn subset(table: &Table, wanted: usize) -> Table {
    let every = table.names.len().div_ceil(wanted.max(1)).max(1);
    let names: NameTable = table.names.iter().step_by(every).take(wanted).collect();
    Table { name: format!("{}-of-{}", rounded(names.len()), table.name), names, next_hops: table.next_hops }
}

/// Paths to append to the names of a trace: those of real URLs where they are, made ones otherwise.
pub fn paths() -> Result<Paths> {
    match file("urls-300k.txt.zst") {
        Some(path) => {
            let options = ReadOptions { format: Some(NameFormat::Urls), ..lenient() };
            Ok(read::read_paths(&Input::Path(path), &options)?.0.into())
        }
        None => Ok(Paths::made()),
    }
}

/// The names that are looked up.
pub struct Trace {
    /// `average`, `heavy` or `misses`.
    pub name: String,
    /// The names.
    pub names: NameBatch,
    /// The results that are right.
    pub expected: Vec<u32>,
    /// The seed that it was drawn by.
    pub seed: u64,
}

/// The kind of names that are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Any names of the table, each with a path after it
    Average,
    /// Names of the longest tenth, each with a path after it
    Heavy,
    /// Made domains that no entry matches, each with a path after it
    Misses,
}

impl Trace {
    /// A table with this trace, for the rows of a record.
    pub fn setting(&self, table: &Setting) -> Setting {
        table.on_trace(&self.name, self.seed, self.expected.iter().copied())
    }

    /// Draws a trace and the right results, which the table of names itself gives.
    pub fn draw(table: &NameTable, kind: Kind, paths: &Paths, count: usize, seed: u64) -> Result<Self> {
        let (name, load, misses) = match kind {
            Kind::Average => ("average", Load::Average, 0.0),
            Kind::Heavy => ("heavy", Load::Heavy, 0.0),
            Kind::Misses => ("misses", Load::Average, 1.0),
        };
        let spec = TraceSpec { load, misses, seed };
        let names = generate::trace(table, paths.clone(), &spec, count)?;
        let expected = names.names().iter().map(|name: &Name| table.lookup(name).result).collect();
        Ok(Self { name: name.into(), names, expected, seed })
    }

    /// Bytes of a name, on average.
    pub fn bytes_a_name(&self) -> f64 {
        self.names.names().bytes().len() as f64 / self.names.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_in_words() {
        let words = [999, 100_000, 3_646_918, 10_000_000].map(rounded);
        assert_eq!(words, ["999", "100k", "3.6m", "10m"]);
    }

    #[test]
    fn subsets_are_spread_over_the_table() {
        let table = made(5000).unwrap();
        let subset = subset(&table, 100);
        assert_eq!(subset.names.len(), 100);
        assert!(subset.names.iter().all(|(name, result)| table.names.result(&name) == result));
        assert_eq!(subset.name, "100-of-synthetic-5k");
    }
}
