//! Lookups on one core while another one updates.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use wirespeed::engine::Served;
use wirespeed_table::Keys as _;

use crate::engines::Live;
use crate::machine;
use crate::report::{Costs, Row, Setting};

/// Lookups of one core while another one updated, by round.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Lookups a second without updates.
    pub quiet: Vec<f64>,
    /// Lookups a second with updates.
    pub beside: Vec<f64>,
    /// Updates a second meanwhile.
    pub updates: Vec<f64>,
}

/// Calls `look` on this core, which looks up one batch and says how many that was, and `update` on the first
/// one, which applies one call of updates, and says how many these were or that there are no more. `None`
/// where there is no other core.
pub fn beside(
    look: &mut dyn FnMut() -> usize,
    update: &mut (dyn FnMut() -> Result<Option<usize>> + Send),
    (rounds, slice): (usize, Duration),
    core: usize,
) -> Result<Option<Beside>> {
    if core == 0 {
        eprintln!("lookups beside updates: left out, there is one core");
        return Ok(None);
    }
    let mut measured = Beside::default();
    let mut look_until = |is_over: &dyn Fn() -> bool| {
        let (start, mut done) = (Instant::now(), 0usize);
        while !is_over() {
            done += look();
        }
        done as f64 / start.elapsed().as_secs_f64()
    };
    for _ in 0..rounds {
        let start = Instant::now();
        measured.quiet.push(look_until(&|| start.elapsed() >= slice));
        let over = AtomicBool::new(false);
        let (beside, updated) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let applied = update_for(update, slice);
                over.store(true, Ordering::Release);
                applied
            });
            let beside = look_until(&|| over.load(Ordering::Acquire));
            (beside, writer.join())
        });
        measured.beside.push(beside);
        measured.updates.push(updated.map_err(|_| anyhow::anyhow!("the updates ended early"))??);
    }
    Ok(Some(measured))
}

/// Looks up on this core in batches of `batch` keys, and updates from another, by one call of `calls` after
/// the other; then how often the table was built anew, and the bytes held in the end. `None` where there is
/// no other core.
pub fn busy<'u, D: Served<Update: 'u>>(
    live: Live<D>,
    keys: D::Keys<'_>,
    batch: usize,
    mut calls: impl Iterator<Item = &'u [D::Update]> + Send,
    rounds: (usize, Duration),
    core: usize,
) -> Result<Option<(Beside, u64, u64)>> {
    let (mut live, reader) = live.split();
    let mut results = vec![D::Result::default(); batch];
    let mut parts = (0..keys.len() / batch).cycle();
    let mut look = || {
        let at = parts.next().unwrap_or(0) * batch;
        reader.lookup_batch(keys.part(at..at + batch), &mut results);
        batch
    };
    let mut update = || {
        let Some(updates) = calls.next() else { return Ok(None) };
        live.apply(updates)?;
        Ok(Some(updates.len()))
    };
    let measured = beside(&mut look, &mut update, rounds, core)?;
    Ok(measured.map(|measured| (measured, live.rebuilds(), live.memory_usage())))
}

/// Applies call after call on the first core for about `slice`; updates a second, 0 where there are no more.
fn update_for(update: &mut dyn FnMut() -> Result<Option<usize>>, slice: Duration) -> Result<f64> {
    machine::pin(0)?;
    let (start, mut done) = (Instant::now(), 0usize);
    while start.elapsed() < slice {
        let Some(updates) = update()? else { break };
        done += updates;
    }
    Ok(done as f64 / start.elapsed().as_secs_f64())
}

impl Beside {
    /// Its rows in a record, of lookups in batches of `batch` keys and updates by `call`; `unit` is that of
    /// lookups.
    pub fn rows(
        self,
        setting: &Setting,
        engine: &str,
        (batch, call): (usize, usize),
        unit: &'static str,
        memory: u64,
    ) -> [Row; 3] {
        let costs = Costs { name: engine, memory, build_seconds: 0.0 };
        let row = |what, batch, rounds, unit| Row::of(setting, costs, what, batch, rounds, unit);
        [
            row("batch", batch, self.quiet, unit),
            row("batch-beside-updates", batch, self.beside, unit),
            row("update-beside-batches", call, self.updates, "updates/s"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_go_on_until_updates_are_over() {
        let (mut looked, mut updated) = (0usize, 0usize);
        let mut look = || {
            looked += 1;
            3
        };
        let mut update = || {
            updated += 1;
            Ok((updated <= 2).then_some(5))
        };
        let slice = Duration::from_millis(5);
        assert!(beside(&mut look, &mut update, (1, slice), 0).unwrap().is_none());
        let measured = beside(&mut look, &mut update, (2, slice), 1).unwrap().unwrap();
        assert!(measured.quiet.len() == 2 && measured.quiet.iter().all(|&rate| rate > 0.0));
        assert!(measured.updates[0] > 0.0 && measured.updates[1] == 0.0, "{measured:?}");
        assert!(looked > 2);
    }

    #[test]
    fn a_refused_update_ends_it() {
        let mut update = || Err(anyhow::anyhow!("full"));
        let measured = beside(&mut || 1, &mut update, (1, Duration::from_millis(1)), 1);
        assert_eq!(measured.unwrap_err().to_string(), "full");
    }
}
