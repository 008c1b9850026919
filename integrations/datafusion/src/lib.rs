#![doc = include_str!("../README.md")]

// Arrays in, arrays out: `labels`, `table` and `tables` have no type of DataFusion, so that a new
// version of it is a change of `functions` alone.
mod error;
mod functions;
mod labels;
mod table;
mod tables;

pub use error::Error;
pub use functions::{WirespeedOptions, functions, register_all};
pub use table::{AddressTable, NameTable, PayloadTable, RuleTable, Table};
pub use tables::{Files, Opener, Tables};
pub use wirespeed::content::{Content, How};
pub use wirespeed::fib::merge::MergeSource;
pub use wirespeed_columns::Invalid;
