//! What was passed over in a file, as it is told about.

use std::fmt::Display;

use serde::Serialize;

/// Records that were passed over for one reason.
#[derive(Debug, Serialize)]
pub(crate) struct Skipped {
    reason: String,
    count: u64,
}

impl Skipped {
    /// What was skipped for a reason, and how often.
    pub(crate) fn new(reason: &impl Display, count: u64) -> Self {
        Self { reason: reason.to_string(), count }
    }
}
