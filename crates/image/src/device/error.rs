//! [`Unsupported`]: why a table has no program.

/// No kernel looks up in tables of this shape, which the text names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no kernel looks up in tables of {0}")]
pub struct Unsupported(pub String);
