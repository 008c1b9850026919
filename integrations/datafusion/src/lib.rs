#![doc = include_str!("../README.md")]

// Arrays in, arrays out: `column`, `labels`, `table` and `tables` have no type of DataFusion, so that a new
// version of it is a change of `functions` alone.
mod column;
mod error;
mod functions;
mod labels;
mod table;
mod tables;

pub use column::Invalid;
pub use error::Error;
pub use functions::{WirespeedOptions, functions, register_all};
pub use table::{AddressTable, NameTable, PayloadTable, RuleTable, Table};
pub use tables::{Files, Opener, Tables};
