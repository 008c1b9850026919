//! [`BuildError`]: the reason why a table can't be built.

use wirespeed_image::ImageError;

/// The reason why a table can't be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The image can't be made: it is over the cap, or there is no memory.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The table exceeds a limit of the engine.
    #[error("{engine} holds {limit} {what}, the table has {found}")]
    Limit {
        /// The engine.
        engine: &'static str,
        /// The things that are limited, in the plural.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// The number in the table.
        found: u64,
    },
    /// The given strides don't suit the engine.
    #[error("{engine} can't use the given strides: {why}")]
    Strides {
        /// The engine.
        engine: &'static str,
        /// The reason.
        why: String,
    },
}
