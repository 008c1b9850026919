//! How many rounds a test of any suite takes: fewer where each costs much. By bytes and not by time, so that every run is the same.

use std::sync::atomic::{AtomicU32, Ordering};

/// One round in so many is gone through.
static ONE_IN: AtomicU32 = AtomicU32::new(1);

/// From now on this process goes through one round in so many. For tables that answer from a device of which each answer costs
/// a thousand times what it costs here.
pub fn go_through_one_in(rounds: u32) {
    assert!(rounds > 0, "one in none");
    ONE_IN.store(rounds, Ordering::Relaxed);
}

/// So many rounds, fewer in proportion where the image of an empty table, of so many bytes, is large: each round builds, copies
/// or rewrites tables of that size.
pub fn affordable(rounds: u32, bytes: u64) -> u32 {
    /// Images up to here get all rounds.
    const SMALL: u64 = 3 << 20;
    let share = u64::from(rounds) * SMALL / bytes.max(SMALL);
    let share = u32::try_from(share).unwrap_or(rounds).max(rounds.div_ceil(16));
    share.div_ceil(ONE_IN.load(Ordering::Relaxed))
}

/// Of so many values that could be tried, the number of which one is: `one_in`, or more of them in this process.
pub fn tried(one_in: u64) -> u64 {
    one_in * u64::from(ONE_IN.load(Ordering::Relaxed))
}
