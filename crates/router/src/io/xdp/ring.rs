//! [`Producer`] and [`Consumer`]: the ends of a ring that a process shares with the kernel.
//!
//! ```text
//! entries:   . . [c c c c c] . . .        from the consumer's number to the producer's, modulo the size
//! numbers:       ▲ consumer  ▲ producer   count up and wrap at 2^32
//! ```
//!
//! One side writes entries and then its number, the other reads the number and then the entries: the number
//! is stored with release and loaded with acquire. Each side writes its own number only. The kernel is the
//! other side of every ring here, and in the test both sides are ours.

#![allow(unsafe_code)] // memory that is shared with the kernel

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::super::sys::Mapping;

/// Where the parts of a ring are in its mapping, in bytes: producer, consumer, entries, flags.
pub(super) type Offsets = [u64; 4];

/// Bit in a ring's flags: the kernel sleeps and wants a call.
const NEEDS_WAKEUP: u32 = 1;

/// A ring, from one of its ends.
#[derive(Debug)]
struct Ring<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    size: u32,
    /// Keeps what the pointers point to.
    _mapping: Arc<Mapping>,
}

// SAFETY: the ring is not bound to a thread, nor is the mapping that it keeps.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// A ring of `size` entries in a mapping. `None` if it doesn't lie there, or if the size is no power of
    /// two.
    fn new(mapping: Arc<Mapping>, offsets: Offsets, size: u32) -> Option<Self> {
        let [producer, consumer, entries, flags] = offsets.map(|offset| usize::try_from(offset).ok());
        size.is_power_of_two().then_some(())?;
        Some(Self {
            producer: mapping.at(producer?, 1)?,
            consumer: mapping.at(consumer?, 1)?,
            flags: mapping.at(flags?, 1)?,
            entries: mapping.at(entries?, size as usize)?,
            size,
            _mapping: mapping,
        })
    }

    /// A number of the ring, which both sides reach as an atomic.
    fn number(&self, at: NonNull<AtomicU32>) -> &AtomicU32 {
        // SAFETY: `new` has checked that it is aligned and lies in the mapping, which lives as long as
        // `self`.
        unsafe { at.as_ref() }
    }

    /// The place of an entry.
    fn entry(&self, number: u32) -> NonNull<T> {
        // SAFETY: the index is below `size`, so the place is among the entries.
        unsafe { self.entries.add((number & (self.size - 1)) as usize) }
    }

    fn needs_wakeup(&self) -> bool {
        self.number(self.flags).load(Ordering::Relaxed) & NEEDS_WAKEUP != 0
    }
}

/// The end that writes entries.
#[derive(Debug)]
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// The number of the entry to write next.
    next: u32,
    /// The first number that may not be written: entries before it were read one round ago.
    limit: u32,
}

impl<T: Copy> Producer<T> {
    /// The writing end of a new ring. `None` if it is not in the mapping.
    pub(super) fn new(mapping: Arc<Mapping>, offsets: Offsets, size: u32) -> Option<Self> {
        Some(Self { ring: Ring::new(mapping, offsets, size)?, next: 0, limit: 0 })
    }

    /// The number of entries that can be written now, at least if that is less than `wanted`.
    pub(super) fn free(&mut self, wanted: u32) -> u32 {
        let known = self.limit.wrapping_sub(self.next);
        if known >= wanted {
            return known;
        }
        // Acquire: entries are written after the other side has read them.
        let consumed = self.ring.number(self.ring.consumer).load(Ordering::Acquire);
        let waiting = self.next.wrapping_sub(consumed);
        // A number that can't be says that the ring is full: nothing is written over.
        let free = self.ring.size.saturating_sub(waiting);
        self.limit = self.next.wrapping_add(free);
        free
    }

