//! [`SectionId`]: the number of a section.

/// A section by its position in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionId(pub u16);
