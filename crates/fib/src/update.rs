//! Changes of a routing table.

use crate::address::Address;
use crate::next_hop::NextHop;
use crate::prefix::Prefix;

/// A change, as a routing protocol announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Update<A: Address> {
    /// The prefix gets the next hop, and loses the one it had. Without a next hop it keeps its next hop, or
    /// gets index 1 if it has none.
    Announce {
        /// The announced prefix.
        prefix: Prefix<A>,
        /// The next hop.
        next_hop: Option<NextHop>,
    },
    /// The prefix is no longer in the table.
    Withdraw {
        /// The withdrawn prefix.
        prefix: Prefix<A>,
    },
}

/// A record that takes one change of a table back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undo<A: Address> {
    /// The prefix that changed.
    pub prefix: Prefix<A>,
    /// The prefix's next hop before the change; `None` if it had none.
    pub before: Option<NextHop>,
}

impl<A: Address> Update<A> {
    /// Makes an announcement of a prefix with a next hop.
    pub fn announce(prefix: Prefix<A>, next_hop: NextHop) -> Self {
        Self::Announce { prefix, next_hop: Some(next_hop) }
    }

    /// Makes a withdrawal of a prefix.
    pub fn withdraw(prefix: Prefix<A>) -> Self {
        Self::Withdraw { prefix }
    }

    /// The prefix that changes.
    pub fn prefix(&self) -> Prefix<A> {
        match *self {
            Self::Announce { prefix, .. } | Self::Withdraw { prefix } => prefix,
        }
    }
}
