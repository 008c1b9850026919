//! Aligned transition arrays (sections 2.2 to 2.5): the common part of ATA and MATA. An ATA is a MATA with
//! one array. [`Form`] describes the differences.
//!
//! ```text
//! state = (array, base)         a state's transition by input y lies in slot (base + y) mod L of its array, L the array's length
//!
//!   array   … ┌────────┬────────┬────────┬────────┬────────┐ …      each slot: the input that it is for, which tells that it is
//!             │ com/ ──┼─► s1   │ org/ → │ parc ──┼─► s3   │        the state's own, and where it leads
//!             └────────┴────────┴────────┴────────┴────────┘
//! ```
//!
//! No two states of an array have the same base, so (base + y) mod L and y determine the state, and the check
//! of a slot's input is exact.

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
