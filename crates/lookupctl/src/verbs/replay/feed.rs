//! Updates that go into a live table while lookups run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use wirespeed::engine::{AnyLive, Served};
use wirespeed_fib::{Address, AnyUpdate, InFib, Update, V4, V6};
use wirespeed_sail::{FibId, LiveFibs};

/// Most updates that readers see appear at once: as many as are due, up to this. For each set the writer
/// waits until no reader is in the state before it; where threads outnumber cores that takes a time slice,
/// and sets of 1,024 then came to 126,000 updates a second where sets of 8,192 and more keep up with any pace
/// asked for.
const GROUP: usize = 8192;
/// How long the feeder sleeps when it is ahead.
const NAP: Duration = Duration::from_millis(1);

/// How fast updates go in, and when they end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::verbs) enum Pace {
    /// Each once, spread evenly over so many seconds.
    Over(f64),
    /// So many a second, over and over until the sign to stop.
    Rate(f64),
    /// One after the other, over and over until the sign to stop.
    Flat,
}

/// Updates that were applied while lookups ran.
#[derive(Clone, Copy, Debug)]
pub(in crate::verbs) struct Fed {
    pub(in crate::verbs) applied: u64,
    pub(in crate::verbs) seconds: f64,
    /// How often an update made the table outgrow itself.
    pub(in crate::verbs) rebuilds: u64,
}

impl Pace {
    /// Applies updates at this pace. What is left of a pass at the sign to stop follows at once, uncounted,
    /// so that the table ends in the state after the last update whatever the pace: applying the whole stream
    /// again leads to the same state.
    pub(in crate::verbs) fn feed<L: Live>(
        self,
        live: &mut L,
        updates: &[L::Update],
        start: Instant,
        stop: &AtomicBool,
    ) -> Result<Fed> {
        let len = updates.len() as u64;
        let mut done = 0u64;
        loop {
            let through = matches!(self, Self::Over(_)) && done >= len;
            if through || stop.load(Ordering::Relaxed) {
                break;
            }
            let at = index(done % len);
            let ahead = match self.rate(len) {
                Some(rate) => due(start.elapsed(), rate).saturating_sub(done),
                None => u64::MAX,
            };
            let group = index(ahead.min(GROUP as u64)).min(updates.len() - at);
            if group == 0 {
                thread::sleep(NAP);
                continue;
            }
            live.take(&updates[at..at + group])?;
            done += group as u64;
        }
        let fed = Fed { applied: done, seconds: start.elapsed().as_secs_f64(), rebuilds: live.rebuilds() };
        let rest = if done > 0 && done.is_multiple_of(len) { &[] } else { &updates[index(done % len)..] };
        for group in rest.chunks(GROUP) {
            live.take(group)?;
        }
        Ok(fed)
    }

    /// Updates a second; `None` without a bound.
    #[allow(clippy::cast_precision_loss)] // a rate
    fn rate(self, len: u64) -> Option<f64> {
        match self {
            Self::Over(seconds) if seconds > 0.0 => Some(len as f64 / seconds),
            Self::Rate(rate) => Some(rate),
            Self::Over(_) | Self::Flat => None,
        }
    }
}

/// A live table that takes updates.
pub(in crate::verbs) trait Live {
    /// One update.
    type Update;

    /// Applies updates in order; readers see all of them or none.
    fn take(&mut self, updates: &[Self::Update]) -> Result<()>;
    /// How often an update made the table outgrow itself.
    fn rebuilds(&self) -> u64;
}

const CANNOT: &str = "the updated table can't be built";

impl<D: Served> Live for Box<dyn AnyLive<D>> {
    type Update = D::Update;

    fn take(&mut self, updates: &[D::Update]) -> Result<()> {
        self.apply(updates).map(|_| ()).context(CANNOT)
    }

    fn rebuilds(&self) -> u64 {
        (**self).rebuilds()
    }
}

/// Live tables of both families. Updates that are applied together change both or neither.
pub(in crate::verbs) struct LiveBoth {
    pub(in crate::verbs) v4: Box<dyn AnyLive<V4>>,
    pub(in crate::verbs) v6: Box<dyn AnyLive<V6>>,
}

impl Live for LiveBoth {
    type Update = AnyUpdate;

    fn take(&mut self, updates: &[AnyUpdate]) -> Result<()> {
        let v4: Vec<_> = updates.iter().filter_map(V4::update).collect();
        let v6: Vec<_> = updates.iter().filter_map(V6::update).collect();
        let mut first = Ok(());
        let second = self.v6.apply_if(&v6, &mut || {
            first = self.v4.apply(&v4).map(|_| ());
            first.is_ok()
        });
        first.context(CANNOT)?;
        second.map(|_| ()).context(CANNOT)
    }

    fn rebuilds(&self) -> u64 {
        self.v4.rebuilds() + self.v6.rebuilds()
    }
}

/// Gives updates to the first of several FIBs.
impl<A: Address> Live for LiveFibs<A> {
    type Update = Update<A>;

    fn take(&mut self, updates: &[Update<A>]) -> Result<()> {
        let updates: Vec<_> = updates.iter().map(|&update| (FibId(0), update)).collect();
        self.apply(&updates).map(|_| ()).context(CANNOT)
    }

    fn rebuilds(&self) -> u64 {
        self.rebuilds()
    }
}

/// Updates that are due after some time at a rate.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates, and neither is negative
fn due(elapsed: Duration, rate: f64) -> u64 {
    (elapsed.as_secs_f64() * rate) as u64
}

/// An index into the updates, which lie in memory.
#[allow(clippy::cast_possible_truncation)]
fn index(at: u64) -> usize {
    at as usize
}
