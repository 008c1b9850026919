//! Records that were passed over in a file, as reports show them.

use std::fmt::Display;

use serde::Serialize;

/// Records that were passed over for one reason.
#[derive(Debug, Serialize)]
pub(crate) struct Skipped {
    reason: String,
    count: u64,
}

impl Skipped {
    /// Records that were skipped for a reason, with their count.
    pub(crate) fn new(reason: &impl Display, count: u64) -> Self {
        Self { reason: reason.to_string(), count }
    }
}
