//! Two copies of a value: readers read one copy while the writer changes the other one.
//!
//! The left-right scheme: Ramalhete and Correia, "Left-Right: a concurrency control technique with wait-free
//! population oblivious reads", 2015. Each reader counts its visits where only it writes, as in the crate
//! `left-right`. Entering costs one locked instruction here, and leaving none. In that crate they cost two
//! and a fence, which is more than a single lookup takes.
//!
//! The order that this stands on: a reader first says that it is inside and then asks which copy to read. The
//! writer first says which copy to read and then asks who is inside. All four steps are sequentially
//! consistent. So the writer knows of every reader that can be in the copy that it is about to change.

use std::cell::{Cell, UnsafeCell};
use std::fmt::{self, Debug};
use std::ops::Deref;
use std::ptr::NonNull;

use sync::{Arc, AtomicUsize, Mutex, MutexGuard, Ordering, SPINS, yield_now};

#[cfg(not(all(loom, test)))]
mod sync {
    pub(super) use std::sync::atomic::{AtomicUsize, Ordering};
    pub(super) use std::sync::{Arc, Mutex, MutexGuard};
    pub(super) use std::thread::yield_now;

    /// The times that the writer looks for a reader to leave before it gives the core to others.
    pub(super) const SPINS: u32 = 20;
}

#[cfg(all(loom, test))]
mod sync {
    pub(super) use loom::sync::atomic::{AtomicUsize, Ordering};
    pub(super) use loom::sync::{Arc, Mutex, MutexGuard};
    pub(super) use loom::thread::yield_now;

    pub(super) const SPINS: u32 = 0;
}

/// What the writer and all readers share.
struct Shared<T> {
    copies: [UnsafeCell<T>; 2],
    door: Door,
}

/// The part that is the same for copies of all types: which copy readers enter, and who may be inside.
struct Door {
    /// The copy that readers enter: 0 or 1.
    current: AtomicUsize,
    /// The visits of each entrance.
    entrances: Mutex<Vec<Arc<Visits>>>,
}

// SAFETY: of the copies, readers have shared references, and the writer has the only reference to the one
// that no reader is in (see `Copies::other_mut`). A value is made by one thread, and changed and dropped by
// others.
#[expect(unsafe_code)]
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl Door {
    fn entrances(&self) -> MutexGuard<'_, Vec<Arc<Visits>>> {
        // A list of handles is whole after a panic, too.
        self.entrances.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Makes the visits of an entrance.
    fn open(&self) -> Arc<Visits> {
        let visits = Arc::new(Visits(AtomicUsize::new(0)));
        self.entrances().push(Arc::clone(&visits));
        visits
    }

    /// Forgets an entrance.
    fn close(&self, gone: &Arc<Visits>) {
        self.entrances().retain(|visits| !Arc::ptr_eq(visits, gone));
    }

    /// Makes a copy current, and lists the readers that may still be in the other one.
    fn turn(&self, next: usize, inside: &mut Vec<(Arc<Visits>, usize)>) {
        self.current.store(next, Ordering::SeqCst);
        in_one_order();
        // An entrance that is made after this list is taken finds the new copy current: both lock the list.
        for visits in &*self.entrances() {
            let seen = visits.0.load(Ordering::SeqCst);
            if seen % 2 == 1 {
                inside.push((Arc::clone(visits), seen));
            }
        }
    }
}

/// Waits for the readers that are in the copy that is not current.
fn wait(inside: &mut Vec<(Arc<Visits>, usize)>) {
    for (visits, seen) in inside.drain(..) {
        // Batches take microseconds; whoever holds a guard for longer may need this core.
        let mut short = 0..SPINS;
        while visits.0.load(Ordering::Acquire) == seen {
            match short.next() {
                Some(_) => std::hint::spin_loop(),
                None => yield_now(),
            }
        }
    }
}

/// The times that a reader entered and left, in one number: odd while it is inside. In cache lines of its
/// own, as its thread writes it all the time.
#[repr(align(128))]
struct Visits(AtomicUsize);

impl Visits {
    /// Says that the reader is inside. Only its own thread writes the number.
    #[inline]
    fn begin(&self) {
        let visits = self.0.load(Ordering::Relaxed);
        self.0.swap(visits.wrapping_add(1), Ordering::SeqCst);
        in_one_order();
    }

