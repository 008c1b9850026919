//! [`Flag`]: words in a slot's pinned memory in which the blocks of a kernel say that its batch is done.
//!
//! An event comes after the end of the grid, a flush of all its writes and a write of the event itself: 1 to
//! 2 µs after the last result, out of some 12 µs that a single small batch takes in all. And it comes for all
//! batches of a launch at once. A kernel can say itself that a batch is done (`announce_end` of
//! `kernels/batch.cuh`): after its last result each block executes a barrier and a fence for the whole
//! system, and then writes the mark that it was given into its own word.
//!
//! ```text
//! block 0  … last result │ barrier │ fence │ mark │
//! block 1  … last result │ barrier │ fence │ mark │ end          [event]
//! owner    words? words? words? event? words? ────► results are handed out
//! ```
//!
//! The marks of all blocks say that
//!
//! - all results are in pinned memory, and a reader who sees the marks sees them;
//! - keys and table are not read any more, because the results depend on all reads: the slot may be filled
//!   again, and a patch need not wait.
//!
//! They do not say that the grid has ended, nor that other batches of the launch are done. The slot's next
//! batch need not wait for that, because the grid has no more use for the slot. If it matters an event is
//! used: a copy of a table is freed when an event after the end has come (`CopyState::ending`), and a slot's
//! memory at the very end, after all copies.
//!
//! Nothing depends on the marks: the event is recorded as for any batch, and checked now and then. So errors,
//! a lost device, a device that does not answer, and a kernel without a mark end as they do without a flag.
//! Transfers by copies have no marks, because their results are still under way when the kernel ends. Graphs
//! have none, because every launch of a graph would have the same mark. Nor has a batch with more blocks than
//! words: it takes long, and its event costs little beside that.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::driver::{DevicePtr, Pinned};

/// A word for each block, and the mark that is expected there.
#[derive(Debug)]
pub(super) struct Flag {
    words: Pinned,
    /// The mark of the last batch that had one.
    mark: u32,
    /// The number of blocks that will write it. None for the current batch if 0.
    blocks: usize,
    /// The number of words, from the first, that were seen to have it.
    come: usize,
}

impl Flag {
    /// Bytes of a cache line: polling must not touch the lines of the results.
    const LINE: usize = 64;
    /// The most blocks that have a word each: their words fill a line.
    pub(super) const BLOCKS: u32 = 16;
    const BYTES: usize = Self::BLOCKS as usize * size_of::<u32>();

    /// Bytes of pinned memory for `bytes` bytes of other data and a flag.
    pub(super) const fn room_after(bytes: usize) -> usize {
        Self::place_after(bytes) + Self::BYTES
    }

    const fn place_after(bytes: usize) -> usize {
        bytes.next_multiple_of(Self::LINE)
    }

    /// The flag after `bytes` bytes of pinned memory that has space for it.
    pub(super) fn after(bytes: usize, memory: &Pinned) -> Self {
        let at = Self::place_after(bytes);
        assert!(memory.len >= at + Self::BYTES, "there is room for the flag");
        #[allow(unsafe_code)] // a place in pinned memory
        // SAFETY: it lies in the memory's `len` bytes (just checked).
        let host = unsafe { memory.host.add(at) };
        assert!(host.cast::<AtomicU32>().is_aligned(), "pinned memory starts at a word, and lines do");
        let words = Pinned { host, device: memory.device.plus(at as u64), len: Self::BYTES };
        Self { words, mark: 0, blocks: 0, come: 0 }
    }

    /// The address and the mark of the next batch, for so many blocks. `None` if there are more than
    /// [`BLOCKS`](Self::BLOCKS).
    ///
    /// The mark differs from the previous batch's, which may still be there. An old mark can't arrive late:
    /// the slot came back after all of them, or after an event behind the end of the grid that wrote them.
    pub(super) fn next(&mut self, blocks: u32) -> Option<(DevicePtr, u32)> {
        if blocks > Self::BLOCKS {
            self.lower();
            return None;
        }
        self.mark = self.mark.wrapping_add(1);
        (self.blocks, self.come) = (blocks as usize, 0);
        Some((self.words.device, self.mark))
    }

    /// Says that the next batch has no mark.
    pub(super) fn lower(&mut self) {
        self.blocks = 0;
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.blocks > 0
    }

    /// Whether all blocks of the batch have written its mark. Its results can be read from then on.
    pub(super) fn has_come(&mut self) -> bool {
        while self.come < self.blocks && self.load(self.come) == self.mark {
            self.come += 1;
        }
        self.is_come()
    }

    /// Whether [`has_come`](Self::has_come) has found this.
    pub(super) fn is_come(&self) -> bool {
        self.is_awaited() && self.come == self.blocks
    }

    #[allow(unsafe_code)] // a word that the device writes
    fn load(&self, block: usize) -> u32 {
        let words = self.words.host.cast::<u32>();
        // SAFETY: 1. The word is one of the flag's (there are no more blocks than words), in pinned memory,
        // which is given back only when the owner, who alone comes here, has ended all its work; it is
        // aligned (`after` checked both). 2. Of this process nobody else reads or writes it: keys and results
        // end before it. The device writes it in one piece, as an atomic store of the whole system would. 3.
        // Acquire: results are read after it.
        unsafe { AtomicU32::from_ptr(words.add(block)) }.load(Ordering::Acquire)
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
                let at = usize::try_from(flag.next(1).unwrap().0.0).unwrap() - 4096;
                let end = at + 4 * Flag::BLOCKS as usize;
                assert!(at >= bytes && end <= 4 * words && at.is_multiple_of(Flag::LINE), "{bytes}: {at}");
            });
        }
    }

    #[test]
    #[allow(unsafe_code)] // plays the device
    fn only_the_mark_of_all_blocks_has_come() {
        with_flag(100, |mut flag, memory, _| {
            let put = |(at, mark): (DevicePtr, u32), block: usize| {
                let at = usize::try_from(at.0).unwrap() - 4096 + 4 * block;
                // SAFETY: the flag lies in the memory, and has a word for each block.
                unsafe { memory.byte_add(at).write_volatile(mark) };
            };
            assert!(!flag.has_come(), "nothing is awaited");
            let first = flag.next(1).unwrap();
            assert!(!flag.has_come());
            put(first, 0);
            assert!(flag.has_come());
            let second = flag.next(3).unwrap();
            assert!(!flag.has_come(), "that is the first one's");
            for block in [2, 0, 1] {
                assert!(!flag.has_come());
                put(second, block);
            }
            assert!(flag.has_come());
            // One block has said so long ago.
            let third = flag.next(2).unwrap();
            put(third, 1);
            assert!(!flag.has_come());
            put(third, 0);
            assert!(flag.has_come());
            flag.lower();
            assert!(!flag.has_come() && !flag.is_awaited());
            flag.mark = u32::MAX - 1;
            for _ in 0..3 {
                let mark = flag.next(1).unwrap();
                assert!(!flag.has_come());
                put(mark, 0);
                assert!(flag.has_come());
            }
            assert_eq!(flag.next(Flag::BLOCKS + 1), None);
            assert!(!flag.is_awaited());
            assert!(flag.next(Flag::BLOCKS).is_some());
        });
    }
}
