//! [`Rank`]: the order of rules. The oracle, engines and kernels share this one definition.
//!
//! ```text
//! rank  u64   priority (32 bits) | !number (32 bits)       the larger wins; 0 is no rule
//! ```
//!
//! The rule of higher priority wins, and among equal priorities the rule of the lower number. As one integer,
//! a rank needs a single comparison. It can also be the operand of an atomic maximum, as in the paper with 8
//! bits of priority (Algorithm 1, line 20).

use std::fmt;
use std::num::NonZeroU32;

/// The number of a rule in its set, from 1 on: what a lookup returns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleNumber(NonZeroU32);

impl RuleNumber {
    /// The largest number. A larger number with a priority of 0 would have the rank [`NONE`](Rank::NONE).
    pub const MOST: u32 = u32::MAX - 1;

    /// The number that a lookup returned; `None` for 0, and for a number that no rule has.
    pub const fn new(number: u32) -> Option<Self> {
        match NonZeroU32::new(number) {
            Some(number) if number.get() <= Self::MOST => Some(Self(number)),
            _ => None,
        }
    }

    /// The number.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl From<RuleNumber> for u32 {
    fn from(number: RuleNumber) -> Self {
        number.get()
    }
}

impl fmt::Display for RuleNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for RuleNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A rule's rank among all rules: of two rules that match, the rule with the larger rank wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(u64);

impl Rank {
    /// The rank of no rule, below the rank of any rule.
    pub const NONE: Self = Self(0);

    /// The rank of a rule, by its priority and number.
    #[inline]
    pub const fn new(priority: u32, number: RuleNumber) -> Self {
        Self((priority as u64) << 32 | !number.get() as u64)
    }

    /// The rank of these bits.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The rank as an integer.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The priority; 0 for no rule.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // 32 bits are left
    pub const fn priority(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The number that a lookup returns: 0 for no rule.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the low half
    pub const fn result(self) -> u32 {
        if self.0 == 0 { 0 } else { !(self.0 as u32) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_then_the_lower_number() {
        let rank = |priority, number| Rank::new(priority, RuleNumber::new(number).expect("a number"));
        let order = [
            rank(u32::MAX, 1),
            rank(u32::MAX, RuleNumber::MOST),
            rank(7, 1),
            rank(7, 2),
            rank(0, 1),
            rank(0, RuleNumber::MOST),
            Rank::NONE,
        ];
        assert!(order.is_sorted_by(|a, b| a > b));
        assert_eq!((rank(7, 2).priority(), rank(7, 2).result(), Rank::NONE.result()), (7, 2, 0));
        assert_eq!((RuleNumber::new(0), RuleNumber::new(u32::MAX)), (None, None));
    }
}
