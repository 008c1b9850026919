//! Measures this machine with the bench crate. `record` writes `benches/record/MACHINE/DATE.csv`, and a
//! description of the machine beside it. `gpu` writes the figures of the machine's GPUs, CSV and SVG, to
//! `benches/record/GPU/DATE-….csv`. `names` and `classify` do for names and for rules what `record` does for
//! addresses, and write `benches/record/MACHINE/DATE-names.csv` and `…-classify.csv`. `replay` runs
//! `lookupctl replay` on the CPU, on the GPUs and on both, and writes
//! `benches/record/GPU/DATE-TABLE-replay….csv` and `.svg`.

use std::process::{Command, Stdio};

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::{programs, step};

#[derive(Args)]
pub(crate) struct Options {
    /// The part to measure
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
    /// Engines of rules beside a scan and DPDK's, on a core
    Classify,
    /// `lookupctl replay` on each device: by batch size, by threads, within a bound on latency
    Replay,
}

impl What {
    /// The program that measures it.
    const fn bin(self) -> &'static str {
        match self {
            Self::Cpu => "record",
            Self::Gpu => "gpu",
            Self::Names => "names",
            Self::Classify => "classify",
            Self::Replay => "replay",
        }
    }

    /// Whether DPDK has a rival for it.
    const fn has_dpdk(self) -> bool {
        matches!(self, Self::Cpu | Self::Classify)
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let bin = options.what.bin();
    if options.what == What::Replay {
        let build = ["build", "--release", "--package", "lookupctl"];
        step::run("lookupctl", &mut step::cargo(&build))?;
    }
    let mut features: &[&str] = &[];
    if options.what.has_dpdk() {
        if !options.without_dpdk && dpdk_is_installed() {
            features = &["dpdk"];
        } else {
            eprintln!("xtask: without DPDK (pkg-config finds no libdpdk, or --without-dpdk)");
        }
    }
    programs::run_with(bin, features, &[], &options.rest)
}

fn dpdk_is_installed() -> bool {
    let mut query = Command::new("pkg-config");
    query.args(["--exists", "libdpdk"]).stdout(Stdio::null()).stderr(Stdio::null());
    query.status().is_ok_and(|status| status.success())
}
