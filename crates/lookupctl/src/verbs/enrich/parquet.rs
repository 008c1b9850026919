//! Parquet: the program `wirespeed-parquet` takes the work over, with the same arguments.
//!
//! It brings Arrow, which takes longer to build than all of `lookupctl`, so it is a program of its own. It is
//! looked for beside this one, and then on the `PATH`.

use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, anyhow, bail};
use wirespeed_input::Source;

use super::Options;
use crate::{Outcome, output};

const PROGRAM: &str = "wirespeed-parquet";

/// Whether records are a file of Parquet, by its content.
pub(super) fn is_parquet(source: &Source) -> bool {
    let Source::Path(path) = source else { return false };
    // A pipe gives its bytes once.
    if !path.metadata().is_ok_and(|file| file.is_file()) {
        return false;
    }
    let mut start = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"PAR1"
}

/// Becomes the program for Parquet. Returns only with an error: an option that it lacks, or no such program.
pub(super) fn hand_over(source: &Source, options: &Options) -> Result<Outcome> {
    if let Some(option) = only_here(options) {
        bail!("{option} is not for Parquet: {source} is a file of Parquet, and {PROGRAM} has no such option");
    }
    if output::file(options.output.as_deref()).is_none() {
        bail!("{source}: the output of Parquet is a file: name it with -o FILE");
    }
    // The verb is the first argument there, too.
    let error = becomes(Command::new(program()).args(env::args_os().skip(1)));
    Err(match error.kind() {
        io::ErrorKind::NotFound => anyhow!(
            "{source}: Parquet is for another program, {PROGRAM} enrich, which takes these options (integrations/parquet). \
             It lies neither beside lookupctl nor on the PATH"
        ),
        _ => anyhow!("{PROGRAM}: {error}"),
    })
}

/// The first option that is given and that the other program lacks.
fn only_here(options: &Options) -> Option<&'static str> {
    let given = [
        ("--format", options.format.is_some()),
        ("--copy", options.copy),
        ("--block", options.block != super::BLOCK),
    ];
    given.iter().find(|(_, is_given)| *is_given).map(|(option, _)| *option)
}

/// The program beside this one, or else its name, for the `PATH`.
fn program() -> PathBuf {
    let beside = env::current_exe().ok().map(|own| own.with_file_name(PROGRAM));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| PROGRAM.into())
}

/// Becomes another program. Its standard streams and its exit status are those of this one.
#[cfg(unix)]
fn becomes(command: &mut Command) -> io::Error {
    std::os::unix::process::CommandExt::exec(command)
}

/// Runs another program, and ends with its exit status.
#[cfg(not(unix))]
fn becomes(command: &mut Command) -> io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(2)),
        Err(error) => error,
    }
}
