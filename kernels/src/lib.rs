//! The kernels, as the PTX that `cargo xtask ptx` builds from the sources beside it, and nothing else.
//!
//! A module is one `.cu` file. `ptx/manifest.json` names the compiler that made the PTX, its flags, and the
//! sources.

/// One module of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its name: that of its source, without the ending.
    pub name: &'static str,
    /// Its PTX.
    pub ptx: &'static str,
}

macro_rules! modules {
    ($($name:literal),+ $(,)?) => {
        /// All modules.
        pub const MODULES: &[Module] = &[$(Module {
            name: $name,
            ptx: include_str!(concat!("../ptx/", $name, ".ptx")),
        }),+];
    };
}

modules![
    "acta",
    "bloom",
    "dir24",
    "fold",
    "fold_hot",
    "gamt",
    "gather",
    "linear",
    "mata",
    "quilt",
    "rank",
    "sail_b",
    "sail_l",
    "sail_m",
    "stt",
    "table",
    "tuple_search",
    "waldvogel"
];

/// The module of a name.
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
    fn modules_are_found_by_name() {
        assert!(MODULES.iter().all(|it| module(it.name) == Some(*it)));
        assert_eq!(module("no such module"), None);
    }
}
