//! Live tables: readers look up while the writer changes the table.
//!
//! There are two copies. Readers look up in one copy. The writer patches the other copy, and then makes
//! readers enter that copy. Before the next change it waits until no reader is in the first copy, and brings
//! that copy up to date. This is the left-right scheme, from the crate of that name. Entering costs a few
//! uncontended atomic operations, and never waits for the writer. A reader sees one state while it holds its
//! guard. The writer waits for guards, so hold a guard for a batch only. While a guard is held one more
//! change can be made; the next change waits for the guard. A thread that holds a guard and makes both
//! changes waits for itself for ever. A call that changes nothing, or fails, does not wait.
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
//! their crates and in the façade, for each call that changes a table (`apply`, `insert`, `set`, `remove`,
//! `replace`, `load`), for every reason (an invalid value, a table that is too large for its engine, a memory
//! cap). After an `Err`
//!
//! - the model (routes, names or rules, their number, the last rule number) is as it was before the call: all
//!   updates of the call were taken back, also those before the one that failed;
//! - readers, guards, data [beside](Beside) the table, and [followers](Follower) such as copies on GPUs saw
//!   nothing of the call;
//! - so readers and the model agree after every call, and no table is ever stale;
//! - the next call behaves as if the failed call had not been made. A repeated call fails again while its
//!   reason stays. A removal succeeds if the rest can be built.
//!
//! A failure may cost time. Updates first go to the engine, which patches the table. A table that has
//! outgrown its sections is rebuilt from the model, and this rebuild fails over a cap or a limit. The engine
//! is lost then, so a refused call costs a build, and the next call that succeeds costs one, too. After that
//! updates cost as little as before. If a rebuild with the usual head room is over a cap, a rebuild with
//! almost no head room is tried before the call is refused. So a table near its cap can still lose entries,
//! but is rebuilt more often. This is no promise: a table that was patched until it was full may be fuller
//! than any rebuilt table can be, above all with engines that hash. Then a removal of few entries is refused
//! with the same error, until a call removes more.
//!
//! Memory that was allocated by a failed call may be kept for later calls.
//!
//! The alternative, `arc-swap` with a fresh copy for each change, entered in 4.3 ns instead of 6.5 and made
//! 670 changes a second instead of 610,000 (a table of a megabyte, one reader on another core, Zen 4).

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use left_right::{Absorb, ReadGuard, ReadHandle, ReadHandleFactory, WriteHandle};
use thread_local::ThreadLocal;

use crate::error::PatchError;
use crate::patch::Patch;
use crate::table::{Checked, Table};

/// The writer of a live table.
#[derive(Debug)]
pub struct Writer<T: Table, B: Beside = ()> {
    handle: Handle<T, B>,
    reader: Reader<T, B>,
    followers: Vec<Box<dyn Follower<T>>>,
}

/// The handle that publishes changes. Its lock is never contended: there is one writer, and readers hold the
/// handle only to keep the copies alive.
type Handle<T, B> = Arc<Mutex<WriteHandle<Held<T, B>, Change<T, B>>>>;

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

/// One of the two copies.
#[derive(Debug)]
struct Held<T, B>(State<T, B>);