    /// Says that the reader has left.
    #[inline]
    fn end(&self) {
        let visits = self.0.load(Ordering::Relaxed);
        self.0.store(visits.wrapping_add(1), Ordering::Release);
    }
}

/// Models take sequentially consistent accesses for acquiring and releasing ones, and so need a fence.
#[inline]
fn in_one_order() {
    #[cfg(all(loom, test))]
    loom::sync::atomic::fence(Ordering::SeqCst);
}

/// The writer's side.
pub struct Copies<T> {
    shared: Arc<Shared<T>>,
    /// The readers that may still be in the copy that readers don't enter any more, and their visits.
    inside: Vec<(Arc<Visits>, usize)>,
}

impl<T> Copies<T> {
    /// Takes both copies, which are equal.
    pub fn new(copies: [T; 2]) -> Self {
        let door = Door { current: AtomicUsize::new(0), entrances: Mutex::default() };
        let shared = Shared { copies: copies.map(UnsafeCell::new), door };
        Self { shared: Arc::new(shared), inside: Vec::new() }
    }

    /// Makes entrances for readers.
    pub fn entrances(&self) -> Entrances<T> {
        Entrances(Arc::clone(&self.shared))
    }

    /// Waits until no reader is in the copy that was current before, changes that copy, and makes it current.
    /// That copy lacks the change before: `change` makes it first.
    ///
    /// A thread that holds a guard of that copy waits for itself for ever. A panic of `change` leaves the
    /// other copy current.
    pub fn change(&mut self, change: impl FnOnce(&mut T)) {
        change(self.other_mut());
        self.turn();
    }

    /// The copy that readers enter.
    #[expect(unsafe_code)]
    pub fn current(&self) -> &T {
        // SAFETY: only `other_mut` changes a copy, and not this one. `turn` makes the other one its target,
        // and needs this writer, which is borrowed.
        unsafe { &*self.shared.copies[self.at()].get() }
    }

    /// The copy that readers do not enter. Those that entered it while it was current may still be inside.
    #[expect(unsafe_code)]
    pub fn other(&self) -> &T {
        // SAFETY: only `other_mut` changes this copy, and needs this writer, which is borrowed.
        unsafe { &*self.shared.copies[1 - self.at()].get() }
    }

    /// Waits until no reader is in the copy that readers do not enter, and gives it for changes. Nobody else
    /// sees them before [`turn`](Self::turn).
    ///
    /// A thread that holds a guard of that copy waits for itself for ever.
    #[expect(unsafe_code)]
    pub fn other_mut(&mut self) -> &mut T {
        wait(&mut self.inside);
        let other = 1 - self.at();
        // SAFETY: no reader is in this copy. All that entered before it ceased to be current are gone, as
        // `inside` has every one of them. All that entered since are in the other one: whoever says that it
        // is inside after the writer asked for its visits finds the other one current. There is one writer,
        // and it is borrowed.
        unsafe { &mut *self.shared.copies[other].get() }
    }

    /// Makes the copy current that readers did not enter. Waits for the readers that may still be in it.
    pub fn turn(&mut self) {
        wait(&mut self.inside);
        self.shared.door.turn(1 - self.at(), &mut self.inside);
    }

    /// The number of the copy that readers enter.
    fn at(&self) -> usize {
        self.shared.door.current.load(Ordering::Relaxed)
    }
}

impl<T> Debug for Copies<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copies")
            .field("entrances", &self.shared.door.entrances().len())
            .finish_non_exhaustive()
    }
}

/// Makes entrances. It keeps the copies alive, with or without a writer.
pub struct Entrances<T>(Arc<Shared<T>>);

impl<T> Entrances<T> {
    /// Makes an entrance for one thread at a time.
    pub fn entrance(&self) -> Entrance<T> {
        Entrance { shared: Arc::clone(&self.0), visits: self.0.door.open(), held: Cell::new(0) }
    }
}

impl<T> Clone for Entrances<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Debug for Entrances<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entrances").field(&self.0.door.entrances().len()).finish()
    }
}

/// A reader's own way in. It can be sent to another thread, and is used by one at a time.
pub struct Entrance<T> {
    shared: Arc<Shared<T>>,
    visits: Arc<Visits>,
    /// The guards that are held.
    held: Cell<usize>,
}

