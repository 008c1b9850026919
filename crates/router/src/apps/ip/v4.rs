//! IPv4: the checks before a packet is looked up, and the changes when it is forwarded (RFC 1812).

use wirespeed::V4;

use super::options;
use crate::checksum::{self, with_hop_less};
use crate::header::{ETHERNET, IPV4, be16};
use crate::{Hop, Reason, Verdict, narrow};

/// What the checks say of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// The packet is to be looked up.
    LookUp(V4),
    /// The packet is decided.
    Decided(Verdict),
    /// An option has no meaning: dropped, and the sender is told the byte of the header.
    BadOption(u8),
}

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// Whether an address can be the source of a forwarded packet, or its destination where it is no group: not
/// 0.0.0.0/8, 127.0.0.0/8, a group, or one that is reserved (RFC 1812, 5.3.7).
#[inline]
pub(super) const fn is_unicast(address: u32) -> bool {
    let first = address >> 24;
    (first.wrapping_sub(1) < 223) & (first != 127)
}

/// The address that a packet comes from.
#[inline]
pub(super) fn source(packet: &[u8]) -> u32 {
    address(packet, 12)
}

#[inline]
fn address(packet: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]])
}

/// Bytes of Ethernet and of an IPv4 header without options.
pub(super) const PLAIN: usize = ETHERNET + IPV4;

/// Checks a frame of the most usual kind: untagged, IPv4 without options, between two hosts. `None` says that
/// it is of another kind, or wrong; [`check`] tells.
#[inline]
pub(super) fn check_plain(bytes: &[u8; PLAIN], frame: usize) -> Option<V4> {
    let header = bytes.last_chunk::<IPV4>()?;
    let is_plain = (bytes[12..15] == [0x08, 0x00, 0x45]) & (bytes[0] & 1 == 0);
    let has_length = (IPV4..=frame - ETHERNET).contains(&usize::from(be16(header, 2)));
    let (source, destination) = (address(header, 12), address(header, 16));
    // Without branches between them: they nearly always hold together.
    let is_right =
        is_plain & has_length & checksum::is_right(header) & is_unicast(source) & is_unicast(destination);
    is_right.then_some(V4(destination))
}

/// Forwards such a frame by a next hop. `false` says that it can't be forwarded as it is: its time to live is
/// spent, or it is too large for the link.
#[inline]
pub(super) fn forward_plain(bytes: &mut [u8; PLAIN], hop: &Hop) -> bool {
    let hops = bytes[ETHERNET + 8];
    if (hops <= 1) | (be16(bytes, ETHERNET + 2) > hop.mtu()) {
        return false;
    }
    bytes[..12].copy_from_slice(hop.header());
    let [high, low] = with_hop_less(be16(bytes, ETHERNET + 10)).to_be_bytes();
    let changed = [hops - 1, bytes[ETHERNET + 9], high, low];
    bytes[ETHERNET + 8..ETHERNET + 12].copy_from_slice(&changed);
    true
}

/// Checks a packet that begins at its IPv4 header (RFC 1812, 5.2.2).
#[inline]
pub(super) fn check(packet: &[u8]) -> Checked {
    let drop = |reason| Checked::Decided(Verdict::Drop(reason));
    let Some(header) = packet.first_chunk::<IPV4>() else { return drop(Reason::Cut) };
    if header[0] != 0x45 {
        return check_longer(packet);
    }
    if !(IPV4..=packet.len()).contains(&usize::from(be16(header, 2))) {
        return drop(Reason::Length);
    }
    if !checksum::is_right(header) {
        return drop(Reason::Checksum);
    }
    by_address(header)
}

/// Checks a header with options, or one that is none.
#[cold]
fn check_longer(packet: &[u8]) -> Checked {
    let drop = |reason| Checked::Decided(Verdict::Drop(reason));
    if packet[0] >> 4 != 4 {
        return drop(Reason::Version);
    }
    let bytes = usize::from(packet[0] & 15) * 4;
    if bytes < IPV4 || !(bytes..=packet.len()).contains(&usize::from(be16(packet, 2))) {
        return drop(Reason::Length);
    }
    if checksum::sum(&packet[..bytes]) != 0xffff {
        return drop(Reason::Checksum);
    }
    match options::check(&packet[IPV4..bytes]) {
        options::Checked::Forward => by_address(packet),
        options::Checked::SourceRoute => drop(Reason::Options),
        options::Checked::RouterAlert => Checked::Decided(Verdict::Kernel),
        // At most 60: the length of a header.
        options::Checked::Bad(at) => Checked::BadOption(narrow::u8(IPV4 + at)),
    }
}

