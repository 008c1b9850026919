//! [`Transit`]: which frames are a router's to forward. The XDP program decides by the same rules in the
//! kernel, and a test compares both.
//!
//! A frame is forwarded if all of this holds; the kernel has every other one.
//!
//! 1. It is to the interface's hardware address.
//! 2. It holds an IPv4 or IPv6 packet whose fixed header is there whole, with the right version. Up to two
//!    VLAN tags may stand before it, if tags are to be forwarded.
//! 3. Its destination is not multicast, reserved or limited to the link: IPv4 below 224.0.0.0, IPv6 outside
//!    of ff00::/8 and fe80::/10.
//! 4. Its destination is no address of the router.
//!
//! So ARP, neighbour discovery, routing protocols and logins to the router go on as without it. TTLs,
//! checksums and options are the forwarder's, since it has to answer.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use super::hardware::Hardware;

/// Addresses of the router: IPv4 as IPv4-mapped IPv6.
pub(super) type Addresses = Arc<RwLock<HashSet<[u8; 16]>>>;

/// Frames behind VLAN tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tags {
    /// Left to the kernel.
    #[default]
    Kernel,
    /// Forwarded, behind one or two tags.
    Forward,
}

/// The choice of the frames to be forwarded, of those that come at an interface.
#[derive(Clone, Debug)]
pub struct Transit {
    hardware: Arc<Hardware>,
    tags: Tags,
    local: Addresses,
}

impl Transit {
    /// The choice at an interface of this hardware address.
    pub(super) const fn new(hardware: Arc<Hardware>, tags: Tags, local: Addresses) -> Self {
        Self { hardware, tags, local }
    }

    /// The choice as it is now, for many frames.
    pub(super) fn now(&self) -> Now<'_> {
        // A set that a thread left in a panic is still a set.
        let local = self.local.read().unwrap_or_else(PoisonError::into_inner);
        Now { mac: self.hardware.mac(), tags: self.tags, local }
    }

    /// Whether a frame is to be forwarded.
    #[must_use]
    pub fn forwards(&self, frame: &[u8]) -> bool {
        self.now().forwards(frame)
    }
}

/// A choice that doesn't change as long as this is kept.
pub(super) struct Now<'t> {
    mac: [u8; 6],
    tags: Tags,
    local: RwLockReadGuard<'t, HashSet<[u8; 16]>>,
}

impl Now<'_> {
    /// Whether a frame is to be forwarded.
    pub(super) fn forwards(&self, frame: &[u8]) -> bool {
        let Some((destination, packet)) = self.packet(frame) else { return false };
        destination == self.mac && unicast(packet).is_some_and(|address| !self.local.contains(&address))
    }

    /// The destination's hardware address, and what follows the tags: EtherType and packet.
    fn packet<'f>(&self, frame: &'f [u8]) -> Option<([u8; 6], &'f [u8])> {
        let destination = *frame.first_chunk::<6>()?;
        let mut rest = frame.get(12..)?;
        if self.tags == Tags::Forward {
            for _ in 0..2 {
                if let [0x81, 0x00, ..] | [0x88, 0xa8, ..] = rest {
                    rest = rest.get(4..)?;
                }
            }
        }
        Some((destination, rest))
    }
}

/// The destination of a packet behind its EtherType, if it is an address that packets are forwarded to.
fn unicast(packet: &[u8]) -> Option<[u8; 16]> {
    match packet {
        [0x08, 0x00, ip @ ..] => {
            let destination = *ip.first_chunk::<20>()?.last_chunk::<4>()?;
            let is_good = ip[0] >> 4 == 4 && destination[0] < 224;
            is_good.then(|| mapped(IpAddr::from(destination)))
        }
        [0x86, 0xdd, ip @ ..] => {
            let destination = *ip.first_chunk::<40>()?.last_chunk::<16>()?;
            let is_link_local = destination[0] == 0xfe && destination[1] & 0xc0 == 0x80;
            (ip[0] >> 4 == 6 && destination[0] != 0xff && !is_link_local).then_some(destination)
        }
        _ => None,
    }
}

/// An address as the key of a table for both families.
pub(super) fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
    .octets()
}
