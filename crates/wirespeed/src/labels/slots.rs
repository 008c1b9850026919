//! [`Slots`]: the values of labels by index, each behind a pointer, given back by epochs.
//!
//! ```text
//! bucket 0   1
//! bucket 1   2 3
//! bucket 2   4 5 6 7            index 2^b + i is element i of bucket b: a pointer to its value, or null
//! …
//! ```
//!
//! A reader pins, loads a pointer, and reads its value until it unpins. A writer swaps the pointer, and keeps
//! the old value until every thread that was pinned at that time has unpinned. `crossbeam-epoch` knows when.
//! It only sets a number then ([`Mark`]), on any thread. Values are dropped by writers, in
//! [`reclaim`](Slots::reclaim), never on a reader's thread.

// Reads and frees values behind atomic pointers.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::{Arc, OnceLock, PoisonError};

use crossbeam_epoch as epoch;
use wirespeed_fib::NextHop;

use crate::sync::{AtomicPtr, AtomicU64, Mutex, MutexGuard, Ordering};

/// The values of labels. Reading takes two dependent reads and no lock.
pub(super) struct Slots<T> {
    buckets: [OnceLock<Bucket<T>>; BUCKETS],
    limbo: Mutex<Limbo<T>>,
    /// The number of values that were stored or taken away.
    changes: AtomicU64,
    /// Threads share values, and any of them may drop values: as in a `OnceLock`.
    _owned: PhantomData<OnceLock<T>>,
}

type Bucket<T> = Box<[AtomicPtr<T>]>;

/// The number of buckets: one for each number of bits of an index.
const BUCKETS: usize = u32::BITS as usize;

/// Keeps all values that it can load until it is dropped.
pub(super) struct Pin {
    _guard: epoch::Guard,
}

impl Pin {
    #[inline]
    pub(super) fn new() -> Self {
        // Only this function makes a `Pin`, so its guard is always of the one collector that `Grace` asks.
        Self { _guard: epoch::pin() }
    }
}

/// A moment. It has passed when every pin of that time is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark(u64);

/// The values that no slot leads to any more, and readers may still see.
struct Limbo<T> {
    grace: Grace,
    /// Pointers of `Box::into_raw`, in order of their marks.
    values: VecDeque<(Mark, AtomicPtr<T>)>,
}

/// Tells which marks have passed. At most one mark is asked for at a time: all later ones share the next.
#[derive(Default)]
struct Grace {
    /// The last mark that passed.
    passed: Arc<AtomicU64>,
    /// The last mark that was asked for.
    asked: u64,
    /// The last mark that was given out.
    marked: u64,
}

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        let limbo = Limbo { grace: Grace::default(), values: VecDeque::new() };
        Self {
            buckets: [const { OnceLock::new() }; BUCKETS],
            limbo: Mutex::new(limbo),
            changes: AtomicU64::new(0),
            _owned: PhantomData,
        }
    }

    /// The value of an index. Wait-free.
    #[inline]
    pub(super) fn value<'g>(&'g self, next_hop: NextHop, _: &'g Pin) -> Option<&'g T> {
        let pointer = self.load(next_hop)?;
        // SAFETY: 1. The pointer came out of a slot, so it is one of `Box::into_raw` with a valid value
        // (`put` stores no other), and the load acquires what `put` released. 2. The value is freed by `drop`
        // of these slots, which the borrow of `self` excludes, or by `reclaim`, after a mark that was given
        // out after the pointer had left its slot. The pin that the result borrows was taken before the load,
        // so before that mark, which does not pass while the pin is there. 3. Nobody changes a value: only
        // shared references are given out until it is freed.
        Some(unsafe { pointer.as_ref() })
    }

    /// The value of an index, with a pin of its own.
    pub(super) fn hold(&self, next_hop: NextHop) -> Option<LabelRef<'_, T>> {
        let pin = Pin::new();
        let value = self.load(next_hop)?;
        Some(LabelRef { value, _pin: pin, _slots: PhantomData })
    }

    /// Stores a value, or takes it away. Readers see the change at once. The old value stays in limbo.
    pub(super) fn put(&self, next_hop: NextHop, value: Option<T>) {
        let Some((bucket, at)) = place(next_hop) else { return };
        let slots = self.buckets[bucket].get_or_init(|| {
            let mut empty = Vec::new();
            empty.resize_with(1 << bucket, AtomicPtr::default);
            empty.into()
        });
        let new = value.map_or(ptr::null_mut(), |value| Box::into_raw(Box::new(value)));
        let mut limbo = self.limbo();
        let old = slots[at].swap(new, Ordering::AcqRel);
        if !old.is_null() {
            let mark = limbo.grace.mark();
            limbo.values.push_back((mark, AtomicPtr::new(old)));
        }
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// The number of values that were stored or taken away before.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Marks this moment.
    pub(super) fn mark(&self) -> Mark {
        self.limbo().grace.mark()
    }

    /// Whether every pin that was there at the mark is gone.
    pub(super) fn has_passed(&self, mark: Mark) -> bool {
        self.limbo().grace.has_passed(mark)
    }

    /// Takes a step towards the next mark, and takes the values that no reader can see any more. The caller
    /// drops them when it holds no lock.
    pub(super) fn reclaim(&self) -> Vec<Box<T>> {
        let mut limbo = self.limbo();
        limbo.grace.step();
        let mut unseen = Vec::new();
        while let Some((mark, _)) = limbo.values.front()
            && limbo.grace.has_passed(*mark)
            && let Some((_, old)) = limbo.values.pop_front()
        {
            // SAFETY: 1. `put` got the pointer from `Box::into_raw`, and moved it from its slot to here; it
            // is in one place only, and leaves it now. 2. Its mark was given out after it had left the slot,
            // and has passed: whoever loaded it was pinned before, and is not pinned any more. 3. `Grace`
            // acquires the number that the collector's call released after those pins, so their reads come
            // before.
            unseen.push(unsafe { Box::from_raw(old.load(Ordering::Relaxed)) });
        }
        unseen
    }

    #[inline]
    fn load(&self, next_hop: NextHop) -> Option<NonNull<T>> {
        let (bucket, at) = place(next_hop)?;
        NonNull::new(self.buckets[bucket].get()?.get(at)?.load(Ordering::Acquire))
    }

    fn limbo(&self) -> MutexGuard<'_, Limbo<T>> {
        // No code of the user's runs under this lock.
        self.limbo.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        let limbo = self.limbo.get_mut().unwrap_or_else(PoisonError::into_inner);
        let old = limbo.values.iter().map(|(_, old)| old);
        let live = self.buckets.iter().filter_map(OnceLock::get).flatten();
        // Whoever dropped the last reference comes after all others, so the last pointers are seen.
        let pointers = old.chain(live).map(|pointer| pointer.load(Ordering::Relaxed));
        for pointer in pointers.filter(|pointer| !pointer.is_null()) {
            // SAFETY: the pointer is one of `Box::into_raw` and in one place only, a slot or limbo. No
            // reference to its value is left: each borrows the slots, which nobody borrows now.
            drop(unsafe { Box::from_raw(pointer) });
        }
    }
}

