//! [`Fragments`]: ESP packets that came in fragments, put together (RFC 791, 3.2; RFC 8200, 4.5).
//!
//! ```text
//! fragment ─► addresses, identification ─► Parts: offset ─► bytes … ─ no gap left ─► the whole packet
//! ```
//!
//! Memory and time are bounded, because anybody can send fragments: the oldest packet gives way to a new one.
//! A packet whose fragments overlap is given up (RFC 5722), and so is one of more than [`MOST_PARTS`]
//! fragments.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::ip::{self, Family, Header, IPV6, be16, be32};
use crate::narrow;

/// The most packets that wait for fragments.
const MOST_PACKETS: usize = 1024;
/// The most bytes of fragments that wait.
const MOST_BYTES: usize = 4 << 20;
/// The most fragments of a packet.
const MOST_PARTS: usize = 64;
/// The time that a packet waits for its fragments. Linux waits as long.
const WAITS: Duration = Duration::from_secs(30);

/// Fragments of ESP packets that wait for others.
#[derive(Debug, Default)]
pub struct Fragments {
    packets: FxHashMap<Key, Parts>,
    /// The packets in the order in which their first fragments came, with some that do not wait any more.
    order: VecDeque<(u64, Key)>,
    next: u64,
    bytes: usize,
    given_up: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    src: IpAddr,
    dst: IpAddr,
    protocol: u8,
    id: u32,
}

/// The fragments of a packet.
#[derive(Debug)]
struct Parts {
    number: u64,
    began: Instant,
    /// Where each begins in the payload, and its bytes.
    parts: Vec<(usize, Vec<u8>)>,
    /// The header of the whole packet, from its first fragment.
    header: Option<Vec<u8>>,
    /// Where the last one ends.
    end: Option<usize>,
    /// The congestion fields that came, a bit each.
    congestion: u8,
}

/// A fragment as it came.
struct Part<'p> {
    key: Key,
    family: Family,
    congestion: u8,
    /// Bytes before the payload, and the payload.
    header: &'p [u8],
    payload: &'p [u8],
    offset: usize,
    is_last: bool,
}

impl<'p> Part<'p> {
    /// Reads a packet. `None` if it is no fragment that can be used.
    fn read(packet: &'p [u8]) -> Option<Self> {
        let Header { family, len, class, .. } = Header::read(packet)?;
        let packet = &packet[..len];
        let (bytes, field, protocol, id) = match family {
            Family::V4 => {
                (usize::from(packet[0] & 15) * 4, be16(packet, 6), packet[9], be16(packet, 4).into())
            }
            Family::V6 => {
                let header = packet.get(IPV6..IPV6 + ip::FRAGMENT_HEADER)?;
                (IPV6 + ip::FRAGMENT_HEADER, be16(header, 2), header[0], be32(header, 4))
            }
        };
        // IPv4 counts units of eight bytes in 13 bits. IPv6 has the same number shifted by three.
        let (offset, has_more) = match family {
            Family::V4 => (usize::from(field & 0x1fff) * 8, field & 0x2000 != 0),
            Family::V6 => (usize::from(field & !7), field & 1 != 0),
        };
        let (header, payload) = packet.split_at(bytes);
        let is_right = !payload.is_empty() && (!has_more || payload.len() % 8 == 0);
        let fits = bytes + offset + payload.len() <= u16::MAX.into();
        let key = Key { src: ip::source(packet, family), dst: ip::destination(packet, family), protocol, id };
        let congestion = class & 3;
        (is_right && fits).then_some(Self {
            key,
            family,
            congestion,
            header,
            payload,
            offset,
            is_last: !has_more,
        })
    }
}

