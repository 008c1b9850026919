//! [`Frame`] and [`Memory`]: frames in buffers of one size, each of which has one owner.
//!
//! ```text
//! memory:  | buffer 0          | buffer 1          | …            one mapping, huge pages where they are to be had
//!            head room | bytes of the frame | rest
//! frame:   (buffer, start, length)                                a ticket of 8 bytes that moves: it has no copy
//! ```
//!
//! A worker owns its memory. A ticket is in one place at a time: in the memory's list of free buffers, in a
//! chunk, in a queue of a port, or it stands for a buffer that a device holds. So no buffer is used twice or
//! lost, and the bytes of a frame are never copied between stages.

#![allow(unsafe_code)] // a device may write to other buffers of the mapping, so no slice spans it

use std::io;
use std::ptr::NonNull;
use std::slice;

use memmap2::MmapMut;
use wirespeed::image::prefetch_at;

use crate::Error;

/// Bytes before a frame in a fresh buffer: a tag or an outer header goes there without moving the frame. The
/// kernel's AF_XDP rings leave as many.
pub const HEAD_ROOM: u16 = 256;

/// Bytes between two buffers, unless [`Memory::with_stride`] says otherwise: a frame of 1,518 bytes with
/// head room, and the size of AF_XDP's chunks.
pub const STRIDE: u32 = 2048;

/// A frame: a ticket for the buffer where its bytes are. It can't be copied, so it is in one place at a time.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a frame that is dropped loses its buffer"]
pub struct Frame {
    buffer: u32,
    start: u16,
    len: u16,
}

impl Frame {
    /// The number of its bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// A second ticket for the buffer: the caller lets the first one go at once.
    #[inline]
    pub(crate) const fn again(&self) -> Self {
        Self { buffer: self.buffer, start: self.start, len: self.len }
    }

    /// Gives the ticket up, for a device that holds the buffer from now on: the number of the buffer.
    #[must_use]
    pub const fn into_buffer(self) -> u32 {
        self.buffer
    }

    /// Whether it has no byte.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of its buffer.
    #[must_use]
    pub const fn buffer(&self) -> u32 {
        self.buffer
    }

    /// The bytes before it that are free.
    #[must_use]
    pub const fn head_room(&self) -> usize {
        self.start as usize
    }

    /// Gives bytes at its front up: a header that is taken off.
    ///
    /// Panics if it has fewer bytes.
    pub fn strip_front(&mut self, bytes: u16) {
        assert!(bytes <= self.len, "a frame of {} bytes has no {bytes} to strip", self.len);
        (self.start, self.len) = (self.start + bytes, self.len - bytes);
    }

    /// Takes bytes before its front in: room for a header. Returns `false`, and does nothing, without enough
    /// head room.
    pub fn grow_front(&mut self, bytes: u16) -> bool {
        let is_there = bytes <= self.start;
        if is_there {
            (self.start, self.len) = (self.start - bytes, self.len + bytes);
        }
        is_there
    }

    /// Cuts it to at most this number of bytes: padding that is taken off.
    pub fn truncate(&mut self, len: u16) {
        self.len = self.len.min(len);
    }
}

/// The buffers of a worker, with the list of those that are free.
#[derive(Debug)]
pub struct Memory {
    /// Keeps the mapping; its bytes are reached through `base` alone.
    map: MmapMut,
    base: NonNull<u8>,
    buffers: u32,
    stride: u32,
    free: Vec<Frame>,
    /// A mark for each buffer, of the port that filled it. A buffer that is taken has none.
    marks: Vec<Mark>,
}

/// What a port notes of a buffer that it filled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    /// Times that its frame can come round again.
    pub(crate) rounds: u8,
    /// The frame's length as it was made.
    pub(crate) len: u16,
    /// Whether an application added the frame to a chunk: see [`Chunk::add`](crate::Chunk::add).
    pub(crate) is_added: bool,
}

// SAFETY: `base` points into `map`, which the memory owns and which is not bound to a thread.
unsafe impl Send for Memory {}

impl Memory {
    /// Maps a number of buffers of [`STRIDE`] bytes.
    pub fn new(buffers: u32) -> Result<Self, Error> {
        Self::with_stride(buffers, STRIDE)
    }

