//! [`Region`]: a rule with ranges as few boxes, where prefixes would make many patterns.
//!
//! A region has a condition for each 16 bits of a tuple, independent of the others: a range of a field
//! that fits in 16 bits is one. A range of a longer field is at most `2 · n - 1` regions of `n` times 16
//! bits, three for an IPv4 address:
//!
//! ```text
//! 10.1.0.9-10.7.0.3      10.1 | 0.9-255.255        first
//!                        10.2-10.6 | any           between
//!                        10.7 | 0.0-0.3            last
//! ```
//!
//! where prefixes make dozens. With two ranges of ports the same rule is three regions and tens of thousands
//! of patterns.

use wirespeed_table::sort_by_number;

use crate::expand::FieldRange;
use crate::pattern::Pattern;
use crate::rule::Rule;
use crate::spans::halves;
use crate::tuple::{Field, Tuple};

/// The condition on each 16 bits `x` of a tuple: `(x & mask) - least ≤ span`, unsigned and wrapping. The
/// mask has no bit beside the tuple's fields, and least none beside the mask. Where the span is not 0, all
/// bits that the mask leaves open are below those that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region<T> {
    pub(crate) mask: T,
    pub(crate) least: T,
    pub(crate) span: T,
}

/// Bits of a part.
const HALF: u16 = 16;

impl<T: Tuple> Region<T> {
    /// The regions of a rule; no two match the same tuple.
    pub(crate) fn of(rule: &Rule<T>) -> Vec<Self> {
        let base = rule.base();
        let mut regions = vec![Self { mask: *base.mask(), least: *base.value(), span: T::default() }];
        // Of fields that share 16 bits the one above goes first.
        let mut ranges: Vec<&FieldRange> = rule.ranges().iter().collect();
        sort_by_number(&mut ranges, |range| range.field().offset.into());
        for (at, range) in ranges.iter().enumerate() {
            let later = &ranges[at + 1..];
            regions = regions.iter().flat_map(|region| region.narrowed(range, later)).collect();
        }
        regions
    }

    /// The parts of a region that lie in a range, before it is narrowed by other ranges too.
    fn narrowed(&self, range: &FieldRange, later: &[&FieldRange]) -> Vec<Self> {
        let field = range.field();
        if field.offset.is_multiple_of(HALF) && field.width.is_multiple_of(HALF) {
            return pieces(range.from(), range.to(), field.width)
                .into_iter()
                .map(|piece| (0..).zip(piece).fold(*self, |region, (nth, of)| region.with(&field, nth, of)))
                .collect();
        }
        let shift = HALF - field.offset % HALF;
        let is_alone = || self.is_free_below(&field) && !later.iter().any(|other| is_below(&field, other));
        if shift < field.width || !self.is_whole_above(&field) || !is_alone() {
            // No range of 16 bits: what is above it is left open, or what is below it counts too.
            let within = |(value, mask)| {
                let pattern = Pattern::new(self.least, self.mask).with(&field, value, mask);
                Self { mask: *pattern.mask(), least: *pattern.value(), span: self.span }
            };
            return range.prefixes().map(within).collect();
        }
        let mut region = *self;
        region.mask.set_field(&field, field.all());
        region.least.set_field(&field, range.from());
        region.span.set_field(&field, range.to() - range.from());
        vec![region]
    }

    /// Whether it wants nothing of the bits after a field, in the 16 bits that this lies in.
    fn is_free_below(&self, field: &Field) -> bool {
        let end = field.offset + field.width;
        (end..end.next_multiple_of(HALF)).all(|bit| !has(&self.mask, bit))
    }

    /// Whether it leaves none of the bits before a field open, in the 16 bits that this lies in.
    fn is_whole_above(&self, field: &Field) -> bool {
        let start = field.offset / HALF * HALF;
        (start..field.offset).all(|bit| has(&self.mask, bit) || !has(&T::USED, bit))
    }

