//! What the suites of addresses, names and rules share.

mod failing;

pub use failing::{Failing, fail_at, operations};
