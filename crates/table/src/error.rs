//! [`BuildError`]: why a table can't be built.

use wirespeed_image::ImageError;

/// Why a table can't be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The image can't be made: over the cap, or no memory.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The engine's encoding ends below what the table needs.
    #[error("{engine} holds {limit} {what}, the table has {found}")]
    Limit {
        /// The engine.
        engine: &'static str,
        /// What there is too much of.
        what: &'static str,
        /// How many there may be.
        limit: u64,
        /// How many there are.
        found: u64,
    },
    /// A multi-bit trie can't be cut by the strides that were given.
    #[error("{engine} can't be cut by the strides that were given: {why}")]
    Strides {
        /// The engine.
        engine: &'static str,
        /// The reason.
        why: String,
    },
}
