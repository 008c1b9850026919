//! `crates/capi/include/wirespeed.h`, the header for C, made from the code by cbindgen: `cargo xtask header`.
//! A test of that crate compares declarations without cbindgen, so this needs it only when they change.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::step;

/// Options of `cargo xtask header`.
#[derive(Args)]
pub(crate) struct Options {
    /// Compare only
    #[arg(long)]
    check: bool,
}

/// The version that the committed header is of: others write blanks and comments otherwise.
const VERSION: &str = "0.29";

pub(crate) fn run(options: &Options) -> Result<()> {
    let advice = || format!("`cargo install --locked cbindgen --version ^{VERSION}` makes it");
    let said = Command::new("cbindgen").arg("--version").output().with_context(advice)?;
    let said = String::from_utf8_lossy(&said.stdout);
    let version = said.trim().strip_prefix("cbindgen ").unwrap_or_default();
    ensure!(version.starts_with(&format!("{VERSION}.")), "cbindgen is {version}: {}", advice());

    let folder = step::root().join("crates/capi");
    let mut make = Command::new("cbindgen");
    make.args(["--quiet", "--config", "cbindgen.toml", "--output", "include/wirespeed.h"]);
    if options.check {
        make.arg("--verify");
    }
    make.arg(".").current_dir(folder);
    step::run("header for C", &mut make)
}
