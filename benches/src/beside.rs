//! Lookups on one core while another one updates.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::machine;
use crate::report::{Row, Setting};

/// What one core looked up while another one updated, by round.
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
        let row = |what, batch, rounds, unit| Row {
            setting: setting.clone(),
            engine: engine.to_owned(),
            what,
            batch,
            rounds,
            unit,
            memory,
            build_seconds: 0.0,
            ratio: None,
        };
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
