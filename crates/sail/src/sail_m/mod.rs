//! SAIL_M, any number of FIBs in one structure (section 4.3): SAIL_L's levels over the union of all FIBs,
//! each next hop an array with one for each FIB, equal arrays kept once.

mod arrays;
mod build;
mod fibs;
pub mod kernel;
pub mod layout;
mod live;
mod log;
mod lookup;
mod overlay;
mod update;

pub use build::SailM;
pub use fibs::{FibId, Fibs, FibsError};
pub use layout::SailMTable;
pub use live::LiveFibs;
