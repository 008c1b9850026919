//! [`Route`]: a prefix of a table, with its path.

use std::sync::Arc;

use ipnet::IpNet;

use super::path::Path;

/// The number of a routing table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct TableId(pub u32);

impl TableId {
    /// The kernel's main table, and the table of feeds that have only one.
    pub const MAIN: Self = Self(254);
    /// The kernel's table of this host's own addresses. Linux looks it up first.
    pub const LOCAL: Self = Self(255);
}

/// A prefix of a table, with the best path that the feed has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The table.
    pub table: TableId,
    /// The prefix, without host bits.
    pub prefix: IpNet,
    /// The path.
    pub path: Arc<Path>,
}
