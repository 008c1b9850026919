//! [`address`] and [`dotted`]: addresses as text, those of IPv4 without a branch for each byte.
//!
//! The octets of IPv4 addresses have one to three digits in any order, so a loop over the bytes guesses wrong
//! several times for each address. Here all bytes are in two words, and each octet's digits move to a lane:
//!
//! ```text
//! 10.1.200.3 ─► dots at 2, 4, 8 ─► ..10 ...1 .200 ...3 ─► 10 1 200 3, with 2, 1, 3 and 1 digits ─► 10.1.200.3
//! ```
//!
//! A text that is no address gives lanes with bytes that are no digits, or with lengths other than those of
//! their numbers. So the checks come last, and together.

#[cfg(target_arch = "x86_64")]
mod sse;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::records::Records;
use crate::word::each;

impl Records {
    /// Parses the cells of a wanted column as IPv4 addresses in host order: [`dotted`]. Adds a number for
    /// each record to `into`, and the records whose cell is none to `others`.
    ///
    /// `block` is the block that was scanned. Panics if there is no such column.
    pub fn dotted(&self, block: &[u8], wanted: usize, into: &mut Vec<u32>, others: &mut Vec<usize>) {
        #[cfg(target_arch = "x86_64")]
        if sse::column(self, block, wanted, into, others) {
            return;
        }
        for (record, (cell, _)) in self.column(block, wanted).enumerate() {
            let parsed = dotted(cell);
            if parsed.is_none() {
                others.push(record);
            }
            into.push(parsed.unwrap_or_default());
        }
    }
}

/// Parses an address like the standard library does.
#[must_use]
pub fn address(text: &[u8]) -> Option<IpAddr> {
    if let Some(address) = dotted(text) {
        return Some(IpAddr::V4(Ipv4Addr::from_bits(address)));
    }
    std::str::from_utf8(text).ok()?.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

/// Parses an IPv4 address of four decimal numbers like the standard library does, into host order.
///
/// ```
/// use wirespeed_records::dotted;
///
/// assert_eq!(dotted(b"192.0.2.1"), Some(0xc000_0201));
/// assert_eq!(dotted(b"192.0.2.01"), None);
/// ```
#[inline]
#[must_use]
pub fn dotted(text: &[u8]) -> Option<u32> {
    // Bytes as distances from '0', so that digits are their numbers. Those after the end are 0.
    let (low, high, tail) = match text.len() {
        len @ 8..=15 => {
            let eight = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes) ^ each(b'0');
            let (first, last) = (eight(text.first_chunk()?), eight(text.last_chunk()?));
            // Two shifts, because one of 64 bits is none.
            (first, last >> (8 * (15 - len)) >> 8, last >> 32)
        }
        7 => {
            let four = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes) ^ 0x3030_3030);
            let (first, last) = (four(text.first_chunk()?), four(text.last_chunk()?));
            (first | last << 24, 0, last)
        }
        _ => return None,
    };
    // The first two dots of an address are in its first eight bytes, and the third is in bytes 4 to 11.
    let middle = |low: u64, high: u64| low >> 32 | high << 32;
    let (dots_low, dots_high) = (dots(low), dots(high));
    let after_first = without_lowest(dots_low);
    let after_second = without_lowest(after_first);
    let dots_middle = middle(after_second, dots_high);
    let first = dots_low.trailing_zeros();
    let second = after_first.trailing_zeros();
    let third = dots_middle.trailing_zeros().wrapping_add(32);
    let more = without_lowest(dots_middle) | (after_second & 0xffff_ffff) | dots_high >> 32;
    // A flag is the highest bit of its byte. Lengths are in bits.
    #[allow(clippy::cast_possible_truncation)] // at most 15
    let end = 8 * text.len() as u32;
    let lengths = [
        first.wrapping_sub(7),
        second.wrapping_sub(first).wrapping_sub(8),
        third.wrapping_sub(second).wrapping_sub(8),
        end.wrapping_sub(third).wrapping_sub(1),
    ];
    let from = [low, low.wrapping_shr(first + 1), middle(low, high).wrapping_shr(second.wrapping_sub(31))];
    #[allow(clippy::cast_possible_truncation)] // the lane
    let lane = |at: usize| (from[at] as u32).wrapping_shl(32u32.wrapping_sub(lengths[at]));
    #[allow(clippy::cast_possible_truncation)] // the lane
    let last = tail as u32 & u32::MAX.wrapping_shl(32u32.wrapping_sub(lengths[3]));
    let (a, b) = (pair(lane(0), lane(1)), pair(lane(2), last));
    let (of_a, of_b) = (numbers(a), numbers(b));
    let wrong = more
        | not_digits(a)
        | not_digits(b)
        | ((of_a | of_b) & pair(0xff00, 0xff00))
        | (digits(of_a) ^ pair(lengths[0], lengths[1]))
        | (digits(of_b) ^ pair(lengths[2], lengths[3]));
    #[allow(clippy::cast_possible_truncation)] // octets
    let address = (of_a << 24 | of_a >> 16 | (of_b & 0xff) << 8 | of_b >> 32) as u32;
    (wrong == 0).then_some(address)
}

/// Two lanes.
const fn pair(low: u32, high: u32) -> u64 {
    // The conversion is no cast in a constant function.
    low as u64 | (high as u64) << 32
}

/// The flags of bytes that are dots. A slash after a dot counts as one, too: it ends an octet of no digits.
fn dots(word: u64) -> u64 {
    let word = word ^ each(b'.' ^ b'0');
    word.wrapping_sub(each(1)) & !word & each(0x80)
}

fn without_lowest(flags: u64) -> u64 {
    flags & flags.wrapping_sub(1)
}

