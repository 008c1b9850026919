//! [`Spans`]: the condition of a rule on each 16 bits of a tuple, if all of these are ranges. Prefixes of
//! addresses and ranges of ports are such ranges: each 16 bits of a prefix are exact, or any, or begin with
//! some bits.

use crate::expand::FieldRange;
use crate::pattern::Pattern;
use crate::tuple::Tuple;

/// A range of each 16 bits: matches `x` where `x - least ≤ span`, unsigned and wrapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spans<T> {
    pub(crate) least: T,
    pub(crate) span: T,
}

impl<T: Tuple> Spans<T> {
    /// The spans of a pattern, if what it leaves open of each 16 bits comes after all that it does not.
    #[inline(always)]
    pub(crate) fn of_pattern(pattern: &Pattern<T>) -> Option<Self> {
        let (mut span, mut are_ranges, used) = (T::default(), true, T::USED);
        let masks = pattern.mask().words().iter().zip(used.words());
        for (span, (&mask, &used)) in span.words_mut().iter_mut().zip(masks) {
            let (mask, used) = (halves(mask), halves(used));
            let (high, low) = (span_of(mask[0], used[0]), span_of(mask[1], used[1]));
            *span = joined(high.0, low.0);
            are_ranges &= high.1 & low.1;
        }
        are_ranges.then_some(Self { least: *pattern.value(), span })
    }

    /// The spans of a pattern and ranges, if these are of 16 bits each, too.
    pub(crate) fn of(pattern: &Pattern<T>, ranges: &[FieldRange]) -> Option<Self> {
        let mut spans = Self::of_pattern(pattern)?;
        for range in ranges {
            let field = range.field();
            if field.width != 16 || field.offset % 16 != 0 {
                return None;
            }
            let (from, span) =
                (u16::try_from(range.from()).ok()?, u16::try_from(range.to() - range.from()).ok()?);
            let (word, shift) = (usize::from(field.offset / 32), 16 - field.offset % 32);
            let put = |tuple: &mut T, number: u16| {
                let word = &mut tuple.words_mut()[word];
                *word = *word & !(0xffff << shift) | u32::from(number) << shift;
            };
            put(&mut spans.least, from);
            put(&mut spans.span, span);
        }
        Some(spans)
    }
}

/// The span of 16 bits under a mask, and whether it is one.
#[inline(always)]
fn span_of(mask: u16, used: u16) -> (u16, bool) {
    let free = used & !mask;
    match mask {
        0 => (u16::MAX, true),
        _ => (free, free < mask & mask.wrapping_neg()),
    }
}

/// The high and the low 16 bits.
#[allow(clippy::cast_possible_truncation)] // the halves
pub(crate) const fn halves(word: u32) -> [u16; 2] {
    [(word >> 16) as u16, word as u16]
}

const fn joined(high: u16, low: u16) -> u32 {
    (high as u32) << 16 | low as u32
}
