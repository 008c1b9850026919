//! Flow and log records as bytes: cut into blocks at the ends of records, scanned for the columns that are
//! wanted, and written with more columns. Everything else passes as it is: quotes, order and spacing.
//!
//! ```text
//! bytes ─► Splitter ─► Block: whole records, and their Layout ─► Layout::scan ─► Records: cells, places of new columns
//!             │
//!             └─ header: its names ─► your plan: columns that are wanted, and added
//! ```
//!
//! The [formats](Format) are CSV and TSV with a header, nfdump's CSV, Zeek's logs, and NDJSON. A
//! [`Splitter`] runs on one thread; the blocks can be scanned on many.
//!
//! With the feature `tables`, `TableFile` reads the tables that records are looked up in.
//!
//! A record that is wrong is a [`Flaw`] with its reason. The records around it are read nevertheless.

mod cell;
mod cut;
mod delimited;
mod dotted;
mod encode;
mod format;
mod json;
mod layout;
mod listed;
mod marks;
mod records;
mod splitter;
mod state;
#[cfg(feature = "tables")]
mod tables;
mod usual;
mod word;

pub use cell::{host, is_unset};
pub use dotted::{address, dotted};
pub use encode::Encoder;
pub use format::Format;
pub use layout::{Layout, Plan};
pub use listed::listed;
pub use records::{Content, Flaw, Record, Records};
pub use splitter::{Block, Error, LONGEST, Splitter};
#[cfg(feature = "tables")]
pub use tables::{AddressTable, TableError, TableFile, TableReading};
pub use usual::{Role, added_name};
