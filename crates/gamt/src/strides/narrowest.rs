//! [`narrowest`]: the paper's choice (section 4.2, Algorithm 3).
//!
//! The array width comes first, the sum of memory transactions second. Algorithm 3 as printed finds both in
//! one pass: it keeps for each number of levels and depth the best pair of the two. That misses choices. A
//! part whose own widest level is wider, but which takes fewer transactions, is dropped, though a level
//! beneath it may be wider still and decide the width. So here are two passes: the least width that the whole
//! can have, then, among all choices that keep to it, the fewest transactions. Each is a minimum over
//! something that grows from level to level, so each is exact, and the second after the first is the
//! lexicographic minimum.

use super::{MAX_STRIDE, Profile};

/// Strides for so many levels with the least array width, the units of the widest level; among these the
/// fewest memory transactions, of `transaction_bytes` each and counted by levels; then the fewest units in
/// all; then the one whose last levels are the shortest.
///
/// They add up to [`Profile::deepest`]. There are never more levels than that has bits, nor fewer than it
/// takes at [`MAX_STRIDE`] bits each: numbers of levels outside that are taken as the nearest inside.
/// O(levels × bits × [`MAX_STRIDE`]).
pub fn narrowest(profile: &Profile, levels: u8, transaction_bytes: u32, unit_bytes: u32) -> Vec<u8> {
    let deepest = profile.deepest();
    let levels = levels.clamp(deepest.div_ceil(MAX_STRIDE), deepest);
    let units = |level: Span| profile.units(level.start, level.stride);
    let (width, _) = cut(deepest, levels, 0u64, |widest, level| Some(widest.max(units(level))));
    let (_, strides) = cut(deepest, levels, (0u64, 0u64), |(transactions, total), level| {
        let units = units(level);
        let here = self::transactions(units, transaction_bytes, unit_bytes);
        (units <= width).then(|| (transactions.saturating_add(here), total.saturating_add(units)))
    });
    strides
}

/// Transactions that it takes to read all of a level once; a transaction has at least one byte.
pub(super) fn transactions(units: u64, transaction_bytes: u32, unit_bytes: u32) -> u64 {
    units.saturating_mul(unit_bytes.into()).div_ceil(transaction_bytes.max(1).into())
}

/// A level: the bits from `start` on.
#[derive(Clone, Copy)]
struct Span {
    start: u8,
    stride: u8,
}

/// The way to cut `deepest` bits into `levels` levels that costs least, and its cost: `extend` says what a
/// cost becomes with one more level, `None` where that level may not be. It must not turn a higher cost into
/// a lower one, and must allow one way.
fn cut<C: Copy + Ord>(
    deepest: u8,
    levels: u8,
    free: C,
    extend: impl Fn(C, Span) -> Option<C>,
) -> (C, Vec<u8>) {
    // By number of levels and depth: the least cost down to there, and the stride of the last level on that
    // way.
    let mut best: Vec<Vec<Option<(C, u8)>>> =
        vec![vec![None; usize::from(deepest) + 1]; usize::from(levels) + 1];
    best[0][0] = Some((free, 0));
    for level in 1..=usize::from(levels) {
        for end in 1..=deepest {
            for stride in 1..=end.min(MAX_STRIDE) {
                let start = end - stride;
                let Some((before, _)) = best[level - 1][usize::from(start)] else { continue };
                let Some(cost) = extend(before, Span { start, stride }) else { continue };
                let here = &mut best[level][usize::from(end)];
                if here.is_none_or(|(least, _)| cost < least) {
                    *here = Some((cost, stride));
                }
            }
        }
    }
    let at =
        |level: usize, end: u8| best[level][usize::from(end)].expect("there is a way to cut so many bits");
    let mut strides = vec![0; usize::from(levels)];
    let mut end = deepest;
    for (level, stride) in strides.iter_mut().enumerate().rev() {
        *stride = at(level + 1, end).1;
        end -= *stride;
    }
    (at(levels.into(), deepest).0, strides)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::levels;
    use super::super::tests::{compositions, profiles};
    use super::*;

    /// Width and transactions.
    fn value(profile: &Profile, strides: &[u8], transaction: u32, unit: u32) -> (u64, u64) {
        let units = || levels(strides).map(|(start, stride)| profile.units(start, stride));
        let width = units().max().unwrap();
        (width, units().map(|units| (units * u64::from(unit)).div_ceil(transaction.into())).sum())
    }

    fn nodes(nodes: &[u64]) -> Profile {
        Profile::from_parts(1, nodes.to_vec(), vec![1.0; nodes.len()], vec![1.0; nodes.len()])
    }

    /// Algorithm 3 as printed: the best pair of each number of levels and depth.
    fn as_printed(profile: &Profile, levels: u8, transaction: u32, unit: u32) -> (u64, u64) {
        cut(profile.deepest(), levels, (0, 0), |(width, sum), Span { start, stride }| {
            let units = profile.units(start, stride);
            Some((units.max(width), sum + transactions(units, transaction, unit)))
        })
        .0
    }

    #[test]
    fn one_pass_misses_what_two_find() {
        // The last level, one bit, has 12 units. Of the ways to cut the 4 bits above it, 3 and 1 have a width
        // of 10 and take 5 transactions of four units; 2 and 2 have a width of 12, which is no wider than the
        // last level, and take 4.
        let profile = nodes(&[1, 2, 3, 5, 6]);
        let strides = narrowest(&profile, 3, 16, 4);
        assert_eq!(strides, [2, 2, 1]);
        assert_eq!(value(&profile, &strides, 16, 4), (12, 1 + 3 + 3));
        assert_eq!(as_printed(&profile, 3, 16, 4), (12, 2 + 3 + 3));
    }

    #[test]
    fn there_are_no_more_levels_than_bits_and_no_fewer_than_strides_allow() {
        let profile = nodes(&[1; 60]);
        assert_eq!(narrowest(&profile, 200, 128, 4), [1; 60]);
        for levels in [0, 1, 3] {
            assert_eq!(narrowest(&profile, levels, 128, 4), [20, 20, 20]);
        }
        assert_eq!(narrowest(&nodes(&[1]), 6, 128, 4), [1]);
    }

    #[test]
    fn sizes_past_all_bounds_are_cut_all_the_same() {
        let profile = nodes(&[u64::MAX; 40]);
        assert_eq!(narrowest(&profile, 5, 0, 8).iter().sum::<u8>(), 40);
    }

    proptest! {
        #[test]
        fn no_way_to_cut_is_better(
            profile in profiles(),
            levels in 0u8..14,
            transaction in prop::sample::select(vec![1u32, 8, 16, 32, 64, 128]),
            unit in prop::sample::select(vec![4u32, 8]),
        ) {
            let strides = narrowest(&profile, levels, transaction, unit);
            prop_assert_eq!(strides.len(), usize::from(levels.clamp(1, profile.deepest())));
            prop_assert_eq!(strides.iter().sum::<u8>(), profile.deepest());
            let least = compositions(profile.deepest())
                .into_iter()
                .filter(|other| other.len() == strides.len())
                .map(|other| value(&profile, &other, transaction, unit))
                .min();
            prop_assert_eq!(Some(value(&profile, &strides, transaction, unit)), least);
        }
    }
}
