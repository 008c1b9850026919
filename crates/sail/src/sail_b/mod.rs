//! [`SailB`] (section 3) and [`SailU`] (section 4.1), IPv4: bit maps of the prefix lengths, and next-hop
//! arrays.

mod build;
mod kernel;
pub mod layout;
mod lookup;
mod update;

pub use build::{SailB, SailU, Split};
pub use layout::{EveryLength, EverySixth, Levels, SailBTable, SailUTable, SplitTable};

pub(crate) use layout::is_on_chip;
