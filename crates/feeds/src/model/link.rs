//! [`Link`]: a network interface.

use std::fmt;

use super::route::TableId;

/// An Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The number by which hops, addresses and neighbours name the interface.
    pub index: u32,
    /// The name, such as `eth0`.
    pub name: String,
    /// The hardware address, if it has the six bytes of Ethernet.
    pub mac: Option<Mac>,
    /// The largest packet in bytes, without the link's own header.
    pub mtu: u32,
    /// Whether the interface is set up by its administrator.
    pub up: bool,
    /// Whether the interface can send: it is up and has a carrier.
    pub running: bool,
    /// Whether the interface is the loopback.
    pub loopback: bool,
    /// The index of the bridge, bond or VRF that the interface belongs to.
    pub master: Option<u32>,
    /// The table in which packets of the interface are looked up, if the interface is a VRF or belongs to
    /// one.
    pub vrf: Option<TableId>,
}
