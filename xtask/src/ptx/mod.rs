//! The kernels' PTX: built from `kernels/*.cu`, committed under `kernels/ptx`, and held against its sources.
//! So is that of examples with kernels of their own; it lies beside them.
//!
//! ```text
//! kernels/NAME.cu ─┐
//!   #include       ├─ NVRTC 12.2 ──► kernels/ptx/NAME.ptx ── ptxas -v ──► kernels/ptx/registers.csv
//! kernels/*.cuh ───┘                        │
//!        └──────────── hashes ──────────────┴──► kernels/ptx/manifest.json
//! ```
//!
//! It is committed so that nobody needs CUDA to build. The compiler is old on purpose: a driver refuses PTX
//! that is newer than itself, and what NVRTC 12.2 writes (PTX 8.2) loads from r535 on. The compiler is a
//! wheel from PyPI, pinned and kept under `target/`; the same bytes come out of it on every machine, so that
//! the check compares bytes.
//!
//! `--check` looks first at what needs no compiler (hashes in the manifest, lists of modules), then builds
//! everything again.

mod committed;
mod manifest;
mod nvrtc;
mod parallel;
mod registers;
mod source;
mod wheel;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::step;
use manifest::{Compiler, Manifest, Module};
use nvrtc::{Compiled, Nvrtc};
use registers::Table;
use source::{Place, Sources};

/// What every module is compiled with: the oldest GPU that is promised, Volta.
const FLAGS: [&str; 2] = ["--gpu-architecture=compute_70", "--std=c++17"];

/// The table of what `ptxas` makes of the kernels, beside their PTX.
const REGISTERS: &str = "registers.csv";

/// Files by their path from `kernels/ptx` on: contents.
type Files = BTreeMap<String, String>;

#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing: compare what is committed with what its sources give, byte for byte
    #[arg(long)]
    check: bool,
    /// The table of registers and spills too (kernels/ptx/registers.csv); a kernel that spills is an error
    #[arg(long)]
    registers: bool,
    /// Compare hashes only, where no compiler can be had
    #[arg(long, requires = "check", conflicts_with = "registers")]
    without_compiler: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let kernels = kernels();
    if !options.check {
        let Built { files, mut faults } = build(&kernels, options.registers)?;
        write(&kernels.join("ptx"), &files)?;
        if !options.registers {
            eprintln!("xtask: ptx: {REGISTERS} is as it was; --registers makes it anew");
        }
        // A module that the crate doesn't name, say.
        faults.extend(committed::differences(&kernels)?);
        return report(&faults, "the kernels are written, but not in order");
    }
    let mut differences = committed::differences(&kernels)?;
    if options.without_compiler {
        eprintln!("xtask: ptx: hashes only, nothing is built");
    } else {
        let Built { files, faults } = build(&kernels, options.registers)?;
        differences.extend(compare(&kernels.join("ptx"), &files)?);
        differences.extend(faults);
    }
    report(&differences, "kernels/ptx isn't what it should be; `cargo xtask ptx --registers` builds it anew")
}

/// What the compilers give.
struct Built {
    /// All that belongs in `kernels/ptx`, and beside examples.
    files: Files,
    /// What is wrong with the kernels although they compile.
    faults: Vec<String>,
}

fn kernels() -> PathBuf {
    step::root().join("kernels")
}

/// Compiles every module, and assembles it where its registers are asked for.
fn build(kernels: &Path, with_registers: bool) -> Result<Built> {
    let nvrtc = Nvrtc::open(&wheel::NVRTC.file()?)?;
    let ptxas = with_registers.then(|| wheel::PTXAS.file()).transpose()?;
    let places = source::places(kernels)?;
    // NVRTC takes one program at a time, whatever the threads; the others assemble meanwhile.
    let made = parallel::map(&places, |Place { name, folder, .. }| {
        let sources = Sources::read(folder, name)?;
        let compiled = nvrtc.compile(name, &sources, &FLAGS)?;
        let table = ptxas.as_deref().map(|ptxas| Table::of(ptxas, name, &compiled.ptx)).transpose()?;
        Ok((sources, compiled, table))
    })?;

    let mut files = Files::new();
    let mut modules = BTreeMap::new();
    let mut tables = Vec::new();
    let mut built_by = String::new();
    for (place, (sources, Compiled { ptx, log }, table)) in places.into_iter().zip(made) {
        if !log.is_empty() {
            eprintln!("{log}");
        }
        built_by = builder(&ptx).to_owned();
        modules.insert(place.name, Module::of(&sources, &ptx));
        files.insert(place.ptx, ptx);
        tables.extend(table);
    }
    let compiler = Compiler {
        name: "NVRTC".into(),
        version: nvrtc.version()?,
        build: built_by,
        package: wheel::NVRTC.package.into(),
        package_version: wheel::NVRTC.version.into(),
    };
    files.insert(manifest::FILE.into(), Manifest::new(compiler, modules).to_json()?);
    let mut faults = Vec::new();
    if with_registers {
        let table = Table::join(tables);
        eprintln!("{}", table.summary());
        faults = table.in_local_memory();
        files.insert(REGISTERS.into(), table.to_csv());
    }
    Ok(Built { files, faults })
}

