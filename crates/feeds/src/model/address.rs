//! [`InterfaceAddress`]: an address of this host.

use ipnet::IpNet;

/// An address of this host, with the length of its network: `192.0.2.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InterfaceAddress {
    /// The index of the interface.
    pub interface: u32,
    /// The address and the length of its network. The bits after the network are those of the host.
    pub net: IpNet,
}
