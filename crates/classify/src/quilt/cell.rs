//! [`Cell`]: a rule, or a pattern of one, as buckets hold it.
//!
//! ```text
//! ranges   each 16 bits x of a tuple:   x - a ≤ b (unsigned, wrapping)      a: the least number, b: the span
//! masks    each bit:                    x & b == a
//! ```
//!
//! A prefix of an address is two ranges of 16 bits, one of which is exact or all; a range of ports is one. Where 16 bits hold several
//! fields, as in [`OpenFlowTuple`](crate::OpenFlowTuple), what a rule wants of them may be no range; masks say anything.

use crate::rule::{Pattern, Rule};
use crate::spans::{Spans, halves};
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

impl<T: Tuple> Cell<T> {
    /// Each cell of a rule: one where it can be, or else one for each of its patterns.
    pub(super) fn each<E>(rule: &Rule<T>, mut f: impl FnMut(Self) -> Result<(), E>) -> Result<(), E> {
        match Self::of(rule) {
            Some(cell) => f(cell),
            None => rule.patterns().try_for_each(|pattern| f(Self::of_pattern(&pattern))),
        }
    }

    /// The one cell of a rule that is ranges of 16 bits.
    #[inline(always)]
    pub(super) fn of(rule: &Rule<T>) -> Option<Self> {
        rule.spans().map(Self::of_spans)
    }

    #[inline]
    pub(super) fn of_pattern(pattern: &Pattern<T>) -> Self {
        let masks = || Self { a: *pattern.value(), b: *pattern.mask(), form: Form::Masks };
        Spans::of_pattern(pattern).map_or_else(masks, Self::of_spans)
    }

    #[inline(always)]
    const fn of_spans(Spans { least, span }: Spans<T>) -> Self {
        Self { a: least, b: span, form: Form::Ranges }
    }

    /// The bits that all tuples that match have in common.
    #[inline(always)]
    pub(super) fn fixed(&self) -> T {
        match self.form {
            Form::Masks => self.b,
            Form::Ranges => {
                let mut mask = T::USED;
                let ranges = self.a.words().iter().zip(self.b.words());
                mask.words_mut().iter_mut().zip(ranges).for_each(|(word, (&a, &b))| *word &= prefixes(a, b));
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

/// Of each half of a word the bits that all numbers of a range have in common: both halves at once.
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
