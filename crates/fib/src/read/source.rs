//! Where bytes come from: a path or standard input.
//!
//! ```text
//! file / stdin ─► Replay (where it can't be opened twice) ─► gz / bz2 / zstd by magic number ─► Input: lines, bytes
//! ```

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use super::error::ReadError;
use super::input::Input;
use super::replay::Replay;

/// Where to read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file.
    Path(PathBuf),
    /// Standard input, `-` on the command line.
    Stdin,
}

impl Source {
    /// A command line argument: `-` is standard input, all else a path.
    pub fn from_arg(arg: impl AsRef<OsStr>) -> Self {
        match arg.as_ref() {
            dash if dash == "-" => Self::Stdin,
            path => Self::Path(path.into()),
        }
    }

    /// Opens it, for reading once.
    pub(super) fn open_raw(&self) -> Result<Box<dyn Read + Send>, ReadError> {
        match self {
            Self::Stdin => Ok(Box::new(io::stdin())),
            Self::Path(path) => match File::open(path) {
                Ok(file) => Ok(Box::new(file)),
                Err(source) => Err(ReadError::Io { name: self.to_string(), source }),
            },
        }
    }

    /// Whether it can be opened again and gives the same bytes.
    fn is_reopenable(&self) -> bool {
        match self {
            Self::Stdin => false,
            Self::Path(path) => path.metadata().is_ok_and(|data| data.is_file()),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Stdin => f.write_str("standard input"),
        }
    }
}

impl From<PathBuf> for Source {
    fn from(path: PathBuf) -> Self {
        Self::Path(path)
    }
}

/// Opens a source, decompressed by magic number.
pub fn open(source: &Source) -> Result<Input<'static>, ReadError> {
    Input::new(source.open_raw()?, source.to_string())
}

/// A source that can be read from the start more than once.
pub(super) enum Again<'a> {
    File(&'a Source),
    Once(Replay<'a>, String),
}

impl<'a> Again<'a> {
    pub(super) fn new(source: &'a Source) -> Result<Self, ReadError> {
        match source.is_reopenable() {
            true => Ok(Self::File(source)),
            false => Ok(Self::from_reader(source.open_raw()?, source.to_string())),
        }
    }

    pub(super) fn from_reader(reader: impl Read + Send + 'a, name: String) -> Self {
        Self::Once(Replay::new(Box::new(reader)), name)
    }

    /// The input from its start.
    pub(super) fn open(&self) -> Result<Input<'a>, ReadError> {
        match self {
            Self::File(source) => open(source),
            Self::Once(replay, name) => Input::new(Box::new(replay.rewound()), name.clone()),
        }
    }

    /// Says that it won't be opened again, so that nothing need be kept for that.
    pub(super) fn last_time(&self) {
        if let Self::Once(replay, _) = self {
            replay.stop_keeping();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments() {
        assert_eq!(Source::from_arg("-"), Source::Stdin);
        assert_eq!(Source::from_arg("./-").to_string(), "./-");
    }
}
