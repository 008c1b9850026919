//! [`Reached`]: the elements of a chunk that changed routes reach.
//!
//! Changes come in bursts of neighbours. All changes beneath a chunk are taken down together, so each chunk
//! on the way gets its new content once.

use wirespeed_fib::{Address, Prefix, V6};

use super::layout::bits;

/// The changed routes that reach a chunk or an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Changed<'c> {
    /// The length of the longest changed route that covers all of it.
    pub(super) cover: Option<u8>,
    /// The changed routes within, each once and in order.
    pub(super) inside: &'c [Prefix<V6>],
}

impl Changed<'_> {
    /// The changes that reach what is beneath an element, which is decided by a route of length `decided`.
    /// `None` if none of them changes the element or what is beneath it.
    pub(super) fn beneath(self, decided: u8) -> Option<Self> {
        let cover = self.cover.filter(|&cover| decided <= cover);
        (cover.is_some() || !self.inside.is_empty()).then_some(Self { cover, ..self })
    }
}

/// The elements of a chunk that changes reach, in order, each with the changes that reach it.
pub(super) struct Reached<'c> {
    from: u8,
    stride: u8,
    whole: Option<u8>,
    /// The changes at elements to come.
    rest: &'c [Prefix<V6>],
    /// The changed routes that cover several elements: the last element and the length. Each is within the
    /// one before.
    spans: Vec<(usize, u8)>,
    next: usize,
}

impl<'c> Reached<'c> {
    /// The elements of a chunk of `stride` bits after the first `from`.
    pub(super) fn new(from: u8, stride: u8, Changed { cover, inside }: Changed<'c>) -> Self {
        Self { from, stride, whole: cover, rest: inside, spans: Vec::new(), next: 0 }
    }

    /// The first element that a route reaches.
    fn first_of(&self, prefix: Prefix<V6>) -> usize {
        bits(prefix.address(), self.from, self.stride)
    }

    /// The last element that a route reaches.
    fn last_of(&self, prefix: Prefix<V6>) -> usize {
        bits(prefix.address().fill(prefix.len()), self.from, self.stride)
    }
}

impl<'c> Iterator for Reached<'c> {
    type Item = (usize, Changed<'c>);

    fn next(&mut self) -> Option<Self::Item> {
        while self.spans.last().is_some_and(|&(last, _)| last < self.next) {
            self.spans.pop();
        }
        let at = match (self.whole, self.spans.last()) {
            (None, None) => self.first_of(*self.rest.first()?),
            _ if self.next == 1 << self.stride => return None,
            _ => self.next,
        };
        self.next = at + 1;
        while let Some((&prefix, rest)) = self.rest.split_first()
            && prefix.len() <= self.from + self.stride
            && self.first_of(prefix) == at
        {
            self.spans.push((self.last_of(prefix), prefix.len()));
            self.rest = rest;
        }
        // Comparing addresses costs less than taking their bits.
        let end = self.rest.first().filter(|&&prefix| self.first_of(prefix) == at);
        let end = end.map(|prefix| prefix.address().fill(self.from + self.stride));
        let is_inside = |prefix: &&Prefix<V6>| Some(prefix.address()) <= end;
        let (inside, rest) = self.rest.split_at(self.rest.iter().take_while(is_inside).count());
        self.rest = rest;
        let cover = self.spans.last().map(|&(_, len)| len).or(self.whole);
        Some((at, Changed { cover, inside }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Holds the elements against a scan of all changes for each element.
        #[test]
        fn elements_are_reached_by_what_meets_them(
            routes in proptest::collection::btree_set((any::<u16>(), 9..=24u8), 0..20),
            whole in proptest::option::of(0..=8u8),
        ) {
            let (from, stride) = (8, 5);
            let mut inside: Vec<Prefix<V6>> = routes
                .into_iter()
                .map(|(bits, len)| Prefix::around(V6(u128::from(bits) << 104 | 0x20 << 120), len))
                .collect();
            inside.sort_unstable();
            inside.dedup();
            let mut right = Vec::new();
            for at in 0..32usize {
                let element = Prefix::around(V6(0x20 << 120 | (at as u128) << 115), from + stride);
                let covers = inside.iter().filter(|prefix| prefix.covers(element)).map(|prefix| prefix.len());
                let cover = covers.max().or(whole);
                let within: Vec<_> = inside
                    .iter()
                    .copied()
                    .filter(|&prefix| element.covers(prefix) && prefix != element)
                    .collect();
                if cover.is_some() || !within.is_empty() {
                    right.push((at, cover, within));
                }
            }
            let got: Vec<_> = Reached::new(from, stride, Changed { cover: whole, inside: &inside })
                .map(|(at, Changed { cover, inside })| (at, cover, inside.to_vec()))
                .collect();
            prop_assert_eq!(got, right);
        }
    }

    #[test]
    fn a_longer_route_hides_what_covers() {
        let changed = Changed { cover: Some(20), inside: &[] };
        assert_eq!(changed.beneath(20), Some(changed));
        assert_eq!(changed.beneath(21), None);
        let host = [Prefix::host(V6(1))];
        let changed = Changed { cover: Some(20), inside: &host };
        assert_eq!(changed.beneath(21), Some(Changed { cover: None, inside: &host }));
    }
}
