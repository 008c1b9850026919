//! The oldest Rust that the crates are for: `rust-version` in Cargo.toml, held against the compiler of that
//! version, if rustup can install it.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};

use crate::{public, step};

/// Checks every public crate, with its default features. Where the compiler can't be had, gives what is to be
/// said at the end; that is an error in continuous integration, which sets the environment variable `CI`.
pub(crate) fn check() -> Result<Option<String>> {
    let version = version()?;
    if !is_installed(&version) && !install(&version) {
        return unchecked(&version, std::env::var_os("CI").is_some()).map(Some);
    }
    let mut cargo = step::rustup(&version, "cargo");
    // In a folder of its own: neither compiler is to undo what the other has done.
    cargo.args(["check", "--locked", "--target-dir", "target/oldest"]);
    for package in public::packages()? {
        cargo.args(["--package", &package.name]);
    }
    step::run(&format!("oldest Rust, {version}"), &mut cargo)?;
    Ok(None)
}

/// The message about a version that is not there.
fn unchecked(version: &str, is_ci: bool) -> Result<String> {
    let why = format!("oldest Rust: NOT CHECKED: rustup can't install {version} here");
    ensure!(!is_ci, why);
    eprintln!("xtask: {why}");
    Ok(why)
}

/// The version, which is the same of all public crates.
fn version() -> Result<String> {
    let all = public::packages()?.into_iter().map(|package| package.rust_version);
    let all: BTreeSet<String> = all.collect::<Option<_>>().context("a crate without rust-version")?;
    ensure!(all.len() == 1, "several versions of Rust: {all:?}");
    all.into_iter().next().context("no crate")
}

fn is_installed(version: &str) -> bool {
    step::rustup(version, "rustc").arg("--version").output().is_ok_and(|said| said.status.success())
}

fn install(version: &str) -> bool {
    let mut rustup = std::process::Command::new("rustup");
    rustup.args(["toolchain", "install", version, "--profile", "minimal", "--no-self-update"]);
    rustup.output().is_ok_and(|said| said.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_is_not_there_fails_in_ci_alone() {
        let said = unchecked("1.2.3", false).unwrap();
        assert!(said.contains("NOT CHECKED") && said.contains("1.2.3"), "{said}");
        assert!(unchecked("1.2.3", true).unwrap_err().to_string().contains("NOT CHECKED"));
    }

    #[test]
    fn the_readme_names_it() {
        let version = version().unwrap();
        let readme = std::fs::read_to_string(step::root().join("README.md")).unwrap();
        assert!(readme.contains(&format!("Rust {version} or newer")), "{version}");
    }
}
