//! Builds and runs the fuzz targets, which live in a workspace of their own under `fuzz/` (they need
//! `cargo-fuzz` and a nightly compiler, and the rest of the project must not).

use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::step;

#[derive(Args)]
pub(crate) struct Options {
    /// Targets to build and run; all of them when none is named
    targets: Vec<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Build the targets and stop
    #[arg(long)]
    build: bool,
    /// The toolchain to build with
    #[arg(long, default_value = "nightly")]
    toolchain: String,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if options.targets.is_empty() {
        step::run("fuzz: build", &mut fuzz(options, &["build"]))?;
    }
    for target in &options.targets {
        step::run(&format!("fuzz: build {target}"), &mut fuzz(options, &["build", target]))?;
    }
    if options.build {
        return Ok(());
    }
    let targets = if options.targets.is_empty() { list(options)? } else { options.targets.clone() };
    let seconds = format!("-max_total_time={}", options.seconds);
    for target in &targets {
        // What was found before, and the seeds that are committed. libFuzzer wants both folders to be there.
        let [corpus, seeds] = ["corpus", "seeds"].map(|kind| format!("fuzz/{kind}/{target}"));
        for folder in [&corpus, &seeds] {
            std::fs::create_dir_all(step::root().join(folder))
                .with_context(|| format!("can't make {folder}"))?;
        }
        let run = ["run", target, &corpus, &seeds, "--", &seconds];
        step::run(&format!("fuzz: {target}"), &mut fuzz(options, &run))?;
    }
    eprintln!("xtask: {} targets, {} s each, no finding", targets.len(), options.seconds);
    Ok(())
}

/// `cargo fuzz ARGUMENTS` with the chosen toolchain. Flags are those of every other call, so that a target
/// that is run is the one that was built.
fn fuzz(options: &Options, arguments: &[&str]) -> Command {
    let mut command = step::rustup(&options.toolchain, "cargo");
    // A nightly compiler deprecates names whose successors the oldest supported compiler does not have.
    command.arg("fuzz").args(arguments).env("RUSTFLAGS", "-D warnings -A deprecated");
    command
}

/// The targets that there are.
fn list(options: &Options) -> Result<Vec<String>> {
    let output = fuzz(options, &["list"]).output().context("can't start rustup")?;
    ensure!(output.status.success(), "cargo fuzz list: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}
