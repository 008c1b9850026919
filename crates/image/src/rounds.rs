//! How many rounds a test of any suite takes: fewer where each costs much. By bytes and not by time, so that
//! every run is the same.
//!
//! A plain run goes through a part of the rounds, so that a change is tested in minutes. It goes through less
//! for engines that are there for a paper.
//! `WIRESPEED_TESTS=long` asks for all of them; continuous integration does.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The variable of the environment that asks for all rounds.
pub const SWITCH: &str = "WIRESPEED_TESTS";

/// One round in so many is gone through in a run of all rounds.
static ONE_IN: AtomicU32 = AtomicU32::new(1);

/// How many times shorter a plain run is.
const PLAIN: u32 = 4;

/// Whether all rounds are asked for.
pub fn is_long() -> bool {
    static IS_LONG: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os(SWITCH).is_some_and(|asked| asked == "long"));
    *IS_LONG
}

/// One round in so many is gone through in this run.
fn one_in() -> u32 {
    ONE_IN.load(Ordering::Relaxed) * if is_long() { 1 } else { PLAIN }
}

/// Makes this process go through one round in so many from now on. For tables that answer from a device of
/// which each answer costs a thousand times what it costs here.
pub fn go_through_one_in(rounds: u32) {
    assert!(rounds > 0, "one in none");
    ONE_IN.store(rounds, Ordering::Relaxed);
}

/// So many rounds, fewer in proportion where the image of an empty table, of so many bytes, is large: each
/// round builds, copies or rewrites tables of that size.
pub fn affordable(rounds: u32, bytes: u64) -> u32 {
    /// Images up to here get all rounds.
    const SMALL: u64 = 3 << 20;
    let share = u64::from(rounds) * SMALL / bytes.max(SMALL);
    let share = u32::try_from(share).unwrap_or(rounds).max(rounds.div_ceil(16));
    share.div_ceil(one_in())
}

/// So many states of a table, fewer in a plain run.
pub fn fewer(states: usize) -> usize {
    states.div_ceil(stride())
}

/// The step from one try to the next that is made: 1 in a run of all rounds.
pub fn stride() -> usize {
    if is_long() { 1 } else { PLAIN as usize }
}

/// The number of values of which one is tried: `one_in`, or more of them in this process.
pub fn tried(one_in: u64) -> u64 {
    one_in * u64::from(self::one_in())
}
