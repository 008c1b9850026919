//! [`Region`]: some of all tuples, as boxes.

use std::sync::Arc;

use super::set::{FieldSet, TooMany};
#[cfg(test)]
use crate::tuple::Tuple;
use crate::tuple::{Field, Fields};

/// The most boxes that a region may have.
const MOST_CELLS: usize = 1 << 16;

/// Some of all tuples: those of any of its boxes.
#[derive(Clone, Debug)]
pub(in crate::read) struct Region {
    cells: Vec<Cell>,
}

/// A box: the tuples of which each field is in a set.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::read) struct Cell {
    /// Fields of the tuple in their order, each with its set. Other fields may be anything.
    sets: Vec<(&'static Field, Arc<FieldSet>)>,
}

impl Region {
    /// All tuples.
    pub(in crate::read) fn all() -> Self {
        Self { cells: vec![Cell { sets: Vec::new() }] }
    }

    /// No tuple.
    pub(in crate::read) const fn none() -> Self {
        Self { cells: Vec::new() }
    }

    /// The tuples with a field in a set.
    pub(in crate::read) fn of(field: &'static Field, set: FieldSet) -> Self {
        match () {
            () if set.is_empty() => Self::none(),
            () if set.is_all() => Self::all(),
            () => Self { cells: vec![Cell { sets: vec![(field, Arc::new(set))] }] },
        }
    }

    /// The tuples of frames of a type; all tuples, where they don't hold it.
    pub(in crate::read) fn of_type(fields: Fields, ether_type: u16) -> Self {
        let of = |field| Self::of(field, FieldSet::one(field, ether_type.into()));
        fields.called("dl_type").map_or_else(Self::all, of)
    }

    /// Whether it has no tuple.
    pub(in crate::read) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Whether it is known to have all tuples: its one box is all of them.
    pub(in crate::read) fn is_all(&self) -> bool {
        matches!(&*self.cells, [cell] if cell.is_all())
    }

    /// Whether it has a tuple.
    #[cfg(test)]
    pub(in crate::read) fn contains(&self, tuple: &impl Tuple) -> bool {
        self.cells.iter().any(|cell| cell.contains(tuple))
    }

    /// The boxes.
    pub(in crate::read) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The number of rules for it.
    pub(in crate::read) fn rules_len(&self) -> u64 {
        let of = |cell: &Cell| cell.lens().fold(1, u64::saturating_mul);
        self.cells.iter().map(of).fold(0, u64::saturating_add)
    }

    /// How much there is to look at.
    pub(in crate::read) fn weight(&self) -> u64 {
        self.cells.iter().map(|cell| 1 + cell.lens().sum::<u64>()).sum()
    }

    /// Whether it is known to be another: both are the same boxes.
    pub(in crate::read) fn is_same(&self, other: &Self) -> bool {
        self.cells == other.cells
    }

    /// The tuples that both have.
    pub(in crate::read) fn and(&self, other: &Self) -> Result<Self, TooMany> {
        let mut cells = Vec::new();
        for a in &self.cells {
            for b in &other.cells {
                push(&mut cells, a.and(b)?)?;
            }
        }
        Ok(Self { cells })
    }

    /// The tuples that either has.
    pub(in crate::read) fn or(&self, other: &Self) -> Result<Self, TooMany> {
        let mut either = self.clone();
        either.add(other)?;
        Ok(either)
    }

    /// Adds the tuples of another.
    pub(in crate::read) fn add(&mut self, other: &Self) -> Result<(), TooMany> {
        if self.is_all() || other.is_all() {
            *self = Self::all();
            return Ok(());
        }
        for cell in &other.cells {
            match self.cells.last_mut().map(|last| last.joined(cell)).transpose()?.flatten() {
                Some(joined) => *self.cells.last_mut().expect("it was joined to") = joined,
                None => push(&mut self.cells, Some(cell.clone()))?,
            }
        }
        Ok(())
    }

    /// The tuples of this region that are not in another.
    pub(in crate::read) fn minus(&self, other: &Self) -> Result<Self, TooMany> {
        let mut left = self.cells.clone();
        for cell in &other.cells {
            let mut less = Vec::new();
            for from in left {
                from.minus(cell, &mut less)?;
            }
            left = less;
        }
        Ok(Self { cells: left })
    }

    /// The tuples outside the region.
    pub(in crate::read) fn not(&self) -> Result<Self, TooMany> {
        Self::all().minus(self)
    }

    /// Its tuples whose ports are both 0, and its others.
    pub(in crate::read) fn split_at_ports_of_zero(&self, fields: Fields) -> Result<(Self, Self), TooMany> {
        let mut zero = Self::all();
        for name in ["sport", "dport"] {
            if let Some(field) = fields.called(name) {
                zero = zero.and(&Self::of(field, FieldSet::one(field, 0)))?;
            }
        }
        Ok((self.and(&zero)?, self.minus(&zero)?))
    }
}

impl Cell {
    fn is_all(&self) -> bool {
        self.sets.is_empty()
    }

    #[cfg(test)]
    fn contains(&self, tuple: &impl Tuple) -> bool {
        self.fields().all(|(field, set)| set.contains(tuple.field(field)))
    }

    /// The fields with a condition, and their sets.
    pub(in crate::read) fn fields(&self) -> impl Iterator<Item = (&'static Field, &FieldSet)> {
        self.sets.iter().map(|(field, set)| (*field, &**set))
    }

    /// The number of parts of each set.
    fn lens(&self) -> impl Iterator<Item = u64> {
        self.sets.iter().map(|(_, set)| set.parts_len() as u64)
    }

