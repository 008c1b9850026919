//! Options of IPv4 (RFC 791, 3.1; RFC 1812, 5.2.4): checked before a packet is looked up, written when it is
//! forwarded.

use std::net::Ipv4Addr;

use crate::narrow;

const END: u8 = 0;
const NOP: u8 = 1;
const RECORD_ROUTE: u8 = 7;
const TIMESTAMP: u8 = 68;
const LOOSE_SOURCE_ROUTE: u8 = 131;
const STRICT_SOURCE_ROUTE: u8 = 137;
const ROUTER_ALERT: u8 = 148;
/// The bit of an option that goes with every fragment.
const COPIED: u8 = 0x80;

/// What the options of a packet ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// The packet is forwarded.
    Forward,
    /// The sender chose the way. Routers refuse that today (RFC 7126, 4.3 and 4.4).
    SourceRoute,
    /// Routers on the way are to look at the packet.
    RouterAlert,
    /// There is no sense in the byte at this offset.
    Bad(usize),
}

/// The options, with their offsets. An error is the offset of a byte without sense.
fn each(options: &[u8]) -> impl Iterator<Item = Result<(usize, &[u8]), usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while options.get(at) == Some(&NOP) {
            at += 1;
        }
        let kind = *options.get(at)?;
        if kind == END {
            return None;
        }
        let len = options.get(at + 1).map_or(0, |&len| usize::from(len));
        let Some(option) = options.get(at..at + len).filter(|option| option.len() >= 2) else {
            let bad = at;
            at = options.len();
            return Some(Err(bad + 1));
        };
        at += len;
        Some(Ok((at - len, option)))
    })
}

/// Checks the options of a header.
pub(super) fn check(options: &[u8]) -> Checked {
    let mut wish = Checked::Forward;
    for option in each(options) {
        let (at, option) = match option {
            Ok(option) => option,
            Err(at) => return Checked::Bad(at),
        };
        match option[0] {
            LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE => return Checked::SourceRoute,
            ROUTER_ALERT => wish = Checked::RouterAlert,
            RECORD_ROUTE if option.len() < 3 || option[2] < 4 => return Checked::Bad(at + 2),
            TIMESTAMP if option.len() < 4 || option[2] < 5 => return Checked::Bad(at + 2),
            _ => {}
        }
    }
    wish
}

/// Writes to the options what they ask for: the router's address, and the time in milliseconds of the day.
/// The checksum has to be written anew.
pub(super) fn record(options: &mut [u8], own: Ipv4Addr, milliseconds: u32) {
    let found: Vec<(usize, usize)> =
        each(options).flatten().map(|(at, option)| (at, at + option.len())).collect();
    for (start, end) in found {
        let option = &mut options[start..end];
        match option[0] {
            RECORD_ROUTE if option.len() >= 3 => {
                write(option, 3, &own.octets());
            }
            TIMESTAMP if option.len() >= 4 => time(option, own, milliseconds),
            _ => {}
        }
    }
}

/// Writes bytes where the pointer points, if they fit, and moves the pointer. The first `least` bytes are the
/// option's own.
fn write(option: &mut [u8], least: usize, bytes: &[u8]) -> bool {
    // The pointer counts from 1.
    let at = usize::from(option[2]).saturating_sub(1).max(least);
    let Some(place) = option.get_mut(at..at + bytes.len()) else { return false };
    place.copy_from_slice(bytes);
    // Within an option of at most 40 bytes.
    option[2] = narrow::u8(at + bytes.len() + 1);
    true
}

