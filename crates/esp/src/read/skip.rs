//! [`Skip`]: why a line was skipped.

use std::fmt;

/// Why a line is skipped, and at which word.
pub(super) type Skipping = (Skip, String);

/// The reason why a line was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Skip {
    /// A word means nothing at its place.
    Word,
    /// The line ends where a value is to follow.
    End,
    /// A value is none: an address, a number.
    Value,
    /// A key is none, or has a wrong length.
    Key,
    /// An algorithm, a protocol, a mode or a flag is not supported.
    Unsupported,
    /// Something is not given that has to be.
    Missing,
    /// A word or a record has no effect here.
    NoEffect,
}

impl Skip {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Word => "unknown word",
            Self::End => "line ends too early",
            Self::Value => "bad value",
            Self::Key => "bad key",
            Self::Unsupported => "not supported",
            Self::Missing => "not given",
            Self::NoEffect => "no effect here",
        }
    }
}

/// A line that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The number of the line, from 1: the first one, if it goes on.
    pub line: usize,
    /// The reason.
    pub skip: Skip,
    /// The word, or what is missing. Never a part of a key.
    pub word: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}: {}", self.line, self.skip.name(), self.word)
    }
}