/// The flags of bytes that are no digits; of bytes after one, maybe wrong.
fn not_digits(lanes: u64) -> u64 {
    (lanes.wrapping_add(each(0x80 - 10)) | lanes) & each(0x80)
}

/// The numbers of lanes whose last three bytes are digits.
fn numbers(lanes: u64) -> u64 {
    // Bytes: hundreds in the first, tens and ones in the third.
    let tens = lanes.wrapping_mul(10).wrapping_add(lanes >> 8) & each_half(0xff);
    // Halves: the sum is in the first.
    tens.wrapping_mul(100).wrapping_add(tens >> 16) & pair(0xffff, 0xffff)
}

const fn each_half(half: u16) -> u64 {
    pair((half as u32) << 16 | half as u32, (half as u32) << 16 | half as u32)
}

/// The lengths in bits that lanes of these numbers have in decimal.
fn digits(numbers: u64) -> u64 {
    // Bit 15 tells whether a number is as large. It becomes 8.
    let are = |least: u32| {
        let sums = numbers.wrapping_add(pair(0x8000 - least, 0x8000 - least));
        sums >> 12 & pair(8, 8)
    };
    pair(8, 8) + are(10) + are(100)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Plan, Splitter};

    fn is_as_std(text: &[u8]) -> bool {
        let right = std::str::from_utf8(text).ok().and_then(|text| text.parse::<Ipv4Addr>().ok());
        #[cfg(target_arch = "x86_64")]
        let is_same = text.len() > 16 || sse::tests::is_as_without(text);
        #[cfg(not(target_arch = "x86_64"))]
        let is_same = true;
        is_same && dotted(text) == right.map(Ipv4Addr::to_bits)
    }

    #[test]
    fn every_octet_at_every_place() {
        for octet in 0..=1023 {
            for place in 0..4 {
                for others in ["0", "10", "255"] {
                    for zeros in ["", "0", "00"] {
                        let mut parts = [others; 4].map(str::to_owned);
                        parts[place] = format!("{zeros}{octet}");
                        let text = parts.join(".");
                        assert!(is_as_std(text.as_bytes()), "{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn one_other_byte_at_every_place() {
        for right in ["1.2.3.4", "0.0.0.0", "10.0.0.1", "192.0.2.1", "99.100.9.255", "255.255.255.255"] {
            assert!(dotted(right.as_bytes()).is_some());
            for at in 0..right.len() {
                for byte in 0..=255 {
                    let mut text = right.as_bytes().to_vec();
                    text[at] = byte;
                    assert!(is_as_std(&text), "{text:?}");
                    text.insert(at, byte);
                    assert!(is_as_std(&text), "{text:?}");
                    text.drain(at..=at + 1);
                    assert!(is_as_std(&text), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn addresses_are_those_of_the_standard_library() {
        for text in [
            "10.0.0.1",
            "256.0.0.1",
            "1.2.3",
            "1.2.3.4.5",
            "01.2.3.4",
            "1.2.3.",
            ".1.2.3",
            "1..2.3",
            "1.2.3.4444",
            "1.2.3.004",
            "::1",
            "2001:db8::ffff:10.1.2.3",
            "x",
            "",
            "1.2.3.4 ",
            "::ffff:192.0.2.1",
            "1.2.3.4/8",
            "fe80::1%eth0",
        ] {
            assert_eq!(address(text.as_bytes()), text.parse().ok(), "{text:?}");
        }
    }

    #[test]
    fn columns_up_to_the_last_byte_of_a_block() {
        let plan = |_, _: &[String]| Ok(Plan { wanted: vec!["b".into(), "a".into()], ..Plan::default() });
        for text in ["a,b\n10.1.2.3,x\n\"1.2.3.4\",10.0.0.1\n255.0.0.1,1.1.1.1", "a,b\n1.1.1.1,8.8.8.8\n"] {
            let mut splitter = Splitter::new(None, plan);
            splitter.push(text.as_bytes());
            while let Some(block) = splitter.next(true).unwrap() {
                let Some(layout) = block.layout else { continue };
                let mut records = Records::default();
                layout.scan(&block.bytes, &mut records);
                for wanted in 0..2 {
                    let (mut found, mut others) = (Vec::new(), Vec::new());
                    records.dotted(&block.bytes, wanted, &mut found, &mut others);
                    let cells = (0..records.records().len()).map(|at| records.cell(&block.bytes, at, wanted));
                    let right: Vec<_> = cells.map(dotted).collect();
                    assert_eq!(found, right.iter().map(|found| found.unwrap_or(0)).collect::<Vec<_>>());
                    let right = right.iter().enumerate().filter(|(_, found)| found.is_none());
                    assert_eq!(others, right.map(|(at, _)| at).collect::<Vec<_>>());
                }
            }
        }
    }

    proptest! {
        #[test]
        fn texts_like_addresses(text in "[0-3]{0,4}[./]{0,2}[0-9]{0,4}[./-]{0,2}[0-9]{0,4}[.]{0,2}[0-9:;]{0,4}") {
            prop_assert!(is_as_std(text.as_bytes()));
        }

        #[test]
        fn any_bytes(text in prop::collection::vec(any::<u8>(), 0..20)) {
            prop_assert!(is_as_std(&text));
        }

        #[test]
        fn bytes_of_addresses(text in "[0-9.]{7,15}") {
            prop_assert!(is_as_std(text.as_bytes()));
        }

        #[test]
        fn addresses(bits: u32) {
            let text = Ipv4Addr::from_bits(bits).to_string();
            prop_assert_eq!(dotted(text.as_bytes()), Some(bits));
            prop_assert!(is_as_std(text.as_bytes()));
        }
    }
}