/// Makes the other copy.
impl<T: Table, B: Beside> Clone for Held<T, B> {
    fn clone(&self) -> Self {
        Self(State { beside: self.0.beside.clone(), table: self.0.table.twin(Checked(())) })
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
    /// A thread's own handle, made when the thread first enters. A thread that ends leaves it to a later one.
    each: ThreadLocal<ReadHandle<Held<T, B>>>,
    factory: ReadHandleFactory<Held<T, B>>,
    /// Keeps the copies alive.
    _handle: Handle<T, B>,
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
        let (mut handle, reader) = left_right::new_from_empty(Held(State { table, beside }));
        // The first two publications follow special rules in that crate. They are made here, where they cost
        // nothing.
        handle.publish();
        handle.publish();
        let handle = Arc::new(Mutex::new(handle));
        let reader = Reader(Arc::new(Shared {
            each: ThreadLocal::new(),
            factory: reader.factory(),
            _handle: Arc::clone(&handle),
        }));
        Self { handle, reader, followers: Vec::new() }
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
        lock(&self.handle).append(Change { what, beside }).publish();
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
        let guard = self.0.each.get_or(|| self.0.factory.handle()).enter();
        let guard = guard.expect("whoever holds a reader also keeps the write handle, and so the copies");
        Guard(ReadGuard::map(guard, |held| &held.0))
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
pub struct Guard<'a, T: ?Sized>(ReadGuard<'a, T>);

impl<'a, T: ?Sized> Guard<'a, T> {
    /// Borrows the state in another form, such as a trait object that hides the engine.
    #[inline]
    pub fn map<U: ?Sized>(guard: Self, view: impl for<'t> FnOnce(&'t T) -> &'t U) -> Guard<'a, U> {
        Guard(ReadGuard::map(guard.0, view))
    }
}

impl<T: ?Sized> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves no change half done: a change is checked before it is made.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

impl<T: Table, B: Beside> Absorb<Change<T, B>> for Held<T, B> {
    fn absorb_first(&mut self, change: &mut Change<T, B>, _: &Self) {
        match &mut change.what {
            What::Patch(patch) => self.0.table.image_mut(Checked(())).write_patch(patch),
            What::Replace { first, .. } => {
                if let Some(table) = first.take() {
                    self.0.table = table;
                }
            }
        }
        self.0.beside.apply(&change.beside);
    }

    fn absorb_second(&mut self, change: Change<T, B>, _: &Self) {
        match change.what {
            What::Patch(patch) => self.0.table.image_mut(Checked(())).write_again(&patch),
            What::Replace { second, .. } => self.0.table = second,
        }
        self.0.beside.apply(&change.beside);
    }

    // Called once, before there was a change.
    fn sync_with(&mut self, _: &Self) {}
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::{Image, ImageBuilder, ImageError, PatchBuilder, SectionId};

    const CELLS: SectionId = SectionId(0);

    /// A table whose elements are all equal in every consistent state.
    #[derive(Clone, Debug)]
    struct Flat(Image);

    impl Flat {
        fn new(len: u64) -> Self {
            Self(ImageBuilder::new("flat", 1).section::<u32>("cells", len).build(None).unwrap())
        }
    }

    impl Table for Flat {
        const KIND: &'static str = "flat";
        const LAYOUT: u32 = 1;

        fn from_image(image: Image) -> Result<Self, ImageError> {
            Self::expect_kind(&image)?;
            Ok(Self(image))
        }

        fn image(&self) -> &Image {
            &self.0
        }

        fn image_mut(&mut self, _: Checked) -> &mut Image {
            &mut self.0
        }

        fn admits(&self, _: SectionId, value: u64, _: u64) -> bool {
            value < 1_000_000
        }
    }

    fn all(len: u64, value: u64) -> Patch {
        let mut patch = PatchBuilder::new();
        (0..len).for_each(|i| patch.set(CELLS, i, value));
        patch.finish(Some((value, value)))
    }

