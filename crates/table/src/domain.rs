//! [`Domain`]: the keys, results and updates of a kind of table; and [`Model`], the data that a table is
//! built from.

use std::error::Error;
use std::fmt::Debug;
use std::ops::Range;

use crate::error::BuildError;
use crate::lookup::Lookup;

/// The keys of a batch, borrowed.
pub trait Keys: Copy + Send + Sync {
    /// The number of keys.
    fn len(&self) -> usize;

    /// Whether there are no keys.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The keys of a range. Panics like a slice if the range is past the end.
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

/// A kind of table: its keys, updates and results. It is a type without values if no key type can stand for
/// it.
pub trait Domain: Sized + Send + Sync + 'static {
    /// The key of a single lookup.
    type Key<'k>: Copy;
    /// The keys of a batch.
    type Keys<'k>: Keys;
    /// The result of a single lookup.
    type Found: Copy + Default + PartialEq + Debug + Send + Sync + 'static;
    /// The result of each key in a batch: an index into the user's own table of results.
    type Result: Copy + Default + PartialEq + Debug + Send + Sync + 'static;

    /// The data that engines compile.
    type Source: Debug + Send + Sync + 'static;
    /// The data that the user owns: the source, or data from which the source follows.
    type Model: Model<Self>;
    /// A change as the user makes it.
    type Update: Debug;
    /// A change as engines get it.
    type Change: Debug + Send + Sync + 'static;
    /// The reason why updates can't be applied.
    type Error: From<BuildError> + Error + Send + Sync + 'static;

    /// The fewest keys of a batch that are worth another thread.
    const LEAST_PART: usize;
    /// The number of updates that go through model and engine together, so that the engine finds the model's
    /// data in the cache.
    const TOGETHER: usize = usize::MAX;
    /// The least head room of a live table, in hundredths, if
    /// [`BuildOptions::head_room`](crate::BuildOptions::head_room) asks for less.
    const HEAD_ROOM: u32 = 0;
    /// The head room of a live table that was rebuilt, so that it does not outgrow its sections again soon.
    const LATER_HEAD_ROOM: u32 = 0;

    /// Looks each key up singly: the way of engines that have no faster one for matches.
    fn match_each<L: Lookup<Self> + ?Sized>(table: &L, keys: Self::Keys<'_>, found: &mut [Self::Found]);
}

/// The data that tables are built from. It takes updates, knows what they changed, and can take them back.
///
/// ```text
///          ┌─ apply, take_changed (once or more) ─┬─ settle ─┐
/// start ───┤                                      └─ undo ───┤
///          └─────────────────────────────────────────────────┘
/// ```
pub trait Model<D: Domain>: Debug + Send + Sync + Sized + 'static {
    /// The data that engines compile.
    fn source(&self) -> &D::Source;

    /// The number of entries of the source.
    fn len(&self) -> usize;

    /// Whether there are no entries.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held.
    fn memory_usage(&self) -> u64;

    /// Prepares for updates, when the table goes live.
    fn start(&mut self) {}

    /// Checks that updates can be applied in order. Finds everything that could be wrong with them.
    fn check(&self, updates: &[&D::Update]) -> Result<(), D::Error> {
        let _ = updates;
        Ok(())
    }

    /// Applies a range of updates that were checked. Later updates follow in later calls. Returns how many
    /// changed the model.
    fn apply(&mut self, updates: &[&D::Update], range: Range<usize>) -> usize;

    /// Appends the changes since the last call, each once.
    fn take_changed(&mut self, changed: &mut Vec<D::Change>);

    /// Keeps all changes: they can't be taken back any more.
    fn settle(&mut self);

    /// Takes back all changes since the last [`settle`](Self::settle). `changed` lists the changes that
    /// [`take_changed`](Self::take_changed) gave since then.
    fn undo(&mut self, changed: &mut Vec<D::Change>) -> Undone;

    /// The number of leading bits of a key that lookups may depend on, for keys that are packed by bits.
    fn reach(&self) -> u8 {
        0
    }

    /// The [`reach`](Self::reach) of changes.
    fn reach_of(changed: &[D::Change]) -> u8 {
        let _ = changed;
        0
    }
}

/// The consequence for an engine of changes that were taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undone {
    /// An engine that gets the same changes again returns to its old state.
    Retold,
    /// The engine must be built again.
    Lost,
}
