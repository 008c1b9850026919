//! A memo of first components, for one batch.
//!
//! Many names share few first components (the top-level domains, or the roots of a name space), and the
//! root's transitions are the same during a batch. So short first components that were probed once are looked
//! up in a small array, by their bytes as one word, without a hash, a probe or a wait. The memo is exact: the
//! word is the component.

use crate::name::SLASH;

/// Elements of a memo.
const PLACES: usize = 256;
/// The fewest names for which a memo is used.
pub(super) const FEWEST: usize = 64;
/// Spreads words over the places.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const ONES: u64 = u64::MAX / 0xff;

/// A first component of 1 to 7 bytes, as a word: its bytes, followed by a slash, which no component has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short {
    word: u64,
    pub(super) len: u32,
}

impl Short {
    /// The first component of these bytes, if it is short and a slash follows within eight bytes.
    #[inline(always)]
    pub(super) fn of(rest: &[u8]) -> Option<Self> {
        let word = u64::from_le_bytes(*rest.first_chunk()?);
        let zero_where_slash = word ^ (ONES * SLASH as u64);
        let found = zero_where_slash.wrapping_sub(ONES) & !zero_where_slash & (ONES << 7);
        // From the lowest bit up to that of the slash, which is the highest of its byte.
        let up_to = found ^ found.wrapping_sub(1);
        (found != 0).then(|| Self { word: word & up_to, len: found.trailing_zeros() / 8 })
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // of 8 bits
    const fn place(self) -> usize {
        (self.word.wrapping_mul(SPREAD) >> (u64::BITS - PLACES.ilog2())) as usize
    }
}

/// The state and result of the root's transition by a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    /// The state that it leads to, if it leads to one.
    pub(super) state: u32,
    pub(super) leads: bool,
    /// The result, or 0 if it is no entry.
    pub(super) result: u32,
}

/// Known first components.
pub(super) struct Memo([(u64, Given); PLACES]);

impl Memo {
    pub(super) fn new() -> Self {
        Self([(0, Given { state: 0, leads: false, result: 0 }); PLACES])
    }

    /// The known transition of a component.
    #[inline(always)]
    pub(super) fn get(&self, short: Short) -> Option<Given> {
        let (word, given) = self.0[short.place()];
        (word == short.word).then_some(given)
    }

    /// Stores a transition, in place of the old one.
    #[inline(always)]
    pub(super) fn set(&mut self, short: Short, given: Given) {
        self.0[short.place()] = (short.word, given);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_short_if_a_slash_follows_within_eight_bytes() {
        for len in 1..12 {
            let mut bytes = vec![0xff; len];
            bytes.extend_from_slice(b"/abc/defghijk");
            assert_eq!(Short::of(&bytes).map(|short| short.len as usize), (len < 8).then_some(len));
            assert_eq!(Short::of(&bytes[..len]), None);
        }
        assert_eq!(Short::of(b"a/b/c/d/"), Short::of(b"a/xxxxxx"));
        assert_ne!(Short::of(b"a/b/c/d/"), Short::of(b"a\0/xxxxx"));
        assert_ne!(Short::of(b"a0/xxxxx"), Short::of(b"a/0xxxxx"));
    }

    #[test]
    fn one_takes_the_place_of_another() {
        let mut memo = Memo::new();
        let given = |result| Given { state: 1, leads: true, result };
        let shorts: Vec<_> =
            (0..2000u32).filter_map(|n| Short::of(format!("{n}/padding").as_bytes())).collect();
        assert!(shorts.iter().all(|&short| memo.get(short).is_none()));
        for (&short, result) in shorts.iter().zip(1..) {
            memo.set(short, given(result));
            assert_eq!(memo.get(short), Some(given(result)));
        }
        let known = shorts.iter().zip(1..).filter(|&(&short, result)| match memo.get(short) {
            Some(known) => known == given(result) || panic!("{known:?} for {result}"),
            None => false,
        });
        assert!((PLACES / 2..=PLACES).contains(&known.count()));
    }
}