impl Fragments {
    /// Takes a fragment, which begins at its IP header. Returns the whole packet if no other fragment of it
    /// is missing.
    pub fn take(&mut self, packet: &[u8], now: Instant) -> Option<Vec<u8>> {
        self.make_room(now);
        let part = Part::read(packet)?;
        let (key, next) = (part.key, self.next);
        let parts = self.packets.entry(key).or_insert_with(|| Parts::new(next, now));
        if parts.number == next {
            self.next += 1;
            self.order.push_back((next, key));
        }
        let before = parts.bytes();
        let is_right = parts.add(&part);
        self.bytes += parts.bytes() - before;
        if !is_right {
            self.give_up(&key);
            return None;
        }
        if !parts.are_all() {
            return None;
        }
        let parts = self.packets.remove(&key)?;
        self.bytes -= parts.bytes();
        let whole = parts.whole(part.family);
        self.given_up += u64::from(whole.is_none());
        whole
    }

    /// Whether other fragments of a fragment's packet wait.
    #[must_use]
    pub fn have_others_of(&self, packet: &[u8]) -> bool {
        Part::read(packet).is_some_and(|part| self.packets.contains_key(&part.key))
    }

    /// The packets that were given up since the last call.
    pub const fn take_given_up(&mut self) -> u64 {
        std::mem::replace(&mut self.given_up, 0)
    }

    /// Gives packets up that wait for too long, and the oldest ones where there are too many.
    fn make_room(&mut self, now: Instant) {
        while let Some(&(number, key)) = self.order.front() {
            let waits = self.packets.get(&key).filter(|parts| parts.number == number);
            if let Some(parts) = waits {
                let is_late = now.saturating_duration_since(parts.began) >= WAITS;
                // A packet of the most bytes has to find a place.
                let is_full =
                    self.packets.len() >= MOST_PACKETS || self.bytes + usize::from(u16::MAX) > MOST_BYTES;
                if !is_late && !is_full {
                    break;
                }
                self.give_up(&key);
            }
            self.order.pop_front();
        }
        if self.order.len() > 2 * MOST_PACKETS {
            let packets = &self.packets;
            self.order.retain(|(number, key)| packets.get(key).is_some_and(|parts| parts.number == *number));
        }
    }

    fn give_up(&mut self, key: &Key) {
        if let Some(parts) = self.packets.remove(key) {
            self.bytes -= parts.bytes();
            self.given_up += 1;
        }
    }
}

impl Parts {
    const fn new(number: u64, began: Instant) -> Self {
        Self { number, began, parts: Vec::new(), header: None, end: None, congestion: 0 }
    }

