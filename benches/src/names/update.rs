//! Updates: streams of them, and lookups on one core while another one updates.

use std::time::Duration;

use anyhow::Result;
use wirespeed_namelookup::generate::{Churn, ChurnSpec};
use wirespeed_namelookup::{
    BuildOptions, Engine, LiveNames, Lookup, NameDomain, NameTable, NameUpdate, Names,
};

use crate::beside::{Beside, beside};

/// A stream of updates by what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Names that were never there. As many of the table's go between, so that it stays as large as it is.
    Insertions,
    /// Names of the table.
    Deletions,
    /// Names of the table that get another result.
    Changes,
    /// Names that come, as many that go, and as many that change.
    Mixed,
    /// Names that were never there, and none goes: what makes more room for them is part of it.
    Growth,
}

/// What is timed in one go.
pub struct Part {
    /// What is in it.
    pub stream: Stream,
    /// Each valid after those before it.
    pub updates: Vec<NameUpdate>,
}

impl Stream {
    /// Streams after which a table is as large as before, in the order of a round.
    pub const STEADY: [Self; 4] = [Self::Insertions, Self::Deletions, Self::Changes, Self::Mixed];

    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Insertions => "insertions",
            Self::Deletions => "deletions",
            Self::Changes => "changes",
            Self::Mixed => "mixed",
            Self::Growth => "growth",
        }
    }

    fn spec(self, results: u32, seed: u64) -> ChurnSpec {
        let none = ChurnSpec {
            insertions: 0.0,
            removals: 0.0,
            changes: 0.0,
            returns: 0.0,
            results,
            rate: None,
            seed,
        };
        match self {
            Self::Insertions | Self::Growth => ChurnSpec { insertions: 1.0, ..none },
            Self::Deletions => ChurnSpec { removals: 1.0, ..none },
            Self::Changes => ChurnSpec { changes: 1.0, ..none },
            Self::Mixed => ChurnSpec { results, seed, ..ChurnSpec::default() },
        }
    }

    /// So many updates, valid for a table; fewer where it has fewer names to delete.
    pub fn draw(self, names: &NameTable, results: u32, seed: u64, count: usize) -> Result<Vec<NameUpdate>> {
        let churn = Churn::new(names, &self.spec(results, seed))?;
        Ok(churn.take(count).map(|timed| timed.update).collect())
    }

    /// Rounds of streams, so many updates of each in all.
    pub fn rounds(
        streams: &[Self],
        names: &NameTable,
        results: u32,
        seed: u64,
        (rounds, count): (usize, usize),
    ) -> Result<Vec<Part>> {
        let mut churn = Churn::new(names, &Self::Mixed.spec(results, seed))?;
        let mut parts = Vec::with_capacity(rounds * streams.len());
        for _ in 0..rounds {
            for &stream in streams {
                churn.turn_to(&stream.spec(results, seed));
                let some = churn.by_ref().take(count / rounds.max(1));
                parts.push(Part { stream, updates: some.map(|timed| timed.update).collect() });
            }
        }
        Ok(parts)
    }
}

/// Looks up on this core, and updates from another, by so many names and updates a call; then how often the
/// table was built anew, and the bytes held in the end: both copies of the image, the engine's and the names'
/// own. `None` where there is no other core.
pub fn busy<E: Engine<NameDomain>>(
    names: &NameTable,
    trace: Names<'_>,
    updates: &[NameUpdate],
    (batch, call): (usize, usize),
    rounds: (usize, Duration),
    core: usize,
) -> Result<Option<(Beside, u64, u64)>> {
    let mut live = LiveNames::<E>::new(names.clone().into(), BuildOptions::default())?;
    let reader = live.reader();
    let mut results = vec![0; batch];
    let mut parts = (0..trace.len() / batch).cycle();
    let mut look = || {
        let at = parts.next().unwrap_or(0) * batch;
        reader.enter().lookup_batch(trace.part(at..at + batch), &mut results);
        batch
    };
    let mut calls = updates.chunks(call);
    let mut update = || {
        let Some(updates) = calls.next() else { return Ok(None) };
        live.apply(updates)?;
        Ok(Some(updates.len()))
    };
    let measured = beside(&mut look, &mut update, rounds, core)?;
    Ok(measured.map(|measured| (measured, live.rebuilds(), live.memory_usage())))
}
