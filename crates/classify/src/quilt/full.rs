//! [`Full`]: why a table takes no more.

/// What ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full(pub(super) &'static str);
