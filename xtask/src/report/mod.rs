//! Figures in the documents, made from the records: `cargo xtask report` writes the tables anew, and a test
//! fails where a table and its record disagree.
//!
//! A block in a document says what its table is made of:
//!
//! ```text
//! <!-- figures: MACHINE/DATE.csv
//! all | table=ris-20260511-v4 batch=1024          conditions of every cell
//! column | random, M/s | trace=random | median / 1000000
//! row | `fold` | engine=fold
//! -->
//! the table
//! <!-- end -->
//! ```
//!
//! A cell is the one value of the record's lines that meet all conditions; a dash where no line does. A table
//! that is not made of CSV is written by hand behind `<!-- quoted: FILE -->`; each number in it has to be in
//! the file, rounded as it stands in the table.

mod block;
mod chart;
mod quoted;
mod record;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::step;

/// Documents with figures.
const DOCUMENTS: [&str; 3] = ["README.md", "BENCHMARKS.md", "ENGINES.md"];

/// Options of `cargo xtask report`.
#[derive(Args)]
pub(crate) struct Options {
    /// Compare only; an error names the first document that differs
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let root = step::root();
    for (path, text) in made(&root)? {
        let old = std::fs::read_to_string(&path).unwrap_or_default();
        if old == text {
            continue;
        }
        if options.check {
            bail!("{} is not what the records say: run `cargo xtask report`", path.display());
        }
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        println!("{} written", path.display());
    }
    Ok(())
}

/// Every document and chart as the records have it.
fn made(root: &Path) -> Result<Vec<(PathBuf, String)>> {
    let records = root.join("benches/record");
    let mut files = vec![(root.join("benches/record/chart.svg"), chart::draw(&records)?)];
    for name in DOCUMENTS {
        let path = root.join(name);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let text = block::fill(&text, &records).with_context(|| name.to_owned())?;
        quoted::check(&text, &records).with_context(|| name.to_owned())?;
        files.push((path, text));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_say_what_the_records_say() {
        run(&Options { check: true }).unwrap();
    }
}