impl Grace {
    fn mark(&mut self) -> Mark {
        self.marked = self.asked + 1;
        Mark(self.marked)
    }

    fn has_passed(&self, mark: Mark) -> bool {
        mark.0 <= self.passed.load(Ordering::Acquire)
    }

    /// Asks for the next mark if one was given out and no other is asked for, and helps the collector.
    fn step(&mut self) {
        let passed = self.passed.load(Ordering::Acquire);
        if self.marked == passed {
            return;
        }
        let pin = epoch::pin();
        if self.asked == passed {
            self.asked += 1;
            let (passed, asked) = (Arc::clone(&self.passed), self.asked);
            // Runs when all threads that are pinned now have unpinned. All marks up to this one were given
            // out before.
            pin.defer(move || passed.store(asked, Ordering::Release));
        }
        pin.flush();
    }
}

/// The value of an index. The value stays until this is dropped, even if its label ends or is replaced. Hold
/// it for a short time only: see [`LabelsGuard`](super::LabelsGuard).
#[must_use]
pub struct LabelRef<'a, T> {
    /// No reference: it would claim to be valid until the end of a function that drops the pin.
    value: NonNull<T>,
    _pin: Pin,
    _slots: PhantomData<&'a Slots<T>>,
}

impl<T> Deref for LabelRef<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: as in `Slots::value`: `hold` loaded the pointer from a slot after it had taken the pin,
        // which lives as long as `self`, and the slots are borrowed.
        unsafe { self.value.as_ref() }
    }
}

impl<T: fmt::Debug> fmt::Debug for LabelRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for LabelRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The bucket of an index, and the position in it. `None` for [`NextHop::NONE`].
#[inline]
fn place(next_hop: NextHop) -> Option<(usize, usize)> {
    let bucket = next_hop.0.checked_ilog2()?;
    Some((bucket as usize, (next_hop.0 ^ (1 << bucket)) as usize))
}

#[cfg(loom)]
#[cfg(test)]
mod models {
    use std::sync::atomic::AtomicBool;

    use loom::cell::UnsafeCell;
    use loom::thread;

    use super::*;
    use crate::sync::model;

    /// A value that must not be dropped while somebody looks at it. Loom fails a model in which nothing
    /// orders the two.
    struct Watched(UnsafeCell<u32>);

    // SAFETY: only loom's checked accesses reach the number: a look and a drop that nothing orders fail the
    // model.
    unsafe impl Sync for Watched {}

    impl Watched {
        fn new(number: u32) -> Self {
            Self(UnsafeCell::new(number))
        }

        fn number(&self) -> u32 {
            // SAFETY: the number is written by `drop` alone, and loom checks that it does not come meanwhile.
            self.0.with(|number| unsafe { *number })
        }
    }

    impl Drop for Watched {
        fn drop(&mut self) {
            // SAFETY: `&mut self`, and loom checks that nobody looks.
            self.0.with_mut(|number| unsafe { *number = u32::MAX });
        }
    }

    const A: NextHop = NextHop(1);

