//! `sanitize`: tests of live tables and of the GPU's runtime under a sanitizer of the compiler; models of the
//! lock-free code under loom; and the tests of its unsafe code under Miri.
//!
//! A sanitizer sees only what was compiled with it, so the standard library is built with it, too: that takes
//! a nightly compiler and the library's sources. What is built lies in a directory of its own, one for each
//! sanitizer. Kernels and their server are a process apart, which its own compiler watches.
//!
//! Loom is a library, and needs the project's own compiler only. It goes through all orders of the steps of a
//! few threads. Miri interprets a test, and checks each access against Rust's rules for memory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::step;

#[derive(Args)]
pub(crate) struct Options {
    /// What to look for
    sanitizer: Sanitizer,
    /// The toolchain to build with, if it is not for loom
    #[arg(long, default_value = "nightly")]
    toolchain: String,
    /// Only the steps that have this in their name
    #[arg(long, value_name = "WORDS")]
    step: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Sanitizer {
    /// Data races
    Thread,
    /// Reads and writes outside of allocations, and leaks
    Address,
    /// Orders of steps in which the models of lock-free code fail
    Loom,
    /// Accesses to memory that Rust forbids, in the unsafe code of labels
    Miri,
}

impl Sanitizer {
    const fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Address => "address",
            Self::Loom => "loom",
            Self::Miri => "miri",
        }
    }
}

/// The one target: a standard library with a sanitizer needs one that is named.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// One run of cargo.
struct Step {
    name: &'static str,
    /// Arguments of cargo that name the tests to build.
    targets: &'static str,
    /// Words of which the path of a test has to hold one; all tests are run where there is none.
    tests: &'static str,
}

/// Tests that keep memory on purpose: a device that never answers may still write into it.
const KEEP_MEMORY: &[&str] = &["faults::an_event_that_never_comes_is_a_time_out"];

const STEPS: &[Step] = &[
    Step { name: "images and live tables", targets: "-p wirespeed-image --lib", tests: "" },
    // Engines of each domain.
    Step {
        name: "readers of engines' live tables",
        targets: "-p wirespeed-fold -p wirespeed-namelookup -p wirespeed-classify --test conformance",
        tests: "live_readers",
    },
    Step {
        name: "chunks that live copies share",
        targets: "-p wirespeed-forest --test conformance",
        tests: "chunks_are_not_written readers_see_whole_calls",
    },
    Step { name: "labels that end", targets: "-p wirespeed --lib --test facade", tests: "labels::" },
    Step { name: "runtime of GPUs", targets: "-p wirespeed-gpu --test runtime", tests: "" },
    // The kernels' host build is the device. Tables on it follow live ones, and it is lost in mid-run.
    Step {
        name: "tables on a device",
        targets: "-p wirespeed-gpu --test on_device",
        tests: "ip:: runtime::",
    },
];

/// The models: tests that are there with `cfg(loom)` only.
const MODELS: &[Step] = &[
    Step { name: "models of two copies", targets: "--locked -p wirespeed-image --lib", tests: "models::" },
    Step {
        name: "models of lock-free code",
        targets: "--locked --manifest-path crates/wirespeed/models/Cargo.toml --lib",
        tests: "models::",
    },
];

/// Miri takes a thousand times as long as the processor, so it gets the short tests of unsafe code.
const INTERPRETED: &[Step] = &[
    Step { name: "two copies", targets: "--locked -p wirespeed-image --lib", tests: "left_right::" },
    Step {
        name: "values of labels",
        targets: "--locked --manifest-path crates/wirespeed/models/Cargo.toml --lib",
        tests: "labels::slots",
    },
];

impl Sanitizer {
    const fn steps(self) -> &'static [Step] {
        match self {
            Self::Thread | Self::Address => STEPS,
            Self::Loom => MODELS,
            Self::Miri => INTERPRETED,
        }
    }
}

/// Builds and runs all steps, stopping at the first that fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    match options.sanitizer {
        Sanitizer::Thread | Sanitizer::Address => check_toolchain(&options.toolchain, "rust-src")?,
        Sanitizer::Miri => check_toolchain(&options.toolchain, "miri,rust-src")?,
        Sanitizer::Loom => {}
    }
    let name = options.sanitizer.name();
    let directory = step::root().join("target/sanitize").join(name);
    write_kept(&directory)?;
    let asked = options.step.as_deref().unwrap_or_default();
    let mut steps = options.sanitizer.steps().iter().filter(|step| step.name.contains(asked)).peekable();
    ensure!(steps.peek().is_some(), "no step has {asked} in its name");
    for step in steps {
        let title = format!("{name}: {}", step.name);
        all_are_there(step, test(options, &directory, step).arg("--list"))
            .with_context(|| format!("{title}: the list of tests"))?;
        step::run(&title, &mut test(options, &directory, step))?;
    }
    eprintln!("xtask: sanitizer {name}: no finding");
    Ok(())
}