impl<T> Entrance<T> {
    /// Enters the current copy, until the guard is dropped. Wait-free.
    #[inline]
    #[expect(unsafe_code)]
    pub fn enter(&self) -> Guard<'_, T> {
        let held = self.held.get();
        if held == 0 {
            self.visits.begin();
        }
        self.held.set(held + 1);
        let stay = Stay { visits: &self.visits, held: &self.held };
        let current = self.shared.door.current.load(Ordering::SeqCst);
        // SAFETY: the writer changes no copy that can have been current since this reader is inside, until it
        // has left. With a guard held already, that is the copy of that guard or the one made current after
        // it, and the writer can't come to the next change.
        let value = unsafe { &*self.shared.copies[current & 1].get() };
        Guard { value: NonNull::from(value), _stay: stay }
    }
}

impl<T> Debug for Entrance<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entrance").field("held", &self.held).finish_non_exhaustive()
    }
}

impl<T> Drop for Entrance<T> {
    fn drop(&mut self) {
        self.shared.door.close(&self.visits);
    }
}

/// A copy, until the guard is dropped.
pub struct Guard<'a, T: ?Sized> {
    /// No reference: one that a function is given holds until the function returns, and the writer may change
    /// the copy as soon as the function has dropped the guard.
    value: NonNull<T>,
    _stay: Stay<'a>,
}

impl<'a, T: ?Sized> Guard<'a, T> {
    /// Borrows the copy in another form.
    #[inline]
    pub fn map<U: ?Sized>(guard: Self, view: impl for<'t> FnOnce(&'t T) -> &'t U) -> Guard<'a, U> {
        Guard { value: NonNull::from(view(&guard)), _stay: guard._stay }
    }
}

impl<T: ?Sized> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    #[expect(unsafe_code)]
    fn deref(&self) -> &T {
        // SAFETY: the copy does not change before the guard is dropped, and the entrance keeps it alive.
        unsafe { self.value.as_ref() }
    }
}

impl<T: ?Sized + Debug> Debug for Guard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A reader that is inside. The last one of an entrance to go says that the reader has left.
struct Stay<'a> {
    visits: &'a Visits,
    held: &'a Cell<usize>,
}

impl Drop for Stay<'_> {
    #[inline]
    fn drop(&mut self) {
        let held = self.held.get() - 1;
        self.held.set(held);
        if held == 0 {
            self.visits.end();
        }
    }
}

#[cfg(all(loom, test))]
mod models {
    use loom::cell::UnsafeCell;
    use loom::thread;

    use super::*;

    /// A number whose uses loom watches: one that meets a change is a fault.
    struct Watched(UnsafeCell<usize>);

    // SAFETY: loom ends a model in which two threads use the number at once and one of them changes it.
    #[expect(unsafe_code)]
    unsafe impl Sync for Watched {}

    #[expect(unsafe_code)]
    impl Watched {
        fn get(&self) -> usize {
            // SAFETY: loom watches.
            self.0.with(|number| unsafe { *number })
        }

        fn set(&self, value: usize) {
            // SAFETY: loom watches.
            self.0.with_mut(|number| unsafe { *number = value });
        }
    }

    fn copies() -> Copies<Watched> {
        Copies::new([(); 2].map(|()| Watched(UnsafeCell::new(0))))
    }

    fn model(run: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound.get_or_insert(3);
        builder.check(run);
    }

    /// Changes as many times as readers on other threads may see.
    fn change(copies: &mut Copies<Watched>) {
        for value in 1..=3 {
            copies.change(|copy| copy.set(value));
        }
    }

    #[test]
    fn no_copy_changes_under_a_reader_and_no_change_is_undone() {
        model(|| {
            let mut copies = copies();
            let entrances = copies.entrances();
            let reader = thread::spawn(move || {
                let entrance = entrances.entrance();
                let mut last = 0;
                for _ in 0..2 {
                    let seen = entrance.enter().get();
                    assert!(seen >= last, "a change was undone");
                    last = seen;
                }
            });
            change(&mut copies);
            reader.join().unwrap();
            assert_eq!(copies.entrances().entrance().enter().get(), 3);
        });
    }

