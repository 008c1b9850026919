//! [`finish`]: checksums of TCP and UDP that a sender left to its hardware.
//!
//! A host may send a frame whose checksum field holds the sum of the pseudo header alone: the rest is for the
//! network card. Between virtual interfaces there is no card, so the frame comes with the sum unfinished. The
//! sum over the segment, with what the field holds, is what is missing.

use crate::checksum::{add, sum};
use crate::header::{TYPE_IPV4, TYPE_IPV6, network};

/// Finishes the checksum of a frame's TCP or UDP segment, as a network card would. Returns `false`, and
/// changes nothing, where there is none: another protocol, a fragment, a frame that is cut.
///
/// Tags and extension headers are passed over. The field must hold the pseudo header's sum, as the kernel
/// leaves it.
#[must_use]
pub(crate) fn finish(frame: &mut [u8]) -> bool {
    let Some((start, end, field)) = segment(frame) else { return false };
    let Some(bytes) = frame.get_mut(start..end).filter(|bytes| field + 2 <= bytes.len()) else {
        return false;
    };
    let sum = !sum(bytes);
    // A UDP checksum of 0 would say that there is none, so its other form is sent.
    let sum = if sum == 0 && field == UDP { 0xffff } else { sum };
    bytes[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

/// Finishes the checksum of a frame whose sender left it, as far as that shows: the field holds the sum of
/// the pseudo header. A right checksum that happens to have this value stays as it is, because the finished
/// sum is the same.
pub(crate) fn finish_if_left(frame: &mut [u8]) {
    if let Some((start, end, field)) = segment(frame)
        && let Some(held) = frame.get(start + field..start + field + 2)
        && let Some(pseudo) = pseudo_header(frame, end - start, field)
        && *held == pseudo.to_be_bytes()
    {
        // There is a segment, so it is finished.
        let _ = finish(frame);
    }
}

/// The sum of the pseudo header of a segment of this length: addresses, protocol and length.
fn pseudo_header(frame: &[u8], len: usize, field: usize) -> Option<u16> {
    let (kind, at) = network(frame).ok()?;
    let addresses = match kind {
        TYPE_IPV4 => frame.get(at + 12..at + 20)?,
        TYPE_IPV6 => frame.get(at + 8..at + 40)?,
        _ => return None,
    };
    let protocol = if field == TCP { 6 } else { 17 };
    Some(add(sum(addresses), add(u16::try_from(len).ok()?, protocol)))
}

/// Offset of the checksum in a TCP header.
const TCP: usize = 16;

/// Offset of the checksum in a UDP header.
const UDP: usize = 6;

/// The segment of a frame: its start, its end without padding, and the offset of its checksum field.
fn segment(frame: &[u8]) -> Option<(usize, usize, usize)> {
    let half = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let mut at = 12;
    for _ in 0..2 {
        if matches!(half(at)?, 0x8100 | 0x88a8) {
            at += 4;
        }
    }
    let start = at + 2;
    let (protocol, start, end) = match half(at)? {
        0x0800 => {
            let first = *frame.get(start)?;
            let is_fragment = half(start + 6)? & 0x3fff != 0;
            if first >> 4 != 4 || is_fragment {
                return None;
            }
            let header = usize::from(first & 15) * 4;
            (*frame.get(start + 9)?, start + header, start + usize::from(half(start + 2)?))
        }
        0x86dd => {
            let end = start + 40 + usize::from(half(start + 4)?);
            let (mut next, mut at) = (*frame.get(start + 6)?, start + 40);
            // Hop-by-hop options, routing, destination options: each says the next, and its own length.
            while matches!(next, 0 | 43 | 60) {
                let header = (usize::from(*frame.get(at + 1)?) + 1) * 8;
                (next, at) = (*frame.get(at)?, at + header);
            }
            (next, at, end)
        }
        _ => return None,
    };
    let field = match protocol {
        6 => TCP,
        17 => UDP,
        _ => return None,
    };
    (start < end && end <= frame.len()).then_some((start, end, field))
}

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, TcpHeader};
    use proptest::prelude::*;

    use super::*;

    /// The frame with its checksum unfinished: the sum of the pseudo header is in the field.
    fn unfinished(frame: &[u8], addresses: std::ops::Range<usize>, field: usize, protocol: u8) -> Vec<u8> {
        let mut frame = frame.to_vec();
        let start = field - if protocol == 6 { 16 } else { 6 };
        let length = u16::try_from(frame.len() - start).unwrap();
        let pseudo: Vec<u8> = [&frame[addresses], &[0, protocol], &length.to_be_bytes()].concat();
        frame[field..field + 2].copy_from_slice(&sum(&pseudo).to_be_bytes());
        frame
    }

    fn tcp() -> TcpHeader {
        TcpHeader::new(1, 2, 3, 4)
    }

    proptest! {
        #[test]
        fn finishes_what_another_writer_of_frames_finishes(payload in prop::collection::vec(any::<u8>(), 0..99)) {
            let ethernet = || PacketBuilder::ethernet2([1; 6], [2; 6]);
            let v4 = || ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9);
            let v6 = || ethernet().ipv6([1; 16], [2; 16], 9);
            let tagged = || ethernet().single_vlan(5.try_into().unwrap()).ipv4([1; 4], [2; 4], 9);
            let mut cases = Vec::new();
            let mut add = |write: &dyn Fn(&mut Vec<u8>), addresses, field, protocol| {
                let mut frame = Vec::new();
                write(&mut frame);
                cases.push((frame, addresses, field, protocol));
            };
            add(&|f| v4().tcp_header(tcp()).write(f, &payload).unwrap(), 26..34, 34 + 16, 6);
            add(&|f| v4().udp(7, 8).write(f, &payload).unwrap(), 26..34, 34 + 6, 17);
            add(&|f| v6().tcp_header(tcp()).write(f, &payload).unwrap(), 22..54, 54 + 16, 6);
            add(&|f| v6().udp(7, 8).write(f, &payload).unwrap(), 22..54, 54 + 6, 17);
            add(&|f| tagged().udp(7, 8).write(f, &payload).unwrap(), 30..38, 38 + 6, 17);
            for (frame, addresses, field, protocol) in cases {
                let mut other = unfinished(&frame, addresses, field, protocol);
                // Padding behind the packet is no part of the sum.
                other.extend([9; 3]);
                prop_assert!(finish(&mut other));
                prop_assert_eq!(&other[..frame.len()], &frame[..]);
            }
        }

        #[test]
        fn stands_any_bytes(mut frame in prop::collection::vec(any::<u8>(), 0..99), kind in 0..3) {
            if let (Some(place), 1..) = (frame.get_mut(12..15), kind) {
                place.copy_from_slice(if kind == 1 { &[8, 0, 0x45] } else { &[0x86, 0xdd, 0x60] });
            }
            let before = frame.clone();
            if !finish(&mut frame) {
                prop_assert_eq!(frame, before);
            }
        }
    }

    #[test]
    fn leaves_fragments_and_other_protocols() {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([1; 6], [2; 6])
            .ipv4([1; 4], [2; 4], 9)
            .icmpv4_echo_request(1, 1)
            .write(&mut frame, b"ping")
            .unwrap();
        assert!(!finish(&mut frame));
        frame[23] = 17;
        assert!(finish(&mut frame));
        frame[20] |= 0x20; // more fragments follow
        assert!(!finish(&mut frame));
    }
}
