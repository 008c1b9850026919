//! [`parse`]: the match fields of a frame, and where its headers lie.
//!
//! A header that is cut off, or that contradicts itself, ends the parse: its fields and those behind it are
//! 0. A switch must handle every frame, so no frame is an error.

use crate::wire::{Field, Key};

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;
const ARP: u16 = 0x0806;
const PBB: u16 = 0x88e7;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const SCTP: u8 = 132;
pub(crate) const ICMP: u8 = 1;
pub(crate) const ICMPV6: u8 = 58;
/// Extension headers that are followed before the parse ends.
const MOST_EXTENSIONS: usize = 16;

/// Where the headers of a frame lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The number of VLAN tags behind the addresses.
    pub(crate) tags: usize,
    /// The type behind the tags.
    pub(crate) ether: u16,
    /// Where the type is, and what follows it.
    pub(crate) ether_at: usize,
    /// The place behind the type.
    pub(crate) payload: usize,
    /// The IP header.
    pub(crate) ip: Option<Ip>,
    /// Whether an ARP packet for IPv4 over Ethernet is whole.
    pub(crate) is_arp: bool,
    /// Whether a first MPLS entry is whole.
    pub(crate) is_mpls: bool,
    /// Whether a header of provider backbone bridges is whole.
    pub(crate) is_pbb: bool,
}

/// An IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ip {
    pub(crate) at: usize,
    pub(crate) is_v6: bool,
    pub(crate) protocol: u8,
    /// The transport header, if it is there: not in later fragments.
    pub(crate) transport: Option<usize>,
    /// Whether more fragments of the packet follow.
    pub(crate) has_more: bool,
    /// The link-layer address of a neighbour discovery option.
    pub(crate) nd_address: Option<usize>,
}

pub(crate) const fn is_vlan(ether: u16) -> bool {
    matches!(ether, 0x8100 | 0x88a8)
}

pub(crate) const fn is_mpls(ether: u16) -> bool {
    matches!(ether, 0x8847 | 0x8848)
}

