//! What can be wrong with an image or a patch.

use crate::section::SectionId;

/// Why an image could not be built, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// There is not that much memory.
    #[error("no memory for an image of {bytes} bytes: {source}")]
    Memory {
        /// Bytes asked for.
        bytes: u64,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The caller's cap is lower than what the image takes.
    #[error("the image takes {needed} bytes, over the cap of {cap}")]
    OverCap {
        /// Bytes that the image takes.
        needed: u64,
        /// Bytes that it may take.
        cap: u64,
    },
    /// The bytes don't start as an image does.
    #[error("not an image: the first bytes are not those of one")]
    NotAnImage,
    /// The image was written in another version of the format.
    #[error("the image is of format version {found}, this program reads version {supported}")]
    Version {
        /// The image's.
        found: u32,
        /// The one read here.
        supported: u32,
    },
    /// The image is of another kind than the engine reads.
    #[error("the image is of kind {found:?}, {wanted:?} is wanted")]
    Kind {
        /// The image's.
        found: String,
        /// The engine's.
        wanted: &'static str,
    },
    /// Its engine has changed the layout since.
    #[error("the image has layout {found} of kind {kind:?}, this program reads layout {supported}")]
    Layout {
        /// The kind.
        kind: &'static str,
        /// The image's.
        found: u32,
        /// The engine's.
        supported: u32,
    },
    /// The file ends before the image does, or goes on after it.
    #[error("the image is {wanted} bytes long, the file {found}")]
    Length {
        /// Bytes in the file.
        found: u64,
        /// Bytes that the header states.
        wanted: u64,
    },
    /// A byte is not what was written.
    #[error("the image is damaged: its checksum is {found:016x}, {wanted:016x} is stated")]
    Checksum {
        /// The checksum of the bytes as they are.
        found: u64,
        /// The checksum in the header.
        wanted: u64,
    },
    /// The header, the directory or a section contradicts itself or another.
    #[error("the image is malformed: {0}")]
    Malformed(String),
}

/// Why a patch doesn't fit a table. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// There is no such section.
    #[error("no section {0:?}")]
    Section(SectionId),
    /// The section is shorter.
    #[error("index {index} is past the {len} elements of section {section:?}")]
    Index {
        /// The section.
        section: SectionId,
        /// The index in the patch.
        index: u64,
        /// Elements that there are.
        len: u64,
    },
    /// The value is wider than an element, or not one that a lookup could follow.
    #[error("value {value} does not fit section {section:?}")]
    Value {
        /// The section.
        section: SectionId,
        /// The value in the patch.
        value: u64,
    },
}
