//! SAIL_L, the lookup-oriented variant (section 4.2): levels 16, 24 and 32, and on by octets for IPv6.

mod build;
mod layout;
mod lookup;
mod simd;
mod update;

pub use build::SailL;
pub use layout::SailLTable;
