//! Errors of images and patches.

use crate::section::SectionId;

/// The reason why an image could not be built, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// An error of the operating system.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// There is not enough memory.
    #[error("no memory for an image of {bytes} bytes: {cause}")]
    Memory {
        /// Bytes asked for.
        bytes: u64,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// The image takes more bytes than the caller's cap.
    #[error("the image takes {needed} bytes, over the cap of {cap}")]
    OverCap {
        /// Bytes that the image takes.
        needed: u64,
        /// The cap in bytes.
        cap: u64,
    },
    /// The bytes don't start like an image.
    #[error("not an image: the first bytes are not those of an image")]
    NotAnImage,
    /// The image has another version of the format.
    #[error("the image is of format version {found}, this program reads version {supported}")]
    Version {
        /// The image's version.
        found: u32,
        /// The version that this program reads.
        supported: u32,
    },
    /// The image has a kind that the engine does not read.
    #[error("the image is of kind {found:?}, {wanted:?} is wanted")]
    Kind {
        /// The image's kind.
        found: String,
        /// The engine's kind.
        wanted: &'static str,
    },
    /// The image has another layout version than its engine.
    #[error("the image has layout {found} of kind {kind:?}, this program reads layout {supported}")]
    Layout {
        /// The kind.
        kind: &'static str,
        /// The image's layout.
        found: u32,
        /// The engine's layout.
        supported: u32,
    },
    /// The file is shorter or longer than the image.
    #[error("the image is {wanted} bytes long, the file {found}")]
    Length {
        /// Bytes in the file.
        found: u64,
        /// Bytes that the header states.
        wanted: u64,
    },
    /// A byte of the image has changed.
    #[error("the image is damaged: its checksum is {found:016x}, {wanted:016x} is stated")]
    Checksum {
        /// The checksum of the bytes in the file.
        found: u64,
        /// The checksum in the header.
        wanted: u64,
    },
    /// The header, the directory and the sections contradict each other.
    #[error("the image is malformed: {0}")]
    Malformed(String),
}

/// The reason why a patch doesn't fit a table. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The table has no such section.
    #[error("no section {0:?}")]
    Section(SectionId),
    /// The section has no such element.
    #[error("index {index} is past the {len} elements of section {section:?}")]
    Index {
        /// The section.
        section: SectionId,
        /// The index in the patch.
        index: u64,
        /// The number of elements in the section.
        len: u64,
    },
    /// The value is wider than an element, or a lookup could not follow it.
    #[error("value {value} does not fit section {section:?}")]
    Value {
        /// The section.
        section: SectionId,
        /// The value in the patch.
        value: u64,
    },
}
