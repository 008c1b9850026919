//! Measures this machine: runs the bench crate's `record`, which writes `benches/record/MACHINE/DATE.csv` and, beside it, what the
//! machine is.

use std::process::{Command, Stdio};

use anyhow::Result;
use clap::Args;

use crate::step;

#[derive(Args)]
pub(crate) struct Options {
    /// Leave DPDK out even where it is installed
    #[arg(long)]
    without_dpdk: bool,
    /// Passed on to `record`; `cargo xtask record -- --help` lists what it takes
    #[arg(last = true)]
    rest: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut arguments = vec!["run", "--release", "--package", "wirespeed-benches", "--bin", "record"];
    if !options.without_dpdk && dpdk_is_installed() {
        arguments.extend(["--features", "dpdk"]);
    } else {
        eprintln!("xtask: without DPDK (pkg-config finds no libdpdk, or --without-dpdk)");
    }
    arguments.push("--");
    arguments.extend(options.rest.iter().map(String::as_str));
    step::run("record", &mut step::cargo(&arguments))
}

fn dpdk_is_installed() -> bool {
    let mut query = Command::new("pkg-config");
    query.args(["--exists", "libdpdk"]).stdout(Stdio::null()).stderr(Stdio::null());
    query.status().is_ok_and(|status| status.success())
}
