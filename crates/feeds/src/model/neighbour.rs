//! [`Neighbour`]: a host that a link reaches directly.

use std::net::IpAddr;

use super::link::Mac;

/// A host that a link reaches directly, as ARP or neighbour discovery found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The index of the interface.
    pub interface: u32,
    /// The neighbour's address.
    pub address: IpAddr,
    /// The neighbour's hardware address, if it is known and has six bytes.
    pub mac: Option<Mac>,
    /// The kernel's state of the neighbour.
    pub state: NeighbourState,
}

impl Neighbour {
    /// The hardware address, if packets may be sent to it now.
    #[must_use]
    pub fn usable(&self) -> Option<Mac> {
        self.mac.filter(|_| self.state.is_usable())
    }
}

/// The kernel's state of a neighbour (`NUD_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NeighbourState {
    /// The kernel asked, and no answer came yet.
    Incomplete,
    /// An answer came not long ago.
    Reachable,
    /// The last answer is old. The kernel checks it with the next packet that it sends itself.
    Stale,
    /// The kernel waits for a sign of life before it asks.
    Delay,
    /// The kernel asks the known address.
    Probe,
    /// The neighbour does not answer.
    Failed,
    /// The link needs no hardware addresses.
    NoArp,
    /// An administrator set the address.
    Permanent,
    /// None of these: the entry is new.
    None,
}

impl NeighbourState {
    /// Whether the hardware address may be used (`NUD_VALID`).
    #[must_use]
    pub const fn is_usable(self) -> bool {
        !matches!(self, Self::Incomplete | Self::Failed | Self::None)
    }
}
