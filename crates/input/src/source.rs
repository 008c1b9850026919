//! Sources of bytes: a path or standard input.
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

/// A source to read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file.
    Path(PathBuf),
    /// Standard input, `-` on the command line.
    Stdin,
}

impl Source {
    /// Makes a source of a command-line argument: `-` is standard input, any other argument is a path.
    pub fn from_arg(arg: impl AsRef<OsStr>) -> Self {
        match arg.as_ref() {
            dash if dash == "-" => Self::Stdin,
            path => Self::Path(path.into()),
        }
    }

    /// Opens the source for reading once.
    fn open_raw(&self) -> Result<Box<dyn Read + Send>, OpenError> {
        match self {
            Self::Stdin => Ok(Box::new(io::stdin())),
            Self::Path(path) => match File::open(path) {
                Ok(file) => Ok(Box::new(file)),
                Err(cause) => Err(OpenError { name: self.to_string(), cause }),
            },
        }
    }

    /// Whether the source can be opened again and gives the same bytes.
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

/// A source can't be opened. The message is one line and names the source.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {cause}")]
pub struct OpenError {
    /// The source.
    pub name: String,
    /// The error of the operating system or of the decoder.
    pub cause: io::Error,
}

/// Opens a source, decompressed by magic number.
pub fn open(source: &Source) -> Result<Input<'static>, OpenError> {
    Input::new(source.open_raw()?, source.to_string())
}

/// A source that can be read from its start several times. If it can't be opened twice, its bytes are kept in
/// memory up to 64 MiB, then in a temporary file.
#[derive(Debug)]
pub struct Again<'a>(Kept<'a>);

#[derive(Debug)]
enum Kept<'a> {
    File(&'a Source),
    Once(Replay<'a>, String),
}

impl<'a> Again<'a> {
    /// Makes it of a source. A source that can be opened only once is opened here.
    pub fn new(source: &'a Source) -> Result<Self, OpenError> {
        match source.is_reopenable() {
            true => Ok(Self(Kept::File(source))),
            false => Ok(Self::from_reader(source.open_raw()?, source.to_string())),
        }
    }

    /// Makes it of a stream of bytes. `name` is for messages.
    pub fn from_reader(reader: impl Read + Send + 'a, name: String) -> Self {
        Self(Kept::Once(Replay::new(Box::new(reader)), name))
    }

    /// Opens the input at its start.
    pub fn open(&self) -> Result<Input<'a>, OpenError> {
        match &self.0 {
            Kept::File(source) => open(source),
            Kept::Once(replay, name) => Input::new(Box::new(replay.rewound()), name.clone()),
        }
    }

    /// Says that this is the last reading, so that no more bytes are kept.
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