    /// A reader looks at a value while a writer replaces it, and takes the old value out.
    fn replaced_under_a_reader(look: fn(&Slots<Watched>) -> Option<u32>) {
        static EARLY: AtomicBool = AtomicBool::new(false);
        static LATE: AtomicBool = AtomicBool::new(false);
        model(move || {
            let slots = Arc::new(Slots::new());
            slots.put(A, Some(Watched::new(1)));
            let reader = thread::spawn({
                let slots = Arc::clone(&slots);
                move || look(&slots)
            });
            slots.put(A, Some(Watched::new(2)));
            // A mark passes within three steps if nobody is pinned.
            let unseen = (0..4).map(|_| slots.reclaim().len()).sum::<usize>();
            let seen = reader.join().unwrap();
            assert!(matches!(seen, Some(1 | 2)), "{seen:?}");
            EARLY.fetch_or(unseen == 1, std::sync::atomic::Ordering::Relaxed);
            LATE.fetch_or(unseen == 0, std::sync::atomic::Ordering::Relaxed);
        });
        let happened = |way: &AtomicBool| way.load(std::sync::atomic::Ordering::Relaxed);
        assert!(happened(&EARLY) && happened(&LATE), "the value is dropped beside the reader, and after it");
    }

    #[test]
    fn a_pin_keeps_the_value_that_it_saw() {
        replaced_under_a_reader(|slots| {
            let pin = Pin::new();
            slots.value(A, &pin).map(Watched::number)
        });
    }

    #[test]
    fn a_reference_keeps_its_value() {
        replaced_under_a_reader(|slots| slots.hold(A).map(|value| value.number()));
    }

    #[test]
    fn a_mark_passes_after_the_pins_of_its_time() {
        static PASSED: AtomicBool = AtomicBool::new(false);
        model(|| {
            let slots = Arc::new(Slots::<u32>::new());
            let inside = Arc::new(AtomicU64::new(0));
            let reader = thread::spawn({
                let inside = Arc::clone(&inside);
                move || {
                    let pin = Pin::new();
                    inside.store(1, Ordering::Release);
                    inside.store(2, Ordering::Release);
                    drop(pin);
                }
            });
            if inside.load(Ordering::Acquire) == 1 {
                let mark = slots.mark();
                (0..4).for_each(|_| drop(slots.reclaim()));
                if slots.has_passed(mark) {
                    assert_eq!(inside.load(Ordering::Acquire), 2, "the pin of the mark's time is there");
                    PASSED.store(true, std::sync::atomic::Ordering::Relaxed);
                }
            }
            reader.join().unwrap();
        });
        assert!(PASSED.load(std::sync::atomic::Ordering::Relaxed), "a mark passes beside the reader");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_fill_each_bucket_in_order() {
        let places: Vec<_> = (0..9).map(|n| place(NextHop(n))).collect();
        let full = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (2, 3), (3, 0)];
        assert_eq!(places[0], None);
        assert_eq!(places[1..], full.map(Some));
        assert_eq!(place(NextHop(u32::MAX)), Some((31, (1 << 31) - 1)));
    }

    /// Steps that do not pass a mark while a pin is there. Miri takes long for each.
    const TRIES: usize = if cfg!(miri) { 20 } else { 1000 };

    /// Steps until the mark has passed. Other tests of the process pin, too, for short times.
    fn wait<T>(slots: &Slots<T>, mark: Mark) -> usize {
        let mut reclaimed = 0;
        while !slots.has_passed(mark) {
            reclaimed += slots.reclaim().len();
            std::thread::yield_now();
        }
        reclaimed + slots.reclaim().len()
    }

    #[test]
    fn a_value_stays_as_long_as_a_pin_that_saw_it() {
        let slots = Slots::new();
        slots.put(NextHop(5), Some("old".to_owned()));
        let (pin, held) = (Pin::new(), slots.hold(NextHop(5)).unwrap());
        let seen = slots.value(NextHop(5), &pin).unwrap();
        slots.put(NextHop(5), Some("new".to_owned()));
        assert_eq!(slots.value(NextHop(5), &pin).unwrap(), "new");
        slots.put(NextHop(5), None);
        assert_eq!(slots.value(NextHop(5), &pin), None);
        let mark = slots.mark();
        assert!((0..TRIES).all(|_| slots.reclaim().is_empty()));
        assert_eq!((seen.as_str(), held.as_str()), ("old", "old"));
        drop(pin);
        assert!((0..TRIES).all(|_| slots.reclaim().is_empty()));
        assert_eq!(held.to_string(), "old");
        drop(held);
        assert_eq!(wait(&slots, mark), 2);
    }

    #[test]
    fn nothing_is_kept_and_nothing_is_dropped_twice() {
        let value = Arc::new(());
        let slots = Slots::new();
        for round in 0..3u32 {
            for n in 1..100 {
                slots.put(NextHop(n), (n % 3 != round).then(|| Arc::clone(&value)));
            }
        }
        let live = (1..100).filter(|n| n % 3 != 2).count();
        let mark = slots.mark();
        wait(&slots, mark);
        assert_eq!(Arc::strong_count(&value), 1 + live);
        slots.put(NextHop(1), None);
        drop(slots);
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
