//! [`Full`]: the reason why a table is full.

/// The part of the table that is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full(pub(super) &'static str);
