//! Everything a change has to pass. Cheap checks first, so that what fails fails early; the tests last, so
//! that a run ends with their summary. Needs a Rust toolchain, and python3 with pip for the kernels' compiler
//! (`ptx`). Without a C++ compiler that has sanitizers, the tests of the kernels on the host say that they
//! are skipped.

use anyhow::Result;

use crate::{features, oldest, public, step};

/// Runs every step, stopping at the first that fails.
pub(crate) fn run() -> Result<()> {
    step::run("words", &mut step::cargo(&["xtask", "words"]))?;
    step::run("format", &mut step::cargo(&["fmt", "--all", "--check"]))?;
    // With the programs that measure, which a bench is built without.
    let clippy = ["clippy", "--workspace", "--all-targets", "--features", "wirespeed-benches/programs"];
    step::run("clippy", step::cargo(&clippy).args(["--", "-D", "warnings"]))?;
    step::run("clippy of programs that measure", step::cargo(&["clippy"]).args(measuring()))?;
    features::check()?;
    let unchecked = oldest::check()?;
    public::pack()?;
    step::run("docs", step::cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    // Files that are generated and committed are checked before the tests use them.
    step::run("ptx", &mut step::cargo(&["xtask", "ptx", "--check", "--registers"]))?;
    // The command that the README names. With more rounds (`WIRESPEED_TESTS=ci`) all steps together would
    // take over half an hour on two cores.
    step::run_last("tests", &mut step::cargo(&["test", "--workspace"]))?;
    // Once more, where it is seen.
    unchecked.iter().for_each(|why| eprintln!("xtask: {why}"));
    Ok(())
}

/// What has the programs that measure compiled: `--all-targets` leaves them out.
fn measuring() -> Vec<&'static str> {
    let of = [
        ("wirespeed-classify", &["classify_speed", "hostile_speed", "quilt_speed"][..]),
        ("wirespeed-fold", &["growth", "hot_share"]),
        ("wirespeed-namelookup", &["acta_speed", "structures"]),
    ];
    let mut arguments = vec!["--features", "wirespeed-classify/conformance"];
    for (package, benches) in of {
        arguments.extend(["-p", package]);
        arguments.extend(benches.iter().flat_map(|bench| ["--bench", bench]));
    }
    arguments.extend(["--", "-D", "warnings"]);
    arguments
}
