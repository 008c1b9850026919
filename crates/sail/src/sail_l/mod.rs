//! SAIL_L, the lookup-oriented variant (section 4.2): levels 16, 24 and 32, and on by octets for IPv6.

mod build;
mod kernel;
pub mod layout;
mod lookup;
mod portable;
mod simd;
mod update;

pub use build::SailL;
pub use layout::SailLTable;

// What the other variants and the paper's accounting have in common with it.
pub(crate) use build::{chunks, element};
pub(crate) use layout::{BCN16, CHUNK, chunk_ids, levels, next_hops};
pub(crate) use portable::{Ids, first_index, index_in};