    fn and(&self, other: &Self) -> Result<Option<Self>, TooMany> {
        let mut both = self.clone();
        for (field, theirs) in &other.sets {
            if !both.narrow(field, theirs)? {
                return Ok(None);
            }
        }
        Ok(Some(both))
    }

    /// Removes the tuples whose field is not in a set. Returns whether tuples are left.
    fn narrow(&mut self, field: &'static Field, set: &Arc<FieldSet>) -> Result<bool, TooMany> {
        match self.place(field) {
            Err(at) => {
                self.sets.insert(at, (field, Arc::clone(set)));
                Ok(!set.is_empty())
            }
            Ok(at) if Arc::ptr_eq(&self.sets[at].1, set) => Ok(true),
            Ok(at) => {
                let narrow = self.sets[at].1.and(set)?;
                let is_left = !narrow.is_empty();
                self.sets[at].1 = Arc::new(narrow);
                Ok(is_left)
            }
        }
    }

    /// The set of a field.
    fn set(&self, field: &Field) -> Option<&Arc<FieldSet>> {
        self.place(field).ok().map(|at| &self.sets[at].1)
    }

    /// The place of a field among those with a set, or where it would be.
    fn place(&self, field: &Field) -> Result<usize, usize> {
        self.sets.binary_search_by_key(&field.offset, |(own, _)| own.offset)
    }

    /// Adds its part that another has not: for each field in turn, the part beside the other in that field
    /// and within the other in those before.
    fn minus(self, other: &Self, to: &mut Vec<Self>) -> Result<(), TooMany> {
        if self.and(other)?.is_none() {
            return push(to, Some(self));
        }
        let mut within = self;
        for (field, theirs) in &other.sets {
            let mut beside = within.clone();
            if beside.narrow(field, &Arc::new(theirs.not()?))? {
                push(to, Some(beside))?;
            }
            if !within.narrow(field, theirs)? {
                break;
            }
        }
        Ok(())
    }

    /// Both as one box, where they differ in one field at most.
    fn joined(&self, other: &Self) -> Result<Option<Self>, TooMany> {
        let own = self.sets.iter().filter(|(field, set)| other.set(field) != Some(set));
        let theirs = other.sets.iter().filter(|(field, _)| self.set(field).is_none());
        let mut differing = own.chain(theirs).map(|(field, _)| *field);
        let (Some(field), None) = (differing.next(), differing.next()) else {
            return Ok((self.sets == other.sets).then(|| self.clone()));
        };
        let either = match (self.set(field), other.set(field)) {
            (Some(a), Some(b)) => Some(a.or(b)?).filter(|set| !set.is_all()),
            _ => None,
        };
        let mut joined = self.clone();
        joined.sets.retain(|(own, _)| *own != field);
        if let (Some(either), Err(at)) = (either, joined.place(field)) {
            joined.sets.insert(at, (field, Arc::new(either)));
        }
        Ok(Some(joined))
    }
}

/// Adds a box, if it is one.
fn push(cells: &mut Vec<Cell>, cell: Option<Cell>) -> Result<(), TooMany> {
    cells.extend(cell);
    match cells.len() > MOST_CELLS {
        true => Err(TooMany { what: "boxes", limit: MOST_CELLS as u64 }),
        false => Ok(()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Ipv4Tuple;

    /// Few numbers of each field, so that regions meet.
    pub(in crate::read::chains) fn regions() -> impl Strategy<Value = Region> {
        let set = (0..5usize, 0..8u128, 0..8u128, any::<bool>()).prop_map(|(field, a, b, is_mask)| {
            let field = &Ipv4Tuple::FIELDS[field];
            let set = match is_mask {
                true => FieldSet::masked(field, a, b),
                false => FieldSet::range(field, a.min(b), a.max(b)),
            };
            Region::of(field, set)
        });
        let and = |sets: Vec<Region>| {
            sets.iter().try_fold(Region::all(), |all, set| all.and(set)).expect("few boxes")
        };
        let cell = proptest::collection::vec(set, 0..4).prop_map(and);
        proptest::collection::vec(cell, 0..4).prop_map(|cells| {
            cells.iter().try_fold(Region::none(), |all, cell| all.or(cell)).expect("few boxes")
        })
    }

    pub(in crate::read::chains) fn tuples() -> impl Strategy<Value = Ipv4Tuple> {
        proptest::array::uniform5(0..9u128).prop_map(|numbers| {
            Ipv4Tuple::FIELDS.iter().zip(numbers).fold(Ipv4Tuple::default(), |t, (field, n)| t.with(field, n))
        })
    }

    proptest! {
        #[test]
        fn operations_are_those_of_sets(
            a in regions(),
            b in regions(),
            tuples in proptest::collection::vec(tuples(), 40),
        ) {
            let (and, or) = (a.and(&b).expect("few"), a.or(&b).expect("few"));
            let (minus, not) = (a.minus(&b).expect("few"), a.not().expect("few"));
            let (zero, other) = a.split_at_ports_of_zero(Fields::of::<Ipv4Tuple>()).expect("few");
            for t in &tuples {
                let (in_a, in_b) = (a.contains(t), b.contains(t));
                prop_assert_eq!(and.contains(t), in_a && in_b);
                prop_assert_eq!(or.contains(t), in_a || in_b);
                prop_assert_eq!(minus.contains(t), in_a && !in_b);
                prop_assert_eq!(not.contains(t), !in_a);
                let is_zero = t.field(&Ipv4Tuple::SPORT) == 0 && t.field(&Ipv4Tuple::DPORT) == 0;
                prop_assert_eq!((zero.contains(t), other.contains(t)), (in_a && is_zero, in_a && !is_zero));
            }
        }
    }
}
