//! Measures this machine: runs the bench crate's `record`, which writes `benches/record/MACHINE/DATE.csv` and, beside it, what the
//! machine is; its `gpu`, which writes the figures of the machine's GPUs, CSV and SVG, to `benches/record/GPU/DATE-….csv`; or its
//! `names`, which does for names what `record` does for addresses, and writes `benches/record/MACHINE/DATE-names.csv`.

use std::process::{Command, Stdio};

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::step;

#[derive(Args)]
pub(crate) struct Options {
    /// What to measure
    #[arg(default_value = "cpu")]
    what: What,
    /// Leave DPDK out even where it is installed
    #[arg(long)]
    without_dpdk: bool,
    /// Passed on; `cargo xtask record -- --help` and `cargo xtask record gpu -- --help` list what there is
    #[arg(last = true)]
    rest: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Engines beside their rivals, on a core
    Cpu,
    /// Kernels, whole trips and the GPU side of the papers' figures
    Gpu,
    /// Engines of names beside their rivals, on a core
    Names,
}

impl What {
    /// The program that measures it, where it is one of its own.
    const fn bin(self) -> Option<&'static str> {
        match self {
            Self::Cpu => None,
            Self::Gpu => Some("gpu"),
            Self::Names => Some("names"),
        }
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(bin) = options.what.bin() {
        let mut arguments = vec!["run", "--release", "--package", "wirespeed-benches", "--bin", bin, "--"];
        arguments.extend(options.rest.iter().map(String::as_str));
        return step::run(&format!("record {bin}"), &mut step::cargo(&arguments));
    }
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
