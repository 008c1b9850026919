//! Aligned transition arrays (sections 2.2 to 2.5), with what ATA and MATA have in common, which is nearly
//! all: an ATA is a MATA of one array. [`Form`] says what differs.
//!
//! ```text
//! state = (array, base)         a state's transition by input y lies in slot (base + y) mod L of its array, L the array's length
//!
//!   array   … ┌────────┬────────┬────────┬────────┬────────┐ …      each slot: the input that it is for, which tells that it is
//!             │ com/ ──┼─► s1   │ org/ → │ parc ──┼─► s3   │        the state's own, and where it leads
//!             └────────┴────────┴────────┴────────┴────────┘
//! ```
//!
//! No two states of an array have the same base, so (base + y) mod L and y tell the state: what a slot's
//! input verifies is exact.

mod arrays;
mod build;
mod form;
pub mod interleave;
mod kernel;
pub mod layout;
mod lookup;
mod place;
mod prime;
mod relocate;
#[cfg(test)]
mod tests;
mod update;

pub use build::Aligned;
pub use form::Form;
pub use layout::{AlignedTable, ArrayInfo};