    /// Maps a number of buffers that lie this many bytes apart: at most 65,535, and more than [`HEAD_ROOM`].
    pub fn with_stride(buffers: u32, stride: u32) -> Result<Self, Error> {
        let is_possible = buffers > 0 && stride > u32::from(HEAD_ROOM) && stride <= u32::from(u16::MAX);
        let bytes = usize::try_from(u64::from(buffers) * u64::from(stride)).ok().filter(|_| is_possible);
        let Some(bytes) = bytes else {
            return Err(Error::Memory {
                buffers,
                stride,
                cause: io::Error::from(io::ErrorKind::InvalidInput),
            });
        };
        let mut map = MmapMut::map_anon(bytes).map_err(|cause| Error::Memory { buffers, stride, cause })?;
        // A kernel without huge pages maps small ones.
        let _ = map.advise(memmap2::Advice::HugePage);
        // The buffer of the lowest number is taken first.
        let free = (0..buffers).rev().map(|buffer| Frame { buffer, start: HEAD_ROOM, len: 0 }).collect();
        let base = NonNull::from(&mut map[0]);
        let marks = vec![Mark::default(); buffers as usize];
        Ok(Self { map, base, buffers, stride, free, marks })
    }

    /// The number of buffers.
    #[must_use]
    pub const fn buffers(&self) -> u32 {
        self.buffers
    }

    /// Bytes between two buffers.
    #[must_use]
    pub const fn stride(&self) -> u32 {
        self.stride
    }

