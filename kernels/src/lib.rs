//! The kernels, as the PTX that `cargo xtask ptx` builds from the sources beside it, and nothing else.
//!
//! A module is one `.cu` file. `ptx/manifest.json` names the compiler that made the PTX, its flags, and the
//! sources. Six megabytes of text become one in a program: the build script compresses each module, and
//! [`Module::ptx`] inflates it.

use std::fmt;

use miniz_oxide::inflate::decompress_to_vec_zlib;

/// One module of kernels.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Module {
    /// Its name: that of its source, without the ending.
    pub name: &'static str,
    /// Its PTX as a zlib stream, whose checksum is held against what comes out.
    compressed: &'static [u8],
}

impl Module {
    /// Its PTX. O(length), a few milliseconds; nothing is kept, since a driver that has compiled it doesn't
    /// ask again.
    pub fn ptx(&self) -> String {
        let text = decompress_to_vec_zlib(self.compressed).expect("the build script compressed it");
        String::from_utf8(text).expect("PTX is ASCII, and a test inflates every module")
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("name", &self.name).finish_non_exhaustive()
    }
}

macro_rules! modules {
    ($($name:literal $(if $feature:literal)?),+ $(,)?) => {
        /// All modules of this build.
        pub const MODULES: &[Module] = &[$($(#[cfg(feature = $feature)])? Module {
            name: $name,
            compressed: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".ptx")),
        }),+];
    };
}

modules![
    "acta",
    "bloom" if "papers",
    "dir24" if "papers",
    "esp",
    "fold",
    "fold_hot",
    "forest",
    "gamt" if "papers",
    "gather",
    "linear",
    "mata" if "papers",
    "quilt",
    "rank",
    "sail_b" if "papers",
    "sail_l" if "papers",
    "sail_m" if "papers",
    "stt" if "papers",
    "table",
    "tuple_search" if "papers",
    "waldvogel"
];

/// The module of a name, if the build has it.
pub fn module(name: &str) -> Option<Module> {
    MODULES.iter().copied().find(|module| module.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_source_is_a_module_and_every_module_has_a_source() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let files = std::fs::read_dir(here).unwrap().map(|entry| entry.unwrap().path());
        let sources: BTreeSet<_> = files
            .filter(|path| path.extension().is_some_and(|it| it == "cu"))
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        let modules: BTreeSet<_> = MODULES.iter().map(|module| module.name.to_owned()).collect();
        assert_eq!(modules, sources);
        assert_eq!(modules.len(), MODULES.len(), "a module is named twice");
    }

    #[test]
    fn what_is_inflated_is_the_file() {
        for module in MODULES {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("ptx").join(format!("{}.ptx", module.name));
            let ptx = std::fs::read_to_string(file).unwrap();
            assert!(module.ptx() == ptx, "{}", module.name);
            assert!(!ptx.contains('\0'), "{}: a driver would take it to end there", module.name);
            assert!(module.compressed.len() * 3 < ptx.len(), "{} is hardly smaller", module.name);
        }
    }

    #[test]
    fn modules_are_found_by_name() {
        assert!(MODULES.iter().all(|it| module(it.name) == Some(*it)));
        assert_eq!(module("no such module"), None);
    }
}
