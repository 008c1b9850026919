//! Sets of rules: options for reading them, the names of actions, and doubts about answers.

mod actions;
pub mod doubt;
mod judge;
mod set_arguments;
mod source;
mod tuple;

pub use actions::{Actions, Known, of_image};
pub use judge::{Flow, ICMP, ICMPV6, Judge, Judged};
pub use set_arguments::{RuleArguments, SetArguments};
pub use source::{Loaded, Raw, ReadArguments};
pub use tuple::parser as tuple_parser;
