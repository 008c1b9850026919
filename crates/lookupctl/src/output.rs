//! Output on stdout, and the progress bar on stderr.

use std::io::{BufWriter, IsTerminal, StdoutLock, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::escaped::Escaped;

/// A file to write, for messages. `None` is standard output.
pub(crate) fn shown(file: Option<&Path>) -> String {
    file.map_or_else(|| "standard output".to_owned(), |file| file.display().to_string())
}

/// Standard output, buffered. Dropped without [`finish`](Self::finish) only on an error.
pub(crate) struct Output(BufWriter<StdoutLock<'static>>);

impl Output {
    /// Locks stdout for this verb.
    pub(crate) fn new() -> Self {
        Self(BufWriter::with_capacity(1 << 16, std::io::stdout().lock()))
    }

    /// Writes an object as a line of JSON.
    pub(crate) fn json(&mut self, object: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.0, object).map_err(std::io::Error::from)?;
        Ok(writeln!(self.0)?)
    }

    /// Writes a line of text, with control characters escaped.
    pub(crate) fn line(&mut self, text: impl std::fmt::Display) -> Result<()> {
        Ok(writeln!(self.0, "{}", Escaped(text))?)
    }

    /// Flushes the buffer.
    pub(crate) fn finish(mut self) -> Result<()> {
        Ok(self.0.flush()?)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// The file of an output. None is standard output, as is `-`.
pub(crate) fn file(output: Option<&Path>) -> Option<&Path> {
    output.filter(|path| *path != Path::new("-"))
}

/// Refuses an output file that is one of the files that are read: it would take their place.
pub(crate) fn is_no_input(
    output: Option<&Path>,
    inputs: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Result<()> {
    // A file that is not there yet is no input.
    let Some((shown, output)) = file(output).and_then(|path| Some((path, path.canonicalize().ok()?))) else {
        return Ok(());
    };
    if inputs.into_iter().any(|input| input.as_ref().canonicalize().is_ok_and(|input| input == output)) {
        bail!("{}: the output is the input, which would be lost", shown.display());
    }
    Ok(())
}

/// A bar on stderr that counts up to `total`. Hidden if stderr is not a terminal.
pub(crate) fn progress(total: u64, what: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total).with_message(what);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} % {eta:>4}") {
        bar.set_style(style);
    }
    bar
}

/// The interval between updates of a bar.
pub(crate) const TICK: Duration = Duration::from_millis(100);
