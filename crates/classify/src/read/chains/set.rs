//! [`FieldSet`]: some of the numbers of a field.
//!
//! Prefixes and ranges are intervals, and sets of these stay small under every operation. A match under a
//! mask with holes (`10.0.0.1/255.0.0.255`) is no few intervals; such a set is kept as values under masks, no
//! two of which have a number in common. The complement of one can have many more, so operations on these are
//! bounded.

use crate::expand::prefixes;
use crate::tuple::{Field, FieldMatch};

/// A set or a region of more parts than are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::read) struct TooMany {
    /// The parts.
    pub(in crate::read) what: &'static str,
    /// The largest number allowed.
    pub(in crate::read) limit: u64,
}

impl std::fmt::Display for TooMany {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it takes over {} {}", self.limit, self.what)
    }
}

/// The most values under masks that a set may have.
const MOST_MASKED: usize = 1 << 12;

/// Some of the numbers of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::read) struct FieldSet {
    /// The field's largest number.
    all: u128,
    parts: Parts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Parts {
    /// First and last numbers, ascending, with others between them.
    Intervals(Vec<(u128, u128)>),
    /// Values under masks, of which two differ in a bit that both look at.
    Masked(Vec<(u128, u128)>),
}

impl FieldSet {
    /// No number.
    pub(in crate::read) const fn none(field: &Field) -> Self {
        Self { all: field.all(), parts: Parts::Intervals(Vec::new()) }
    }

    /// All numbers.
    pub(in crate::read) fn all(field: &Field) -> Self {
        Self::range(field, 0, field.all())
    }

    /// The numbers from one to another, those of them that the field has.
    pub(in crate::read) fn range(field: &Field, from: u128, to: u128) -> Self {
        let to = to.min(field.all());
        let intervals = if from <= to { vec![(from, to)] } else { Vec::new() };
        Self { all: field.all(), parts: Parts::Intervals(intervals) }
    }

    /// One number, if the field has it.
    pub(in crate::read) fn one(field: &Field, number: u128) -> Self {
        Self::range(field, number, number)
    }

    /// The numbers whose bits under a mask are those of a value; no others count.
    pub(in crate::read) fn masked(field: &Field, value: u128, mask: u128) -> Self {
        let (all, mask) = (field.all(), mask & field.all());
        Self { all, parts: Parts::Masked(vec![(value & mask, mask)]) }.into_intervals()
    }

    /// The numbers of any of some intervals, in any order.
    pub(in crate::read) fn ranges(field: &Field, ranges: impl IntoIterator<Item = (u128, u128)>) -> Self {
        let cut = ranges.into_iter().map(|(from, to)| (from, to.min(field.all())));
        Self {
            all: field.all(),
            parts: Parts::Intervals(merged(cut.filter(|(from, to)| from <= to).collect())),
        }
    }

    /// Whether it has no number.
    pub(in crate::read) fn is_empty(&self) -> bool {
        match &self.parts {
            Parts::Intervals(parts) | Parts::Masked(parts) => parts.is_empty(),
        }
    }

    /// Whether it has all numbers.
    pub(in crate::read) fn is_all(&self) -> bool {
        matches!(&self.parts, Parts::Intervals(parts) if **parts == [(0, self.all)])
    }

    /// Its least number, where it is known: of intervals.
    pub(in crate::read) fn first(&self) -> Option<u128> {
        if let Parts::Intervals(parts) = &self.parts { parts.first().map(|part| part.0) } else { None }
    }

    /// Its largest number, where it is known: of intervals.
    pub(in crate::read) fn last(&self) -> Option<u128> {
        if let Parts::Intervals(parts) = &self.parts { parts.last().map(|part| part.1) } else { None }
    }

