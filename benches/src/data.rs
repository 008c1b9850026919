//! Tables to measure on: real ones where they are, synthetic ones otherwise.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use wirespeed_fib::{Address, Family, NextHop, NextHops, Prefix, Rib, Update};

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

impl Source {
    /// The routes.
    pub fn rib<A: Address>(&self) -> Result<(Rib<A>, NextHops)> {
        let (mut rib, mut next_hops) = (Rib::new(), NextHops::new());
        for line in lines(&self.path)? {
            let line = line?;
            let Some((prefix, next_hop)) = line.split_once(' ') else { continue };
            if let Ok(prefix) = prefix.parse() {
                rib.insert(prefix, next_hops.intern(next_hop)?);
            }
        }
        Ok((rib, next_hops))
    }

    /// The updates in order, each announcement with a next hop; none where there are no real ones.
    pub fn updates<A: Address>(&self, next_hops: &mut NextHops) -> Result<Vec<Update<A>>> {
        let Some(path) = self.updates.as_deref().filter(|path| path.is_file()) else { return Ok(Vec::new()) };
        let mut updates = Vec::new();
        for line in lines(path)? {
            let line = line?;
            let mut words = line.split(' ');
            let announce = words.next() == Some("A");
            let prefix: Prefix<A> = words.next().context("no prefix")?.parse()?;
            updates.push(if announce {
                let next_hop = words.next().map_or(Ok(NextHop(1)), |word| next_hops.intern(word))?;
                Update::Announce { prefix, next_hop: Some(next_hop) }
            } else {
                Update::Withdraw { prefix }
            });
        }
        Ok(updates)
    }
}

fn lines(path: &Path) -> Result<impl Iterator<Item = std::io::Result<String>> + use<>> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    Ok(BufReader::new(zstd::Decoder::new(file)?).lines())
}