/// `cargo test` of a step: with the chosen toolchain, or the project's own for loom.
fn test(options: &Options, directory: &Path, step: &Step) -> Command {
    let nightly = || step::rustup(&options.toolchain, "cargo");
    let mut command = match options.sanitizer {
        Sanitizer::Thread | Sanitizer::Address => {
            let mut command = nightly();
            command.args(["test", "-Zbuild-std", "--target", TARGET]);
            command.env("RUSTFLAGS", format!("-Zsanitizer={}", options.sanitizer.name()));
            // What a sanitizer finds it tells by the lines of the calls.
            command.env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
            command
        }
        Sanitizer::Loom => {
            let mut command = step::cargo(&["test"]);
            // The second is what `crossbeam-epoch` asks for, so that its code is part of the models.
            command.env("RUSTFLAGS", "--cfg loom --cfg crossbeam_loom");
            command
        }
        Sanitizer::Miri => {
            let mut command = nightly();
            command.args(["miri", "test"]);
            // The collector of `crossbeam-epoch` is never dropped. Its list of threads keeps to the rules of
            // Tree Borrows, and not to those of Stacked Borrows.
            command.env("MIRIFLAGS", "-Zmiri-ignore-leaks -Zmiri-disable-isolation -Zmiri-tree-borrows");
            command
        }
    };
    command.arg("--target-dir").arg(directory);
    command.args(step.targets.split_whitespace()).arg("--").args(step.tests.split_whitespace());
    for of_sanitizer in ["ASAN_OPTIONS", "TSAN_OPTIONS"] {
        // A file that is cut while it is mapped ends a process by SIGBUS, which a test waits for: a sanitizer
        // that takes the signal ends the process in its own way.
        let asked = std::env::var(of_sanitizer).unwrap_or_default();
        command.env(of_sanitizer, format!("{asked}:handle_sigbus=0"));
    }
    command.env("LSAN_OPTIONS", format!("suppressions={}:print_suppressions=0", kept(directory).display()));
    command
}

/// The file that says what is no leak.
fn kept(directory: &Path) -> PathBuf {
    directory.join("kept.txt")
}

/// Writes the file of what is no leak: all that is allocated within tests that keep memory on purpose.
fn write_kept(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    let lines: String = KEEP_MEMORY.iter().map(|test| format!("leak:{test}\n")).collect();
    std::fs::write(kept(directory), lines).context("can't write what is no leak")
}

/// An error unless each of a step's words is in the path of a test: what is renamed is not to be left out.
fn all_are_there(step: &Step, list: &mut Command) -> Result<()> {
    let listed = list.stderr(Stdio::inherit()).output().context("can't start rustup")?;
    ensure!(listed.status.success(), "{}", listed.status);
    let listed = String::from_utf8(listed.stdout)?;
    if let Some(word) = without_test(step.tests, &listed) {
        anyhow::bail!("no test has {word} in its path");
    }
    Ok(())
}

/// The first of some words that no line of a list of tests holds.
fn without_test<'w>(words: &'w str, listed: &str) -> Option<&'w str> {
    let is_there = |word: &str| listed.lines().any(|line| line.ends_with(": test") && line.contains(word));
    words.split_whitespace().find(|word| !is_there(word))
}

/// An error that says what to install, unless the toolchain and the standard library's sources are there. The
/// components are those of the message; Miri says itself where it is missing.
fn check_toolchain(toolchain: &str, components: &str) -> Result<()> {
    let install = format!("rustup toolchain install {toolchain} --component {components}");
    let asked = step::rustup(toolchain, "rustc").args(["--print", "sysroot"]).output();
    let asked = asked.context("can't start rustup, which is to run the toolchain")?;
    ensure!(asked.status.success(), "the toolchain {toolchain} is not installed: {install}");
    let sysroot = String::from_utf8(asked.stdout)?;
    let sources = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/Cargo.lock");
    ensure!(
        sources.exists(),
        "the toolchain {toolchain} is without the standard library's sources: {install}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_was_renamed_is_missed() {
        let listed = "acta::live_readers: test\nacta::images: test\nfold::speed: benchmark\n";
        assert_eq!(without_test("acta::live_readers images", listed), None);
        assert_eq!(without_test("acta::live_readers acta::live", listed), None);
        assert_eq!(without_test("acta::live_readers fold::speed", listed), Some("fold::speed"));
        assert_eq!(without_test("", ""), None);
    }
}