    /// The most bytes of a frame.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        (self.stride - HEAD_ROOM as u32) as usize
    }

    /// The number of free buffers.
    #[must_use]
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Takes a free buffer: an empty frame with head room.
    pub fn take(&mut self) -> Option<Frame> {
        let frame = self.free.pop()?;
        self.marks[frame.buffer as usize] = Mark::default();
        Some(frame)
    }

    /// The mark of a frame's buffer, to be changed. It stays until the buffer is taken again.
    pub(crate) fn mark(&mut self, frame: &Frame) -> &mut Mark {
        &mut self.marks[frame.buffer as usize]
    }

    /// Whether an application added the frame to a chunk.
    pub(crate) fn is_added(&self, frame: &Frame) -> bool {
        self.marks[frame.buffer as usize].is_added
    }

    /// Takes bytes behind a frame's end in: room for a trailer. Returns `false`, and does nothing, if its
    /// buffer ends before.
    pub fn grow_back(&self, frame: &mut Frame, bytes: u16) -> bool {
        let end = u32::from(frame.start) + u32::from(frame.len) + u32::from(bytes);
        let is_there = end <= self.stride;
        if is_there {
            frame.len += bytes;
        }
        is_there
    }

    /// Takes a free buffer for a frame of this many bytes, whose bytes are anything. `None` if there is none,
    /// or if a buffer is too small.
    pub fn take_for(&mut self, len: usize) -> Option<Frame> {
        let len = u16::try_from(len).ok().filter(|&len| usize::from(len) <= self.capacity())?;
        let mut frame = self.take()?;
        frame.len = len;
        Some(frame)
    }

    /// Takes a free buffer and copies a frame into it. `None` like [`take_for`](Self::take_for).
    pub fn copy_of(&mut self, bytes: &[u8]) -> Option<Frame> {
        let frame = self.take_for(bytes.len())?;
        self.bytes_mut(&frame).copy_from_slice(bytes);
        Some(frame)
    }

    /// Writes other bytes into the buffer of a frame, from its first byte on. Returns `false`, and does
    /// nothing, if the buffer ends before they do.
    pub fn rewrite(&mut self, frame: &mut Frame, bytes: &[u8]) -> bool {
        let room = self.stride - u32::from(frame.start);
        let Some(len) = u16::try_from(bytes.len()).ok().filter(|&len| u32::from(len) <= room) else {
            return false;
        };
        frame.len = len;
        self.bytes_mut(frame).copy_from_slice(bytes);
        let is_added = self.is_added(frame);
        self.marks[frame.buffer as usize] = Mark { is_added, ..Mark::default() };
        true
    }

    /// Takes the buffer of a frame back.
    pub fn give(&mut self, frame: Frame) {
        self.free.push(Frame { buffer: frame.buffer, start: HEAD_ROOM, len: 0 });
    }

    /// The bytes of a frame.
    ///
    /// Panics if the frame is of another memory, and lies past the end of this one.
    #[inline]
    #[must_use]
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        let at = self.checked(frame);
        // SAFETY: `checked` says that the bytes are in the mapping. Whoever holds a frame's ticket owns its
        // buffer, so nobody writes to it while the ticket and the memory are borrowed.
        unsafe { slice::from_raw_parts(self.base.add(at).as_ptr(), frame.len()) }
    }

    /// The bytes of a frame, to be changed.
    ///
    /// Panics like [`bytes`](Self::bytes).
    #[inline]
    pub fn bytes_mut(&mut self, frame: &Frame) -> &mut [u8] {
        let at = self.checked(frame);
        // SAFETY: as in `bytes`; the memory is borrowed for writing, so this is the only slice.
        unsafe { slice::from_raw_parts_mut(self.base.add(at).as_ptr(), frame.len()) }
    }

    /// The first bytes of a frame, if it has as many.
    ///
    /// Panics like [`bytes`](Self::bytes).
    #[inline]
    #[must_use]
    pub fn first<const N: usize>(&self, frame: &Frame) -> Option<&[u8; N]> {
        self.bytes(frame).first_chunk()
    }

    /// The first bytes of a frame, to be changed, if it has as many.
    ///
    /// Panics like [`bytes`](Self::bytes).
    #[inline]
    pub fn first_mut<const N: usize>(&mut self, frame: &Frame) -> Option<&mut [u8; N]> {
        self.bytes_mut(frame).first_chunk_mut()
    }

    /// Brings the first cache line of a frame near.
    #[inline]
    pub fn prefetch(&self, frame: &Frame) {
        prefetch_at(self.base.as_ptr().wrapping_add(self.offset(frame)));
    }

    /// The offset of a frame's first byte in the mapping: its address for AF_XDP.
    #[inline]
    #[must_use]
    pub const fn offset(&self, frame: &Frame) -> usize {
        frame.buffer as usize * self.stride as usize + frame.start as usize
    }

    /// The offset of a frame whose bytes are in its buffer, and whose buffer is in the mapping.
    #[inline]
    fn checked(&self, frame: &Frame) -> usize {
        let end = u32::from(frame.start) + u32::from(frame.len);
        assert!(frame.buffer < self.buffers && end <= self.stride, "a frame of another memory");
        self.offset(frame)
    }

    /// The mapping, for a device that writes frames to it: its first byte and its length. It stays where it
    /// is as long as the memory lives, wherever the memory moves.
    #[must_use]
    pub fn region(&self) -> (NonNull<u8>, usize) {
        (self.base, self.map.len())
    }

    /// The ticket for a frame that a device gives back: where its first byte is in the mapping, and its
    /// length. `None` if these bytes are not in one buffer.
    ///
    /// The device must have held this buffer: a [`Frame`] of it was given up ([`Frame::into_buffer`]).
    pub fn frame_at(&self, offset: u64, len: u32) -> Option<Frame> {
        let stride = u64::from(self.stride);
        let buffer = u32::try_from(offset / stride).ok().filter(|&n| n < self.buffers)?;
        let start = u32::try_from(offset % stride).ok()?;
        start.checked_add(len).filter(|&end| end <= self.stride)?;
        Some(Frame { buffer, start: u16::try_from(start).ok()?, len: u16::try_from(len).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_takes_other_bytes_as_far_as_its_buffer_goes() {
        let mut memory = Memory::with_stride(2, u32::from(HEAD_ROOM) + 100).unwrap();
        let mut frame = memory.copy_of(&[1; 60]).unwrap();
        memory.mark(&frame).rounds = 9;
        for bytes in [vec![2; 100], vec![3; 20], vec![]] {
            assert!(memory.rewrite(&mut frame, &bytes));
            assert_eq!(memory.mark(&frame).rounds, 0);
            assert_eq!(memory.bytes(&frame), bytes);
        }
        assert!(memory.rewrite(&mut frame, &[4; 60]));
        for bytes in [101, 1 << 16] {
            assert!(!memory.rewrite(&mut frame, &vec![5; bytes]));
            assert_eq!(memory.bytes(&frame), [4; 60]);
        }
        // A header more begins before the head room ends.
        assert!(frame.grow_front(14) && memory.rewrite(&mut frame, &[6; 114]));
        assert_eq!((memory.bytes(&frame), frame.head_room()), (&[6; 114][..], usize::from(HEAD_ROOM) - 14));
        frame.strip_front(114);
        assert!(!memory.rewrite(&mut frame, &[7]) && memory.rewrite(&mut frame, &[]));
        memory.give(frame);
        assert_eq!(memory.free(), 2);
    }
}
