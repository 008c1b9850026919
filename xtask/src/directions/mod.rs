//! The directions in which code may depend on code: crates on crates beneath them, and inside a crate files
//! on files without a circle, and on layers beneath theirs. Tests hold all three;
//! `cargo test -p xtask directions` tells what is amiss.
//!
//! Imports are read as text: `use` items, and paths in code that begin with `crate` or `super`. Code behind
//! `#[cfg(test)]` does not count, and neither does `pub use`: a module may show what lies beneath it.

mod allowed;
mod circles;
mod crates;
mod gpu;
mod imports;
mod layers;
mod modules;

use std::collections::{BTreeMap, BTreeSet};

/// Files, and of each those that it imports from.
type Graph = BTreeMap<String, BTreeSet<String>>;
