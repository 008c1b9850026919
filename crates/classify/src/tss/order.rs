//! [`Order`]: the classes, the one with the best bound first.

use std::cmp::Reverse;

use crate::rank::Rank;

/// What the order is by: the better bound first, among equals the lower class.
type Key = (Reverse<Rank>, u32);

/// A class whose place may be another: with the bound it was listed by, and the one it has now.
type Moved = (u32, Option<Rank>, Option<Rank>);

/// The classes in order, and what of that the image has.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    listed: Vec<Key>,
    /// The order that the image has.
    written: Vec<u32>,
    moved: Vec<Moved>,
}

/// The first place where there may be another class than before, and the end of such places.
type Touched = (usize, usize);

/// None is other than before.
const NOTHING: Touched = (usize::MAX, 0);

/// The most classes that are moved one by one. With more the rest is sorted again.
const FEW: usize = 12;

impl Order {
    /// A class's bound was `before` and is `now`; of one that came or went one of them is `None`.
    pub(super) fn moves(&mut self, class: u32, before: Option<Rank>, now: Option<Rank>) {
        self.moved.push((class, before, now));
    }

    /// Places whose class is another than in the image, ascending, as the image is to have them. O(C) where
    /// any class moved.
    pub(super) fn writes(&mut self) -> impl Iterator<Item = (usize, u32)> {
        let touched = self.settle();
        let Self { listed, written, .. } = self;
        if written.len() < listed.len() {
            written.resize(listed.len(), u32::MAX);
        }
        let places = listed.iter().zip(written).enumerate().take(touched.1).skip(touched.0);
        places.filter_map(|(at, (&(_, class), written))| {
            (std::mem::replace(written, class) != class).then_some((at, class))
        })
    }

    /// How many.
    pub(super) fn len(&self) -> usize {
        self.listed.len()
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> u64 {
        (self.listed.capacity() * size_of::<Key>() + self.written.capacity() * 4) as u64
    }

    /// Puts what moved in its place. The places that may have others than before.
    fn settle(&mut self) -> Touched {
        let mut moved = std::mem::take(&mut self.moved);
        let touched = if moved.len() <= FEW {
            moved.iter().fold(NOTHING, |touched, &of_one| {
                let here = self.step(of_one);
                (touched.0.min(here.0), touched.1.max(here.1))
            })
        } else {
            // The last word on each class counts.
            moved.sort_by_key(|&(class, ..)| class);
            let is_moved = |class: u32| moved.binary_search_by_key(&class, |&(class, ..)| class).is_ok();
            self.listed.retain(|&(_, class)| !is_moved(class));
            for of_one in moved.chunk_by(|a, b| a.0 == b.0) {
                if let Some(&(class, _, Some(now))) = of_one.last() {
                    self.listed.push((Reverse(now), class));
                }
            }
            self.listed.sort_unstable();
            (0, self.listed.len())
        };
        moved.clear();
        self.moved = moved;
        touched
    }

    fn step(&mut self, (class, before, now): Moved) -> Touched {
        let mut touched = NOTHING;
        if let Some(before) = before {
            let at = self.listed.binary_search(&(Reverse(before), class)).expect("it was listed by that");
            self.listed.remove(at);
            touched = (at, if now.is_some() { at + 1 } else { self.listed.len() });
        }
        if let Some(now) = now {
            let at = self.listed.partition_point(|key| *key < (Reverse(now), class));
            self.listed.insert(at, (Reverse(now), class));
            let end = if before.is_some() { at + 1 } else { self.listed.len() };
            touched = (touched.0.min(at), touched.1.max(end));
        }
        touched
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_rng::Rng;

    use super::*;

    #[test]
    fn few_and_many_moves_make_the_same_order() {
        let mut rng = Rng::new(3);
        let (mut order, mut bounds, mut image) = (Order::default(), [None; 40], Vec::new());
        for _ in 0..500 {
            for _ in 0..[1, 30][rng.index(2)] {
                let class = rng.index(bounds.len());
                let now = rng.chance(0.7).then(|| Rank::from_bits(1 + rng.below(20)));
                order.moves(u32::try_from(class).expect("small"), bounds[class], now);
                bounds[class] = now;
            }
            for (at, class) in order.writes() {
                image.resize(image.len().max(at + 1), 0);
                image[at] = class;
            }
            let mut right: Vec<_> =
                (0..).zip(bounds).filter_map(|(class, bound)| Some((Reverse(bound?), class))).collect();
            right.sort_unstable();
            assert!(right.iter().map(|&(_, class)| class).eq(image[..order.len()].iter().copied()));
        }
    }
}
