//! [`Output`]: the file that is written, which keeps its errors. The Parquet library gives errors of what it
//! reads and of what it writes in the same way, and a user needs to know which file to look at.

use std::io::{self, Write};

use anyhow::Error;

use crate::interrupt::Interrupted;

/// A writer, and its first error.
pub(crate) struct Output<W> {
    to: W,
    error: Option<io::Error>,
}

/// The reason why a file was not written.
pub(crate) enum Failure {
    /// An error of other files, with the name of its file.
    Other(Error),
    /// An error of the output, without its name.
    Output(Error),
}

impl<W: Write> Output<W> {
    pub(crate) const fn new(to: W) -> Self {
        Self { to, error: None }
    }

    /// What became of work that wrote here.
    pub(crate) fn or_of_output<T>(&mut self, done: Result<T, Error>) -> Result<T, Failure> {
        done.map_err(|error| match self.error.take() {
            Some(error) => Failure::Output(error.into()),
            // Then the output is what is not there.
            None if error.is::<Interrupted>() => Failure::Output(Interrupted.into()),
            None => Failure::Other(error),
        })
    }

    fn kept<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            let kind = error.kind();
            // Such a call is made again.
            if kind != io::ErrorKind::Interrupted {
                self.error.get_or_insert(error);
            }
            kind.into()
        })
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.to.write(bytes);
        self.kept(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.to.flush();
        self.kept(done)
    }
}

impl Failure {
    /// The error with the name of its file. `output` is the output's.
    pub(crate) fn named(self, output: &str) -> Error {
        match self {
            Self::Other(error) => error,
            Self::Output(error) => error.context(output.to_owned()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error.into())
    }
}
