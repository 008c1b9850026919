//! `completions`: writes a completion script for a shell.

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::Write;

use crate::Outcome;
use crate::arguments::Arguments;
use crate::output::Output;

/// Writes a completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl completions fish > ~/.config/fish/completions/lookupctl.fish
  lookupctl completions zsh > ~/.zfunc/_lookupctl
  source <(lookupctl completions bash)";

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    // The script is written to memory first: the generator panics if its writer fails, as a closed pipe does.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Arguments::command(), "lookupctl", &mut script);
    let mut output = Output::new();
    output.write_all(&script)?;
    output.finish()?;
    Ok(Outcome::Done)
}
