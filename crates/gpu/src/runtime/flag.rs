//! [`Flag`]: a word in a slot's pinned memory in which a kernel says that its batch is done.
//!
//! An event comes after the end of the grid, a flush of all its writes and a write of the event itself: 1 to
//! 2 µs after the last result, out of some 12 µs that a single small batch takes in all. A kernel of one
//! block can say itself that it is done (`announce_end` of `kernels/batch.cuh`): after its last result it
//! executes a barrier and a fence for the whole system, and then writes the mark that it was given.
//!
//! ```text
//! kernel   … last result │ barrier │ fence │ mark │ end          [event]
//! owner    flag? flag? flag? event? flag? ────────► results are handed out
//! ```
//!
//! The mark says that
//!
//! - all results are in pinned memory, and a reader who sees the mark sees them;
//! - keys and table are not read any more, because the results depend on all reads: the slot may be filled
//!   again, and a patch need not wait.
//!
//! It does not say that the grid has ended. If that matters an event is used:
//!
//! - the slot's next batch is in the same stream, after the end;
//! - a copy of a table is freed when an event after the end has come (`CopyState::ending`), and a slot's
//!   memory at the very end, after all copies.
//!
//! Nothing depends on the mark: the event is recorded as for any batch, and checked now and then. So errors,
//! a lost device, a device that does not answer, and a kernel without a mark end as they do without a flag.
//! Transfers by copies have no mark, because their results are still under way when the kernel ends. Graphs
//! have none, because every launch of a graph would have the same mark.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::driver::{DevicePtr, Pinned};

/// A word, and the mark that is expected there.
#[derive(Debug)]
pub(super) struct Flag {
    word: Pinned,
    /// The mark of the last batch that had one.
    mark: u32,
    /// Whether the current batch has this mark.
    is_awaited: bool,
}

impl Flag {
    /// Bytes of a cache line: polling must not touch the lines of the results.
    const LINE: usize = 64;

    /// Bytes of pinned memory for `bytes` bytes of other data and a flag.
    pub(super) const fn room_after(bytes: usize) -> usize {
        Self::place_after(bytes) + Self::LINE
    }

    const fn place_after(bytes: usize) -> usize {
        bytes.next_multiple_of(Self::LINE)
    }

    /// The flag after `bytes` bytes of pinned memory that has space for it.
    pub(super) fn after(bytes: usize, memory: &Pinned) -> Self {
        let at = Self::place_after(bytes);
        assert!(memory.len >= at + Self::LINE, "there is room for the flag");
        #[allow(unsafe_code)] // a place in pinned memory
        // SAFETY: it lies in the memory's `len` bytes (just checked).
        let host = unsafe { memory.host.add(at) };
        assert!(host.cast::<AtomicU32>().is_aligned(), "pinned memory starts at a word, and lines do");
        let word = Pinned { host, device: memory.device.plus(at as u64), len: size_of::<u32>() };
        Self { word, mark: 0, is_awaited: false }
    }

    /// The address and the mark of the next batch. The mark differs from the previous batch's, which may
    /// still be there. An old mark can't arrive late: a stream's kernels run in order, and this batch's
    /// kernel starts after the end of all earlier ones.
    pub(super) fn next(&mut self) -> (DevicePtr, u32) {
        self.mark = self.mark.wrapping_add(1);
        self.is_awaited = true;
        (self.word.device, self.mark)
    }

    /// Says that the next batch has no mark.
    pub(super) fn lower(&mut self) {
        self.is_awaited = false;
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    /// Whether the batch has written its mark. Its results can be read from then on.
    pub(super) fn has_come(&self) -> bool {
        self.is_awaited && self.load() == self.mark
    }

    #[allow(unsafe_code)] // a word that the device writes
    fn load(&self) -> u32 {
        // SAFETY: 1. The word lies in pinned memory, which is given back only when the owner, who alone comes
        // here, has ended all its work; it is aligned (`after` checked both). 2. Of this process nobody else
        // reads or writes it: keys and results end before it. The device writes it in one piece, as an atomic
        // store of the whole system would. 3. Acquire: results are read after it.
        unsafe { AtomicU32::from_ptr(self.word.host.cast()) }.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does with a flag behind so many bytes, and with all the memory, whatever is to be done.
    fn with_flag(bytes: usize, check: impl FnOnce(Flag, *mut u32, usize)) {
        let mut memory = vec![0u32; Flag::room_after(bytes) / 4];
        let host = memory.as_mut_ptr();
        let pinned = Pinned { host: host.cast(), device: DevicePtr(4096), len: 4 * memory.len() };
        check(Flag::after(bytes, &pinned), host, memory.len());
    }

    #[test]
    fn a_flag_lies_behind_what_is_before_it() {
        for bytes in [0, 1, 4, 63, 64, 65, 4000] {
            with_flag(bytes, |mut flag, _, words| {
                let at = usize::try_from(flag.next().0.0).unwrap() - 4096;
                assert!(at >= bytes && at + 4 <= 4 * words && at.is_multiple_of(Flag::LINE), "{bytes}: {at}");
            });
        }
    }

    #[test]
    #[allow(unsafe_code)] // plays the device
    fn only_the_mark_that_is_awaited_has_come() {
        with_flag(100, |mut flag, memory, _| {
            let put = |(at, mark): (DevicePtr, u32)| {
                // SAFETY: the flag lies in the memory.
                unsafe { memory.byte_add(usize::try_from(at.0).unwrap() - 4096).write_volatile(mark) };
            };
            assert!(!flag.has_come(), "nothing is awaited");
            let first = flag.next();
            assert!(!flag.has_come());
            put(first);
            assert!(flag.has_come());
            let second = flag.next();
            assert!(!flag.has_come(), "that is the first one's");
            put(second);
            assert!(flag.has_come());
            flag.lower();
            assert!(!flag.has_come() && !flag.is_awaited());
            flag.mark = u32::MAX - 1;
            for _ in 0..3 {
                let mark = flag.next();
                assert!(!flag.has_come());
                put(mark);
                assert!(flag.has_come());
            }
        });
    }
}
