//! Lookups on a GPU while updates go in: the rate with and without, in turns.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use wirespeed_fib::{Address, Engine, LiveTable, Lookup, Update};
use wirespeed_gpu::runtime::TableHandle;
use wirespeed_image::device::OnDevice;
use wirespeed_image::live::Follower;
use wirespeed_image::{Patch, Table};

use super::trip::{Filled, Travelled, Trip, travel};

/// Updates that come within this time go in together, as one patch: what waits this long is still far newer
/// than what a routing protocol sends.
const EVERY: Duration = Duration::from_millis(1);

/// A table on one GPU that follows a live one, for a benchmark: a change that fails ends it.
#[derive(Debug)]
pub struct Following {
    /// The table.
    pub handle: TableHandle,
    /// Whether each write is a launch of its own, as GALE does it. Who updates then waits until they are
    /// done, as more than the device can take would otherwise queue before the batches.
    pub one_by_one: bool,
}

impl<T: OnDevice> Follower<T> for Following {
    fn patch(&mut self, patch: &Patch) {
        let sent = match self.one_by_one {
            true => self.handle.patch_one_by_one(patch).and_then(|_| self.handle.settle()),
            false => self.handle.patch(patch).map(drop),
        };
        sent.expect("the GPU takes the patch");
    }

    fn replace(&mut self, table: &T) {
        let image = Table::image(table);
        self.handle.replace(image, |sections| table.programs(sections)).expect("the GPU takes the table");
    }
}

/// A measurement at a rate of updates.
#[derive(Clone, Copy, Debug)]
pub struct Under {
    /// Updates a second that were applied.
    pub updates: f64,
    /// The trips meanwhile.
    pub with: Travelled,
    /// The trips before and after, without any: the mean rate.
    pub without: f64,
}

impl Under {
    /// The share of the rate that is kept under updates.
    pub fn kept(&self) -> f64 {
        self.with.rate / self.without
    }
}

/// Makes trips, then the same beside updates at a rate, and again without. Updates go in round and round, as
/// many as are due every millisecond.
pub fn under<A: Address, E: Engine<A, Table: OnDevice + Lookup<A>>>(
    live: &mut LiveTable<A, E>,
    updates: &[Update<A>],
    handle: &TableHandle,
    filled: Filled,
    trip: &Trip,
    rate: f64,
) -> Result<(Under, Filled)> {
    let (before, filled) = travel(handle, filled, trip)?;
    let (stop, applied) = (AtomicBool::new(false), AtomicU64::new(0));
    let (with, filled, seconds) = std::thread::scope(|scope| {
        let (stop, applied) = (&stop, &applied);
        let feeder = scope.spawn(move || feed(live, updates, rate, stop, applied));
        let began = Instant::now();
        let travelled = travel(handle, filled, trip);
        stop.store(true, Ordering::Relaxed);
        let seconds = began.elapsed().as_secs_f64();
        feeder.join().expect("the feeder does not panic")?;
        let (with, filled) = travelled?;
        anyhow::Ok((with, filled, seconds))
    })?;
    handle.settle()?;
    let (after, filled) = travel(handle, filled, trip)?;
    #[allow(clippy::cast_precision_loss)] // a rate
    let updates = applied.load(Ordering::Relaxed) as f64 / seconds;
    Ok((Under { updates, with, without: (before.rate + after.rate) / 2.0 }, filled))
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a rate
fn feed<A: Address, E: Engine<A>>(
    live: &mut LiveTable<A, E>,
    updates: &[Update<A>],
    rate: f64,
    stop: &AtomicBool,
    applied: &AtomicU64,
) -> Result<()> {
    let (began, mut done) = (Instant::now(), 0usize);
    for tick in 1.. {
        let next = began + EVERY * tick;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let due = (began.elapsed().as_secs_f64() * rate) as usize;
        while done < due && !stop.load(Ordering::Relaxed) {
            let at = done % updates.len();
            let group = (due - done).min(updates.len() - at).min(8192);
            live.apply(&updates[at..at + group])?;
            done += group;
            applied.store(done as u64, Ordering::Relaxed);
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(())
}