#[inline]
fn by_address(header: &[u8]) -> Checked {
    let (source, destination) = (address(header, 12), address(header, 16));
    if !is_unicast(source) {
        return Checked::Decided(not_unicast_source(source, destination));
    }
    if !is_unicast(destination) {
        let is_group = destination >> 28 >= 14;
        let verdict = if is_group { Verdict::Kernel } else { Verdict::Drop(Reason::Martian) };
        return Checked::Decided(verdict);
    }
    Checked::LookUp(V4(destination))
}

/// A host without an address sends from 0.0.0.0 to all: DHCP. Everything else is no source.
#[cold]
const fn not_unicast_source(source: u32, destination: u32) -> Verdict {
    if source == 0 && destination == u32::MAX { Verdict::Kernel } else { Verdict::Drop(Reason::Martian) }
}

/// Whether its time to live is spent, so that it can't be forwarded.
#[inline]
pub(super) fn is_expired(packet: &[u8]) -> bool {
    packet[8] <= 1
}

/// The bytes of the packet, without padding.
#[inline]
pub(in crate::apps) fn total_length(packet: &[u8]) -> u16 {
    be16(packet, 2)
}

/// The bytes of the header.
pub(in crate::apps) fn header_length(packet: &[u8]) -> usize {
    usize::from(packet[0] & 15) * 4
}

/// Whether it has options.
#[inline]
pub(super) fn has_options(packet: &[u8]) -> bool {
    packet[0] != 0x45
}

/// Whether it must not be cut.
pub(in crate::apps) fn dont_fragment(packet: &[u8]) -> bool {
    be16(packet, 6) & DONT_FRAGMENT != 0
}

/// Whether it is a fragment.
pub(super) fn is_fragment(packet: &[u8]) -> bool {
    be16(packet, 6) & (MORE_FRAGMENTS | OFFSET) != 0
}

/// Whether it is a fragment other than the first.
pub(super) fn is_later_fragment(packet: &[u8]) -> bool {
    be16(packet, 6) & OFFSET != 0
}

/// Takes one off the time to live, and changes the checksum with it.
///
/// The time to live must be 1 at the least.
#[inline]
pub(super) fn count_hop(packet: &mut [u8]) {
    let checksum = with_hop_less(be16(packet, 10));
    packet[8] -= 1;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Writes the checksum of the header anew.
pub(super) fn seal(packet: &mut [u8]) {
    let bytes = header_length(packet);
    packet[10..12].fill(0);
    let checksum = checksum::checksum(&packet[..bytes]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// The number of the packet's flow.
pub(super) fn flow(packet: &[u8]) -> u32 {
    let (protocol, bytes) = (packet[9], header_length(packet));
    // All fragments of a packet take one way, and only the first has ports.
    let has_ports = !is_fragment(packet) && matches!(protocol, 6 | 17 | 33 | 132 | 136);
    let ports = packet.get(bytes..bytes + 4).filter(|_| has_ports).map_or(0, |ports| address(ports, 0));
    crate::route::flow_hash(&packet[12..20], protocol, ports)
}

/// Cuts a packet: where the payload of each fragment lies, in units of bytes of the payload.
pub(in crate::apps) fn pieces(
    packet: &[u8],
    mtu: u16,
) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
    let header = header_length(packet);
    let payload = usize::from(total_length(packet)) - header;
    // Offsets count units of eight bytes.
    let each = (usize::from(mtu).saturating_sub(header) & !7).max(8);
    (0..payload).step_by(each).map(move |start| start..payload.min(start + each))
}

/// Makes the header of a fragment: that of a packet, for these bytes of its payload. Later fragments keep the
/// options that are to be copied.
pub(in crate::apps) fn fragment_header(packet: &[u8], piece: &std::ops::Range<usize>) -> Vec<u8> {
    let bytes = header_length(packet);
    let mut header = packet[..IPV4].to_vec();
    if piece.start == 0 {
        header.extend(&packet[IPV4..bytes]);
    } else {
        header.extend(options::copied(&packet[IPV4..bytes]));
    }
    let payload = usize::from(total_length(packet)) - bytes;
    let old = be16(packet, 6);
    let mut field = old & !OFFSET | ((old & OFFSET) + narrow::u16(piece.start / 8)) & OFFSET;
    if piece.end < payload {
        field |= MORE_FRAGMENTS;
    }
    // At most 60 bytes, and a length that is no larger than the packet's.
    header[0] = 0x40 | narrow::u8(header.len() / 4);
    let length = narrow::u16(header.len() + piece.len());
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header[6..8].copy_from_slice(&field.to_be_bytes());
    seal(&mut header);
    header
}
