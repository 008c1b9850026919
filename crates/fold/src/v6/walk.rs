//! [`Walk`]: the Rib as strides see it, which don't end where octets do.

use wirespeed_fib::rib::Cursor;
use wirespeed_fib::{Address, NextHop, Rib, V6};

/// Answers for one place of the address space after another; cheap where a place shares octets with the one
/// before.
pub(super) struct Walk<'a> {
    /// The state before each octet of the last address. The first entry is before any octet.
    path: Vec<Stop<'a>>,
    last: V6,
}

#[derive(Clone, Copy)]
struct Stop<'a> {
    /// Where there are longer routes.
    cursor: Option<Cursor<'a, V6>>,
    /// The longest route of whole octets so far.
    best: Found,
}

/// The route that decides: its length and next hop. No route is as the shortest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) len: u8,
    pub(super) next_hop: NextHop,
}

impl<'a> Walk<'a> {
    pub(super) fn new(rib: &'a Rib<V6>) -> Self {
        let best = Found { len: 0, next_hop: NextHop::NONE };
        let mut path = Vec::with_capacity(17);
        path.push(Stop { cursor: Some(rib.cursor()), best });
        Self { path, last: V6::MIN }
    }

    /// The longest route that covers the prefix of the first `len` bits of an address, and whether there are
    /// routes within it that are longer. `len` from 1.
    #[inline]
    pub(super) fn at(&mut self, address: V6, len: u8) -> (Found, bool) {
        let depth = usize::from((len - 1) / 8);
        let bits = (len - 1) % 8 + 1;
        let same = usize::from(self.last.common_bits(address) / 8);
        self.path.truncate(same.min(depth) + 1);
        self.last = address;
        while self.path.len() <= depth {
            let at = self.path.len() - 1;
            let octet = address.octet(at);
            let stop = self.path[at];
            let best = stop.cursor.and_then(|cursor| cursor.best(octet));
            self.path.push(Stop {
                cursor: stop.cursor.and_then(|cursor| cursor.child(octet)),
                best: best.map_or(stop.best, |(len, next_hop)| Found { len, next_hop }),
            });
        }
        let stop = self.path[depth];
        let Some(cursor) = stop.cursor else { return (stop.best, false) };
        let octet = address.octet(depth);
        let best = cursor.best_within(octet, bits);
        let found = best.map_or(stop.best, |(len, next_hop)| Found { len, next_hop });
        (found, cursor.is_longer(octet, bits))
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::conformance::{scattered, tables};
    use wirespeed_fib::{Prefix, oracle};

    use super::*;

    #[test]
    fn agrees_with_a_scan_for_every_length() {
        for (name, rib) in tables::hand_picked::<V6>() {
            if rib.len() > 2_000 {
                continue;
            }
            let mut walk = Walk::new(&rib);
            let places = oracle::boundaries(rib.iter().take(60).map(|(prefix, _)| prefix));
            for address in places.into_iter().chain(scattered::<V6>(20)) {
                for len in [1, 7, 8, 9, 20, 32, 37, 42, 48, 64, 65, 127, 128] {
                    let place = Prefix::around(address, len);
                    let best = rib.covering(place).last();
                    let right = best.map_or(NextHop::NONE, |(_, next_hop)| next_hop);
                    let longer = rib.covered(place).any(|(prefix, _)| prefix.len() > len);
                    let (found, is_longer) = walk.at(address, len);
                    assert_eq!((found.next_hop, is_longer), (right, longer), "{name}: {place}");
                    assert_eq!(found.len, best.map_or(0, |(prefix, _)| prefix.len()), "{name}: {place}");
                }
            }
        }
    }
}
