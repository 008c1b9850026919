//! Live tables: readers look up while the writer changes the table.
//!
//! There are two copies. Readers look up in one copy. The writer patches the other copy, and then makes
//! readers enter that copy. Before the next change it waits until no reader is in the first copy, and brings
//! that copy up to date. This is the left-right scheme (`left_right.rs`). Entering costs one locked
//! instruction on memory that only its thread writes, and never waits for the writer. A reader sees one state
//! while it holds its guard. The writer waits for guards, so hold a guard for a batch only. While a guard is
//! held one more change can be made; the next change waits for the guard. A thread that holds a guard and
//! makes both changes waits for itself for ever. A call that changes nothing, or fails, does not wait.
//!
//! Some data is not part of the table, but readers need it in the same state, such as the names of results.
//! Such data lies [beside](Beside) each copy and changes with it.
//!
//! Memory: two copies of the table and the last patch. While a table is replaced, four copies. An engine may
//! let both copies [share](Table::share) sections, if its patches write there only what no reader reads yet.
//!
//! # When an update fails
//!
//! **A call that fails did not happen.** All live tables promise this: tables of routes, names and rules, in
//! their crates and in the façade. They promise it for each call that changes a table (`apply`, `insert`,
//! `set`, `remove`, `replace`, `load`), and for every reason (an invalid value, a table that is too large for
//! its engine, a memory cap). After an `Err`
//!
//! - the model (routes, names or rules, their number, the last rule number) is as it was before the call: all
//!   updates of the call were taken back, also those before the one that failed;
//! - readers, guards, data [beside](Beside) the table, and [followers](Follower) such as copies on GPUs saw
//!   nothing of the call;
//! - so readers and the model agree after every call, and no table is ever stale;
//! - the next call behaves as if the failed call had not been made. A repeated call fails again while its
//!   reason stays. A removal succeeds if the rest can be built.
//!
//! A failure may cost time. An update is a patch, if the table has room for it. Otherwise the table is
//! rebuilt from the model, and it is the rebuild that fails over a cap or a limit. So a call that is refused
//! takes as long as a build, and so does the next call that succeeds. Later updates are patches again.
//!
//! Entries can usually be removed from a table that is at its cap: a rebuild that is over the cap with the
//! usual head room is tried again with almost none. It may be refused all the same. Patches can fill a table
//! further than a rebuild can, above all with engines that hash. Then remove more entries in one call.
//!
//! Memory that was allocated by a failed call may be kept for later calls.
//!
//! The alternative, `arc-swap` with a fresh copy for each change, made 670 changes a second instead of
//! 610,000 (a table of a megabyte, one reader on another core, Zen 4).

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

use thread_local::ThreadLocal;

use crate::error::PatchError;
use crate::left_right::{self, Copies, Entrance, Entrances};
use crate::patch::Patch;
use crate::table::{Checked, Table};

/// The writer of a live table.
#[derive(Debug)]
pub struct Writer<T: Table, B: Beside = ()> {
    copies: Copies<State<T, B>>,
    /// The last change, which one copy has yet to see.
    last: Option<Change<T, B>>,
    reader: Reader<T, B>,
    followers: Vec<Box<dyn Follower<T>>>,
}

/// Data that belongs to a state of a table and is not looked up in. It changes with the table, and readers
/// see both in the same state.
pub trait Beside: Clone + Debug + Send + Sync + 'static {
    /// A change of the data, made when the table changes.
    type Change: Debug + Send + Sync;

    /// Applies a change.
    fn apply(&mut self, change: &Self::Change);
}

/// No data beside the table.
impl Beside for () {
    type Change = ();

    fn apply(&mut self, (): &()) {}
}

/// A state: the table, and the data beside it. The table is last, so that a reference to a state can become a
/// reference to the state of a trait object.
#[derive(Clone, Debug)]
pub struct State<T: ?Sized, B> {
    /// The data beside the table.
    pub beside: B,
    /// The table.
    pub table: T,
}

