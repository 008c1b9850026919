//! Tables to measure on: real ones where they are, synthetic ones otherwise.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::Result;
use wirespeed_fib::read::{ReadOptions, Source as Input, read_fib, read_updates};
use wirespeed_fib::{Address, AnyUpdate, Family, Fib, NextHop, NextHops, Rib, Update, V4, V6};

/// A table that is measured on, by name.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name in records.
    pub name: String,
    /// Its family.
    pub family: Family,
    /// Its file.
    path: PathBuf,
    /// The file with its updates, where there is one.
    updates: Option<PathBuf>,
}

/// The directory of real tables: `WIRESPEED_DATA`, or `../shared/data` beside the workspace.
pub fn directory() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    std::env::var_os("WIRESPEED_DATA").map_or_else(beside, PathBuf::from)
}

/// The real tables that are there, today's full table first.
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
    let sources = known.map(|(name, family, updates)| {
        let file = |kind: &str| data.join(kind).join(format!("{name}.txt.zst"));
        Source { name: name.into(), family, path: file("fib"), updates: updates.then(|| file("updates")) }
    });
    sources.into_iter().filter(|source| source.path.is_file()).collect()
}

/// A family as a part of what is read.
pub trait Part: Address {
    /// The routes of this family.
    fn rib(fib: Fib) -> Rib<Self>;
    /// The update, where it is of this family.
    fn update(update: AnyUpdate) -> Option<Update<Self>>;
}

macro_rules! part {
    ($address:ident, $field:ident) => {
        impl Part for $address {
            fn rib(fib: Fib) -> Rib<Self> {
                fib.$field
            }

            fn update(update: AnyUpdate) -> Option<Update<Self>> {
                match update {
                    AnyUpdate::$address(update) => Some(update),
                    _ => None,
                }
            }
        }
    };
}

part!(V4, v4);
part!(V6, v6);

/// Real files have lines that no router would take; a benchmark goes on without them.
const LENIENT: ReadOptions = ReadOptions { format: None, lenient: true, peer: None };

impl Source {
    /// The file, to measure reading it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file.
    pub fn read(&self) -> Result<Fib> {
        Ok(read_fib(&Input::Path(self.path.clone()), &LENIENT)?.0)
    }

    /// The routes.
    pub fn rib<A: Part>(&self) -> Result<(Rib<A>, NextHops)> {
        let mut fib = self.read()?;
        let next_hops = std::mem::take(&mut fib.next_hops);
        Ok((A::rib(fib), next_hops))
    }

    /// The updates in order, each announcement with a next hop; none where there are no real ones.
    pub fn updates<A: Part>(&self, next_hops: &mut NextHops) -> Result<Vec<Update<A>>> {
        let Some(path) = self.updates.as_ref().filter(|path| path.is_file()) else { return Ok(Vec::new()) };
        let mut updates = Vec::new();
        read_updates(&Input::Path(path.clone()), &LENIENT, next_hops, |update| {
            updates.extend(A::update(update.update).map(with_next_hop));
            ControlFlow::Continue(())
        })?;
        Ok(updates)
    }
}

/// An announcement without a next hop keeps what is there, which is a question that rivals would have to ask first.
fn with_next_hop<A: Address>(update: Update<A>) -> Update<A> {
    match update {
        Update::Announce { prefix, next_hop: None } => {
            Update::Announce { prefix, next_hop: Some(NextHop(1)) }
        }
        other => other,
    }
}