    /// Whether it has a number.
    #[cfg(test)]
    pub(in crate::read) fn contains(&self, number: u128) -> bool {
        match &self.parts {
            Parts::Intervals(parts) => {
                let after = parts.partition_point(|&(from, _)| from <= number);
                after > 0 && number <= parts[after - 1].1
            }
            Parts::Masked(parts) => parts.iter().any(|&(value, mask)| number & mask == value),
        }
    }

    /// The numbers that both have.
    pub(in crate::read) fn and(&self, other: &Self) -> Result<Self, TooMany> {
        let parts = match (&self.parts, &other.parts) {
            (Parts::Intervals(a), Parts::Intervals(b)) => Parts::Intervals(common(a, b)),
            _ => {
                let (a, b) = (self.masks()?, other.masks()?);
                bounded(a.iter().flat_map(|&a| b.iter().filter_map(move |&b| both(a, b))))?
            }
        };
        Ok(Self { all: self.all, parts }.into_intervals())
    }

    /// The numbers that either has.
    pub(in crate::read) fn or(&self, other: &Self) -> Result<Self, TooMany> {
        let parts = match (&self.parts, &other.parts) {
            (Parts::Intervals(a), Parts::Intervals(b)) => Parts::Intervals(merged([&**a, b].concat())),
            _ => {
                let more = other.and(&self.not()?)?;
                let (a, b) = (self.masks()?, more.masks()?);
                bounded(a.into_iter().chain(b))?
            }
        };
        Ok(Self { all: self.all, parts }.into_intervals())
    }

    /// The numbers that any of some sets has.
    pub(in crate::read) fn any(field: &Field, sets: &[Self]) -> Result<Self, TooMany> {
        let (mut intervals, mut masked) = (Vec::new(), Self::none(field));
        for set in sets {
            match &set.parts {
                Parts::Intervals(parts) => intervals.extend_from_slice(parts),
                Parts::Masked(_) => masked = masked.or(set)?,
            }
        }
        Self::ranges(field, intervals).or(&masked)
    }

    /// The numbers that it doesn't have.
    pub(in crate::read) fn not(&self) -> Result<Self, TooMany> {
        let parts = match &self.parts {
            Parts::Intervals(parts) => {
                let mut gaps = Vec::with_capacity(parts.len() + 1);
                let mut next = Some(0);
                for &(from, to) in parts {
                    let start = next.unwrap_or(u128::MAX);
                    if start < from {
                        gaps.push((start, from - 1));
                    }
                    next = to.checked_add(1);
                }
                gaps.extend(next.filter(|&start| start <= self.all).map(|start| (start, self.all)));
                Parts::Intervals(gaps)
            }
            Parts::Masked(parts) => {
                let mut rest = vec![(0, 0)];
                for &part in parts {
                    let Parts::Masked(less) =
                        bounded(rest.into_iter().flat_map(|from| without(from, part, self.all)))?
                    else {
                        unreachable!("values under masks stay such")
                    };
                    rest = less;
                }
                Parts::Masked(rest)
            }
        };
        Ok(Self { all: self.all, parts }.into_intervals())
    }

    /// What rules can want of the field: together all of it, and no two the same number.
    pub(in crate::read) fn matches(&self) -> impl Iterator<Item = FieldMatch> {
        let (intervals, masked) = match &self.parts {
            Parts::Intervals(parts) => (&parts[..], &[][..]),
            Parts::Masked(parts) => (&[][..], &parts[..]),
        };
        let ranges = intervals.iter().map(|&(from, to)| FieldMatch::Range(from, to));
        ranges.chain(masked.iter().map(|&(value, mask)| FieldMatch::Masked { value, mask }))
    }

    /// The number of rules for these numbers of the field.
    pub(in crate::read) fn parts_len(&self) -> usize {
        match &self.parts {
            Parts::Intervals(parts) | Parts::Masked(parts) => parts.len(),
        }
    }

