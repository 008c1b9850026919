//! Makes the GAMT paper's figures anew on this machine: runs the bench crate's `gamt-paper`, which prints
//! them and writes `benches/record/MACHINE/DATE-gamt-paper-….csv`.

use anyhow::Result;
use clap::Args;

use crate::step;

#[derive(Args)]
pub(crate) struct Options {
    /// Passed on to `gamt-paper`; `cargo xtask gamt-paper -- --help` lists what it takes
    #[arg(last = true)]
    rest: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut arguments =
        vec!["run", "--release", "--package", "wirespeed-benches", "--bin", "gamt-paper", "--"];
    arguments.extend(options.rest.iter().map(String::as_str));
    step::run("gamt-paper", &mut step::cargo(&arguments))
}
