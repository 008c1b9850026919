//! `weight`: how much the program and the code weigh, as a table that the next change can be compared with.
//!
//! The program is built for release, or given. `nm`, `size` and `strip` of binutils read it. A function is of
//! the crate that its name begins with, so what a crate makes of generic types of `core` and `alloc` counts
//! for these.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::sources::sources;
use crate::{features, parallel, step};

/// The program that is weighed.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// A program that is not stripped, in place of lookupctl built for release
    #[arg(long)]
    program: Option<PathBuf>,
    /// The number of crates to list, the largest first
    #[arg(long, default_value_t = 20)]
    crates: usize,
}

/// Writes the table to standard output.
pub(crate) fn run(options: &Options) -> Result<()> {
    let program = match &options.program {
        Some(program) => program.clone(),
        None => built()?,
    };
    println!("what,of,amount");
    println!("stripped bytes,{},{}", name_of(&program), stripped(&program)?);
    for (section, bytes) in sections(&output(Command::new("size").arg("-A").arg(&program))?) {
        println!("section bytes,{section},{bytes}");
    }
    let symbols = output(Command::new("nm").args(["-S", "-C"]).arg(&program))?;
    for (name, bytes, functions) in crates(&symbols).into_iter().take(options.crates) {
        println!("bytes of functions,{name},{bytes}");
        println!("functions,{name},{functions}");
    }
    println!("lines,Rust,{}", lines(&step::root())?);
    println!("equal lines,parallel code,{}", parallel::equal()?);
    for set in ["", "names", "rules", "default", "full"] {
        let named = if set.is_empty() { "none" } else { set };
        println!("packages,wirespeed with {named},{}", features::packages(set)?.len());
    }
    Ok(())
}

/// Builds lookupctl, and tells where it is.
fn built() -> Result<PathBuf> {
    step::run("build", &mut step::cargo(&["build", "--release", "--package", "lookupctl"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    Ok(step::root().join(target).join("release/lookupctl"))
}

fn name_of(program: &Path) -> String {
    program.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The size without names of functions.
fn stripped(program: &Path) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("stripped");
    output(Command::new("strip").arg("-o").arg(&copy).arg(program))?;
    Ok(copy.metadata()?.len())
}

fn output(command: &mut Command) -> Result<String> {
    let name = format!("{:?}", command.get_program());
    let said = command.output().with_context(|| format!("can't start {name}"))?;
    ensure!(said.status.success(), "{name}: {}", String::from_utf8_lossy(&said.stderr).trim_end());
    Ok(String::from_utf8_lossy(&said.stdout).into_owned())
}

/// Sections of over 100 kB that are loaded, of what `size -A` prints.
fn sections(text: &str) -> Vec<(&str, u64)> {
    text.lines().filter_map(section).filter(|(_, bytes)| *bytes > 100_000).collect()
}

/// The name and the bytes of a section that is loaded: such sections have an address.
fn section(line: &str) -> Option<(&str, u64)> {
    let [name, bytes, address] = line.split_whitespace().collect::<Vec<_>>()[..] else { return None };
    (address != "0").then_some((name, bytes.parse().ok()?))
}

/// Crates by the bytes of their functions, and the number of these, of what `nm -S -C` prints.
fn crates(text: &str) -> Vec<(String, u64, u64)> {
    let mut by_name: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for line in text.lines() {
        let mut parts = line.splitn(4, ' ').skip(1);
        let (Some(bytes), Some("t" | "T" | "w" | "W"), Some(name)) =
            (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let Ok(bytes) = u64::from_str_radix(bytes, 16) else { continue };
        let of = by_name.entry(crate_of(name)).or_default();
        *of = (of.0 + bytes, of.1 + 1);
    }
    let mut all: Vec<_> =
        by_name.into_iter().map(|(name, (bytes, count))| (name.to_owned(), bytes, count)).collect();
    all.sort_by_key(|&(_, bytes, _)| std::cmp::Reverse(bytes));
    all
}

/// The first path in a function's name begins with its crate. C has no paths.
fn crate_of(function: &str) -> &str {
    let mut words = function.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    words.find_map(|word| word.split_once("::")).map_or("C", |(first, _)| first)
}

fn lines(root: &Path) -> Result<usize> {
    let of = |file: &String| {
        let text = std::fs::read_to_string(root.join(file)).with_context(|| file.clone())?;
        Ok(text.lines().count())
    };
    sources(root)?.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_of_the_crate_that_they_begin_with() {
        for (function, of) in [
            ("wirespeed_fib::rib::Rib<A>::insert", "wirespeed_fib"),
            ("<&mut wirespeed_classify::read::List as serde::de::Visitor>::visit_map", "wirespeed_classify"),
            ("<[T] as alloc::slice::Concat<V>>::concat", "alloc"),
            ("core::ptr::drop_in_place<fib::Rib>", "core"),
            ("ZSTD_compressBlock_fast", "C"),
        ] {
            assert_eq!(crate_of(function), of, "{function}");
        }
    }

    #[test]
    fn sums_are_of_what_the_programs_print() {
        let symbols = "0001 0010 T a::f\n0002 0020 t a::g\n0003 0001 d a::DATA\n0004 0008 T main\n U free\n";
        assert_eq!(crates(symbols), [("a".to_owned(), 48, 2), ("C".to_owned(), 8, 1)]);
        let sizes =
            "x  :\nsection size addr\n.text 200000 64\n.comment 300000 0\n.data 9 128\nTotal 500009\n";
        assert_eq!(sections(sizes), [(".text", 200_000)]);
    }
}
