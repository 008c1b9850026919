//! [`Traffic`]: frames of UDP to given addresses, for ports in memory.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use wirespeed::image::prefetch_at;
use wirespeed_rng::Rng;

use super::memory::Source;
use crate::Mac;
use crate::frames::Datagram;

/// The sizes of frames, in bytes from the Ethernet header on, without the frame check sequence of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All of one size.
    Fixed(usize),
    /// A mix as of the Internet: 7 of 64, 4 of 590 and 1 of 1,514 bytes in a random order.
    Imix,
}

/// The smallest and the largest frame of Ethernet without its check sequence.
const SMALLEST: usize = 60;
const LARGEST: usize = 1518;

/// No sizes: a number of 60 to 1,518 and `imix` are some.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no size of frames: a number of {SMALLEST} to {LARGEST} bytes, or imix")]
pub struct NoSizes(String);

impl std::str::FromStr for Sizes {
    type Err = NoSizes;

    fn from_str(text: &str) -> Result<Self, NoSizes> {
        if text.eq_ignore_ascii_case("imix") {
            return Ok(Self::Imix);
        }
        let size = text.parse().ok().filter(|size| (SMALLEST..=LARGEST).contains(size));
        size.map(Self::Fixed).ok_or_else(|| NoSizes(text.to_owned()))
    }
}

impl std::fmt::Display for Sizes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(size) => write!(f, "{size}"),
            Self::Imix => f.write_str("imix"),
        }
    }
}

impl Sizes {
    fn draw(self, rng: &mut Rng) -> usize {
        match self {
            Self::Fixed(size) => size,
            Self::Imix => match rng.bits() % 12 {
                0..7 => 64,
                7..11 => 590,
                _ => 1514,
            },
        }
    }
}

/// Frames to addresses in their order, round and round.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// The destinations.
    pub to: Arc<[IpAddr]>,
    /// The sizes of frames.
    pub sizes: Sizes,
    /// The link-layer address of the port that they come in at.
    pub mac: Mac,
}

/// The sources of packets: documentation addresses.
const FROM_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const FROM_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const FROM: Mac = Mac([2, 0, 0, 0, 0xff, 0xfe]);
const DNS: u16 = 53;
/// Bytes of the frames that a source makes: a quarter of a million of 64 bytes, more than the second-level
/// cache of a core holds. After these it gives copies of them: a frame that leaves the router in another
/// form, such as sealed, is made anew, and the making is not to be measured.
const MADE: usize = 16 << 20;

/// Bytes before the ones that are brought near.
const AHEAD: usize = 4096;

/// Frames that were made, one after the other.
#[derive(Default)]
struct Made {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    next: usize,
}

impl Made {
    fn push(&mut self, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
    }

    fn is_whole(&self) -> bool {
        self.bytes.len() >= MADE
    }

    /// The next frame, round and round.
    fn next(&mut self) -> &[u8] {
        let begin = self.next.checked_sub(1).map_or(0, |before| self.ends[before]);
        let end = self.ends[self.next];
        // Lines of the frames to come are on their way meanwhile.
        for line in (begin..end).step_by(64) {
            prefetch_at(self.bytes.as_ptr().wrapping_add(line + AHEAD));
        }
        let frame = &self.bytes[begin..end];
        self.next = (self.next + 1) % self.ends.len();
        frame
    }
}

impl Traffic {
    /// A source that begins at one of `parts` equal parts of the destinations. Without destinations its
    /// frames go to the address 192.0.2.2. Once it has made 16 MiB of frames it gives these again and again.
    #[must_use]
    pub fn source(&self, part: usize, parts: usize) -> Source {
        let Self { to, sizes, mac } = self.clone();
        let mut at = to.len() * part / parts.max(1);
        let mut rng = Rng::new(part as u64 + 1);
        let mut made = Made::default();
        Box::new(move |give| {
            if made.is_whole() {
                return give(made.next());
            }
            let destination = match to.get(at) {
                Some(&destination) => destination,
                None => to.first().copied().unwrap_or(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2))),
            };
            at = if at + 1 < to.len() { at + 1 } else { 0 };
            let from = if destination.is_ipv4() { IpAddr::V4(FROM_V4) } else { IpAddr::V6(FROM_V6) };
            let datagram = Datagram {
                to: mac,
                from: FROM,
                addresses: (from, destination),
                // Flows of their own: a group of next hops has something to spread.
                ports: ((rng.bits() >> 48) as u16, DNS),
                hops: super::memory::ROUNDS + 4,
                bytes: sizes.draw(&mut rng),
            };
            let bytes = datagram.to_bytes();
            made.push(&bytes);
            give(&bytes);
        })
    }
}

/// A source of frames that are there, round and round.
///
/// Panics without a frame.
#[must_use]
pub fn again(frames: &[Vec<u8>]) -> Source {
    assert!(!frames.is_empty(), "no frame to give again");
    let mut made = Made::default();
    frames.iter().for_each(|frame| made.push(frame));
    Box::new(move |give| give(made.next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_told() {
        for text in ["60", "64", "1518", "imix"] {
            assert_eq!(text.parse::<Sizes>().unwrap().to_string(), text);
        }
        for bad in ["", "59", "1519", "-64", "64b"] {
            assert!(bad.parse::<Sizes>().is_err(), "{bad}");
        }
    }

    fn given(source: &mut Source) -> Vec<u8> {
        let mut frame = Vec::new();
        source(&mut |bytes| frame = bytes.to_vec());
        frame
    }

    #[test]
    fn destinations_come_round() {
        let to: Arc<[IpAddr]> = ["10.0.0.1", "2001:db8:1::1", "10.0.0.3"].map(|a| a.parse().unwrap()).into();
        let traffic = Traffic { to, sizes: Sizes::Imix, mac: Mac([2; 6]) };
        let mut source = traffic.source(1, 3);
        let mut kinds = Vec::new();
        let mut sizes = std::collections::BTreeSet::new();
        for _ in 0..300 {
            let frame = given(&mut source);
            kinds.push(frame[12]);
            sizes.insert(frame.len());
        }
        assert_eq!(kinds[..4], [0x86, 0x08, 0x08, 0x86]);
        assert_eq!(sizes.into_iter().collect::<Vec<_>>(), [64, 590, 1514]);
    }

    #[test]
    fn frames_come_again_once_enough_are_made() {
        let to: Arc<[IpAddr]> = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|a| a.parse().unwrap()).into();
        let mut source = Traffic { to, sizes: Sizes::Fixed(1518), mac: Mac([2; 6]) }.source(0, 1);
        let mut next = || given(&mut source);
        let made: Vec<_> = (0..MADE.div_ceil(1518)).map(|_| next()).collect();
        assert!(made.windows(2).all(|pair| pair[0] != pair[1]), "the next destination");
        for _ in 0..2 {
            assert!(made.iter().all(|frame| *frame == next()));
        }
    }
}
