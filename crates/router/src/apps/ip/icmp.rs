//! Errors that a router tells the sender of a packet: ICMP (RFC 792, RFC 1812, 4.3) and ICMPv6 (RFC 4443).

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::{v4, v6};
use crate::checksum::{add, checksum, sum};
use crate::header::{IPV4, IPV6, ipv4_addresses, ipv6_addresses, ipv6_payload};
use crate::narrow;

/// Why a packet was not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::apps) enum Fault {
    /// The time to live, or the hop limit, is spent.
    Expired,
    /// The packet is larger than this many bytes, which the next link takes.
    TooBig(u16),
    /// No route, or a route that says so.
    Unreachable,
    /// A route prohibits it.
    Prohibited,
    /// A byte of the header has no meaning (IPv4).
    BadHeader(u8),
    /// The source is of another link (IPv6).
    BeyondScope,
}

/// The most bytes of an ICMP error of IPv4 (RFC 1812, 4.3.2.3).
const MOST_V4: usize = 576;
/// The most bytes of an ICMPv6 error: the smallest MTU (RFC 4443, 2.4 c).
const MOST_V6: usize = 1280;
/// Bytes of a header of ICMP.
const ICMP: usize = 8;

const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_ICMPV6: u8 = 58;

/// Whether a packet may be answered with an error (RFC 1812, 4.3.2.7): no error of ICMP, no fragment other
/// than the first, no packet to a group, and none from what is no host.
pub(in crate::apps) fn may_answer_v4(packet: &[u8]) -> bool {
    let bytes = v4::header_length(packet);
    let is_error = packet[9] == PROTOCOL_ICMP
        && !packet.get(bytes).is_some_and(|kind| matches!(kind, 0 | 8 | 9 | 10 | 13..=18));
    let (from, to) = ipv4_addresses(packet);
    let is_to_group = to.is_multicast() || to.is_broadcast();
    v4::is_unicast(from.to_bits()) && !(is_error || v4::is_later_fragment(packet) || is_to_group)
}

/// Whether a packet may be answered with an error (RFC 4443, 2.4 e).
pub(in crate::apps) fn may_answer_v6(packet: &[u8], fault: Fault) -> bool {
    let packet = without_padding(packet);
    let Some(payload) = ipv6_payload(packet) else { return false };
    // A later fragment has no header of ICMP, and may be answered.
    let is_error = payload.protocol == PROTOCOL_ICMPV6
        && !payload.is_later_fragment
        && !packet.get(payload.at).is_some_and(|&kind| kind >= 128 && kind != 137);
    let (from, to) = ipv6_addresses(packet);
    // A group may be told of a packet that is too big: its sender has to find the size.
    let is_to_group = to.is_multicast() && !matches!(fault, Fault::TooBig(_));
    !(is_error || is_to_group || from.is_unspecified() || from.is_multicast())
}

/// Makes the packet that tells the sender of `packet`, from the router's own address.
pub(in crate::apps) fn error_v4(packet: &[u8], fault: Fault, own: Ipv4Addr) -> Vec<u8> {
    let (kind, code, field) = match fault {
        Fault::Expired => (11, 0, 0),
        Fault::TooBig(mtu) => (3, 4, u32::from(mtu)),
        Fault::Unreachable | Fault::BeyondScope => (3, 0, 0),
        Fault::Prohibited => (3, 13, 0),
        Fault::BadHeader(at) => (12, 0, u32::from(at) << 24),
    };
    let whole = usize::from(v4::total_length(packet)).min(packet.len());
    let quoted = &packet[..whole.min(MOST_V4 - IPV4 - ICMP)];
    let mut answer = vec![0; IPV4 + ICMP];
    answer.extend(quoted);
    // Precedence 6, internetwork control (RFC 1812, 4.3.2.5).
    (answer[0], answer[1], answer[8], answer[9]) = (0x45, 0xc0, 64, PROTOCOL_ICMP);
    let length = narrow::u16(answer.len());
    answer[2..4].copy_from_slice(&length.to_be_bytes());
    answer[12..16].copy_from_slice(&own.octets());
    answer[16..20].copy_from_slice(&packet[12..16]);
    answer[IPV4] = kind;
    answer[IPV4 + 1] = code;
    answer[IPV4 + 4..IPV4 + 8].copy_from_slice(&field.to_be_bytes());
    let sum = checksum(&answer[IPV4..]);
    answer[IPV4 + 2..IPV4 + 4].copy_from_slice(&sum.to_be_bytes());
    v4::seal(&mut answer);
    answer
}

