//! The news of feeds: links, addresses, neighbours, rules, paths and routes, and their changes.

mod address;
mod change;
mod link;
mod neighbour;
mod path;
mod route;
mod rule;

pub use address::InterfaceAddress;
pub use change::{Batch, Change, Reason};
pub use link::{Link, Mac};
pub use neighbour::{Neighbour, NeighbourState};
pub use path::{Hop, Path, PathKind};
pub use route::{Route, TableId};
pub use rule::{Rule, RuleAction};
