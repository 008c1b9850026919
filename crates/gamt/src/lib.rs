//! GAMT: a multi-bit trie encoded as a state-jump table (Li et al., "GAMT: A Fast and Scalable IP Lookup Engine for GPU-based
//! Software Routers", ANCS 2013), with the update machinery of its control plane, and its mirror on the CPU, MAMT.

mod bubbles;
mod build;
mod layout;
mod lookup;
mod plan;
mod simd;
mod slots;
pub mod strides;
mod trie;
mod update;

pub use build::{GamtS, GamtT};
pub use layout::{GamtTable, InTrie, Placement, Separate};
pub use trie::LevelUsage;
