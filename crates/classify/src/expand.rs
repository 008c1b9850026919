//! [`FieldRange`]: a range of a field's numbers, and its prefixes.

use crate::error::RuleError;
use crate::tuple::Field;

/// The most patterns of a rule. Two ranges of ports make 900 at most, three ranges of 32 bits 238,328.
pub const MOST_PATTERNS: usize = 1 << 18;

/// A range of a field's numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldRange {
    field: Field,
    from: u128,
    to: u128,
}

impl FieldRange {
    /// A range of the field's numbers; an error if the field has no such numbers.
    pub const fn new(field: Field, from: u128, to: u128) -> Result<Self, RuleError> {
        if from > to || to > field.all() {
            return Err(RuleError::Range { field: field.name, from, to, last: field.all() });
        }
        Ok(Self { field, from, to })
    }

    /// The field.
    pub const fn field(&self) -> Field {
        self.field
    }

    /// The first number.
    pub const fn from(&self) -> u128 {
        self.from
    }

    /// The last number.
    pub const fn to(&self) -> u128 {
        self.to
    }

    /// The value and the mask, if the range is one prefix.
    pub fn as_prefix(&self) -> Option<(u128, u128)> {
        let mut prefixes = self.prefixes();
        let first = prefixes.next();
        first.filter(|_| prefixes.next().is_none())
    }

    /// The fewest prefixes that make the range, ascending, as value and mask: at most 2 · width - 2.
    pub fn prefixes(&self) -> impl Iterator<Item = (u128, u128)> + use<> {
        prefixes(self.field.all(), self.from, self.to)
    }
}

/// The fewest prefixes that make a range of numbers up to `all`, ascending, as value and mask.
pub(crate) fn prefixes(all: u128, from: u128, to: u128) -> impl Iterator<Item = (u128, u128)> + use<> {
    let mut next = Some(from);
    std::iter::from_fn(move || {
        let from = next.filter(|&from| from <= to)?;
        // The largest block that starts here and does not go past the end.
        let mut low = 0;
        while low != all && from & (low << 1 | 1) == 0 && from + (low << 1 | 1) <= to {
            low = low << 1 | 1;
        }
        next = (from + low).checked_add(1);
        Some((from, all & !low))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tuple::Kind;
    use crate::{Ipv4Tuple, Ipv6Tuple, Pattern, Rule};

    #[test]
    fn the_worst_ranges() {
        let count = |width, from, to| {
            let field = Field::new("f", 0, width, Kind::Number);
            FieldRange::new(field, from, to).expect("a range").prefixes().count()
        };
        assert_eq!((count(16, 1, 65534), count(16, 0, 65535), count(16, 9, 9)), (30, 1, 1));
        assert_eq!((count(128, 1, u128::MAX - 1), count(128, 0, u128::MAX)), (254, 1));
        assert!(FieldRange::new(Ipv4Tuple::SPORT, 2, 1).is_err());
        assert!(FieldRange::new(Ipv4Tuple::SPORT, 2, 65536).is_err());
        let wide = [Ipv6Tuple::SRC, Ipv6Tuple::DST].map(|field| FieldRange::new(field, 1, u128::MAX - 1));
        let ports = [Ipv6Tuple::SPORT].map(|field| FieldRange::new(field, 1, 65534));
        let ranges: Vec<_> = wide.into_iter().chain(ports).map(|range| range.expect("a range")).collect();
        let error = Rule::<Ipv6Tuple>::with_ranges(Pattern::all(), ranges, 0, 0).expect_err("too many");
        assert_eq!(error, RuleError::Patterns { found: 254 * 254 * 30, limit: MOST_PATTERNS });
    }

    proptest! {
        /// The prefixes are those numbers, each in one of them; and few.
        #[test]
        fn prefixes_are_the_range(a in any::<u16>(), b in any::<u16>(), other in any::<u16>()) {
            let (from, to) = (u128::from(a.min(b)), u128::from(a.max(b)));
            let range = FieldRange::new(Ipv4Tuple::SPORT, from, to).expect("a range");
            let prefixes: Vec<_> = range.prefixes().collect();
            prop_assert!(prefixes.len() <= 30);
            for number in [from, to, from.saturating_sub(1), (to + 1).min(65535), other.into()] {
                let within = prefixes.iter().filter(|(value, mask)| number & mask == *value).count();
                prop_assert_eq!(within, usize::from((from..=to).contains(&number)));
            }
            let covered: u128 = prefixes.iter().map(|(_, mask)| 65536 - mask).sum();
            prop_assert_eq!(covered, to - from + 1);
        }
    }
}
