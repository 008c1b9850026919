//! Makes the SAIL paper's figures anew on this machine: runs the bench crate's `sail-paper`, which prints
//! them and writes `benches/record/MACHINE/DATE-sail-paper-….csv`.

use anyhow::Result;
use clap::Args;

use crate::step;

#[derive(Args)]
pub(crate) struct Options {
    /// Passed on to `sail-paper`; `cargo xtask sail-paper -- --help` lists what it takes
    #[arg(last = true)]
    rest: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut arguments =
        vec!["run", "--release", "--package", "wirespeed-benches", "--bin", "sail-paper", "--"];
    arguments.extend(options.rest.iter().map(String::as_str));
    step::run("sail-paper", &mut step::cargo(&arguments))
}
