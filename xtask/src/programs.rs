//! The bench crate's programs that measure. Those that make a paper's figures anew print them, and write
//! `benches/record/MACHINE/DATE-….csv` and plots.

use anyhow::Result;
use clap::Args;

use crate::step;

#[derive(Args)]
pub(crate) struct Options {
    /// Passed on to the program; `-- --help` lists what it takes
    #[arg(last = true)]
    pub(crate) rest: Vec<String>,
}

/// Runs a program with the options that are passed on.
pub(crate) fn run(program: &str, options: &Options) -> Result<()> {
    run_with(program, &[], &[], &options.rest)
}

/// Runs a program that is built with further features, with arguments of ours and those that are passed on.
pub(crate) fn run_with(program: &str, features: &[&str], ours: &[&str], rest: &[String]) -> Result<()> {
    let features = [&["programs"], features].concat().join(",");
    let mut arguments = vec!["run", "--release", "--package", "wirespeed-benches", "--bin", program];
    arguments.extend(["--features", &features, "--"]);
    arguments.extend(ours);
    arguments.extend(rest.iter().map(String::as_str));
    step::run(program, &mut step::cargo(&arguments))
}
