//! Updates: streams of them, and lookups on one core while another one updates.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use wirespeed_namelookup::generate::{Churn, ChurnSpec};
use wirespeed_namelookup::{BuildOptions, LiveNames, NameEngine, NameLpm, NameTable, NameUpdate, Names};

use crate::machine;

/// A stream of updates by what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Names that were never there.
    Insertions,
    /// Names of the table.
    Deletions,
    /// Names of the table that get another result.
    Changes,
    /// As many come as go, and as many change.
    Mixed,
}

impl Stream {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Insertions, Self::Deletions, Self::Changes, Self::Mixed];

    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Insertions => "insertions",
            Self::Deletions => "deletions",
            Self::Changes => "changes",
            Self::Mixed => "mixed",
        }
    }

    /// So many updates, valid for a table; fewer where it has fewer names to delete.
    pub fn draw(self, names: &NameTable, results: u32, seed: u64, count: usize) -> Result<Vec<NameUpdate>> {
        let none = ChurnSpec {
            insertions: 0.0,
            removals: 0.0,
            changes: 0.0,
            returns: 0.0,
            results,
            rate: None,
            seed,
        };
        let spec = match self {
            Self::Insertions => ChurnSpec { insertions: 1.0, ..none },
            Self::Deletions => ChurnSpec { removals: 1.0, ..none },
            Self::Changes => ChurnSpec { changes: 1.0, ..none },
            Self::Mixed => ChurnSpec { results, seed, ..ChurnSpec::default() },
        };
        Ok(Churn::new(names, &spec)?.take(count).map(|timed| timed.update).collect())
    }
}

/// What one core looks up while another one updates.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Names a second without updates, by round.
    pub quiet: Vec<f64>,
    /// With updates.
    pub beside: Vec<f64>,
    /// Updates a second meanwhile.
    pub updates: Vec<f64>,
    /// How often the table was built anew.
    pub rebuilds: u64,
    /// Bytes held in the end: both copies of the image, the engine's and the names' own.
    pub memory: u64,
}

/// Looks up on this core, and updates from another; `None` where there is no other core.
pub fn beside<E: NameEngine>(
    names: &NameTable,
    trace: Names<'_>,
    updates: &[NameUpdate],
    (batch, call): (usize, usize),
    (rounds, slice): (usize, Duration),
    core: usize,
) -> Result<Option<Beside>> {
    if core == 0 {
        return Ok(None);
    }
    let mut live = LiveNames::<E>::new(names.clone(), BuildOptions::default())?;
    let reader = live.reader();
    let mut measured = Beside::default();
    let mut calls = updates.chunks(call);
    let mut results = vec![0; batch];
    let mut look = |until: &dyn Fn() -> bool| {
        let (start, mut done) = (Instant::now(), 0usize);
        let mut parts = (0..trace.len() / batch).cycle();
        while until() {
            let at = parts.next().unwrap_or(0) * batch;
            reader.enter().lookup_batch(trace.part(at..at + batch), &mut results);
            done += batch;
        }
        done as f64 / start.elapsed().as_secs_f64()
    };
    for _ in 0..rounds {
        let start = Instant::now();
        measured.quiet.push(look(&|| start.elapsed() < slice));
        let over = AtomicBool::new(false);
        let (beside, updated) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| -> Result<f64> {
                let applied = apply_for(&mut live, &mut calls, slice);
                over.store(true, Ordering::Release);
                applied
            });
            let beside = look(&|| !over.load(Ordering::Acquire));
            (beside, writer.join())
        });
        measured.beside.push(beside);
        measured.updates.push(updated.map_err(|_| anyhow::anyhow!("the updates ended early"))??);
    }
    (measured.rebuilds, measured.memory) = (live.rebuilds(), live.memory_usage());
    Ok(Some(measured))
}

/// Applies call after call on the first core for about `slice`; updates a second, 0 where there are no more.
fn apply_for<E: NameEngine>(
    live: &mut LiveNames<E>,
    calls: &mut std::slice::Chunks<'_, NameUpdate>,
    slice: Duration,
) -> Result<f64> {
    machine::pin(0)?;
    let (start, mut done) = (Instant::now(), 0usize);
    while start.elapsed() < slice {
        let Some(updates) = calls.next() else { break };
        live.apply(updates)?;
        done += updates.len();
    }
    Ok(done as f64 / start.elapsed().as_secs_f64())
}
