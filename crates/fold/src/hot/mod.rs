//! IPv4 with a first level that fits a GPU block's shared memory: 16 bits choose a next hop or a chunk of 256
//! elements, 8 bits one of them; where there are longer prefixes, 8 more bits one of 256. Beside the chunks
//! that keys ask for most lie *hot blocks*, which answer for a few runs of elements in 8 bytes.
//!
//! Lookups, vectors and level 32 are those of `v4`, split elsewhere.

mod block;
mod build;
mod cover;
mod form;
mod kernel;
pub mod layout;
mod lookup;
mod update;

pub use build::FoldHot;
pub use layout::FoldHotTable;
