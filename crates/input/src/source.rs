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

use crate::input::Input;
use crate::replay::Replay;

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
    fn open_raw(&self) -> Result<Box<dyn Read + Send>, OpenError> {
        match self {
            Self::Stdin => Ok(Box::new(io::stdin())),
            Self::Path(path) => match File::open(path) {
                Ok(file) => Ok(Box::new(file)),
                Err(source) => Err(OpenError { name: self.to_string(), source }),
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

/// A source that can't be opened. Displays as one line that names it.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {source}")]
pub struct OpenError {
    /// The source.
    pub name: String,
    /// What the operating system or the decoder said.
    pub source: io::Error,
}

/// Opens a source, decompressed by magic number.
pub fn open(source: &Source) -> Result<Input<'static>, OpenError> {
    Input::new(source.open_raw()?, source.to_string())
}

/// A source that can be read from the start more than once. What can't be opened twice is kept as it is read,
/// in memory up to 64 MiB and in a temporary file past that.
#[derive(Debug)]
pub struct Again<'a>(Kept<'a>);

#[derive(Debug)]
enum Kept<'a> {
    File(&'a Source),
    Once(Replay<'a>, String),
}

impl<'a> Again<'a> {
    /// A source, which is opened here where that can be done but once.
    pub fn new(source: &'a Source) -> Result<Self, OpenError> {
        match source.is_reopenable() {
            true => Ok(Self(Kept::File(source))),
            false => Ok(Self::from_reader(source.open_raw()?, source.to_string())),
        }
    }

    /// A stream of bytes; `name` is for messages.
    pub fn from_reader(reader: impl Read + Send + 'a, name: String) -> Self {
        Self(Kept::Once(Replay::new(Box::new(reader)), name))
    }

    /// The input from its start.
    pub fn open(&self) -> Result<Input<'a>, OpenError> {
        match &self.0 {
            Kept::File(source) => open(source),
            Kept::Once(replay, name) => Input::new(Box::new(replay.rewound()), name.clone()),
        }
    }

    /// Says that it won't be opened again, so that nothing need be kept for that.
    pub fn last_time(&self) {
        if let Kept::Once(replay, _) = &self.0 {
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
