//! What feeds tell: links, addresses, neighbours, paths and routes, and their changes.

mod address;
mod change;
mod link;
mod neighbour;
mod path;
mod route;

pub use address::InterfaceAddress;
pub use change::{Batch, Change, Reason};
pub use link::{Link, Mac};
pub use neighbour::{Neighbour, NeighbourState};
pub use path::{Hop, Path, PathKind};
pub use route::{Route, TableId};
