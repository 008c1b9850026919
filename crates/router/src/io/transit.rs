//! [`Takes`]: which frames of an interface an application takes. [`Transit`]: the choice at an interface. The
//! program in the kernel decides by the same rules, and a test compares both.
//!
//! A frame is transit if all of this holds.
//!
//! 1. It is to the interface's hardware address.
//! 2. It holds an IPv4 or IPv6 packet whose fixed header is there whole, with the right version. Up to two
//!    VLAN tags may stand before it, if tags are to be forwarded.
//! 3. Its destination is not multicast, reserved or limited to the link: IPv4 below 224.0.0.0, IPv6 outside
//!    of ff00::/8 and fe80::/10.
//! 4. Its destination is no address of the router.
//!
//! The kernel has every other frame. So ARP, neighbour discovery, routing protocols and logins to the router
//! go on as without it. TTLs, checksums and options are the forwarder's, since it has to answer.
//!
//! A gateway of tunnels also takes what is to an address of the router if it is ESP: protocol 50, or UDP to a
//! port of tunnels. The protocol stands in the fixed header, or for 50 in a fragment header of IPv6 behind
//! it. What is in UDP is no later fragment, and behind no options. A forwarder of names takes Interests, and
//! Data if it knows who asked, and a switch takes every frame.

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

/// The frames of an interface that an application takes. The kernel has all others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Takes {
    /// IP packets that are to be forwarded.
    Transit(Tags),
    /// Transit, and ESP packets to addresses of the router: of protocol 50, and in UDP to these ports.
    Tunnels(Tags, Vec<u16>),
    /// Interests of NDN, and its link packets: untagged frames of type 0x8624 to the interface or to a group,
    /// and UDP datagrams to port 6363 in one frame to the interface, behind a header without options. Data
    /// stays the kernel's.
    Interests,
    /// Interests as before, and Data of NDN in untagged frames of type 0x8624. Data in UDP stays the
    /// kernel's, which takes it to who asked by its IP address.
    InterestsAndData,
    /// Every frame, whatever it is and whoever it is for.
    All,
}

impl Default for Takes {
    fn default() -> Self {
        Self::Transit(Tags::default())
    }
}

impl From<Tags> for Takes {
    fn from(tags: Tags) -> Self {
        Self::Transit(tags)
    }
}

impl Takes {
    /// What happens to frames behind VLAN tags.
    pub(super) const fn tags(&self) -> Tags {
        match self {
            Self::Transit(tags) | Self::Tunnels(tags, _) => *tags,
            Self::Interests | Self::InterestsAndData => Tags::Kernel,
            Self::All => Tags::Forward,
        }
    }
}

/// The protocol numbers of UDP, ESP, and a fragment header of IPv6.
pub(super) const UDP: u8 = 17;
pub(super) const FRAGMENT: u8 = 44;
pub(super) const ESP: u8 = 50;
/// The EtherType of NDN, and its UDP port.
pub(super) const TYPE_NDN: [u8; 2] = [0x86, 0x24];
pub(super) const PORT_NDN: u16 = 6363;
/// The types of packets of NDN that are taken: Interests, link packets, and Data.
pub(super) const INTEREST: u8 = 0x05;
pub(super) const CONTENT: u8 = 0x06;
pub(super) const LINK_PACKET: u8 = 0x64;

/// The choice of the frames that are taken, of those that come at an interface.
#[derive(Clone, Debug)]
pub struct Transit {
    hardware: Arc<Hardware>,
    takes: Takes,
    local: Addresses,
}

impl Transit {
    /// The choice at an interface of this hardware address.
    pub(super) const fn new(hardware: Arc<Hardware>, takes: Takes, local: Addresses) -> Self {
        Self { hardware, takes, local }
    }

    /// The choice as it is now, for many frames.
    pub(super) fn now(&self) -> Now<'_> {
        // A set that a thread left in a panic is still a set.
        let local = self.local.read().unwrap_or_else(PoisonError::into_inner);
        Now { mac: self.hardware.mac(), takes: &self.takes, local }
    }

    /// Whether a frame is taken.
    #[must_use]
    pub fn forwards(&self, frame: &[u8]) -> bool {
        self.now().forwards(frame)
    }
}