    /// Writes an entry, which the other side sees after [`publish`](Self::publish). Returns `false` if the
    /// ring is full.
    pub(super) fn push(&mut self, entry: T) -> bool {
        if self.free(1) == 0 {
            return false;
        }
        // SAFETY: the entry is ours: the other side has read it (`free`), and looks at it again only after
        // `publish`.
        unsafe { self.ring.entry(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Shows the entries to the other side that were written.
    pub(super) fn publish(&mut self) {
        // Release: entries are seen once the number is.
        self.ring.number(self.ring.producer).store(self.next, Ordering::Release);
    }

    /// The number of entries that the other side has not read.
    pub(super) fn waiting(&self) -> u32 {
        let consumed = self.ring.number(self.ring.consumer).load(Ordering::Acquire);
        self.next.wrapping_sub(consumed).min(self.ring.size)
    }

    /// Whether the kernel wants a call.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

/// The end that reads entries.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    /// The number of the entry to read next.
    next: u32,
    /// The first number that is not known to be written.
    limit: u32,
}

impl<T: Copy> Consumer<T> {
    /// The reading end of a new ring. `None` if it is not in the mapping.
    pub(super) fn new(mapping: Arc<Mapping>, offsets: Offsets, size: u32) -> Option<Self> {
        Some(Self { ring: Ring::new(mapping, offsets, size)?, next: 0, limit: 0 })
    }

    /// Reads an entry. The other side may write its place again after [`release`](Self::release).
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.limit == self.next {
            // Acquire: entries are read after the other side has written them.
            let produced = self.ring.number(self.ring.producer).load(Ordering::Acquire);
            if produced.wrapping_sub(self.next) > self.ring.size {
                return None; // a number that can't be
            }
            self.limit = produced;
        }
        if self.limit == self.next {
            return None;
        }
        // SAFETY: the other side has written the entry, and writes it again only after `release`.
        let entry = unsafe { self.ring.entry(self.next).read() };
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Gives the places of entries that were read to the other side.
    pub(super) fn release(&mut self) {
        // Release: our reads are done before the other side writes.
        self.ring.number(self.ring.consumer).store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashSet, VecDeque};
    use std::thread;

    use super::*;

    const SIZE: u32 = 4;
    const OFFSETS: Offsets = [0, 64, 192, 128];

    fn mapping(start: u32) -> Arc<Mapping> {
        let mapping = Arc::new(Mapping::anonymous(4096).expect("memory"));
        for offset in [0, 64] {
            let number: NonNull<AtomicU32> = mapping.at(offset, 1).expect("in the mapping");
            // SAFETY: in the mapping, aligned, and always reached as an atomic.
            unsafe { number.as_ref() }.store(start, Ordering::Relaxed);
        }
        mapping
    }

    /// Both ends of a ring whose numbers are about to wrap.
    fn ends(size: u32) -> (Producer<u64>, Consumer<u64>) {
        let start = u32::MAX - 2;
        let mapping = mapping(start);
        let mut producer = Producer::new(Arc::clone(&mapping), OFFSETS, size).expect("a ring");
        let mut consumer = Consumer::new(mapping, OFFSETS, size).expect("a ring");
        (producer.next, producer.limit) = (start, start);
        (consumer.next, consumer.limit) = (start, start);
        (producer, consumer)
    }

    #[test]
    fn every_interleaving_of_calls_agrees_with_a_queue() {
        // Each step is one call of one side. All orders of 12 calls: 4^12 by depth first, without those that
        // reach a state that was seen.
        type State = (u32, u32, u32, u32, u32, u32, u32);
        fn walk(steps: &mut Vec<u8>, depth: usize, seen: &mut HashSet<(State, usize)>) {
            if depth == 0 {
                return;
            }
            for step in 0..4 {
                steps.push(step);
                if seen.insert((replay(steps), depth)) {
                    walk(steps, depth - 1, seen);
                }
                steps.pop();
            }
        }
        /// Plays calls, compares each with the model, and returns the state that they lead to.
        fn replay(steps: &[u8]) -> State {
            let (mut producer, mut consumer) = ends(SIZE);
            // The model: entries written and not shown, shown and not read, and places read and not released.
            let (mut hidden, mut shown, mut read) = (VecDeque::new(), VecDeque::new(), 0);
            let mut value = 0_u64;
            for step in steps {
                match step {
                    0 => {
                        let fits = hidden.len() + shown.len() + read < SIZE as usize;
                        assert_eq!(producer.push(value), fits, "{steps:?}");
                        if fits {
                            hidden.push_back(value);
                        }
                        value += 1;
                    }
                    1 => {
                        producer.publish();
                        shown.append(&mut hidden);
                    }
                    2 => {
                        let expected = shown.pop_front();
                        assert_eq!(consumer.pop(), expected, "{steps:?}");
                        read += usize::from(expected.is_some());
                    }
                    _ => {
                        consumer.release();
                        read = 0;
                    }
                }
                assert_eq!(producer.waiting() as usize, hidden.len() + shown.len() + read);
            }
            let number = |at: NonNull<AtomicU32>| producer.ring.number(at).load(Ordering::Relaxed);
            (
                producer.next,
                producer.limit,
                consumer.next,
                consumer.limit,
                number(producer.ring.producer),
                number(producer.ring.consumer),
                u32::try_from(hidden.len()).expect("few"),
            )
        }
        walk(&mut Vec::new(), 12, &mut HashSet::new());
    }

    #[test]
    fn threads_pass_every_entry_once_and_in_order() {
        const COUNT: u64 = 200_000;
        let (mut producer, mut consumer) = ends(64);
        let writer = thread::spawn(move || {
            let mut next = 0;
            while next < COUNT {
                while next < COUNT && next % 7 != 6 && producer.push(next) {
                    next += 1;
                }
                if next < COUNT && producer.push(next) {
                    next += 1;
                }
                producer.publish();
                std::hint::spin_loop();
                if producer.free(1) == 0 {
                    thread::yield_now();
                }
            }
        });
        let mut expected = 0;
        while expected < COUNT {
            match consumer.pop() {
                Some(entry) => {
                    assert_eq!(entry, expected);
                    expected += 1;
                    if expected % 5 == 0 {
                        consumer.release();
                    }
                }
                None => {
                    consumer.release();
                    thread::yield_now();
                }
            }
        }
        writer.join().expect("the writer ends");
    }

    #[test]
    fn numbers_that_cant_be_are_an_empty_or_a_full_ring() {
        let (mut producer, mut consumer) = ends(SIZE);
        let other =
            |ring: &Ring<u64>, at: NonNull<AtomicU32>, to| ring.number(at).store(to, Ordering::Relaxed);
        other(&consumer.ring, consumer.ring.producer, 77);
        assert_eq!(consumer.pop(), None);
        other(&producer.ring, producer.ring.consumer, 77);
        assert!(!producer.push(1));
    }

    #[test]
    fn rings_outside_of_their_mapping_are_refused() {
        let mapping = mapping(0);
        for (offsets, size) in [
            ([0, 64, 4096, 128], 4),
            ([0, 64, 192, 128], 3),
            ([2, 64, 192, 128], 4),
            ([0, 64, 192, 128], 1024),
        ] {
            assert!(
                Producer::<u64>::new(Arc::clone(&mapping), offsets, size).is_none(),
                "{offsets:?} {size}"
            );
        }
    }
}
