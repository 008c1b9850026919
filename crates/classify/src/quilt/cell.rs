//! [`Cell`]: a rule, or a pattern of one, as buckets hold it.
//!
//! ```text
//! ranges   each 16 bits x of a tuple:   x - a ≤ b (unsigned, wrapping)      a: the least number, b: the span
//! masks    each bit:                    x & b == a
//! mixed    some 16 bits so, some so
//! ```
//!
//! A prefix of an address is two ranges of 16 bits, one of which is exact or all; a range of ports is one.
//! Where 16 bits hold several fields, as in [`OpenFlowTuple`](crate::OpenFlowTuple), what a rule wants of
//! them may be no range; masks say anything.
//!
//! A rule is one cell where it can be. Ranges of addresses make a cell for each of their [regions](Region),
//! where prefixes would make one for each pattern. A cell with a range of ports beside a mask with holes is
//! mixed. No bucket holds it: it is taken apart into patterns if these are few.

use crate::pattern::Pattern;
use crate::regions::Region;
use crate::rule::Rule;
use crate::spans::{Spans, halves};
use crate::tuple::Tuple;

/// How a cell is compared: a bit for each 16 bits that are compared by a mask, the lowest for the high half
/// of the first word; the others are ranges. Small, as control planes hold one with each cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Form(u32);

/// The patterns that a rule is taken apart into rather than have a mixed cell: one range of ports makes 30 at
/// most.
const FEW_PATTERNS: usize = 32;

/// What a rule wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Cell<T> {
    pub(super) a: T,
    pub(super) b: T,
    pub(super) form: Form,
}

impl<T: Tuple> Cell<T> {
    /// The one cell of a rule that is ranges of 16 bits.
    #[inline(always)]
    pub(super) fn of(rule: &Rule<T>) -> Option<Self> {
        rule.spans().map(Self::of_spans)
    }

    /// The cells of a rule that is not one of ranges of 16 bits; no two match the same tuple.
    pub(super) fn several(rule: &Rule<T>) -> Vec<Self> {
        if rule.ranges().is_empty() {
            return vec![Self::of_pattern(rule.base())];
        }
        let cells: Vec<_> = Region::of(rule).iter().map(Self::of_region).collect();
        let is_mixed = |cell: &Self| cell.form.is_mixed();
        if cells.iter().any(is_mixed) && rule.patterns_len() <= FEW_PATTERNS {
            return rule.patterns().map(|pattern| Self::of_pattern(&pattern)).collect();
        }
        cells
    }

    fn of_region(region: &Region<T>) -> Self {
        let halves = || (0..T::WORDS).flat_map(|word| [(word, 0), (word, 1)]);
        let form = if halves().all(|(word, half)| region.span_of(word, half).is_some()) {
            Form::RANGES
        } else if halves().all(|(word, half)| !region.is_range(word, half)) {
            Form::MASKS
        } else {
            let bit = |(word, half)| u32::from(!region.is_range(word, half)) << (2 * word + half);
            Form(halves().fold(0, |bits, half| bits | bit(half)))
        };
        let mut b = region.mask;
        for (word, half) in halves() {
            if form.is_range(word, half) {
                let span = region.span_of(word, half).expect("it is a range");
                let (shift, to) = (16 - 16 * half, &mut b.words_mut()[word]);
                *to = *to & !(0xffff << shift) | u32::from(span) << shift;
            }
        }
        Self { a: region.least, b, form }
    }

    #[inline]
    pub(super) fn of_pattern(pattern: &Pattern<T>) -> Self {
        let masks = || Self { a: *pattern.value(), b: *pattern.mask(), form: Form::MASKS };
        Spans::of_pattern(pattern).map_or_else(masks, Self::of_spans)
    }

    #[inline(always)]
    const fn of_spans(Spans { least, span }: Spans<T>) -> Self {
        Self { a: least, b: span, form: Form::RANGES }
    }

    /// The condition on a word, for each of its halves: mask, least number and span.
    pub(super) fn masked(&self, word: usize) -> [u32; 3] {
        let (a, b) = (self.a.words()[word], self.b.words()[word]);
        let ranges = (0..2).filter(|&half| self.form.is_range(word, half));
        let ranges = ranges.fold(0, |bits, half| bits | 0xffff << (16 - 16 * half));
        [b | ranges, a, b & ranges]
    }

    /// Bits that all tuples that match have in common; of a mixed cell none.
    #[inline(always)]
    pub(super) fn fixed(&self) -> T {
        match self.form {
            Form::MASKS => self.b,
            Form::RANGES => {
                let mut mask = T::USED;
                let ranges = self.a.words().iter().zip(self.b.words());
                mask.words_mut().iter_mut().zip(ranges).for_each(|(word, (&a, &b))| *word &= prefixes(a, b));
                mask
            }
            _ => T::default(),
        }
    }

    /// Whether a tuple matches.
    pub(super) fn matches(&self, tuple: &T) -> bool {
        let words = || tuple.words().iter().zip(self.a.words()).zip(self.b.words());
        match self.form {
            form if form.is_mixed() => {
                (0..T::WORDS).all(|word| is_masked_in(tuple.words()[word], self.masked(word)))
            }
            form => words().all(|((&x, &a), &b)| is_in(x, a, b, form)),
        }
    }
}

impl Form {
    /// Compared by ranges.
    pub(super) const RANGES: Self = Self(0);
    /// Compared by masks.
    pub(super) const MASKS: Self = Self(u32::MAX);

    /// Whether some 16 bits are compared so and some so. No bucket has such a cell.
    #[inline]
    pub(super) const fn is_mixed(self) -> bool {
        self.0 != Self::RANGES.0 && self.0 != Self::MASKS.0
    }

    /// The bits.
    #[inline]
    pub(super) const fn bits(self) -> u32 {
        self.0
    }

    /// Whether the half of a word is compared as a range.
    #[inline]
    pub(super) const fn is_range(self, word: usize, half: usize) -> bool {
        self.0 >> (2 * word + half) & 1 == 0
    }
}

/// Whether a tuple's word is what is wanted of both halves under a mask.
#[inline(always)]
pub(super) fn is_masked_in(x: u32, [mask, least, span]: [u32; 3]) -> bool {
    is_in(x & mask, least, span, Form::RANGES)
}

/// Whether a tuple's word is what a cell wants that is of ranges or masks alone.
#[inline(always)]
pub(super) fn is_in(x: u32, a: u32, b: u32, form: Form) -> bool {
    match form {
        Form::MASKS => x & b == a,
        _ => {
            let (x, a, b) = (halves(x), halves(a), halves(b));
            x[0].wrapping_sub(a[0]) <= b[0] && x[1].wrapping_sub(a[1]) <= b[1]
        }
    }
}

/// The bits of each half of a word that all numbers of a range have in common: both halves at once.
const fn prefixes(least: u32, span: u32) -> u32 {
    const HIGHEST: u32 = 0x8000_8000;
    // Sums without a carry from half to half.
    let most = (least & !HIGHEST).wrapping_add(span & !HIGHEST) ^ (least ^ span) & HIGHEST;
    let mut differ = least ^ most;
    differ |= differ >> 1 & 0x7fff_7fff;
    differ |= differ >> 2 & 0x3fff_3fff;
    differ |= differ >> 4 & 0x0fff_0fff;
    differ |= differ >> 8 & 0x00ff_00ff;
    !differ
}