    fn bytes(&self) -> usize {
        self.parts.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Adds a fragment. Returns `false` if it contradicts others.
    fn add(&mut self, part: &Part<'_>) -> bool {
        let stop = part.offset + part.payload.len();
        let overlaps = |(at, bytes): &&(usize, Vec<u8>)| *at < stop && part.offset < at + bytes.len();
        if let Some((at, bytes)) = self.parts.iter().find(overlaps) {
            // One that the network doubled is no other one.
            return *at == part.offset && bytes == part.payload;
        }
        let is_behind_end = self.end.is_some_and(|end| stop > end || part.is_last);
        let ends_before = part.is_last && self.parts.iter().any(|(at, bytes)| at + bytes.len() > stop);
        if is_behind_end || ends_before || self.parts.len() == MOST_PARTS {
            return false;
        }
        if part.is_last {
            self.end = Some(stop);
        }
        if part.offset == 0 {
            self.header = Some(part.header.to_vec());
        }
        self.congestion |= 1 << part.congestion;
        self.parts.push((part.offset, part.payload.to_vec()));
        true
    }

    fn are_all(&self) -> bool {
        // None overlaps another one, or lies behind the end.
        self.header.is_some() && self.end == Some(self.bytes())
    }

    /// The whole packet. `None` if its congestion fields contradict each other (RFC 3168, 5.3).
    fn whole(mut self, family: Family) -> Option<Vec<u8>> {
        const CONGESTED: u8 = 3;
        let mut packet = self.header?;
        if family == Family::V6 {
            packet[6] = packet[IPV6];
            packet.truncate(IPV6);
        }
        let header = packet.len();
        self.parts.sort_unstable_by_key(|&(at, _)| at);
        self.parts.iter().for_each(|(_, bytes)| packet.extend(bytes));
        // `Part::read` has seen that it fits.
        match family {
            Family::V4 => {
                let len = narrow::u16(packet.len());
                packet[2..4].copy_from_slice(&len.to_be_bytes());
                packet[6..8].fill(0);
                packet[10..12].fill(0);
                let sum = wirespeed_checksum::checksum(&packet[..header]);
                packet[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            Family::V6 => {
                let len = narrow::u16(packet.len() - IPV6);
                packet[4..6].copy_from_slice(&len.to_be_bytes());
            }
        }
        let is_congested = self.congestion & 1 << CONGESTED != 0;
        if is_congested && self.congestion & 1 != 0 {
            return None;
        }
        if is_congested {
            ip::set_congestion(&mut packet, family, CONGESTED);
        }
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of ESP, whose payload is a pattern, and the fragments of so many bytes of it.
    #[allow(clippy::cast_possible_truncation)] // lengths of packets, and bytes of a pattern
    fn cut(is_v6: bool, id: u8, len: usize, each: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
        let payload: Vec<u8> = (0..len).map(|at| (at * 7 % 251) as u8).collect();
        let header = |len: usize, offset: usize, has_more: bool, is_whole: bool| {
            if is_v6 {
                let len = if is_whole { len } else { len + 8 };
                let mut header =
                    vec![0x60, 0, 0, 0, (len >> 8) as u8, len as u8, if is_whole { 50 } else { 44 }, 9];
                header.extend([0x20; 16]);
                header.extend([0x30; 16]);
                if !is_whole {
                    let [high, low] = (offset as u16 | u16::from(has_more)).to_be_bytes();
                    header.extend([50, 0, high, low, 0, 0, 0, id]);
                }
                header
            } else {
                let [high, low] = (20 + len as u16).to_be_bytes();
                let mut header =
                    vec![0x45, 0, high, low, 0, id, 0, 0, 9, 50, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
                let field = (offset as u16 / 8) | (u16::from(has_more) << 13);
                header[6..8].copy_from_slice(&field.to_be_bytes());
                let sum = wirespeed_checksum::checksum(&header);
                header[10..12].copy_from_slice(&sum.to_be_bytes());
                header
            }
        };
        let whole = [header(len, 0, false, true), payload.clone()].concat();
        let parts = payload.chunks(each).enumerate().map(|(at, part)| {
            let offset = at * each;
            [header(part.len(), offset, offset + part.len() < len, false), part.to_vec()].concat()
        });
        (whole, parts.collect())
    }

    #[test]
    fn fragments_in_any_order_make_the_packet() {
        let now = Instant::now();
        for is_v6 in [false, true] {
            for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
                let (whole, parts) = cut(is_v6, 1, 100, 40);
                let (other, other_parts) = cut(is_v6, 2, 77, 40);
                let mut fragments = Fragments::default();
                assert!(!fragments.have_others_of(&parts[0]));
                for at in &order[..2] {
                    assert_eq!(fragments.take(&parts[*at], now), None);
                    // One that comes twice changes nothing.
                    assert_eq!(fragments.take(&parts[*at], now), None);
                }
                assert!(fragments.have_others_of(&parts[0]) && !fragments.have_others_of(&other_parts[0]));
                assert_eq!(fragments.take(&other_parts[1], now), None);
                assert_eq!(fragments.take(&parts[order[2]], now), Some(whole));
                assert_eq!(fragments.take(&other_parts[0], now), Some(other));
                assert_eq!((fragments.bytes, fragments.packets.len(), fragments.given_up), (0, 0, 0));
            }
        }
    }

    #[test]
    fn overlaps_and_wrong_ends_give_a_packet_up() {
        let now = Instant::now();
        for is_v6 in [false, true] {
            let (_, parts) = cut(is_v6, 1, 100, 40);
            let (_, others) = cut(is_v6, 1, 100, 48);
            let (_, shorter) = cut(is_v6, 1, 60, 40);
            let (_, shortest) = cut(is_v6, 1, 32, 40);
            let mut changed = parts[0].clone();
            *changed.last_mut().unwrap() ^= 1;
            for (one, other) in [
                (&parts[1], &others[0]),
                (&others[0], &parts[1]),
                (&parts[0], &changed),
                // Behind the end, and an end that lies before.
                (&shorter[1], &parts[2]),
                (&parts[2], &shorter[1]),
                (&parts[1], &shortest[0]),
            ] {
                let mut fragments = Fragments::default();
                assert_eq!(fragments.take(one, now), None);
                assert_eq!(fragments.take(other, now), None);
                assert_eq!((fragments.bytes, fragments.packets.len()), (0, 0));
                assert_eq!((fragments.take_given_up(), fragments.take_given_up()), (1, 0));
            }
            // Parts of eight bytes: more than are taken.
            let (_, parts) = cut(is_v6, 1, 8 * (MOST_PARTS + 1), 8);
            let mut fragments = Fragments::default();
            assert!(parts.iter().all(|part| fragments.take(part, now).is_none()));
            assert_eq!(fragments.take_given_up(), 1);
        }
    }

    #[test]
    fn congestion_of_a_fragment_is_that_of_the_packet() {
        let now = Instant::now();
        for is_v6 in [false, true] {
            for (first, second, expected) in [(2, 3, Some(3)), (3, 3, Some(3)), (2, 2, Some(2)), (0, 3, None)]
            {
                let (_, mut parts) = cut(is_v6, 1, 80, 40);
                let family = if is_v6 { Family::V6 } else { Family::V4 };
                ip::set_congestion(&mut parts[0], family, first);
                ip::set_congestion(&mut parts[1], family, second);
                let mut fragments = Fragments::default();
                assert_eq!(fragments.take(&parts[0], now), None);
                let whole = fragments.take(&parts[1], now);
                let came = whole.map(|whole| Header::read(&whole).unwrap().class & 3);
                assert_eq!((came, fragments.take_given_up()), (expected, u64::from(expected.is_none())));
            }
        }
    }

    #[test]
    fn memory_and_time_are_bounded() {
        let start = Instant::now();
        // Only first fragments, all of different packets.
        let (_, parts) = cut(true, 0, 1600, 1400);
        let mut fragments = Fragments::default();
        for id in 0..10_000_u32 {
            let mut part = parts[0].clone();
            part[44..48].copy_from_slice(&id.to_be_bytes());
            assert_eq!(fragments.take(&part, start), None);
            assert!(fragments.bytes <= MOST_BYTES && fragments.packets.len() <= MOST_PACKETS);
            assert!(fragments.order.len() <= 2 * MOST_PACKETS + 1);
        }
        let waiting = fragments.packets.len() as u64;
        assert_eq!(fragments.take_given_up(), 10_000 - waiting);
        // The newest are there, and whole ones leave nothing behind.
        for id in 9_990..10_000_u32 {
            let mut part = parts[1].clone();
            part[44..48].copy_from_slice(&id.to_be_bytes());
            assert!(fragments.take(&part, start + WAITS / 2).is_some());
        }
        let (_, parts) = cut(false, 1, 80, 40);
        assert_eq!(fragments.take(&parts[0], start + WAITS), None);
        assert_eq!((fragments.packets.len(), fragments.take_given_up()), (1, waiting - 10));
        assert_eq!(fragments.take(&parts[1], start + 2 * WAITS), None);
        assert_eq!(fragments.take_given_up(), 1);
        // Many that become whole, while an old one waits.
        for at in 0..10_000_usize {
            let (_, parts) = cut(true, u8::try_from(at % 200).unwrap(), 80, 40);
            assert_eq!(fragments.take(&parts[0], start + 2 * WAITS), None);
            assert!(fragments.take(&parts[1], start + 2 * WAITS).is_some());
            assert!(fragments.order.len() <= 2 * MOST_PACKETS + 1);
        }
    }
}
