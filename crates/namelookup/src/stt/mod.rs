//! STT, the state transition table (section 2.2): 256 links a state, two-dimensional, indexed by state and
//! byte. What the paper starts from; of use for small tables, to compare with.

mod build;
mod kernel;
pub mod layout;
mod lookup;
mod update;

pub use build::Stt;
pub use layout::SttTable;
