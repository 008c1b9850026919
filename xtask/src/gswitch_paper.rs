//! Makes the GSwitch paper's figures anew on this machine: runs the bench crate's `gswitch-paper`, which
//! prints them and writes `benches/record/MACHINE/DATE-gswitch-paper-….csv` and `.svg`.

use anyhow::Result;
use clap::Args;

use crate::step;

#[derive(Args)]
pub(crate) struct Options {
    /// Passed on to `gswitch-paper`; `cargo xtask gswitch-paper -- --help` lists what it takes
    #[arg(last = true)]
    rest: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut arguments =
        vec!["run", "--release", "--package", "wirespeed-benches", "--bin", "gswitch-paper", "--"];
    arguments.extend(options.rest.iter().map(String::as_str));
    step::run("gswitch-paper", &mut step::cargo(&arguments))
}
