//! What the suites of addresses, names and rules share: tests, and broken engines that each test must fail.

mod answers;
mod churn;
mod failing;
mod faulty;
mod images;
mod patched;
mod readers;
mod refusals;
mod speeds;
mod suite;
mod tally;

pub use answers::{check_answers, check_batch, check_on_all_cores};
pub use churn::churn;
pub use failing::{Failing, fail_at, with_failures};
pub use faulty::{Fault, Faulty, FaultyTable, must_fail};
pub use images::{images, memory_cap};
pub use patched::Patched;
pub use readers::beside_readers;
pub use refusals::{Watched, at_the_cap, calls, play};
pub use speeds::{compare_levels, levels_head};
pub use suite::{Suite, affordable, options, table_step};
pub use tally::Tally;

/// Writes a test for each function named of a module `suite`, for an engine or for keys and an engine:
/// `suite_tests!(MyEngine; images churn)`, `suite_tests!(V4, MyEngine; images churn)`.
#[macro_export]
macro_rules! suite_tests {
    ($engine:ty; $($(#[$attribute:meta])* $test:ident)+) => {
        $($(#[$attribute])* #[test] fn $test() { suite::$test::<$engine>(); })+
    };
    ($keys:ty, $engine:ty; $($(#[$attribute:meta])* $test:ident)+) => {
        $($(#[$attribute])* #[test] fn $test() { suite::$test::<$keys, $engine>(); })+
    };
}
