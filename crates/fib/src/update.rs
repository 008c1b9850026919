//! A change to a routing table.

use crate::address::Address;
use crate::next_hop::NextHop;
use crate::prefix::Prefix;

/// One change, as a routing protocol says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Update<A: Address> {
    /// The prefix is reached through the next hop, whatever it had before. Without a next hop it keeps the
    /// one it has, or takes index 1 where it has none.
    Announce {
        /// What is announced.
        prefix: Prefix<A>,
        /// Where to.
        next_hop: Option<NextHop>,
    },
    /// The prefix is no longer in the table.
    Withdraw {
        /// What is withdrawn.
        prefix: Prefix<A>,
    },
}

/// What takes one change of a table back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undo<A: Address> {
    /// The prefix that changed.
    pub prefix: Prefix<A>,
    /// The next hop that it had; `None` where it was not there.
    pub before: Option<NextHop>,
}

impl<A: Address> Update<A> {
    /// The prefix is reached through the next hop.
    pub fn announce(prefix: impl Into<Prefix<A>>, next_hop: NextHop) -> Self {
        Self::Announce { prefix: prefix.into(), next_hop: Some(next_hop) }
    }

    /// The prefix is no longer in the table.
    pub fn withdraw(prefix: impl Into<Prefix<A>>) -> Self {
        Self::Withdraw { prefix: prefix.into() }
    }

    /// The prefix that changes.
    pub fn prefix(&self) -> Prefix<A> {
        match *self {
            Self::Announce { prefix, .. } | Self::Withdraw { prefix } => prefix,
        }
    }
}