impl<T: Table, B: Beside> State<T, B> {
    /// The other copy.
    fn twin(&self) -> Self {
        Self { beside: self.beside.clone(), table: self.table.twin(Checked(())) }
    }

    /// Makes a change in the first copy.
    fn make(&mut self, change: &mut Change<T, B>) {
        match &mut change.what {
            What::Patch(patch) => self.table.image_mut(Checked(())).write_patch(patch),
            What::Replace { first, .. } => {
                if let Some(table) = first.take() {
                    self.table = table;
                }
            }
        }
        self.beside.apply(&change.beside);
    }

    /// Makes a change in the second copy.
    fn make_again(&mut self, change: Change<T, B>) {
        match change.what {
            What::Patch(patch) => self.table.image_mut(Checked(())).write_again(&patch),
            What::Replace { second, .. } => self.table = second,
        }
        self.beside.apply(&change.beside);
    }
}

/// A copy of the table elsewhere, such as on a GPU. It is told of every change, in order.
///
/// A follower must handle its own failures: the change is made in any case.
pub trait Follower<T: Table>: Debug + Send + Sync {
    /// Says that from the next change on lookups may depend on this number of leading bits of a key, and
    /// never on fewer.
    fn reach(&mut self, bits: u8) {
        let _ = bits;
    }

    /// Applies a patch that was checked against the table.
    fn patch(&mut self, patch: &Patch);

    /// Replaces the table.
    fn replace(&mut self, table: &T);
}

/// The reader of a live table. Threads share one, or clone it; a clone costs a reference count. It may
/// outlive the writer.
pub struct Reader<T: Table, B: Beside = ()>(Arc<Shared<T, B>>);

/// What all clones of a reader share.
struct Shared<T: Table, B: Beside> {
    /// A thread's own entrance, made when the thread first enters. A thread that ends leaves it to a later
    /// one.
    each: ThreadLocal<Entrance<State<T, B>>>,
    entrances: Entrances<State<T, B>>,
}

/// The result of a set of updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The number of updates that changed the model.
    pub changes: usize,
    /// Elements written to each copy of the table.
    pub writes: usize,
    /// Whether the table was rebuilt.
    pub rebuilt: bool,
}

/// The sum of two results, for example of two tables.
impl std::ops::Add for Applied {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            changes: self.changes + other.changes,
            writes: self.writes + other.writes,
            rebuilt: self.rebuilt | other.rebuilt,
        }
    }
}

impl<T: Table> Writer<T> {
    /// Makes a table live. Takes a copy of it.
    pub fn new(table: T) -> Self {
        Self::with(table, ())
    }

    /// Applies a patch. Readers that enter from now on see all of it. Waits for readers that entered before
    /// the previous change. A patch that doesn't fit is refused, and nothing changes.
    pub fn patch(&mut self, patch: Patch) -> Result<(), PatchError> {
        self.patch_with(patch, ())
    }

    /// Replaces the table. Otherwise like [`patch`](Self::patch).
    pub fn replace(&mut self, table: T) {
        self.replace_with(table, ());
    }
}

impl<T: Table, B: Beside> Writer<T, B> {
    /// Makes a table live with the data beside it. Takes a copy of both.
    pub fn with(mut table: T, beside: B) -> Self {
        table.share(Checked(()));
        let state = State { table, beside };
        let copies = Copies::new([state.twin(), state]);
        let reader = Reader(Arc::new(Shared { each: ThreadLocal::new(), entrances: copies.entrances() }));
        Self { copies, last: None, reader, followers: Vec::new() }
    }