    #[test]
    fn readers_on_other_threads_never_see_a_mixture() {
        let mut writer = Writer::new(Flat::new(512));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let reader = writer.reader();
                let stop = &stop;
                scope.spawn(move || {
                    let mut last = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let table = reader.enter();
                        let cells = table.image().section::<u32>(CELLS);
                        let value = cells[0];
                        assert!(cells.iter().all(|&cell| cell == value), "a torn state");
                        assert_eq!(u64::from(value), table.image().entries());
                        assert!(value >= last, "a change was undone");
                        last = value;
                    }
                });
            }
            for value in 1..2000 {
                if value % 100 == 0 {
                    let mut other = Flat::new(512 + value);
                    other.apply(&all(512 + value, value)).unwrap();
                    writer.replace(other);
                } else {
                    let len = writer.current().image().memory_usage()[0].len;
                    writer.patch(all(len, value)).unwrap();
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        let reader = writer.reader();
        drop(writer);
        assert_eq!(reader.enter().image().entries(), 1999);
    }

    /// A copy that takes part in everything.
    #[derive(Clone, Debug)]
    struct Copied(Arc<Mutex<Flat>>);

    impl Follower<Flat> for Copied {
        fn patch(&mut self, patch: &Patch) {
            self.0.lock().unwrap().apply(patch).unwrap();
        }

        fn replace(&mut self, table: &Flat) {
            *self.0.lock().unwrap() = table.clone();
        }
    }

    #[test]
    fn a_follower_is_told_of_every_change_and_of_no_other() {
        let mut writer = Writer::new(Flat::new(4));
        writer.patch(all(4, 7)).unwrap();
        let copied = Copied(Arc::new(Mutex::new(Flat::new(1))));
        let made = copied.clone();
        writer
            .follow(|table| {
                *made.0.lock().unwrap() = table.clone();
                Ok::<_, ()>(made.clone())
            })
            .unwrap();
        let same = |writer: &Writer<Flat>| {
            let copied = copied.0.lock().unwrap();
            assert_eq!(copied.image().section::<u32>(CELLS), writer.current().image().section::<u32>(CELLS));
        };
        same(&writer);
        writer.patch(all(4, 8)).unwrap();
        same(&writer);
        assert!(writer.patch(all(5, 9)).is_err());
        same(&writer);
        writer.replace(Flat::new(9));
        same(&writer);
        assert!(writer.follow(|_| Err::<Copied, _>(())).is_err());
        writer.patch(all(9, 3)).unwrap();
        same(&writer);
    }

    #[test]
    fn a_patch_that_does_not_fit_changes_neither_copy() {
        let mut writer = Writer::new(Flat::new(4));
        let reader = writer.reader();
        writer.patch(all(4, 7)).unwrap();
        assert!(matches!(writer.patch(all(5, 8)), Err(PatchError::Index { .. })));
        assert!(matches!(writer.patch(all(4, 1_000_000)), Err(PatchError::Value { .. })));
        for value in [7, 9, 10] {
            writer.patch(all(4, value)).unwrap();
            assert!(reader.enter().image().section::<u32>(CELLS).iter().all(|&c| u64::from(c) == value));
        }
    }

    #[test]
    fn changes_to_different_places_reach_both_copies() {
        let mut writer = Writer::new(Flat::new(4));
        let reader = writer.reader();
        let mut cells = [0; 4];
        for round in 1..20u32 {
            let at = round % 4;
            let mut patch = PatchBuilder::new();
            patch.set(CELLS, at.into(), round.into());
            writer.patch(patch.finish(None)).unwrap();
            cells[at as usize] = round;
            assert_eq!(reader.enter().image().section::<u32>(CELLS), cells);
        }
    }

    #[test]
    fn a_guard_keeps_its_state_while_the_writer_goes_on() {
        let mut writer = Writer::new(Flat::new(4));
        let reader = writer.reader();
        let guard = reader.enter();
        // One change can be made beside a straggler; the next would wait for it.
        writer.patch(all(4, 1)).unwrap();
        assert_eq!(guard.image().section::<u32>(CELLS), [0; 4]);
        drop(guard);
        writer.patch(all(4, 2)).unwrap();
        assert_eq!(reader.enter().image().section::<u32>(CELLS), [2; 4]);
    }

    /// The value that every cell has.
    #[derive(Clone, Debug)]
    struct Said(u64);

    impl Beside for Said {
        type Change = u64;

        fn apply(&mut self, change: &u64) {
            self.0 = *change;
        }
    }

    #[test]
    fn what_is_beside_a_table_is_of_its_state() {
        let mut writer = Writer::with(Flat::new(64), Said(0));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (reader, stop) = (writer.reader(), &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let state = reader.enter_state();
                    assert_eq!(state.table.image().entries(), state.beside.0);
                }
            });
            for value in 1..1000 {
                if value % 100 == 0 {
                    let mut other = Flat::new(64);
                    other.apply(&all(64, value)).unwrap();
                    writer.replace_with(other, value);
                } else {
                    writer.patch_with(all(64, value), value).unwrap();
                }
            }
            assert!(writer.patch_with(all(65, 1), 1).is_err());
            stop.store(true, Ordering::Relaxed);
        });
        let reader = writer.reader();
        assert_eq!((reader.enter_state().beside.0, reader.enter().image().entries()), (999, 999));
        // Both copies get it.
        writer.change_beside(7);
        for value in [7, 8, 9] {
            assert_eq!((reader.enter_state().beside.0, reader.enter().image().entries()), (value, 999));
            writer.change_beside(value + 1);
        }
    }

    /// A table of which twins share the first section. A patch writes elements that are not in use, and the
    /// root that leads to them.
    #[derive(Debug)]
    struct Rooted(Image);

    const ROOTS: SectionId = SectionId(1);

    impl Rooted {
        fn new() -> Self {
            let builder =
                ImageBuilder::new("rooted", 1).section::<u16>("cells", 4 * 64).section::<u32>("roots", 1);
            Self(builder.build(None).unwrap())
        }

        /// Whether the elements that the root leads to are of its state.
        fn is_whole(&self) -> bool {
            let root = self.0.section::<u32>(ROOTS)[0];
            let cells = self.0.shared::<u16>(CELLS);
            let from = (root % 4) as usize * 64;
            (from..from + 64).all(|at| u32::from(cells.at(at)) == root)
        }
    }

    impl Clone for Rooted {
        fn clone(&self) -> Self {
            Self(self.0.clone())
        }
    }

    impl Table for Rooted {
        const KIND: &'static str = "rooted";
        const LAYOUT: u32 = 1;

        fn from_image(image: Image) -> Result<Self, ImageError> {
            Self::expect_kind(&image)?;
            Ok(Self(image))
        }

        fn image(&self) -> &Image {
            &self.0
        }

        fn image_mut(&mut self, _: Checked) -> &mut Image {
            &mut self.0
        }

        fn admits(&self, _: SectionId, value: u64, results: u64) -> bool {
            value <= results
        }

        fn share(&mut self, checked: Checked) {
            checked.share(&mut self.0, 1);
        }

        fn twin(&self, checked: Checked) -> Self {
            Self(checked.twin(&self.0))
        }
    }

    fn to(state: u64) -> Patch {
        let mut patch = PatchBuilder::new();
        (0..64).for_each(|at| patch.set(CELLS, state % 4 * 64 + at, state));
        patch.set(ROOTS, 0, state);
        patch.finish(Some((1, state)))
    }

    #[test]
    fn copies_share_sections_that_a_patch_writes_once() {
        let mut writer = Writer::new(Rooted::new());
        let (length, own) = (Rooted::new().0.bytes(), 4u64.next_multiple_of(64) + 64);
        assert_eq!(writer.memory_usage(), length + 2 * own);
        let (reader, stop) = (writer.reader(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            struct Stop<'a>(&'a AtomicBool);
            impl Drop for Stop<'_> {
                fn drop(&mut self) {
                    self.0.store(true, Ordering::Relaxed);
                }
            }
            let _stop = Stop(&stop);
            for copies in [false, true] {
                let (reader, stop) = (&reader, &stop);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let table = reader.enter();
                        assert!(table.is_whole(), "a torn state");
                        if copies {
                            let mut file = Vec::new();
                            table.image().write(&mut file).unwrap();
                            let copy = Image::from_bytes(&file).unwrap();
                            let most = copy.results();
                            let cells = copy.section::<u16>(CELLS);
                            assert!(
                                cells.iter().all(|&cell| u64::from(cell) <= most),
                                "results are over {most}"
                            );
                            assert!(Rooted(copy).is_whole(), "a torn copy");
                        }
                    }
                });
            }
            for state in 1..400 {
                writer.patch(to(state)).unwrap();
                if state % 50 == 0 {
                    let mut other = Rooted::new();
                    other.apply(&to(state)).unwrap();
                    writer.replace(other);
                }
            }
        });
        assert!(writer.current().is_whole());
        assert_eq!(writer.current().image().section::<u32>(ROOTS), [399]);
        // A clone shares nothing.
        let clone = writer.current().clone();
        writer.patch(to(403)).unwrap();
        writer.patch(to(407)).unwrap();
        assert!(clone.is_whole() && clone.0.section::<u16>(CELLS)[3 * 64] == 399);
        let attached = writer.current().image().with_attachment("more", b"bytes").unwrap();
        assert_eq!(attached.attachment("more"), Some(&b"bytes"[..]));
        assert_eq!(attached.section::<u16>(CELLS)[3 * 64], 407);
    }

    #[test]
    #[should_panic(expected = "shared")]
    fn shared_elements_are_not_borrowed() {
        let writer = Writer::new(Rooted::new());
        let _ = writer.current().image().section::<u16>(CELLS);
    }
}
