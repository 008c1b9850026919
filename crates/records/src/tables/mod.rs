//! Tables that records are looked up in, as a command line names them (`NAME=FILE`), and the texts that they
//! have for their indexes.
//!
//! Needs the feature `tables`.

mod error;
mod fields;
mod file;
mod named;
mod read;

pub use error::TableError;
pub use file::{TableFile, TableReading};
pub use read::AddressTable;
