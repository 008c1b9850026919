//! The number of rounds of a randomized test: fewer if each round is expensive. The number depends on bytes
//! and not on time, so that every run is the same.
//!
//! A plain run does a small part of the rounds, so that a change is tested in minutes, and fewer still for
//! engines that are there for a paper. It leaves out the tests that take longest. `WIRESPEED_TESTS=ci` asks
//! for more, for a change that is done, and `WIRESPEED_TESTS=long` for all.

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The environment variable that asks for more rounds.
pub const SWITCH: &str = "WIRESPEED_TESTS";

/// The divisor of CI's rounds: less than that of broken engines, which these rounds find.
const CI: u32 = 6;

/// The divisor of the rounds of a broken engine, where not all are asked for.
const BROKEN: u32 = 8;

/// The divisor of the rounds in a plain run.
const PLAIN: u32 = 64;

/// The divisor of the cases of a property test in a plain run.
const CASES: u32 = 32;

/// A further divisor of the rounds, for slow devices.
static ONE_IN: AtomicU32 = AtomicU32::new(1);

thread_local! {
    /// Whether this thread does the rounds that find what is wrong with broken engines.
    static IS_BROKEN: Cell<bool> = const { Cell::new(false) };
}

/// The divisor of the rounds that are asked for.
fn asked() -> u32 {
    let asked = asked_by_environment();
    if is_broken() && asked > 1 { BROKEN } else { asked }
}

fn asked_by_environment() -> u32 {
    static ASKED: LazyLock<u32> = LazyLock::new(|| match std::env::var(SWITCH).as_deref() {
        Ok("long") => 1,
        Ok("ci") => CI,
        Ok(other) => panic!("{SWITCH}={other}: long or ci"),
        Err(_) => PLAIN,
    });
    *ASKED
}

/// Runs a test of a broken engine in enough rounds to find what is wrong with it, and panics if it passes, or
/// fails with a message that does not have `expected` in it. What is wrong with our tests is for CI to find:
/// a plain run says so and does nothing.
pub fn must_fail(expected: &str, test: impl FnOnce()) {
    if leaves_to_ci() {
        return;
    }
    IS_BROKEN.set(true);
    let ended = std::panic::catch_unwind(AssertUnwindSafe(test));
    IS_BROKEN.set(false);
    let failure = ended.expect_err("a broken engine passes");
    let formatted = failure.downcast_ref::<String>().map(String::as_str);
    let message = formatted.or_else(|| failure.downcast_ref::<&str>().copied()).unwrap_or_default();
    assert!(message.contains(expected), "it fails with {message:?}, without {expected:?} in it");
}

/// Whether this thread is about to find what is wrong with a broken engine.
pub fn is_broken() -> bool {
    IS_BROKEN.get()
}

/// Whether no more than a plain run is asked for.
pub fn is_plain() -> bool {
    asked() == PLAIN
}

/// The step from one try to the next in a test that a plain run does one in `step` of: 1 in the other runs.
pub fn plain_step(step: usize) -> usize {
    if is_plain() { step } else { 1 }
}

/// Whether a test that takes long is left to CI in this run. The test then says so and ends.
pub fn leaves_to_ci() -> bool {
    if is_plain() {
        println!("skipped: it takes long, and {SWITCH}=ci asks for it");
    }
    is_plain()
}

/// Whether all rounds are asked for. Then the tests of the façade and of the programs go through the engines
/// of papers as well, and through the longest inputs. The suites go through all engines in every run.
pub fn is_long() -> bool {
    asked() == 1
}

/// The engines of a domain that the tests of the façade and of the programs go through: the first of those
/// that are recommended in a plain run, all that are recommended in CI's, and all of them where all
/// rounds are asked for.
pub fn engines<E>(all: impl Iterator<Item = E>, is_paper: impl Fn(&E) -> bool) -> impl Iterator<Item = E> {
    let most = if is_plain() { 1 } else { usize::MAX };
    all.filter(move |engine| is_long() || !is_paper(engine)).take(most)
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

/// The cases of a property test: what CI and a run of all rounds do of it, and a part of them in a plain run.
pub fn cases(all: u32) -> u32 {
    if is_plain() { all.div_ceil(CASES) } else { all }
}

/// The step from one hand-picked table to the next. CI takes all tables, and one in some for engines that are
/// there for a paper and on slow devices; a plain run takes one in some, and fewer still for those engines.
pub fn table_step(is_paper: bool) -> usize {
    match (is_plain(), is_paper) {
        (true, true) => 36,
        (true, false) => 9,
        (false, true) => stride().min(4),
        (false, false) => (ONE_IN.load(Ordering::Relaxed) as usize).min(3),
    }
}

/// The step from one try to the next: 1 in a run of all rounds.
pub fn stride() -> usize {
    asked() as usize
}

/// The number of values of which one is tried: `one_in`, or more if this process does fewer rounds.
pub fn tried(one_in: u64) -> u64 {
    one_in * u64::from(self::one_in())
}
