//! `kernels/ptx/manifest.json`: the compiler that made the PTX, its flags, and the sources.
//!
//! Hashes are XXH3-128: they tell an edit that was forgotten, not a forgery, for which there is the build
//! itself. `xxh128sum` prints the same ones.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::source::Sources;
use super::{FLAGS, wheel};

/// Its name, beside the PTX.
pub(super) const FILE: &str = "manifest.json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    compiler: Compiler,
    flags: Vec<String>,
    assembler: Assembler,
    hash: String,
    pub(super) modules: BTreeMap<String, Module>,
}

/// What made the PTX.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Compiler {
    pub(super) name: String,
    /// The version that the library says it is.
    pub(super) version: String,
    /// The version that the library writes in what it makes.
    pub(super) build: String,
    /// Where it comes from, on PyPI.
    pub(super) package: String,
    pub(super) package_version: String,
}

/// What made the table of registers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Assembler {
    name: String,
    package: String,
    package_version: String,
}

/// What one module was made of, and what it became.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Module {
    pub(super) sources: BTreeMap<String, Hash>,
    pub(super) ptx: Hash,
}

/// XXH3 of 128 bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hash(String);

impl Hash {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes)))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Module {
    pub(super) fn of(sources: &Sources, ptx: &str) -> Self {
        let hashes = sources.texts.iter().map(|(name, text)| (name.clone(), Hash::of(text.as_bytes())));
        Self { sources: hashes.collect(), ptx: Hash::of(ptx.as_bytes()) }
    }
}

impl Manifest {
    pub(super) fn new(compiler: Compiler, modules: BTreeMap<String, Module>) -> Self {
        let assembler = Assembler {
            name: "ptxas".into(),
            package: wheel::PTXAS.package.into(),
            package_version: wheel::PTXAS.version.into(),
        };
        Self { compiler, flags: FLAGS.map(Into::into).into(), assembler, hash: "XXH3-128".into(), modules }
    }

    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no manifest", path.display()))
    }

    pub(super) fn to_json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// The differences of this manifest from `now`: in how the PTX was made, and in the modules. `now` is of
    /// the files as they lie there. Without a compiler: what that calls itself isn't looked at.
    pub(super) fn differences(&self, now: &BTreeMap<String, Module>) -> Vec<String> {
        let made_now = Self::new(
            Compiler {
                package: wheel::NVRTC.package.into(),
                package_version: wheel::NVRTC.version.into(),
                ..self.compiler.clone()
            },
            self.modules.clone(),
        );
        let mut differences = Vec::new();
        if *self != made_now {
            differences.push(format!("{FILE}: packages or flags are not those that `cargo xtask ptx` uses"));
        }
        for name in self.modules.keys().filter(|name| !now.contains_key(*name)) {
            differences.push(format!("{name}: in {FILE}, but not among the sources"));
        }
        for (name, now) in now {
            match self.modules.get(name) {
                None => differences.push(format!("{name}: not in {FILE}")),
                Some(then) => differences.extend(then.differences(name, now)),
            }
        }
        differences
    }
}

impl Module {
    fn differences(&self, name: &str, now: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        for (source, hash) in &now.sources {
            match self.sources.get(source) {
                None => differences.push(format!("{name}: includes {source} now")),
                Some(then) if then != hash => {
                    differences.push(format!("{name}: {source} is {hash} now, its PTX was built of {then}"));
                }
                Some(_) => {}
            }
        }
        for source in self.sources.keys().filter(|source| !now.sources.contains_key(*source)) {
            differences.push(format!("{name}: doesn't include {source} any more"));
        }
        if self.ptx != now.ptx {
            differences.push(format!("{name}: its PTX is {}, {} was built", now.ptx, self.ptx));
        }
        differences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(sources: &[(&str, &str)], ptx: &str) -> Module {
        let sources = sources.iter().map(|(name, text)| ((*name).to_owned(), Hash::of(text.as_bytes())));
        Module { sources: sources.collect(), ptx: Hash::of(ptx.as_bytes()) }
    }

    fn manifest(modules: &[(&str, Module)]) -> Manifest {
        let compiler = Compiler {
            name: "NVRTC".into(),
            version: "12.2".into(),
            build: "V12.2.140".into(),
            package: wheel::NVRTC.package.into(),
            package_version: wheel::NVRTC.version.into(),
        };
        Manifest::new(compiler, map(modules))
    }

    fn map(modules: &[(&str, Module)]) -> BTreeMap<String, Module> {
        modules.iter().map(|(name, module)| ((*name).to_owned(), module.clone())).collect()
    }

    #[test]
    fn the_hash_is_the_one_that_xxh128sum_prints() {
        // Of nothing: the reference implementation's own test vector.
        assert_eq!(Hash::of(b"").to_string(), "99aa06d3014798d86001c324468d497f");
    }

    #[test]
    fn what_is_written_reads_back_and_is_the_same_each_time() {
        let manifest =
            manifest(&[("b", module(&[("b.cu", "x")], "p")), ("a", module(&[("a.cu", "y")], "q"))]);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), manifest.to_json().unwrap()).unwrap();
        let read = Manifest::read(file.path()).unwrap();
        assert_eq!(read, manifest);
        assert_eq!(read.to_json().unwrap(), manifest.to_json().unwrap());
    }

    #[test]
    fn equal_files_are_no_difference() {
        let a = [("a", module(&[("a.cu", "x"), ("h.cuh", "y")], "p"))];
        assert_eq!(manifest(&a).differences(&map(&a)), Vec::<String>::new());
    }

    #[test]
    fn each_kind_of_change_is_named_with_its_module() {
        let then = manifest(&[("a", module(&[("a.cu", "x"), ("h.cuh", "y")], "p"))]);
        let says = |now: &[(&str, Module)], words: &[&str]| {
            let said = then.differences(&map(now));
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(words.iter().all(|word| said[0].contains(word)), "{said:?} lacks one of {words:?}");
        };
        says(&[("a", module(&[("a.cu", "x"), ("h.cuh", "edited")], "p"))], &["a:", "h.cuh", "built of"]);
        says(&[("a", module(&[("a.cu", "x"), ("h.cuh", "y")], "edited"))], &["a:", "its PTX"]);
        says(&[("a", module(&[("a.cu", "x")], "p"))], &["a:", "doesn't include h.cuh"]);
        says(
            &[("a", module(&[("a.cu", "x"), ("h.cuh", "y"), ("new.cuh", "")], "p"))],
            &["a:", "includes new.cuh"],
        );
        says(&[], &["a:", "not among the sources"]);
        let a = then.modules["a"].clone();
        says(&[("a", a), ("b", module(&[("b.cu", "")], ""))], &["b:", "not in manifest.json"]);
    }

    #[test]
    fn other_flags_or_packages_are_a_difference() {
        let a = [("a", module(&[("a.cu", "x")], "p"))];
        let mut flags = manifest(&a);
        flags.flags.push("--use_fast_math".into());
        let mut package = manifest(&a);
        package.compiler.package_version = "12.9.0".into();
        for changed in [flags, package] {
            let said = changed.differences(&map(&a));
            assert!(said.len() == 1 && said[0].contains("flags"), "{said:?}");
        }
    }
}
