//! [`Cell`]: a rule, or a pattern of one, as buckets hold it.
//!
//! ```text
//! ranges   each 16 bits x of a tuple:   x - a ≤ b (unsigned, wrapping)      a: the least number, b: the span
//! masks    each bit:                    x & b == a
//! ```
//!
//! A prefix of an address is two ranges of 16 bits, one of which is exact or all; a range of ports is one. Where 16 bits hold several
//! fields, as in [`OpenFlowTuple`](crate::OpenFlowTuple), what a rule wants of them may be no range; masks say anything.

use crate::expand::FieldRange;
use crate::rule::{Pattern, Rule};
use crate::tuple::Tuple;

/// How a cell is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Form {
    /// By ranges of 16 bits.
    Ranges,
    /// By masks.
    Masks,
}

/// What a rule wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Cell<T> {
    pub(super) a: T,
    pub(super) b: T,
    pub(super) form: Form,
}

/// 16 bits, as what a word's half wants of them.
#[derive(Clone, Copy)]
struct Lane {
    least: u16,
    span: u16,
}

impl<T: Tuple> Cell<T> {
    /// Each cell of a rule: one where it can be, or else one for each of its patterns.
    pub(super) fn each<E>(rule: &Rule<T>, mut f: impl FnMut(Self) -> Result<(), E>) -> Result<(), E> {
        match Self::of_ranges(rule.base(), rule.ranges()) {
            Some(cell) => f(cell),
            None => rule.patterns().iter().try_for_each(|pattern| f(Self::of_pattern(pattern))),
        }
    }

    fn of_pattern(pattern: &Pattern<T>) -> Self {
        let masks = || Self { a: *pattern.value(), b: *pattern.mask(), form: Form::Masks };
        Self::of_ranges(pattern, &[]).unwrap_or_else(masks)
    }

    /// A pattern and ranges, if each 16 bits are a range.
    fn of_ranges(pattern: &Pattern<T>, ranges: &[FieldRange]) -> Option<Self> {
        let (mut a, mut b) = (T::default(), T::default());
        for word in 0..T::WORDS {
            let of = |tuple: &T| halves(tuple.words()[word]);
            let (value, mask, used) = (of(pattern.value()), of(pattern.mask()), of(&T::USED));
            let high = Lane::of_mask(value[0], mask[0], used[0])?;
            let low = Lane::of_mask(value[1], mask[1], used[1])?;
            a.words_mut()[word] = joined(high.least, low.least);
            b.words_mut()[word] = joined(high.span, low.span);
        }
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
            put(&mut a, from);
            put(&mut b, span);
        }
        Some(Self { a, b, form: Form::Ranges })
    }

    /// The bits that all tuples that match have in common.
    pub(super) fn fixed(&self) -> T {
        match self.form {
            Form::Masks => self.b,
            Form::Ranges => {
                let mut mask = T::USED;
                for word in 0..T::WORDS {
                    let (least, span) = (halves(self.a.words()[word]), halves(self.b.words()[word]));
                    mask.words_mut()[word] &= joined(prefix(least[0], span[0]), prefix(least[1], span[1]));
                }
                mask
            }
        }
    }

    /// Whether a tuple matches.
    pub(super) fn matches(&self, tuple: &T) -> bool {
        let words = || tuple.words().iter().zip(self.a.words()).zip(self.b.words());
        words().all(|((&x, &a), &b)| is_in(x, a, b, self.form))
    }
}

/// Whether a tuple's word is what a cell wants.
#[inline(always)]
pub(super) fn is_in(x: u32, a: u32, b: u32, form: Form) -> bool {
    match form {
        Form::Masks => x & b == a,
        Form::Ranges => {
            let (x, a, b) = (halves(x), halves(a), halves(b));
            x[0].wrapping_sub(a[0]) <= b[0] && x[1].wrapping_sub(a[1]) <= b[1]
        }
    }
}

impl Lane {
    /// Of 16 bits under a mask, if those that may be anything come after all that may not.
    fn of_mask(value: u16, mask: u16, used: u16) -> Option<Self> {
        let free = used & !mask;
        match mask {
            0 => Some(Self { least: 0, span: u16::MAX }),
            _ if free < mask & mask.wrapping_neg() => Some(Self { least: value, span: free }),
            _ => None,
        }
    }
}

/// The bits that all numbers of a range have in common.
fn prefix(least: u16, span: u16) -> u16 {
    let differ = least ^ least.wrapping_add(span);
    !u16::MAX.checked_shr(differ.leading_zeros()).unwrap_or(0)
}

#[allow(clippy::cast_possible_truncation)] // the halves
pub(super) const fn halves(word: u32) -> [u16; 2] {
    [(word >> 16) as u16, word as u16]
}

const fn joined(high: u16, low: u16) -> u32 {
    (high as u32) << 16 | low as u32
}
