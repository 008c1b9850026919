//! The number of rounds of a randomized test: fewer if each round is expensive. The number depends on bytes
//! and not on time, so that every run is the same.
//!
//! A plain run does a part of the rounds, so that a change is tested in minutes, and fewer still for engines
//! that are there for a paper. `WIRESPEED_TESTS=ci` asks for what each change has to pass, and
//! `WIRESPEED_TESTS=long` for all.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The environment variable that asks for more rounds.
pub const SWITCH: &str = "WIRESPEED_TESTS";

/// A further divisor of the rounds, for slow devices.
static ONE_IN: AtomicU32 = AtomicU32::new(1);

/// The divisor of the rounds that the environment asks for.
fn asked() -> u32 {
    static ASKED: LazyLock<u32> = LazyLock::new(|| match std::env::var(SWITCH).as_deref() {
        Ok("long") => 1,
        Ok("ci") => 4,
        Ok(other) => panic!("{SWITCH}={other}: long or ci"),
        Err(_) => 16,
    });
    *ASKED
}

/// Whether all rounds are asked for. Then the tests of the façade and of the programs go through the engines
/// of papers as well, and through the longest inputs. The suites go through all engines in every run.
pub fn is_long() -> bool {
    asked() == 1
}

/// The divisor of the rounds in this run.
fn one_in() -> u32 {
    ONE_IN.load(Ordering::Relaxed) * asked()
}

/// Makes this process do one round in `rounds` from now on. For devices on which each answer costs a thousand
/// times what it costs here.
pub fn go_through_one_in(rounds: u32) {
    assert!(rounds > 0, "one in none");
    ONE_IN.store(rounds, Ordering::Relaxed);
}

/// The number of rounds for an image of `bytes` bytes for an empty table: `rounds`, or fewer in proportion if
/// the image is large, because each round builds, copies or rewrites such tables.
pub fn affordable(rounds: u32, bytes: u64) -> u32 {
    /// The largest image that gets all rounds.
    const SMALL: u64 = 3 << 20;
    let share = u64::from(rounds) * SMALL / bytes.max(SMALL);
    let share = u32::try_from(share).unwrap_or(rounds).max(rounds.div_ceil(16));
    share.div_ceil(one_in())
}

/// The states of a table that are checked: all of `states`, or a part of them.
pub fn fewer(states: usize) -> usize {
    states.div_ceil(stride())
}

/// The step from one try to the next: 1 in a run of all rounds.
pub fn stride() -> usize {
    asked() as usize
}

/// The number of values of which one is tried: `one_in`, or more if this process does fewer rounds.
pub fn tried(one_in: u64) -> u64 {
    one_in * u64::from(self::one_in())
}