    /// Values under masks.
    fn masks(&self) -> Result<Vec<(u128, u128)>, TooMany> {
        match &self.parts {
            Parts::Masked(parts) => Ok(parts.clone()),
            Parts::Intervals(parts) => {
                let all = parts.iter().flat_map(|&(from, to)| prefixes(self.all, from, to));
                match bounded(all)? {
                    Parts::Masked(parts) | Parts::Intervals(parts) => Ok(parts),
                }
            }
        }
    }

    /// Turns the set into intervals where all masks are prefixes, or all numbers are there.
    fn into_intervals(self) -> Self {
        let Parts::Masked(parts) = &self.parts else { return self };
        // No number is there twice; all of 128 bits wrap around to 0.
        let numbers =
            |&(_, mask): &(u128, u128)| 1u128.checked_shl((self.all & !mask).count_ones()).unwrap_or(0);
        let total = parts.iter().map(numbers).fold(0, u128::wrapping_add);
        if total == self.all.wrapping_add(1) && !parts.is_empty() {
            return Self { all: self.all, parts: Parts::Intervals(vec![(0, self.all)]) };
        }
        let interval = |&(value, mask): &(u128, u128)| {
            let free = self.all & !mask;
            (free & free.wrapping_add(1) == 0).then_some((value, value | free))
        };
        match parts.iter().map(interval).collect::<Option<Vec<_>>>() {
            Some(intervals) => Self { all: self.all, parts: Parts::Intervals(merged(intervals)) },
            None => self,
        }
    }
}