#[inline]
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline]
pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline]
fn be128(bytes: &[u8], at: usize) -> Option<u128> {
    Some(u128::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline]
pub(crate) fn be48(bytes: &[u8], at: usize) -> Option<u64> {
    let &[a, b, c, d, e, f] = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

/// The fields of a frame that came in on a port, and its layout. Fields that are no part of the frame are 0.
#[inline]
pub(crate) fn parse(frame: &[u8], in_port: u32) -> (Key, Layout) {
    let mut key = came_in(in_port);
    let layout = parse_to(frame, &mut key);
    (key, layout)
}

/// The fields of a packet that came in on a port before its frame is read.
#[inline]
pub(crate) fn came_in(in_port: u32) -> Key {
    let mut key = Key::default();
    key.0[0] = u64::from(in_port) << 32;
    key.0[7] = u64::from(in_port) << 32;
    key
}

/// Adds the fields of a frame to a key that has none of them, and returns its layout.
#[inline]
pub(crate) fn parse_to(frame: &[u8], key: &mut Key) -> Layout {
    let mut layout = Layout::default();
    let _ = link(frame, key, &mut layout);
    layout
}

#[inline]
fn link(frame: &[u8], key: &mut Key, layout: &mut Layout) -> Option<()> {
    let head: &[u8; 14] = frame.first_chunk()?;
    let high = u64::from_be_bytes(*head.first_chunk()?);
    let low = u64::from_be_bytes(*head[6..].first_chunk()?);
    key.0[1] = high & !0xffff;
    key.0[2] = low & !0xffff;
    #[allow(clippy::cast_possible_truncation)] // the lower half
    let mut ether = low as u16;
    let mut at = 14;
    layout.ether_at = 12;
    while is_vlan(ether) {
        let Some((tag, next)) = be16(frame, at).zip(be16(frame, at + 2)) else { break };
        if layout.tags == 0 {
            key.0[0] |= u64::from(tag & 0xfff | 0x1000);
            key.0[2] |= u64::from(tag >> 13) << 8;
        }
        layout.tags += 1;
        layout.ether_at = at + 2;
        ether = next;
        at += 4;
    }
    layout.payload = at;
    if ether < 0x600 {
        // A length: the type is that of the SNAP header behind it, if there is one.
        let snap = frame.get(at..at + 8).filter(|snap| snap.starts_with(&[0xaa, 0xaa, 3, 0, 0, 0]));
        ether = snap.and_then(|snap| be16(snap, 6)).filter(|&ether| ether >= 0x600).unwrap_or(0x05ff);
        if ether != 0x05ff {
            layout.ether_at = at + 6;
            layout.payload = at + 8;
        }
    }
    layout.ether = ether;
    key.0[0] |= u64::from(ether) << 16;
    match ether {
        IPV4 => ipv4(frame, key, layout),
        IPV6 => ipv6(frame, key, layout),
        ARP => arp(frame, key, layout),
        PBB => {
            let tag = be32(frame, layout.payload)?;
            be32(frame, layout.payload + 12)?;
            layout.is_pbb = true;
            key.set(Field::PbbIsid, u128::from(tag & 0xff_ffff));
            Some(())
        }
        _ if is_mpls(ether) => {
            let entry = be32(frame, layout.payload)?;
            layout.is_mpls = true;
            key.set(Field::MplsLabel, u128::from(entry >> 12));
            key.set(Field::MplsTc, u128::from(entry >> 9 & 7));
            key.set(Field::MplsBos, u128::from(entry >> 8 & 1));
            Some(())
        }
        _ => Some(()),
    }
}

#[inline]
fn ipv4(frame: &[u8], key: &mut Key, layout: &mut Layout) -> Option<()> {
    let at = layout.payload;
    let packet = frame.get(at..)?;
    let header: &[u8; 20] = packet.first_chunk()?;
    let len = usize::from(header[0] & 15) * 4;
    if header[0] >> 4 != 4 || len < 20 {
        return None;
    }
    let protocol = header[9];
    key.0[1] |= u64::from(protocol) << 8 | u64::from(header[1]);
    key.0[3] = u64::from_be_bytes(*header[12..].first_chunk()?);
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    let (is_later, has_more) = (fragment & 0x1fff != 0, fragment & 0x2000 != 0);
    let there = !is_later && packet.len() > len;
    let transport = there.then_some(at + len);
    layout.ip = Some(Ip { at, is_v6: false, protocol, transport, has_more, nd_address: None });
    transport_fields(frame, transport?, protocol, key)
}

/// The fields of ports, or of types and codes.
#[inline]
fn transport_fields(frame: &[u8], at: usize, protocol: u8, key: &mut Key) -> Option<()> {
    match protocol {
        TCP | UDP | SCTP => key.0[4] |= u64::from(be32(frame, at)?) << 32,
        ICMP | ICMPV6 => {
            let [kind, code] = be16(frame, at)?.to_be_bytes();
            key.0[4] |= u64::from(kind) << 16 | u64::from(code);
        }
        _ => {}
    }
    Some(())
}

fn arp(frame: &[u8], key: &mut Key, layout: &mut Layout) -> Option<()> {
    let packet = frame.get(layout.payload..)?;
    // Ethernet, IPv4, addresses of 6 and 4 bytes.
    if packet.len() < 28 || packet[..6] != [0, 1, 8, 0, 6, 4] {
        return None;
    }
    layout.is_arp = true;
    key.set(Field::ArpOp, be16(packet, 6)?.into());
    key.set(Field::ArpSha, be48(packet, 8)?.into());
    key.set(Field::ArpSpa, be32(packet, 14)?.into());
    key.set(Field::ArpTha, be48(packet, 18)?.into());
    key.set(Field::ArpTpa, be32(packet, 24)?.into());
    Some(())
}

fn ipv6(frame: &[u8], key: &mut Key, layout: &mut Layout) -> Option<()> {
    let at = layout.payload;
    let packet = frame.get(at..)?;
    let header: &[u8; 40] = packet.first_chunk()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let first = be32(header, 0)?;
    key.set(Field::IpDscp, (first >> 22 & 0x3f).into());
    key.set(Field::IpEcn, (first >> 20 & 3).into());
    key.set(Field::Ipv6Flabel, (first & 0xf_ffff).into());
    key.set(Field::Ipv6Src, be128(header, 8)?);
    key.set(Field::Ipv6Dst, be128(header, 24)?);
    let mut extensions = Extensions::default();
    let (mut next, mut offset, mut is_later, mut has_more) = (header[6], 40, false, false);
    for _ in 0..MOST_EXTENSIONS {
        extensions.see(next);
        let len = match next {
            0 | 43 | 60 => packet.get(offset + 1).map(|&len| usize::from(len) * 8 + 8),
            51 => packet.get(offset + 1).map(|&len| usize::from(len) * 4 + 8),
            44 => {
                let word = be16(packet, offset + 2).unwrap_or(0);
                is_later |= word & 0xfff8 != 0;
                has_more |= word & 1 != 0;
                Some(8)
            }
            _ => break,
        };
        let Some(len) = len.filter(|len| offset + len <= packet.len()) else { break };
        next = packet[offset];
        offset += len;
        if is_later {
            break;
        }
    }
    key.set(Field::IpProto, next.into());
    key.set(Field::Ipv6Exthdr, extensions.bits.into());
    let transport = (!is_later && packet.len() > offset).then_some(at + offset);
    layout.ip = Some(Ip { at, is_v6: true, protocol: next, transport, has_more, nd_address: None });
    transport_fields(frame, transport?, next, key)?;
    if next != ICMPV6 {
        return Some(());
    }
    let nd = frame.get(transport?..)?;
    let (wanted, field) = match nd.get(..2)? {
        [135, 0] => (1, Field::Ipv6NdSll),
        [136, 0] => (2, Field::Ipv6NdTll),
        _ => return Some(()),
    };
    key.set(Field::Ipv6NdTarget, be128(nd, 8)?);
    let mut option = 24;
    while let Some(&[kind, units]) = nd.get(option..).and_then(|rest| rest.first_chunk()) {
        if units == 0 {
            break;
        }
        if kind == wanted && units == 1 {
            key.set(field, be48(nd, option + 2)?.into());
            if let Some(ip) = &mut layout.ip {
                ip.nd_address = Some(transport? + option + 2);
            }
            break;
        }
        option += usize::from(units) * 8;
    }
    Some(())
}

/// The extension headers so far, as the bits of `OXM_OF_IPV6_EXTHDR`.
#[derive(Default)]
struct Extensions {
    bits: u16,
    furthest: u8,
    destinations: u8,
}

impl Extensions {
    fn see(&mut self, next: u8) {
        // The bit, and the place in the order of RFC 2460, 4.1.
        let (bit, place) = match next {
            59 => {
                self.bits |= 1;
                return;
            }
            50 => (1 << 1, 5),
            51 => (1 << 2, 4),
            60 => (1 << 3, if self.furthest < 2 { 1 } else { 6 }),
            44 => (1 << 4, 3),
            43 => (1 << 5, 2),
            0 => (1 << 6, 0),
            _ => return,
        };
        let may_repeat = next == 60 && self.destinations < 2;
        self.destinations += u8::from(next == 60);
        if self.bits & bit != 0 && !may_repeat {
            self.bits |= 1 << 7;
        }
        if place < self.furthest {
            self.bits |= 1 << 8;
        }
        self.furthest = self.furthest.max(place);
        self.bits |= bit;
    }
}
