//! STT, the state transition table (section 2.2): 256 links for each state, indexed by state and byte. It is
//! the paper's starting point, and serves for comparison with small tables.

mod build;
mod kernel;
pub mod layout;
mod lookup;
mod update;

pub use build::Stt;
pub use layout::SttTable;