    /// Adds a range of the nth 16 bits of a field.
    fn with(mut self, field: &Field, nth: u16, (from, to): (u16, u16)) -> Self {
        if (from, to) == (0, u16::MAX) {
            return self;
        }
        let bit = field.offset + nth * HALF;
        let (word, shift) = (usize::from(bit / 32), 16 - bit % 32);
        let put = |tuple: &mut T, number: u16| {
            let word = &mut tuple.words_mut()[word];
            *word = *word & !(0xffff << shift) | u32::from(number) << shift;
        };
        put(&mut self.mask, u16::MAX);
        put(&mut self.least, from);
        put(&mut self.span, to - from);
        self
    }

    /// Whether a tuple is in it.
    #[cfg(test)]
    pub(crate) fn matches(&self, tuple: &T) -> bool {
        (0..T::WORDS).all(|word| {
            let of = |tuple: &T| halves(tuple.words()[word]);
            let (x, least, span) = (of(&tuple.and(&self.mask)), of(&self.least), of(&self.span));
            (0..2).all(|half| x[half].wrapping_sub(least[half]) <= span[half])
        })
    }

    /// Which of its 16 bits are a range, and no value under a mask.
    #[inline]
    pub(crate) fn is_range(&self, word: usize, half: usize) -> bool {
        halves(self.span.words()[word])[half] != 0
    }

    /// The span of 16 bits when those that the mask leaves open count too; `None` where some of these are
    /// above others that it has.
    #[inline]
    pub(crate) fn span_of(&self, word: usize, half: usize) -> Option<u16> {
        let of = |tuple: &T| halves(tuple.words()[word])[half];
        let (mask, span, free) = (of(&self.mask), of(&self.span), of(&T::USED) & !of(&self.mask));
        match mask {
            0 => Some(u16::MAX),
            _ => (free < mask & mask.wrapping_neg()).then(|| span + free),
        }
    }
}

fn has<T: Tuple>(tuple: &T, bit: u16) -> bool {
    tuple.words()[usize::from(bit / 32)] >> (31 - bit % 32) & 1 == 1
}

/// Whether a range is of a field in the same 16 bits, after another.
fn is_below(field: &Field, other: &FieldRange) -> bool {
    let other = other.field();
    other.offset > field.offset && other.offset / HALF == field.offset / HALF
}

/// A range of a number of so many bits, as ranges of each 16 of them.
fn pieces(from: u128, to: u128, width: u16) -> Vec<Vec<(u16, u16)>> {
    let number = |number: u128| u16::try_from(number).expect("16 bits are left");
    let Some(rest) = width.checked_sub(HALF).filter(|&rest| rest > 0) else {
        return vec![vec![(number(from), number(to))]];
    };
    let (last, all) = ((1u128 << rest) - 1, (0, u16::MAX));
    let (first, end) = (number(from >> rest), number(to >> rest));
    let (low_from, low_to) = (from & last, to & last);
    let of = |high: u16, from, to| {
        let with = move |low: Vec<_>| [vec![(high, high)], low].concat();
        pieces(from, to, rest).into_iter().map(with)
    };
    if first == end {
        return match (low_from, low_to) == (0, last) {
            true => vec![[vec![(first, first)], vec![all; usize::from(rest / HALF)]].concat()],
            false => of(first, low_from, low_to).collect(),
        };
    }
    let mut found = Vec::new();
    let (mut between, mut until) = (u32::from(first), u32::from(end) + 1);
    if low_from != 0 {
        found.extend(of(first, low_from, last));
        between += 1;
    }
    if low_to != last {
        found.extend(of(end, 0, low_to));
        until -= 1;
    }
    if between < until {
        let high = (number(between.into()), number((until - 1).into()));
        found.push([vec![high], vec![all; usize::from(rest / HALF)]].concat());
    }
    found
}

#[cfg(test)]
mod tests {
    use wirespeed_rng::Rng;

