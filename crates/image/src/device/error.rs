//! [`Unsupported`]: the reason why a table has no program.

/// No kernel looks up in tables of this shape. The text names the shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no kernel looks up in tables of {0}")]
pub struct Unsupported(pub String);
