//! [`Packed`]: next hops as narrow as the largest needs.

use crate::next_hop::NextHop;

/// Next hops in order, of one, two or four bytes each. Most tables have few next hops, so this takes a
/// quarter of four bytes for each.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    /// Bytes of a next hop.
    width: u8,
}

impl Packed {
    /// None.
    pub(super) const EMPTY: Self = Self { bytes: Vec::new(), width: 1 };

    /// Number of next hops.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.bytes.len() / usize::from(self.width)
    }

    /// A next hop.
    #[inline]
    pub(super) fn get(&self, at: usize) -> NextHop {
        NextHop(match self.width {
            1 => self.bytes[at].into(),
            2 => u16::from_le_bytes([self.bytes[2 * at], self.bytes[2 * at + 1]]).into(),
            _ => {
                let bytes = self.bytes[4 * at..].first_chunk().expect("four bytes for each");
                u32::from_le_bytes(*bytes)
            }
        })
    }

    /// Replaces a next hop. Returns the old one.
    #[inline]
    pub(super) fn replace(&mut self, at: usize, by: NextHop) -> NextHop {
        let old = self.get(at);
        self.widen(by);
        self.put(at, by);
        old
    }

    /// Inserts a next hop before another one.
    pub(super) fn insert(&mut self, at: usize, next_hop: NextHop) {
        self.widen(next_hop);
        let (len, width) = (self.bytes.len(), usize::from(self.width));
        self.bytes.resize(len + width, 0);
        self.bytes.copy_within(at * width..len, (at + 1) * width);
        self.put(at, next_hop);
    }

    /// Removes a next hop.
    pub(super) fn remove(&mut self, at: usize) -> NextHop {
        let (old, width) = (self.get(at), usize::from(self.width));
        self.bytes.copy_within((at + 1) * width.., at * width);
        self.bytes.truncate(self.bytes.len() - width);
        old
    }

    /// Gives back memory in reserve.
    pub(super) fn shrink(&mut self) {
        let largest = (0..self.len()).map(|at| self.get(at)).max().unwrap_or_default();
        if width_of(largest) < self.width {
            self.convert(width_of(largest));
        }
        self.bytes.shrink_to_fit();
    }

    /// Bytes held, reserve included.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Makes all next hops wide enough for one more.
    #[inline]
    fn widen(&mut self, next_hop: NextHop) {
        if width_of(next_hop) > self.width {
            self.convert(width_of(next_hop));
        }
    }

    #[cold]
    fn convert(&mut self, width: u8) {
        let next_hops = (0..self.len()).flat_map(|at| {
            let bytes = self.get(at).0.to_le_bytes();
            bytes.into_iter().take(width.into())
        });
        self.bytes = next_hops.collect();
        self.width = width;
    }

    #[inline]
    fn put(&mut self, at: usize, next_hop: NextHop) {
        let (width, bytes) = (usize::from(self.width), next_hop.0.to_le_bytes());
        match width {
            1 => self.bytes[at] = bytes[0],
            _ => self.bytes[at * width..][..width].copy_from_slice(&bytes[..width]),
        }
    }
}

/// Bytes that a next hop needs.
#[inline]
fn width_of(NextHop(next_hop): NextHop) -> u8 {
    1 + u8::from(next_hop > 0xff) + 2 * u8::from(next_hop > 0xffff)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_list_of_next_hops(
            steps in proptest::collection::vec((0..4u8, any::<prop::sample::Index>(), any::<u32>(), 0..4u32), 0..80),
        ) {
            let (mut packed, mut list) = (Packed::EMPTY, Vec::new());
            for (step, which, value, narrow) in steps {
                let next_hop = NextHop(value >> (8 * narrow));
                match step {
                    0 if !list.is_empty() => {
                        let at = which.index(list.len());
                        prop_assert_eq!(packed.replace(at, next_hop), std::mem::replace(&mut list[at], next_hop));
                    }
                    1 if !list.is_empty() => {
                        let at = which.index(list.len());
                        prop_assert_eq!(packed.remove(at), list.remove(at));
                    }
                    2 => packed.shrink(),
                    _ => {
                        let at = which.index(list.len() + 1);
                        packed.insert(at, next_hop);
                        list.insert(at, next_hop);
                    }
                }
                prop_assert_eq!(packed.len(), list.len());
                let got: Vec<_> = (0..packed.len()).map(|at| packed.get(at)).collect();
                prop_assert_eq!(got, list.clone());
            }
            packed.shrink();
            let widest = list.iter().map(|&next_hop| usize::from(width_of(next_hop))).max().unwrap_or(1);
            prop_assert_eq!(packed.heap_bytes(), widest * list.len());
        }
    }

    #[test]
    fn widths_are_those_of_values() {
        let widths = [0, 0xff, 0x100, 0xffff, 0x1_0000, u32::MAX].map(|value| width_of(NextHop(value)));
        assert_eq!(widths, [1, 1, 2, 2, 4, 4]);
    }
}
