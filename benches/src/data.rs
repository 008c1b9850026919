//! Tables to measure on: real ones where they are, synthetic ones otherwise.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::Result;
use wirespeed_fib::read::{ReadOptions, Source as Input, read_fib, read_updates};
use wirespeed_fib::synth::{self, TableSpec, UpdateSpec, Updates};
use wirespeed_fib::{Address, Family, Fib, InFib, NextHop, NextHops, Rib, Update};

/// A table that is measured on, by name.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name in records.
    pub name: String,
    /// Its family.
    pub family: Family,
    /// Its file and, where there is one, the file with its updates; a synthetic table has none.
    files: Option<(PathBuf, Option<PathBuf>)>,
}

/// The directory of real tables: `WIRESPEED_DATA`, or `../shared/data` beside the workspace.
pub fn directory() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    std::env::var_os("WIRESPEED_DATA").map_or_else(beside, PathBuf::from)
}

/// The real tables that are there, today's full table first; synthetic ones of that size where there are
/// none.
pub fn sources() -> Vec<Source> {
    let data = directory();
    let known = [
        ("ris-20260511-v4", Family::V4, true),
        ("ris-20260511-v4-asn", Family::V4, false),
        ("orange-v4-asn", Family::V4, false),
        ("ris-20260511-v6", Family::V6, true),
        ("ris-20260511-v6-asn", Family::V6, false),
        ("orange-v6-asn", Family::V6, false),
    ];
    let real = known.map(|(name, family, updates)| {
        let file = |kind: &str| data.join(kind).join(format!("{name}.txt.zst"));
        Source { name: name.into(), family, files: Some((file("fib"), updates.then(|| file("updates")))) }
    });
    let there = |source: &Source| source.files.as_ref().is_some_and(|(path, _)| path.is_file());
    let real: Vec<_> = real.into_iter().filter(there).collect();
    if real.is_empty() { [Family::V4, Family::V6].map(synthetic).into() } else { real }
}

/// The real IPv4 table of 2010, where it is there: what the papers had, a third of today's size.
pub fn of_2010() -> Option<Source> {
    let name = "ris-20100701-v4-neighbor";
    let path = directory().join("fib").join(format!("{name}.txt.zst"));
    path.is_file().then(|| Source { name: name.into(), family: Family::V4, files: Some((path, None)) })
}

/// A synthetic table of today's size and shape.
fn synthetic(family: Family) -> Source {
    let name = match family {
        Family::V4 => "synthetic-v4",
        Family::V6 => "synthetic-v6",
    };
    Source { name: name.into(), family, files: None }
}

/// Synthetic updates: about as many as a real day has.
const UPDATES: usize = 1_300_000;

/// Real files have lines that no router would take; a benchmark goes on without them.
fn lenient() -> ReadOptions {
    ReadOptions { lenient: true, ..ReadOptions::default() }
}

impl Source {
    /// Whether it comes from a file.
    pub fn is_real(&self) -> bool {
        self.files.is_some()
    }

    /// Whether it has updates to measure.
    pub fn has_updates(&self) -> bool {
        self.files.as_ref().is_none_or(|(_, updates)| updates.is_some())
    }

    /// The file, to measure reading it; a synthetic table has none.
    pub fn path(&self) -> Option<&Path> {
        self.files.as_ref().map(|(path, _)| path.as_path())
    }

    /// Both families, as they are read or made.
    pub fn read(&self) -> Result<Fib> {
        match self.path() {
            Some(path) => Ok(read_fib(&Input::Path(path.to_owned()), &lenient())?.0),
            None => {
                let spec = TableSpec::full(self.family);
                let only = |family| (self.family == family).then_some(&spec);
                Ok(synth::fib(only(Family::V4), only(Family::V6))?)
            }
        }
    }

    /// The routes of a family.
    pub fn rib<A: InFib>(&self) -> Result<(Rib<A>, NextHops)> {
        Ok(A::into_rib(self.read()?))
    }

    /// The updates in order, each announcement with a next hop; none for a real table without real ones.
    pub fn updates<A: InFib>(&self, rib: &Rib<A>, next_hops: &mut NextHops) -> Result<Vec<Update<A>>> {
        match &self.files {
            None => {
                let stream = Updates::new(rib, &UpdateSpec::real(self.family));
                Ok(stream.take(UPDATES).map(|timed| timed.update).collect())
            }
            Some((_, Some(path))) if path.is_file() => {
                let mut updates = Vec::new();
                read_updates(&Input::Path(path.clone()), &lenient(), next_hops, |update| {
                    updates.extend(A::update(&update.update).map(with_next_hop));
                    ControlFlow::Continue(())
                })?;
                Ok(updates)
            }
            Some(_) => Ok(Vec::new()),
        }
    }
}

/// An announcement without a next hop keeps what is there, which is a question that rivals would have to ask
/// first.
fn with_next_hop<A: Address>(update: Update<A>) -> Update<A> {
    match update {
        Update::Announce { prefix, next_hop: None } => {
            Update::Announce { prefix, next_hop: Some(NextHop(1)) }
        }
        other => other,
    }
}
