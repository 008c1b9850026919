//! [`Chunk`]: the frames of a slot, while the device has nothing to do with them.

#![allow(unsafe_code)] // frames lie in pinned memory, by address

use super::layout::{ALIGN, Frame, HEADER};
use super::slot::{Slot, Standing, Transform};
use crate::error::Error;

/// The chunk of a slot: frames that are to be sealed or opened, or that have been.
#[derive(Debug)]
pub struct Chunk<'d> {
    pub(super) slot: &'d mut Slot,
    /// Bytes of the tag of each keys' frames; none where there are no keys.
    pub(super) tags: &'d [Option<usize>],
    pub(super) epoch: u64,
}

impl Chunk<'_> {
    /// Frames that are in the chunk.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slot.spans.len()
    }

    /// Whether no frame is in the chunk.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slot.spans.is_empty()
    }

    /// Takes all frames out.
    pub fn clear(&mut self) {
        self.slot.clear();
    }

    /// Makes place for a frame of so many bytes, from its ESP header to the end of its tag, and gives the
    /// place, to be written. `keys` is the number of its keys on the device, and `high` the upper half of its
    /// sequence number, which only extended numbers have. A chunk that is back is emptied first.
    ///
    /// Fails if there are no such keys, if the frame is too short for its header and its tag, or if the chunk
    /// is full.
    pub fn place(&mut self, keys: u32, high: u32, len: usize) -> Result<&mut [u8], Error> {
        let tag = usize::try_from(keys).ok().and_then(|at| *self.tags.get(at)?).ok_or(Error::NoKeys(keys))?;
        if len < HEADER + tag {
            return Err(Error::Short { found: len, least: HEADER + tag });
        }
        if self.slot.standing != Standing::Filling {
            self.slot.clear();
        }
        let slot = &mut *self.slot;
        let (frames, bytes) = (slot.frames.len / size_of::<Frame>(), slot.bytes.len);
        let (at, length) = (u32::try_from(slot.used), u32::try_from(len - tag));
        let (true, true, Ok(offset), Ok(length)) =
            (slot.spans.len() < frames, len <= bytes - slot.used, at, length)
        else {
            return Err(Error::Full { frames, bytes });
        };
        if slot.spans.is_empty() {
            slot.epoch = self.epoch;
        }
        let frame = Frame { offset, length, keys, high };
        // SAFETY: 1. The address is that of pinned memory, which begins at a page and has place for `frames`
        // frames, and there are fewer. 2. Nothing else points to it: the slot is borrowed alone, and it is
        // not under way.
        unsafe { slot.frames.host.cast::<Frame>().add(slot.spans.len()).write(frame) };
        let start = slot.used;
        slot.spans.push((start, len));
        // The length of the memory is a multiple of the alignment, too.
        slot.used = (start + len).next_multiple_of(ALIGN);
        slot.has_hmac |= tag == crate::crypto::sha1::TAG;
        // SAFETY: 1. The memory has `bytes` bytes, all of them written once, and the frame ends among them.
        // 2. As above, nothing else points to it; the slice borrows the chunk.
        Ok(unsafe { std::slice::from_raw_parts_mut(slot.bytes.host.add(start), len) })
    }

    /// Copies a frame into the chunk: see [`place`](Self::place).
    pub fn push(&mut self, keys: u32, high: u32, frame: &[u8]) -> Result<(), Error> {
        self.place(keys, high, frame.len())?.copy_from_slice(frame);
        Ok(())
    }

    /// A frame, from its ESP header to the end of its tag.
    ///
    /// Panics if there is none with this number.
    #[must_use]
    pub fn frame(&self, at: usize) -> &[u8] {
        let (start, len) = self.slot.spans[at];
        // SAFETY: `place` has made place for these bytes, nothing writes to them while the chunk is borrowed,
        // and the slot is not under way.
        unsafe { std::slice::from_raw_parts(self.slot.bytes.host.add(start), len) }
    }

    /// Whether a frame's tag was right. True for all frames that were sealed, and false where nothing was
    /// done yet.
    ///
    /// Panics if there is no frame with this number.
    #[must_use]
    pub fn is_right(&self, at: usize) -> bool {
        assert!(at < self.slot.spans.len(), "frame {at} of {}", self.slot.spans.len());
        match self.slot.standing {
            Standing::Done(Transform::Seal) => true,
            // SAFETY: there is a verdict for each frame, and the copy that wrote it is done.
            Standing::Done(Transform::Open) => unsafe { self.slot.verdicts.host.add(at).read() == 1 },
            Standing::Filling | Standing::UnderWay(_) => false,
        }
    }
}
