//! Columns added to records: the tables, the columns that are looked up, and those that are added.

mod answered;
mod arguments;
mod columns;
mod flow;
mod found;
mod names;
mod now;
mod reading;
mod table;

pub use answered::Answered;
pub use arguments::TableArguments;
pub use columns::{Added, Column, Given, Header, Key, Part, Shape};
pub use flow::flow;
pub use found::{Addresses, Found, Keys, Placed, in_family};
pub use names::push_name;
pub use now::{Now, follow};
pub use reading::ReadingArguments;
pub use table::{Followed, Kind, Lookup, Spec, Values, Version, Versions};