fn time(option: &mut [u8], own: Ipv4Addr, milliseconds: u32) {
    let time = milliseconds.to_be_bytes();
    let is_written = match option[3] & 15 {
        0 => write(option, 4, &time),
        1 => {
            let mut both = [0; 8];
            both[..4].copy_from_slice(&own.octets());
            both[4..].copy_from_slice(&time);
            write(option, 4, &both)
        }
        3 => {
            let at = usize::from(option[2]).saturating_sub(1).max(4);
            match option.get(at..at + 4) {
                Some(next) if next == own.octets() => {
                    option[2] = narrow::u8(at + 5);
                    write(option, 4, &time)
                }
                // Another router's turn, or nobody's.
                _ => true,
            }
        }
        _ => true,
    };
    // The upper half counts the routers that found no place; it stays at 15.
    if !is_written && option[3] >> 4 < 15 {
        option[3] += 0x10;
    }
}

/// The options that go with each fragment, padded to words of four bytes.
pub(super) fn copied(options: &[u8]) -> Vec<u8> {
    let copied = each(options).flatten().filter(|(_, option)| option[0] & COPIED != 0);
    let mut bytes: Vec<u8> = copied.flat_map(|(_, option)| option.iter().copied()).collect();
    bytes.resize(bytes.len().next_multiple_of(4), END);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

    #[test]
    fn options_are_checked() {
        assert_eq!(check(&[]), Checked::Forward);
        assert_eq!(check(&[NOP, NOP, END, 99]), Checked::Forward);
        assert_eq!(check(&[7, 7, 4, 0, 0, 0, 0, END]), Checked::Forward);
        assert_eq!(check(&[NOP, 131, 7, 4, 0, 0, 0, 0]), Checked::SourceRoute);
        assert_eq!(check(&[148, 4, 0, 0]), Checked::RouterAlert);
        // A length of 0 or 1, past the end, or missing; a pointer into the option's own bytes.
        assert_eq!(check(&[7, 0, 4, 0]), Checked::Bad(1));
        assert_eq!(check(&[NOP, 7, 1, 0]), Checked::Bad(2));
        assert_eq!(check(&[7, 9, 4, 0]), Checked::Bad(1));
        assert_eq!(check(&[NOP, NOP, NOP, 7]), Checked::Bad(4));
        assert_eq!(check(&[7, 7, 3, 0, 0, 0, 0, 0]), Checked::Bad(2));
    }

    #[test]
    fn routes_and_times_are_recorded() {
        let mut options = [7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0, END];
        record(&mut options, OWN, 5);
        assert_eq!(options, [7, 11, 8, 192, 0, 2, 1, 0, 0, 0, 0, END]);
        record(&mut options, OWN, 5);
        record(&mut options, OWN, 5);
        assert_eq!(options, [7, 11, 12, 192, 0, 2, 1, 192, 0, 2, 1, END]);

        let mut options = [68, 8, 5, 0, 0, 0, 0, 0];
        record(&mut options, OWN, 0x0102_0304);
        assert_eq!(options, [68, 8, 9, 0, 1, 2, 3, 4]);
        record(&mut options, OWN, 1);
        assert_eq!(options, [68, 8, 9, 0x10, 1, 2, 3, 4]);

        let mut options = [68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        record(&mut options, OWN, 7);
        assert_eq!(options, [68, 12, 13, 1, 192, 0, 2, 1, 0, 0, 0, 7]);

        let mut options = [68, 12, 5, 3, 192, 0, 2, 1, 0, 0, 0, 0];
        record(&mut options, OWN, 7);
        assert_eq!(options, [68, 12, 13, 3, 192, 0, 2, 1, 0, 0, 0, 7]);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut rng = wirespeed_rng::Rng::new(3);
        for _ in 0..100_000 {
            let len = (rng.bits() % 11) as usize * 4;
            let mut options: Vec<u8> = (0..len)
                .map(|_| match rng.bits() % 4 {
                    0 => [7, 68, 131, 148, 1, 0][(rng.bits() % 6) as usize],
                    1 => (rng.bits() % 12) as u8,
                    _ => (rng.bits() >> 56) as u8,
                })
                .collect();
            check(&options);
            record(&mut options, OWN, 9);
            assert!(copied(&options).len() <= options.len() + 3);
        }
    }
}