    use super::*;
    use crate::generate::{flipped, random};
    use crate::tuple::{FieldMatch, Ipv4Tuple, Ipv6Tuple, OpenFlowTuple};

    fn count(text: &str) -> usize {
        Region::of(&text.parse::<Rule<Ipv4Tuple>>().expect("a rule")).len()
    }

    #[test]
    fn ranges_make_few_regions() {
        assert_eq!(count("src=1.0.0.1-200.255.255.254 sport=1-65534 dport=1-65534"), 3);
        assert_eq!(count("src=1.0.0.1-200.255.255.254 dst=1.0.0.1-1.1.255.254 proto=5-9"), 6);
        assert_eq!(count("src=10.0.0.0-10.0.0.5 sport=1024-65535"), 1);
        assert_eq!(count("src=10.0.0.0-10.2.255.255"), 1);
        assert_eq!(count("src=10.0.7.0-10.2.255.255"), 2);
        let most = FieldRange::new(Ipv6Tuple::SRC, 1, u128::MAX - 1).expect("a range");
        let rule = Rule::with_ranges(Pattern::<Ipv6Tuple>::all(), [most], 0, 0).expect("few patterns");
        assert_eq!(Region::of(&rule).len(), 15);
    }

    /// Ranges of any fields, beside masks of any kind; tuples at the edges of each.
    fn regions_are_their_rule<T: Tuple>() {
        let mut rng = Rng::new(12);
        let mut wide = 0;
        for _ in 0..400 {
            let mask = [T::default(), random(&mut rng), T::USED][rng.index(3)];
            let base: T = random(&mut rng);
            let mut ranges = Vec::new();
            for field in T::FIELDS {
                if rng.chance(0.3) {
                    let far = rng.chance(0.5);
                    let (one, other) = (base.field(field), random::<T>(&mut rng).field(field));
                    let other = if far { other } else { one ^ other & 7 };
                    ranges.push(FieldRange::new(*field, one.min(other), one.max(other)).expect("a range"));
                }
            }
            let Ok(rule) = Rule::with_ranges(Pattern::new(base, mask), ranges, 0, 0) else { continue };
            let regions = Region::of(&rule);
            assert!(regions.len() <= rule.patterns_len(), "{} regions of {rule:?}", regions.len());
            wide += usize::from(regions.len() * 10 < rule.patterns_len());
            for _ in 0..60 {
                let mut tuple = base;
                for field in T::FIELDS {
                    if let FieldMatch::Range(from, to) = rule.field(field) {
                        let beside = [from.wrapping_sub(1), to.wrapping_add(1)].map(|n| n & field.all());
                        let far = random::<T>(&mut rng).field(field);
                        let within = from + if to - from == u128::MAX { far } else { far % (to - from + 1) };
                        let all = [from, to, within, within, within, beside[0], beside[1], far];
                        tuple.set_field(field, all[rng.index(all.len())]);
                    }
                }
                if rng.chance(0.2) {
                    tuple = flipped(tuple, &mut rng);
                }
                let of = regions.iter().filter(|region| region.matches(&tuple)).count();
                assert_eq!(of, usize::from(rule.matches(&tuple)), "{tuple} in {rule:?}");
            }
            for (region, word, half) in parts(&regions) {
                assert!(!region.is_range(word, half) || region.span_of(word, half).is_some(), "{rule:?}");
            }
        }
        assert!(wide > 0, "some made many patterns");
    }

    fn parts<T: Tuple>(regions: &[Region<T>]) -> impl Iterator<Item = (&Region<T>, usize, usize)> {
        regions.iter().flat_map(|region| (0..2 * T::WORDS).map(move |half| (region, half / 2, half % 2)))
    }

    #[test]
    fn regions_match_what_their_rule_does() {
        regions_are_their_rule::<Ipv4Tuple>();
        regions_are_their_rule::<Ipv6Tuple>();
        regions_are_their_rule::<OpenFlowTuple>();
    }
}
