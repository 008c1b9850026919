//! Makes the MATA paper's figures anew on this machine: runs the bench crate's `mata-paper`, which prints
//! them and writes `benches/record/MACHINE/DATE-mata-paper-….csv` and `.svg`.

use anyhow::Result;
use clap::Args;

use crate::step;

#[derive(Args)]
pub(crate) struct Options {
    /// Passed on to `mata-paper`; `cargo xtask mata-paper -- --help` lists what it takes
    #[arg(last = true)]
    rest: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut arguments =
        vec!["run", "--release", "--package", "wirespeed-benches", "--bin", "mata-paper", "--"];
    arguments.extend(options.rest.iter().map(String::as_str));
    step::run("mata-paper", &mut step::cargo(&arguments))
}
