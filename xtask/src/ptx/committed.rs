//! What can be said of the committed PTX without a compiler: that it is of these sources and not newer than
//! drivers take, and that sources, PTX and the crate that embeds it name the same modules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::manifest::{self, Manifest, Module};
use super::source::{self, Place, Sources};

/// The newest PTX that r535, the oldest driver that is promised, takes.
const NEWEST_ISA: Isa = Isa { major: 8, minor: 2 };

/// A version of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Isa {
    major: u32,
    minor: u32,
}

/// What is wrong, a line each.
pub(super) fn differences(kernels: &Path) -> Result<Vec<String>> {
    let sources = source::modules(kernels)?;
    let mut differences = lists(&sources, "ptx", &source::names(&kernels.join("ptx"), "ptx")?);
    differences.extend(lists(&sources, "src/lib.rs", &source::embedded(kernels)?));
    let mut modules = BTreeMap::new();
    for Place { name, folder, ptx } in source::places(kernels)? {
        let ptx = kernels.join("ptx").join(ptx);
        let Ok(ptx) = fs::read_to_string(&ptx) else {
            // A module of the crate is named above, as one that is missing.
            if !sources.contains(&name) {
                differences.push(format!("{name}: there is no {}", ptx.display()));
            }
            continue;
        };
        differences.extend(too_new(&name, &ptx));
        modules.insert(name.clone(), Module::of(&Sources::read(&folder, &name)?, &ptx));
    }
    differences.extend(Manifest::read(&kernels.join("ptx").join(manifest::FILE))?.differences(&modules));
    Ok(differences)
}

/// How a list of modules differs from the sources.
fn lists(sources: &BTreeSet<String>, place: &str, listed: &BTreeSet<String>) -> Vec<String> {
    let missing = sources.difference(listed).map(|name| format!("{name}: not in kernels/{place}"));
    let extra = listed.difference(sources).map(|name| format!("{name}: in kernels/{place}, has no source"));
    missing.chain(extra).collect()
}

fn too_new(name: &str, ptx: &str) -> Option<String> {
    let Isa { major, minor } = NEWEST_ISA;
    match isa(ptx) {
        Some(isa) if isa <= NEWEST_ISA => None,
        Some(isa) => Some(format!(
            "{name}: PTX {}.{}, and drivers from r535 on take {major}.{minor} at most",
            isa.major, isa.minor
        )),
        None => Some(format!("{name}: its PTX doesn't say its version")),
    }
}

/// The version that a PTX says it is of.
fn isa(ptx: &str) -> Option<Isa> {
    let (major, minor) =
        ptx.lines().find_map(|line| line.strip_prefix(".version "))?.trim().split_once('.')?;
    Some(Isa { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_is_of_its_sources() {
        let found = differences(&crate::ptx::kernels()).unwrap();
        assert!(found.is_empty(), "`cargo xtask ptx --registers` builds it anew: {found:#?}");
    }

    #[test]
    fn lists_differ_both_ways() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(lists(&set(&["a", "b"]), "ptx", &set(&["a", "b"])), Vec::<String>::new());
        assert_eq!(
            lists(&set(&["a", "b"]), "ptx", &set(&["b", "c"])),
            ["a: not in kernels/ptx", "c: in kernels/ptx, has no source"]
        );
    }

    #[test]
    fn ptx_is_no_newer_than_the_oldest_driver() {
        assert_eq!(isa("//\n.version 8.2\n.target sm_70\n"), Some(Isa { major: 8, minor: 2 }));
        for old in [".version 8.2\n", ".version 7.8\n", ".version 6.0\n"] {
            assert_eq!(too_new("a", old), None);
        }
        for new in [".version 8.3\n", ".version 8.10\n", ".version 9.0\n"] {
            let said = too_new("a", new).unwrap();
            assert!(said.contains("8.2 at most"), "{said}");
        }
        assert!(too_new("a", "// nothing\n").unwrap().contains("version"));
    }
}
