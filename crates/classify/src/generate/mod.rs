//! Seeded rule sets, traces and updates: the paper's sets, sets in the style of ClassBench, and tuples at the
//! edges of rules.

mod around;
mod churn;
mod classbench;
mod synthetic;
#[cfg(test)]
mod tests;

pub use around::{around, flipped};
pub use churn::churn;
pub use classbench::{Kind, classbench};
pub use synthetic::{Shape, ShapeError, Synthetic};

use crate::drawn::filled;
pub use crate::drawn::{random, tuples};
