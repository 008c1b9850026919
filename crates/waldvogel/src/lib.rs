//! Binary search on prefix lengths (Waldvogel et al., "Scalable High Speed IP Routing Lookups", SIGCOMM 1997).

mod buckets;
mod build;
mod changes;
mod form;
mod hash;
mod layout;
mod lookup;
mod rope;
mod simd;
mod tree;
mod update;
mod value;

pub use build::Waldvogel;
pub use layout::WaldvogelTable;
