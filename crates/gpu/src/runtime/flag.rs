//! [`Flag`]: the word of a slot's pinned memory in which a kernel says that its batch is done.
//!
//! An event comes after the grid's end, a flush of all that it wrote and a write of its own: 1 to 2 µs behind
//! the last result, of some 12 that a lone small batch takes in all. A kernel of one block says it itself
//! (`announce_end` of `kernels/batch.cuh`): behind its last result a barrier, a fence for the whole system,
//! and then the mark that it was given.
//!
//! ```text
//! kernel   … last result │ barrier │ fence │ mark │ end          [event]
//! owner    flag? flag? flag? event? flag? ────────► results are handed out
//! ```
//!
//! The mark says that
//!
//! - all results are in pinned memory: whoever sees it sees them;
//! - keys and table are read no more, as what was read is in the results: the slot may be filled anew, and a
//!   patch needn't wait.
//!
//! It doesn't say that the grid has ended. Where that matters an event does:
//!
//! - the slot's next batch is in the same stream, behind the end;
//! - a copy of a table is given back when an event behind the end has come (`CopyState::ending`), and a
//!   slot's memory at the very last, after all copies.
//!
//! Nothing depends on a mark's coming: the event is recorded as for any batch, and asked now and then. So
//! errors, a lost device, one that doesn't answer and a kernel that announces nothing end as they do without
//! a flag. Copies have none, as their results are still on the way when the kernel ends, and neither have
//! graphs, whose launches have the same mark for ever.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::driver::{DevicePtr, Pinned};

/// A word, and the mark that is to come there.
#[derive(Debug)]
pub(super) struct Flag {
    word: Pinned,
    /// The mark of the last batch that had one.
    mark: u32,
    /// Whether that is the present one.
    is_awaited: bool,
}

impl Flag {
    /// Bytes from one end of a cache line to the other: polling leaves the results' lines alone.
    const LINE: usize = 64;

    /// Bytes of pinned memory for so many bytes of something else and a flag.
    pub(super) const fn room_after(bytes: usize) -> usize {
        Self::place_after(bytes) + Self::LINE
    }

    const fn place_after(bytes: usize) -> usize {
        bytes.next_multiple_of(Self::LINE)
    }

    /// The flag behind so many bytes of pinned memory, which was taken with room for it.
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

    /// The place and the mark of the next batch. The mark differs from that of the batch before, which may
    /// still be there. A late one can't come, as a stream's kernels put theirs in order and this batch's
    /// kernel is behind the end of all before.
    pub(super) fn next(&mut self) -> (DevicePtr, u32) {
        self.mark = self.mark.wrapping_add(1);
        self.is_awaited = true;
        (self.word.device, self.mark)
    }

    /// The next batch has no mark.
    pub(super) fn lower(&mut self) {
        self.is_awaited = false;
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    /// Whether the batch has put its mark there. What it wrote before can be read from now on.
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