/// The compiler as it names itself at the head of what it writes: "Cuda compilation tools, release 12.2,
/// V12.2.140".
fn builder(ptx: &str) -> &str {
    let named = ptx.lines().find_map(|line| line.strip_prefix("// Cuda compilation tools"));
    named.map_or("", |rest| rest.trim_start_matches(',').trim())
}

/// Writes what has changed and removes modules that have no source any more.
fn write(folder: &Path, files: &Files) -> Result<()> {
    fs::create_dir_all(folder)?;
    for (name, contents) in files {
        let path = folder.join(name);
        if fs::read(&path).is_ok_and(|old| old == contents.as_bytes()) {
            continue;
        }
        eprintln!("xtask: ptx: {name} written");
        fs::write(&path, contents).with_context(|| format!("can't write {}", path.display()))?;
    }
    for name in source::names(folder, "ptx")? {
        let name = format!("{name}.ptx");
        if !files.contains_key(&name) {
            eprintln!("xtask: ptx: {name} removed: it has no source");
            fs::remove_file(folder.join(name))?;
        }
    }
    Ok(())
}

/// How the files of a folder differ from those just built.
fn compare(folder: &Path, built: &Files) -> Result<Vec<String>> {
    let mut differences = Vec::new();
    for (name, contents) in built {
        match fs::read(folder.join(name)) {
            Ok(old) => differences.extend(first_difference(name, &old, contents.as_bytes())),
            Err(error) => differences.push(format!("kernels/ptx/{name}: {error}")),
        }
    }
    Ok(differences)
}

/// The line from which two versions of a file differ.
fn first_difference(name: &str, committed: &[u8], built: &[u8]) -> Option<String> {
    if committed == built {
        return None;
    }
    let equal = committed.iter().zip(built).take_while(|(a, b)| a == b);
    let line = 1 + equal.filter(|(byte, _)| **byte == b'\n').count();
    Some(format!("kernels/ptx/{name}: not what the compiler makes of its sources, from line {line} on"))
}

/// Prints what is wrong, and fails if anything is.
fn report(faults: &[String], as_a_whole: &str) -> Result<()> {
    for fault in faults {
        eprintln!("xtask: ptx: {fault}");
    }
    ensure!(faults.is_empty(), "{as_a_whole}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_named() {
        assert_eq!(first_difference("a.ptx", b"1\n2\n3\n", b"1\n2\n3\n"), None);
        let said = first_difference("a.ptx", b"1\n2\n3\n", b"1\n2\nx\n").unwrap();
        assert!(said.contains("a.ptx") && said.ends_with("line 3 on"), "{said}");
        // One is the head of the other.
        let said = first_difference("a.ptx", b"1\n", b"1\n2\n").unwrap();
        assert!(said.ends_with("line 2 on"), "{said}");
    }

    #[test]
    fn files_are_written_compared_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::from([("a.ptx".into(), "one\n".into()), ("b.ptx".into(), "two\n".into())]);
        fs::write(folder.path().join("gone.ptx"), "").unwrap();
        assert_eq!(compare(folder.path(), &files).unwrap().len(), 2);
        write(folder.path(), &files).unwrap();
        assert_eq!(compare(folder.path(), &files).unwrap(), Vec::<String>::new());
        assert!(!folder.path().join("gone.ptx").exists());
        fs::write(folder.path().join("b.ptx"), "two!\n").unwrap();
        let said = compare(folder.path(), &files).unwrap();
        assert!(said.len() == 1 && said[0].contains("b.ptx"), "{said:?}");
    }

    #[test]
    fn the_compiler_is_found_in_its_output() {
        let ptx = "//\n// Based on X\n// Cuda compilation tools, release 12.2, V12.2.140\n//\n.version 8.2\n";
        assert_eq!(builder(ptx), "release 12.2, V12.2.140");
    }
}