/// Intervals in order, those that touch made one.
fn merged(mut parts: Vec<(u128, u128)>) -> Vec<(u128, u128)> {
    parts.sort_unstable();
    let mut merged: Vec<(u128, u128)> = Vec::with_capacity(parts.len());
    for (from, to) in parts {
        match merged.last_mut() {
            Some(last) if last.1.checked_add(1).is_none_or(|next| from <= next) => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// The intersection of intervals.
fn common(a: &[(u128, u128)], b: &[(u128, u128)]) -> Vec<(u128, u128)> {
    let (mut i, mut j, mut both) = (0, 0, Vec::new());
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let (from, to) = (x.0.max(y.0), x.1.min(y.1));
        if from <= to {
            both.push((from, to));
        }
        if x.1 < y.1 { i += 1 } else { j += 1 }
    }
    both
}

/// The intersection of two values under masks.
fn both(a: (u128, u128), b: (u128, u128)) -> Option<(u128, u128)> {
    ((a.0 ^ b.0) & a.1 & b.1 == 0).then_some((a.0 | b.0, a.1 | b.1))
}

/// A value under a mask without another: a part for each bit that only the other looks at.
fn without(from: (u128, u128), other: (u128, u128), all: u128) -> Vec<(u128, u128)> {
    if both(from, other).is_none() {
        return vec![from];
    }
    let (mut left, mut rest) = (other.1 & !from.1 & all, from);
    let mut parts = Vec::new();
    while left != 0 {
        let bit = 1 << (127 - left.leading_zeros());
        left &= !bit;
        parts.push((rest.0 | (!other.0 & bit), rest.1 | bit));
        rest = (rest.0 | (other.0 & bit), rest.1 | bit);
    }
    parts
}

fn bounded(parts: impl Iterator<Item = (u128, u128)>) -> Result<Parts, TooMany> {
    let parts: Vec<_> = parts.take(MOST_MASKED + 1).collect();
    if parts.len() > MOST_MASKED {
        return Err(TooMany { what: "values under masks", limit: MOST_MASKED as u64 });
    }
    Ok(Parts::Masked(parts))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tuple::Kind;

    const FIELD: Field = Field::new("f", 0, 6, Kind::Number);

    /// Sets and the numbers that they have, as bits.
    fn sets() -> impl Strategy<Value = (FieldSet, u64)> {
        let bits =
            |has: &dyn Fn(u128) -> bool| (0..64).filter(|&n| has(n)).fold(0, |bits, n| bits | 1u64 << n);
        let range = (0..64u128, 0..64u128).prop_map(move |(a, b)| {
            (FieldSet::range(&FIELD, a.min(b), a.max(b)), bits(&|n| (a.min(b)..=a.max(b)).contains(&n)))
        });
        let masked = (0..64u128, 0..64u128).prop_map(move |(value, mask)| {
            (FieldSet::masked(&FIELD, value, mask), bits(&|n| (n ^ value) & mask == 0))
        });
        let ranges = proptest::collection::vec((0..64u128, 0..70u128), 0..5).prop_map(move |ranges| {
            let has = |n: u128| ranges.iter().any(|&(from, to)| (from..=to).contains(&n));
            (FieldSet::ranges(&FIELD, ranges.iter().copied()), bits(&has))
        });
        prop_oneof![range, masked, ranges]
    }

    fn numbers(set: &FieldSet) -> u64 {
        (0..64).filter(|&n| set.contains(n)).fold(0, |bits, n| bits | 1 << n)
    }

    fn is_sound(set: &FieldSet, bits: u64) {
        assert_eq!(numbers(set), bits, "{set:?}");
        assert_eq!((set.is_empty(), set.is_all()), (bits == 0, bits == u64::MAX), "{set:?}");
        let mut wanted = [0; 64];
        for one in set.matches() {
            for (n, times) in (0..).zip(&mut wanted) {
                *times += u32::from(match one {
                    FieldMatch::Masked { value, mask } => n & mask == value,
                    FieldMatch::Range(from, to) => (from..=to).contains(&n),
                });
            }
        }
        assert!((0..64).all(|n| u64::from(wanted[n]) == bits >> n & 1), "{set:?}");
        assert_eq!(set.matches().count(), set.parts_len());
    }

    proptest! {
        /// Every operation gives the numbers that it says, and rules that want each of them once.
        #[test]
        fn operations_are_those_of_sets(a in sets(), b in sets(), c in sets()) {
            is_sound(&a.0, a.1);
            let both = a.0.and(&b.0).expect("few");
            is_sound(&both, a.1 & b.1);
            let either = a.0.or(&b.0).expect("few");
            is_sound(&either, a.1 | b.1);
            let any = FieldSet::any(&FIELD, &[a.0.clone(), b.0.clone(), c.0.clone()]).expect("few");
            is_sound(&any, a.1 | b.1 | c.1);
            is_sound(&either.and(&c.0).expect("few"), (a.1 | b.1) & c.1);
            is_sound(&either.not().expect("few"), !(a.1 | b.1));
            is_sound(&both.or(&c.0).expect("few").not().expect("few"), !(a.1 & b.1 | c.1));
        }
    }

    #[test]
    fn the_widest_field() {
        let field = Field::new("f", 0, 128, Kind::Ipv6);
        let all = FieldSet::all(&field);
        assert!(all.is_all() && all.not().expect("none").is_empty());
        let last = FieldSet::one(&field, u128::MAX);
        assert_eq!(last.not(), Ok(FieldSet::range(&field, 0, u128::MAX - 1)));
        assert_eq!(last.not().and_then(|most| most.or(&last)), Ok(all));
        assert_eq!(FieldSet::masked(&field, 0, 0), FieldSet::all(&field));
        let holes = FieldSet::masked(&field, 5, u128::MAX / 3);
        assert!(holes.parts_len() == 1 && holes.contains(5) && !holes.contains(4));
    }

    #[test]
    fn too_many_masks_are_refused() {
        let field = Field::new("f", 0, 128, Kind::Ipv6);
        let holes = |n: u32| FieldSet::masked(&field, 0, (u128::MAX / 3) << n);
        let two = holes(0).not().and_then(|a| holes(1).not()?.and(&a)).expect("64 of each");
        let three = FieldSet::masked(&field, 0, u128::MAX / 5).not().and_then(|third| third.and(&two));
        assert!(three.is_err(), "{:?}", three.map(|set| set.parts_len()));
    }
}
