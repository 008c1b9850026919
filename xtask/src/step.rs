//! One command of a verb: named before it starts, timed when it ends, fatal when it fails.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    // This crate's manifest lies one directory below it.
    // Cargo says where the manifest is of the checkout that it runs for. What was known when this was
    // compiled may be another checkout, which shares a target directory with this one.
    let own = std::env::var_os("CARGO_MANIFEST_DIR");
    let own = own.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    own.parent().unwrap_or(&own).to_path_buf()
}

/// A program of a toolchain in the root: through rustup, because cargo itself doesn't know `+nightly`.
pub(crate) fn rustup(toolchain: &str, program: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", toolchain, program]).current_dir(root());
    // Set by the cargo that runs this, for its own toolchain.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    command
}

/// `cargo ARGUMENTS` in the root, through the cargo that runs this.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command under a name; an error when it can't start or fails.
pub(crate) fn run(name: &str, command: &mut Command) -> Result<()> {
    let seconds = run_last(name, command)?;
    eprintln!("xtask: {name}: {seconds:.1} s");
    Ok(())
}

/// [`run`] with the command's output as the last that is seen; how many seconds it took.
pub(crate) fn run_last(name: &str, command: &mut Command) -> Result<f64> {
    eprintln!("xtask: {name}");
    let start = Instant::now();
    let status =
        command.status().with_context(|| format!("{name}: can't start {:?}", command.get_program()))?;
    let seconds = start.elapsed().as_secs_f64();
    ensure!(status.success(), "{name}: {status} after {seconds:.1} s");
    Ok(seconds)
}