/// Makes the packet that tells the sender of `packet`, from the router's own address.
pub(in crate::apps) fn error_v6(packet: &[u8], fault: Fault, own: Ipv6Addr) -> Vec<u8> {
    let (kind, code, field) = match fault {
        Fault::Expired => (3, 0, 0),
        Fault::TooBig(mtu) => (2, 0, u32::from(mtu)),
        Fault::Unreachable => (1, 0, 0),
        Fault::Prohibited => (1, 1, 0),
        Fault::BadHeader(at) => (4, 0, u32::from(at)),
        Fault::BeyondScope => (1, 2, 0),
    };
    let whole = without_padding(packet);
    let quoted = &whole[..whole.len().min(MOST_V6 - IPV6 - ICMP)];
    let mut answer = vec![0; IPV6 + ICMP];
    answer.extend(quoted);
    (answer[0], answer[6], answer[7]) = (0x60, PROTOCOL_ICMPV6, 64);
    let payload = narrow::u16(answer.len() - IPV6);
    answer[4..6].copy_from_slice(&payload.to_be_bytes());
    answer[8..24].copy_from_slice(&own.octets());
    answer[24..40].copy_from_slice(&packet[8..24]);
    answer[IPV6] = kind;
    answer[IPV6 + 1] = code;
    answer[IPV6 + 4..IPV6 + 8].copy_from_slice(&field.to_be_bytes());
    // The pseudo-header: addresses, length and protocol (RFC 8200, 8.1).
    let pseudo = add(sum(&answer[8..40]), add(payload, u16::from(PROTOCOL_ICMPV6)));
    let sum = !add(pseudo, sum(&answer[IPV6..]));
    answer[IPV6 + 2..IPV6 + 4].copy_from_slice(&sum.to_be_bytes());
    answer
}

/// An IPv6 packet without the padding of its link behind it.
fn without_padding(packet: &[u8]) -> &[u8] {
    &packet[..v6::total_length(packet).min(packet.len())]
}

/// A limit on the rate of errors: a bucket of tokens (RFC 1812, 4.3.2.8; RFC 4443, 2.4 f).
#[derive(Debug)]
pub(in crate::apps) struct Limit {
    per_second: u32,
    /// The tokens that there are, and the time for which they were counted.
    tokens: u32,
    counted: Option<Instant>,
}

impl Limit {
    /// Allows this many errors a second, and a tenth of them at once.
    pub(in crate::apps) const fn new(per_second: u32) -> Self {
        Self { per_second, tokens: 0, counted: None }
    }

    /// Takes a token. Returns whether there was one.
    pub(in crate::apps) fn take(&mut self, now: Instant) -> bool {
        let most = (self.per_second / 10).max(1);
        match self.counted {
            None => (self.tokens, self.counted) = (most, Some(now)),
            Some(counted) => {
                let passed = now.saturating_duration_since(counted);
                let new = passed.as_micros() * u128::from(self.per_second) / 1_000_000;
                let new = u32::try_from(new).unwrap_or(u32::MAX).min(most);
                if new > 0 {
                    self.tokens = (self.tokens + new).min(most);
                    let spent = u64::from(new) * 1_000_000 / u64::from(self.per_second);
                    let counted = counted + Duration::from_micros(spent);
                    self.counted = Some(if new == most { now } else { counted });
                }
            }
        }
        let is_there = self.tokens > 0 && self.per_second > 0;
        self.tokens -= u32::from(is_there);
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_of_the_link_is_no_part_of_a_packet() {
        // No next header, and no payload: Ethernet pads it to 46 bytes.
        let mut packet = vec![0; IPV6];
        (packet[0], packet[6], packet[7], packet[8], packet[24]) = (0x60, 59, 1, 0x20, 0x20);
        let own = Ipv6Addr::LOCALHOST;
        let bare = error_v6(&packet, Fault::Expired, own);
        assert_eq!(bare.len(), 2 * IPV6 + ICMP);
        let padded = [&packet[..], &[0; 6]].concat();
        assert_eq!(error_v6(&padded, Fault::Expired, own), bare);
        // Fragment headers reach into the padding, so nobody knows what the packet is.
        packet[6] = 44;
        assert!(!may_answer_v6(&[&packet[..], &[59, 0, 0, 0, 0, 0, 0, 0]].concat(), Fault::Expired));
    }

    #[test]
    fn errors_come_at_the_rate_that_is_allowed() {
        let start = Instant::now();
        let mut limit = Limit::new(100);
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!((0..50).filter(|_| limit.take(at(0))).count(), 10);
        assert_eq!((0..50).filter(|_| limit.take(at(5))).count(), 0);
        assert_eq!((0..50).filter(|_| limit.take(at(12))).count(), 1);
        assert_eq!((0..1000).filter(|&ms| limit.take(at(20 + ms))).count() / 5, 20);
        assert_eq!((0..50).filter(|_| limit.take(at(900_000))).count(), 10);
        assert!(!Limit::new(0).take(at(1)));
    }
}
