//! [`Change`]: one thing that a feed tells.

use std::fmt;
use std::net::IpAddr;
use std::time::SystemTime;

use ipnet::IpNet;

use super::address::InterfaceAddress;
use super::link::Link;
use super::neighbour::Neighbour;
use super::route::{Route, TableId};
use super::rule::Rule;

/// Changes, to be applied in order. Readers of the result should see all of a batch at once.
pub type Batch = Vec<Change>;

/// One thing that a feed tells.
///
/// Values replace earlier values: a route replaces the route of its table and prefix, a link that of its
/// index. Consumers need no other state than what the changes built up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// An interface is new or different.
    Link(Box<Link>),
    /// The interface of this index is gone.
    LinkGone(u32),
    /// This host has the address.
    Address(InterfaceAddress),
    /// This host does not have the address any more.
    AddressGone(InterfaceAddress),
    /// A neighbour is new or different.
    Neighbour(Neighbour),
    /// The neighbour is forgotten.
    NeighbourGone {
        /// The index of the interface.
        interface: u32,
        /// The neighbour's address.
        address: IpAddr,
    },
    /// The kernel has this rule of policy routing.
    Rule(Box<Rule>),
    /// The kernel does not have the rule any more.
    RuleGone(Box<Rule>),
    /// A prefix has this path now.
    Route(Route),
    /// A prefix has no path any more.
    RouteGone {
        /// The table.
        table: TableId,
        /// The prefix.
        prefix: IpNet,
    },
    /// The first state is whole. Of the kernel: as whole as it told. If objects changed during each attempt
    /// to read them, a comparison follows ([`Reason::Interrupted`]).
    Synced,
    /// The state was compared with the source again, and is whole again. The changes since the cause led
    /// there.
    Resynced(Reason),
    /// The source is lost. The routes stay as they were, and age from this time on, until
    /// [`Change::Resynced`].
    Stale(SystemTime),
}

/// The cause of a comparison with the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The kernel had more to tell than its buffer held.
    Overrun,
    /// The kernel deletes and revives some IPv4 routes without a word when an interface or an address
    /// changes.
    Silence,
    /// The kernel's objects changed during each attempt to read them all.
    Interrupted,
    /// The source connected anew.
    Reconnected,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overrun => "the kernel's buffer overran",
            Self::Silence => "an interface or an address changed",
            Self::Interrupted => "objects changed while they were read",
            Self::Reconnected => "the source connected anew",
        })
    }
}