/// A choice that doesn't change as long as this is kept.
pub(super) struct Now<'t> {
    mac: [u8; 6],
    takes: &'t Takes,
    local: RwLockReadGuard<'t, HashSet<[u8; 16]>>,
}

impl Now<'_> {
    /// Whether a frame is taken.
    pub(super) fn forwards(&self, frame: &[u8]) -> bool {
        let ports = match self.takes {
            Takes::All => return true,
            Takes::Interests => return self.is_interest(frame, false),
            Takes::InterestsAndData => return self.is_interest(frame, true),
            Takes::Transit(_) => None,
            Takes::Tunnels(_, ports) => Some(ports),
        };
        let Some((destination, packet)) = self.packet(frame) else { return false };
        let Some(address) = unicast(packet).filter(|_| destination == self.mac) else { return false };
        !self.local.contains(&address) || ports.is_some_and(|ports| is_esp(packet, ports))
    }

    /// Whether a frame has an Interest of NDN, or a link packet, or Data if that is taken, too.
    fn is_interest(&self, frame: &[u8], takes_data: bool) -> bool {
        let Some((destination, packet)) = self.packet(frame) else { return false };
        let (is_own, is_group) = (destination == self.mac, destination[0] & 1 == 1);
        let payload = match packet {
            [0x86, 0x24, CONTENT, ..] if is_own || is_group => return takes_data,
            [0x86, 0x24, payload @ ..] if is_own || is_group => Some(payload),
            [0x08, 0x00, 0x45, ip @ ..] if is_own => {
                let is_udp = matches!(ip.get(8), Some(&UDP));
                let is_whole = matches!(ip.get(5..7), Some([flags, 0]) if flags & 0x3f == 0);
                ip.get(19..).filter(|_| is_udp && is_whole).and_then(datagram)
            }
            [0x86, 0xdd, ip @ ..] if is_own => {
                let is_udp = matches!(ip, [first, _, _, _, _, _, UDP, ..] if first >> 4 == 6);
                ip.get(40..).filter(|_| is_udp).and_then(datagram)
            }
            _ => None,
        };
        matches!(payload, Some([INTEREST | LINK_PACKET, ..]))
    }

    /// The destination's hardware address, and what follows the tags: EtherType and packet.
    fn packet<'f>(&self, frame: &'f [u8]) -> Option<([u8; 6], &'f [u8])> {
        let destination = *frame.first_chunk::<6>()?;
        let mut rest = frame.get(12..)?;
        if self.takes.tags() == Tags::Forward {
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

/// The payload of a UDP datagram to the port of NDN.
fn datagram(udp: &[u8]) -> Option<&[u8]> {
    let is_ndn = udp.get(2..4)? == PORT_NDN.to_be_bytes();
    udp.get(8..).filter(|_| is_ndn)
}

/// Whether a packet behind its EtherType, whose fixed header is there, has ESP: itself, or in UDP to a port.
fn is_esp(packet: &[u8], ports: &[u16]) -> bool {
    let (kind, ip) = packet.split_at(2);
    let (protocol, header, may_have_port) = match kind {
        [0x08, 0x00] => (ip[9], 20, ip[0] & 15 == 5 && [ip[6] & 0x1f, ip[7]] == [0, 0]),
        _ => (ip[6], 40, true),
    };
    let port = || Some(u16::from_be_bytes(*ip.get(header..header + 8)?.get(2..)?.first_chunk()?));
    let has_fragment = || kind != [0x08, 0x00] && protocol == FRAGMENT && ip.len() >= 48 && ip[40] == ESP;
    protocol == ESP
        || has_fragment()
        || (protocol == UDP && may_have_port && port().is_some_and(|port| ports.contains(&port)))
}

/// An address as the key of a table for both families.
pub(super) fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
    .octets()
}