    #[test]
    fn the_writer_reads_both_copies_beside_a_reader() {
        model(|| {
            let mut copies = copies();
            let entrances = copies.entrances();
            let reader = thread::spawn(move || {
                let entrance = entrances.entrance();
                let seen = entrance.enter().get();
                assert!(entrance.enter().get() >= seen, "a change was undone");
            });
            copies.other_mut().set(1);
            assert_eq!((copies.current().get(), copies.other().get()), (0, 1));
            copies.turn();
            assert_eq!((copies.current().get(), copies.other().get()), (1, 0));
            copies.other_mut().set(2);
            copies.turn();
            assert_eq!((copies.current().get(), copies.other().get()), (2, 1));
            reader.join().unwrap();
        });
    }

    #[test]
    fn a_guard_protects_what_an_inner_guard_and_another_thread_leave() {
        model(|| {
            let mut copies = copies();
            let readers = [(); 2].map(|()| {
                let entrances = copies.entrances();
                thread::spawn(move || {
                    let entrance = entrances.entrance();
                    let outer = entrance.enter();
                    let seen = outer.get();
                    assert!(entrance.enter().get() >= seen, "a change was undone");
                    assert_eq!(outer.get(), seen, "a state that is held does not change");
                })
            });
            copies.change(|copy| copy.set(1));
            copies.change(|copy| copy.set(2));
            let _ = readers.map(|reader| reader.join().unwrap());
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn each_copy_is_whole_under_readers() {
        let mut copies = Copies::new([vec![0u32; 64], vec![0; 64]]);
        let (done, rounds) = (AtomicBool::new(false), if cfg!(miri) { 20 } else { 2_000 });
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let (entrances, done) = (copies.entrances(), &done);
                scope.spawn(move || {
                    let (entrance, mut last) = (entrances.entrance(), 0);
                    while !done.load(Ordering::Relaxed) {
                        let guard = Guard::map(entrance.enter(), |copy| &copy[..]);
                        assert!(guard.iter().all(|&value| value == guard[0]) && guard[0] >= last);
                        last = guard[0];
                    }
                });
            }
            for value in 1..=rounds {
                copies.change(|copy| copy.fill(value));
            }
            done.store(true, Ordering::Relaxed);
        });
        let entrances = copies.entrances();
        drop(copies);
        assert_eq!(entrances.entrance().enter()[0], rounds);
    }

    #[test]
    fn one_change_goes_past_a_guard_and_the_next_waits() {
        let mut copies = Copies::new([0, 0]);
        let (entrances, other) = (copies.entrances(), copies.entrances());
        let (entrance, is_free) = (entrances.entrance(), AtomicBool::new(false));
        let outer = entrance.enter();
        copies.change(|copy| *copy = 1);
        assert_eq!((*outer, *entrance.enter(), *other.entrance().enter()), (0, 1, 1));
        std::thread::scope(|scope| {
            let (copies, is_free) = (&mut copies, &is_free);
            let waiting = scope.spawn(move || {
                copies.change(|copy| {
                    assert!(is_free.load(Ordering::SeqCst), "a copy changed under its reader");
                    *copy = 2;
                });
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(*outer, 0);
            is_free.store(true, Ordering::SeqCst);
            drop(outer);
            waiting.join().unwrap();
        });
        assert_eq!(*entrance.enter(), 2);
    }

    #[test]
    fn an_entrance_that_is_dropped_is_forgotten() {
        let mut copies = Copies::new([0, 0]);
        let entrances = copies.entrances();
        let kept = entrances.entrance();
        for value in 1..100 {
            assert!(*entrances.entrance().enter() < value);
            copies.change(|copy| *copy = value);
        }
        assert_eq!((copies.shared.door.entrances().len(), *kept.enter()), (1, 99));
    }

    #[test]
    fn a_change_that_panics_is_not_seen() {
        let mut copies = Copies::new([0, 0]);
        let entrance = copies.entrances().entrance();
        let change = std::panic::AssertUnwindSafe(|| copies.change(|_| panic!("as asked")));
        assert!(std::panic::catch_unwind(change).is_err());
        assert_eq!(*entrance.enter(), 0);
        copies.change(|copy| *copy = 1);
        assert_eq!(*entrance.enter(), 1);
    }
}
