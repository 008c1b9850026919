//! [`Domain`]: what keys, results and updates of a kind of table are; and [`Model`], what its user owns.

use std::error::Error;
use std::fmt::Debug;
use std::ops::Range;

use crate::error::BuildError;
use crate::lookup::Lookup;

/// Keys of a batch, borrowed.
pub trait Keys: Copy + Send + Sync {
    /// How many.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of them. Panics as slices do.
    #[must_use]
    fn part(&self, range: Range<usize>) -> Self;
}

impl<K: Sync> Keys for &[K] {
    fn len(&self) -> usize {
        <[K]>::len(self)
    }

    fn part(&self, range: Range<usize>) -> Self {
        &self[range]
    }
}

/// A kind of table: what goes in, what is asked and what comes out. It is a type without values of its own
/// where no key type can stand for it.
pub trait Domain: Sized + Send + Sync + 'static {
    /// A key as a single lookup takes it.
    type Key<'k>: Copy;
    /// Keys as a batch takes them.
    type Keys<'k>: Keys;
    /// What a single lookup finds.
    type Found: Copy + Default + PartialEq + Debug + Send + Sync + 'static;
    /// What a batch finds for each key: an index into the user's own table of results.
    type Result: Copy + Default + PartialEq + Debug + Send + Sync + 'static;

    /// What engines compile.
    type Source: Debug + Send + 'static;
    /// What the user owns: the source, or what it is derived from.
    type Model: Model<Self>;
    /// A change as a user says it.
    type Update: Debug;
    /// A change as engines are told of it.
    type Change: Debug + Send + 'static;
    /// Why updates can't be applied.
    type Error: From<BuildError> + Error + Send + Sync + 'static;

    /// Keys of the shortest part of a batch that is worth handing to another thread.
    const LEAST_PART: usize;
    /// Updates that go through model and engine together: what the one has read the other finds in the cache.
    const TOGETHER: usize = usize::MAX;
    /// Head room that a live table asks for at least, in hundredths, where
    /// [`BuildOptions::head_room`](crate::BuildOptions::head_room) asks for less.
    const HEAD_ROOM: u32 = 0;
    /// Head room of a live table that was outgrown, so that it isn't soon again.
    const LATER_HEAD_ROOM: u32 = 0;

    /// What a table finds for each key of a batch, where its engine has no faster way.
    fn match_each<L: Lookup<Self> + ?Sized>(table: &L, keys: Self::Keys<'_>, found: &mut [Self::Found]);
}

/// What the user owns, from which tables are built: it takes updates, knows what they changed, and can take
/// them back.
///
/// ```text
///          ┌─ apply, take_changed (once or more) ─┬─ settle ─┐
/// start ───┤                                      └─ undo ───┤
///          └─────────────────────────────────────────────────┘
/// ```
pub trait Model<D: Domain>: Debug + Send + Sized + 'static {
    /// What engines compile.
    fn source(&self) -> &D::Source;

    /// Entries of the source.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held.
    fn memory_usage(&self) -> u64;

    /// Prepares for updates: the table goes live.
    fn start(&mut self) {}

    /// Whether updates can be applied in order. Whatever could be wrong with one is found here.
    fn check(&self, updates: &[&D::Update]) -> Result<(), D::Error> {
        let _ = updates;
        Ok(())
    }

    /// Applies a range of many updates that were checked; those after them are next. How many changed
    /// anything.
    fn apply(&mut self, updates: &[&D::Update], range: Range<usize>) -> usize;

    /// Appends what changed since this was called last, each once.
    fn take_changed(&mut self, changed: &mut Vec<D::Change>);

    /// Lets all changes stand: they can't be taken back any more.
    fn settle(&mut self);

    /// Takes all changes back since they were settled last. `changed` lists what
    /// [`take_changed`](Self::take_changed) gave since then.
    fn undo(&mut self, changed: &mut Vec<D::Change>) -> Undone;

    /// How many first bits of a key lookups may depend on, for keys that are packed by their bits.
    fn reach(&self) -> u8 {
        0
    }

    /// The [`reach`](Self::reach) that changes bring.
    fn reach_of(changed: &[D::Change]) -> u8 {
        let _ = changed;
        0
    }
}

/// What an engine can make of changes that were taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undone {
    /// Told of the same changes once more, an engine comes back to where it was.
    Retold,
    /// An engine has to be built anew.
    Lost,
}
