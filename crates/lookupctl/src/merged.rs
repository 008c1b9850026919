//! `--merge`: several sources as one table whose labels are records.

use std::time::Instant;

use anyhow::Result;
use wirespeed_fib::Fib;
use wirespeed_fib::merge::{Merge, MergeSource};
use wirespeed_fib::read::ReadReport;
use wirespeed_input::plural;

use crate::busy::Busy;
use crate::number::{Bytes, counted, counted_u64, grouped};
use crate::source::{Loaded, ReadArguments};

/// Reads a source, and adds it after those before.
fn add(source: &MergeSource, read: &ReadArguments, merge: &mut Merge) -> Result<ReadReport> {
    let Loaded { fib, report, .. } = match source.columns.is_empty() {
        true => read.load_one_of(&source.file)?,
        false => read.with_values(&source.columns).load_one_of(&source.file)?,
    };
    merge.add_read(source, &fib, &report)?;
    Ok(report)
}

/// Reads sources in order of precedence as one table. Returns it with the report of each source.
pub(crate) fn load(read: &ReadArguments, sources: &[MergeSource]) -> Result<(Fib, Vec<ReadReport>)> {
    let mut merge = Merge::new();
    let reports: Vec<ReadReport> =
        sources.iter().map(|source| add(source, read, &mut merge)).collect::<Result<_>>()?;
    read.check(&reports.iter().collect::<Vec<_>>(), None)?;
    let (prefixes, bytes, began) = (merge.len(), merge.memory_usage(), Instant::now());
    let busy = Busy::with("merging");
    let merged = merge.build()?;
    drop(busy);
    let fib = merged.fib;
    eprintln!(
        "merged {}, {} {} of all, in {:.2} s and {}: {} IPv4 and {} IPv6 {}, {}",
        counted(sources.len(), "source"),
        grouped(prefixes),
        plural(prefixes as u64, "prefix"),
        began.elapsed().as_secs_f64(),
        Bytes(bytes as u64),
        grouped(fib.v4.len()),
        grouped(fib.v6.len()),
        plural(fib.v6.len() as u64, "prefix"),
        counted(merged.records.len(), "record"),
    );
    if merged.empty > 0 {
        eprintln!("  {} without any field, which have no route", counted_u64(merged.empty, "prefix"));
    }
    Ok((fib, reports))
}
