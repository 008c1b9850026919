//! Names as a [`Domain`]: the type [`NameDomain`] is the domain, [`NameModel`] is its model.

use std::ops::Range;

use wirespeed_table::{BuildError, Domain, Keys, Live, Lookup, Model, Undone};

use crate::aggregate::Aggregated;
use crate::found::Match;
use crate::name::Name;
use crate::names::Names;
use crate::table::{NameTable, NodeId};
use crate::update::NameUpdate;

/// The least head room of a table that takes updates, in hundredths, if
/// [`BuildOptions::head_room`](crate::BuildOptions::head_room) asks for less. An engine may have
/// [its own](crate::Engine::HEAD_ROOM).
pub const HEAD_ROOM: u32 = 40;

/// Additional nodes that the model's index is prepared for, in hundredths of the nodes in the table.
const MORE_NODES: usize = 12;

/// A table of names that takes updates while any number of readers look up.
pub type LiveNames<E> = Live<NameDomain, E>;

/// The domain of names.
#[derive(Clone, Copy, Debug)]
pub enum NameDomain {}

impl Domain for NameDomain {
    type Key<'k> = &'k Name;
    type Keys<'k> = Names<'k>;
    type Found = Match;
    type Result = u32;
    type Source = NameTable;
    type Model = NameModel;
    type Update = NameUpdate;
    type Change = NodeId;
    type Error = BuildError;

    const LEAST_PART: usize = 1_024;
    const HEAD_ROOM: u32 = HEAD_ROOM;
    const LATER_HEAD_ROOM: u32 = 50;

    fn match_each<L: Lookup<Self> + ?Sized>(table: &L, names: Names<'_>, found: &mut [Match]) {
        found.iter_mut().zip(names.iter()).for_each(|(found, name)| *found = table.lookup(name));
    }
}

impl Keys for Names<'_> {
    fn len(&self) -> usize {
        Names::len(self)
    }

    fn part(&self, range: Range<usize>) -> Self {
        Names::part(self, range)
    }
}

/// The names, and the compiled names. If these are [aggregated](Aggregated), results are the same, and match
/// lengths are those of the entries that are left.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // a live table has one, and each change goes through it
pub enum NameModel {
    /// All names are compiled.
    Whole(NameTable),
    /// Only the reduced names are compiled. Memory: that of both tables.
    Aggregated(Aggregated),
}

impl From<NameTable> for NameModel {
    fn from(names: NameTable) -> Self {
        Self::Whole(names)
    }
}

impl NameModel {
    /// Makes the model of all names, or of reduced names.
    pub fn new(names: NameTable, is_aggregated: bool) -> Self {
        match is_aggregated {
            false => Self::Whole(names),
            true => Self::Aggregated(Aggregated::new(names)),
        }
    }

    /// The names as they are now.
    pub const fn names(&self) -> &NameTable {
        match self {
            Self::Whole(names) => names,
            Self::Aggregated(both) => both.full(),
        }
    }

    /// The names that are compiled: all, or the reduced names.
    pub const fn compiled(&self) -> &NameTable {
        match self {
            Self::Whole(names) => names,
            Self::Aggregated(both) => both.reduced(),
        }
    }

    /// Whether only the reduced names are compiled.
    pub const fn is_aggregated(&self) -> bool {
        matches!(self, Self::Aggregated(_))
    }

    /// Calls a function for each of the tables.
    fn each(&mut self, mut act: impl FnMut(&mut NameTable)) {
        match self {
            Self::Whole(names) => act(names),
            Self::Aggregated(both) => both.both_mut().into_iter().for_each(act),
        }
    }
}

impl Model<NameDomain> for NameModel {
    fn source(&self) -> &NameTable {
        self.compiled()
    }

    fn len(&self) -> usize {
        self.compiled().len()
    }

    fn memory_usage(&self) -> u64 {
        match self {
            Self::Whole(names) => names.memory_usage(),
            Self::Aggregated(both) => both.memory_usage(),
        }
    }

    fn start(&mut self) {
        let names = match self {
            Self::Whole(names) => names,
            Self::Aggregated(both) => both.both_mut()[0],
        };
        // Without this the first update that brings new names would make the index anew.
        names.prepare(names.node_count() * MORE_NODES / 100);
        self.each(NameTable::track);
    }

    fn apply(&mut self, updates: &[&NameUpdate], range: Range<usize>) -> usize {
        let updates = updates[range].iter().copied();
        match self {
            Self::Whole(names) => names.apply_all(updates),
            Self::Aggregated(both) => both.apply_all(updates),
        }
    }

    fn take_changed(&mut self, changed: &mut Vec<NodeId>) {
        match self {
            Self::Whole(names) => names.news(changed),
            Self::Aggregated(both) => both.both_mut()[1].news(changed),
        }
    }

    fn settle(&mut self) {
        self.each(NameTable::settle);
    }

    fn undo(&mut self, _: &mut Vec<NodeId>) -> Undone {
        self.each(NameTable::undo);
        Undone::Lost
    }
}
