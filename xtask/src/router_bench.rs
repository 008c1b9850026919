//! Measures routers side by side: runs the bench crate's `router`, which runs `lookupctl route`, DPDK's
//! testpmd and the kernel's forwarding in turns, and writes `benches/record/MACHINE/DATE-router.csv`.
//! Switches are measured by flows and masks beside Open vSwitch (`DATE-openflow.csv`), and tunnels by suites
//! and sizes beside DPDK's ciphers (`DATE-esp.csv`).
//!
//! testpmd takes part where it is installed: the packages `dpdk-dev`, `librte-net-null23`,
//! `librte-mempool-ring23`, `librte-net-af-packet23` and `librte-net-af-xdp23` of Debian 12. Open vSwitch is
//! `openvswitch-switch`, and DPDK's ciphers are `dpdk-dev` with `librte-crypto-ipsec-mb23` or
//! `librte-crypto-openssl23`. Runs between interfaces need root. What is absent is named and left out.

use anyhow::Result;
use clap::Args;

use crate::{programs, step};

#[derive(Args)]
pub(crate) struct Options {
    /// Measure ours by offered load, too
    #[arg(long)]
    load_sweep: bool,
    /// Passed on; `cargo xtask router-bench -- --help` lists what there is
    #[arg(last = true)]
    rest: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let ours: &[&str] = if options.load_sweep { &["--load-sweep"] } else { &[] };
    measure(ours, &options.rest)
}

/// Measures switches (`openflow`) or tunnels (`esp`).
pub(crate) fn run_of(what: &str, options: &programs::Options) -> Result<()> {
    measure(&["--what", what], &options.rest)
}

fn measure(ours: &[&str], rest: &[String]) -> Result<()> {
    // In one call: each package by itself would have all it depends on built again, with other features.
    let packages = ["--package", "lookupctl", "--package", "wirespeed-router"];
    let targets = ["--bin", "lookupctl", "--example", "blast"];
    let build = [&["build", "--release"][..], &packages, &targets].concat();
    step::run("lookupctl and blast", &mut step::cargo(&build))?;
    programs::run_with("router", &[], ours, rest)
}
