//! [`Programs`]: the programs that take part, and their output.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// The programs that take part.
#[derive(Clone, Debug)]
pub struct Programs {
    pub(super) lookupctl: PathBuf,
    pub(super) blast: PathBuf,
}

impl Programs {
    /// Takes the programs from this folder of cargo's: `lookupctl`, and `blast` among its examples.
    pub fn in_folder(folder: &Path) -> Result<Self> {
        let programs =
            Self { lookupctl: folder.join("lookupctl"), blast: folder.join("examples").join("blast") };
        for (program, build) in
            [(&programs.lookupctl, "-p lookupctl"), (&programs.blast, "-p wirespeed-router --example blast")]
        {
            let path = program.display();
            ensure!(program.is_file(), "{path}: not there: build it with `cargo build --release {build}`");
        }
        Ok(programs)
    }

    /// Runs `lookupctl` to its end: what it printed.
    pub(super) fn lookupctl(&self, words: &str) -> Result<Vec<u8>> {
        let mut command = Command::new(&self.lookupctl);
        command.args(words.split_whitespace()).stdin(Stdio::null());
        Ok(good(&mut command)?.stdout)
    }

    /// Runs `lookupctl route` to its end: its report.
    pub(super) fn route(&self, words: &str) -> Result<Value> {
        let printed = self.lookupctl(&format!("route {words} --json"))?;
        serde_json::from_slice(&printed).with_context(|| format!("route {words}"))
    }
}

/// Runs a command that has to succeed.
pub(super) fn good(command: &mut Command) -> Result<Output> {
    let output = command.output().with_context(|| format!("{command:?} does not start"))?;
    if !output.status.success() {
        bail!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(output)
}
