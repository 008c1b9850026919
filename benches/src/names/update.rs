//! Streams of updates.

use anyhow::Result;
use wirespeed_namelookup::generate::{Churn, ChurnSpec};
use wirespeed_namelookup::{NameTable, NameUpdate};

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

/// The updates that are timed in one go.
pub struct Part {
    /// The kind of updates in it.
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