    /// Adds a follower, which is told of every change from now on. It is made from the current table; this
    /// call borrows the writer, so no change comes between.
    pub fn follow<F: Follower<T> + 'static, E>(
        &mut self,
        make: impl FnOnce(&T) -> Result<F, E>,
    ) -> Result<(), E> {
        let follower = make(&self.current())?;
        self.followers.push(Box::new(follower));
        Ok(())
    }

    /// Makes a reader of this table.
    pub fn reader(&self) -> Reader<T, B> {
        self.reader.clone()
    }

    /// Tells followers that from the next change on lookups may depend on this number of leading bits of a
    /// key.
    pub fn reach(&mut self, bits: u8) {
        self.followers.iter_mut().for_each(|follower| follower.reach(bits));
    }

    /// Applies a patch, and a change of the data beside the table. Readers that enter from now on see all of
    /// both. Waits for readers that entered before the previous change. A patch that doesn't fit is refused,
    /// and nothing changes.
    pub fn patch_with(&mut self, patch: Patch, beside: B::Change) -> Result<(), PatchError> {
        self.current().check(&patch)?;
        self.followers.iter_mut().for_each(|follower| follower.patch(&patch));
        self.change(What::Patch(patch), beside);
        Ok(())
    }

    /// Replaces the table and changes the data beside it. Otherwise like [`patch_with`](Self::patch_with).
    pub fn replace_with(&mut self, mut table: T, beside: B::Change) {
        self.followers.iter_mut().for_each(|follower| follower.replace(&table));
        table.share(Checked(()));
        self.change(What::Replace { second: table.twin(Checked(())), first: Some(table) }, beside);
    }

    /// Changes the data beside the table alone. Otherwise like [`patch_with`](Self::patch_with); followers
    /// are told nothing.
    pub fn change_beside(&mut self, beside: B::Change) {
        self.change(What::Patch(Patch::default()), beside);
    }

    /// The current table.
    pub fn current(&self) -> Guard<'_, T> {
        self.reader.enter()
    }

    /// Bytes held: both copies. Sections that they share count once. Each thread that looks up adds under a
    /// kilobyte.
    pub fn memory_usage(&self) -> u64 {
        self.current().image().bytes_of_twins()
    }

    fn change(&mut self, what: What<T>, beside: B::Change) {
        // Neither is left half done by a panic: a change is checked before it is made.
        let (before, mut change) = (self.last.take(), Change { what, beside });
        self.copies.change(|state| {
            if let Some(before) = before {
                state.make_again(before);
            }
            state.make(&mut change);
        });
        self.last = Some(change);
    }
}

impl<T: Table, B: Beside> Reader<T, B> {
    /// Enters the current state of the table, until the guard is dropped. Wait-free, except for a thread's
    /// first call, which takes a lock for a moment.
    #[inline]
    pub fn enter(&self) -> Guard<'_, T> {
        Guard::map(self.enter_state(), |state| &state.table)
    }

    /// Enters the current state of the table and the data beside it like [`enter`](Self::enter).
    #[inline]
    pub fn enter_state(&self) -> Guard<'_, State<T, B>> {
        Guard(self.0.each.get_or(|| self.0.entrances.entrance()).enter())
    }
}

impl<T: Table, B: Beside> Clone for Reader<T, B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Table, B: Beside> Debug for Reader<T, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Reader").field(&T::KIND).finish()
    }
}

/// One state of a table, until the guard is dropped.
#[derive(Debug)]
pub struct Guard<'a, T: ?Sized>(left_right::Guard<'a, T>);

impl<'a, T: ?Sized> Guard<'a, T> {
    /// Borrows the state in another form, such as a trait object that hides the engine.
    #[inline]
    pub fn map<U: ?Sized>(guard: Self, view: impl for<'t> FnOnce(&'t T) -> &'t U) -> Guard<'a, U> {
        Guard(left_right::Guard::map(guard.0, view))
    }
}

impl<T: ?Sized> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// A change, applied to one copy and then to the other.
#[derive(Debug)]
struct Change<T, B: Beside> {
    what: What<T>,
    beside: B::Change,
}

/// A change of the table.
#[derive(Debug)]
enum What<T> {
    Patch(Patch),
    /// A table for each copy.
    Replace {
        first: Option<T>,
        second: T,
    },
}

#[cfg(test)]
mod tests;
