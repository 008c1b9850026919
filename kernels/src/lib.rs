//! The kernels, as the PTX that `cargo xtask ptx` builds from the sources beside it, and nothing else.
//!
//! A module is one `.cu` file. `ptx/manifest.json` says which compiler made the PTX, with which flags, of which sources.

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

modules!["dir24", "fold", "gather", "rank", "sail_b", "table", "waldvogel"];

/// The module of a name.
pub fn module(name: &str) -> Option<Module> {
    MODULES.iter().copied().find(|module| module.name == name)
}
