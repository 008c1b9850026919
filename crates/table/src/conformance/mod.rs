//! What the suites of addresses, names and rules share.

mod failing;
mod images;
mod patched;
mod readers;
mod suite;
mod tally;

pub use failing::{Failing, fail_at, with_failures};
pub use images::{images, memory_cap};
pub use patched::Patched;
pub use readers::beside_readers;
pub use suite::{Suite, options, table_step};
pub use tally::Tally;
