//! [`Answered`]: which version of each table answered which records.

use std::fmt::Write as _;

use super::table::Versions;
use crate::number::Grouped;

/// The versions of each table that answered, each with the first record that it answered.
#[derive(Debug, Default)]
pub struct Answered(Vec<Vec<(u32, u64)>>);

impl Answered {
    /// Says which versions answer the records after the first `before`.
    pub fn add<V>(&mut self, versions: &Versions<V>, before: u64) {
        self.0.resize_with(versions.len(), Vec::new);
        for (known, version) in self.0.iter_mut().zip(&**versions) {
            if known.last().is_none_or(|&(last, _)| last != version.number) {
                known.push((version.number, before + 1));
            }
        }
    }

    /// A line for each table of which several versions answered, each after the end of a line. `records` is
    /// the number of all, and `what` their word.
    #[must_use]
    pub fn told(&self, tables: &[String], records: u64, what: &str) -> String {
        let mut told = String::new();
        for (name, versions) in tables.iter().zip(&self.0).filter(|(_, versions)| versions.len() > 1) {
            let spans = versions.iter().enumerate().map(|(at, &(version, first))| {
                let last = versions.get(at + 1).map_or(records, |&(_, next)| next - 1);
                format!("version {version} answered {what} {} to {}", Grouped(first), Grouped(last))
            });
            // Writing to a string does not fail.
            let _ = write!(told, "\n  {name}: {}", spans.collect::<Vec<_>>().join(", "));
        }
        told
    }
}
