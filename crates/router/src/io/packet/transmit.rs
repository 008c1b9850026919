//! [`Transmit`]: the ring of frames to send, in slots of one size.
//!
//! A slot's status says whose it is. Free, it is ours. Filled, we ask the kernel to send it; the kernel frees
//! it when the frame is sent or dropped.
//!
//! The kernel sends the pages of a slot as they are, behind a copied Ethernet header. A virtual interface
//! copies such a frame once more, which takes more time than the frame itself. So the ring has a header of
//! virtio before each frame, where the kernel takes one: it asks for a copy of the whole frame.

#![allow(unsafe_code)] // memory that is shared with the kernel

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use libc::tpacket3_hdr;

use super::super::PortCounts;
use super::super::sys::{self, Mapping};
use crate::{Frame, Memory};

/// Bytes of a block: slots don't go past one.
const BLOCK: usize = 64 << 10;

/// Bytes before a frame in its slot: a header, aligned to 16.
const HEAD: usize = size_of::<tpacket3_hdr>().next_multiple_of(16);

/// Bytes of a header of virtio, `struct virtio_net_hdr`: flags, a kind of segments, the bytes to copy, and
/// three numbers for segments and checksums.
const VIRTIO: usize = 10;

/// The most bytes of a frame that is copied at once. Longer ones are left in their pages.
const COPIED: u16 = 2048;

/// The size of a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    slots: usize,
    slot: usize,
    /// Bytes before a frame in its slot.
    head: usize,
}

impl Shape {
    /// The ring of at least this many slots, each for a frame of `longest` bytes, behind a header of virtio
    /// if the kernel takes one.
    pub(super) fn new(frames: u32, longest: usize, takes_virtio: bool) -> Self {
        let head = HEAD + if takes_virtio { VIRTIO } else { 0 };
        let slot = (head + longest).next_power_of_two().clamp(2048, BLOCK);
        Self { slots: (frames.max(1) as usize).next_multiple_of(BLOCK / slot), slot, head }
    }

    /// The request to the kernel: `struct tpacket_req3`.
    pub(super) fn request(self) -> [u32; 7] {
        let word = |value: usize| u32::try_from(value).expect("rings are small");
        [word(BLOCK), word(self.bytes() / BLOCK), word(self.slot), word(self.slots), 0, 0, 0]
    }

    /// Bytes of the ring.
    pub(super) const fn bytes(self) -> usize {
        self.slots * self.slot
    }
}

/// The ring of frames to send.
#[derive(Debug)]
pub(super) struct Transmit {
    first: NonNull<u8>,
    shape: Shape,
    /// The most bytes of a frame that the interface sends, without a VLAN tag.
    longest: usize,
    /// The slot to fill next.
    next: usize,
    /// Slots that were filled since the kernel last took all.
    asked: bool,
}

// SAFETY: the mapping that it points into is not bound to a thread.
unsafe impl Send for Transmit {}

impl Transmit {
    /// The ring at an offset of a mapping, which must live as long as the ring is used.
    pub(super) fn new(mapping: &Mapping, offset: usize, shape: Shape, mtu: u32) -> Self {
        let first = mapping.at(offset, shape.bytes()).expect("the mapping has both rings");
        Self { first, shape, longest: mtu as usize + 14, next: 0, asked: false }
    }

    /// Copies frames to free slots, in order, and gives their buffers back: the number of frames that it took
    /// off the front. A frame that is too long for the interface is taken, and counts as refused.
    pub(super) fn put(
        &mut self,
        memory: &mut Memory,
        frames: &mut Vec<Frame>,
        counts: &mut PortCounts,
    ) -> usize {
        let mut taken = 0;
        for frame in frames.iter() {
            let bytes = memory.bytes(frame);
            if self.is_too_long(bytes) {
                counts.refused += 1;
            } else if self.put_one(bytes) {
                counts.sent += 1;
            } else {
                break;
            }
            taken += 1;
        }
        frames.drain(..taken).for_each(|frame| memory.give(frame));
        taken
    }

    /// Whether the kernel would refuse the frame: it allows for one VLAN tag.
    fn is_too_long(&self, bytes: &[u8]) -> bool {
        let tag = if bytes.get(12..14) == Some(&[0x81, 0]) { 4 } else { 0 };
        bytes.len() < 14
            || bytes.len() > self.longest + tag
            || bytes.len() > self.shape.slot - self.shape.head
    }

    /// Fills the next slot. Returns `false` if the kernel has it.
    fn put_one(&mut self, bytes: &[u8]) -> bool {
        let slot = self.slot();
        let header = slot.cast::<tpacket3_hdr>().as_ptr();
        // SAFETY: the slot is in the mapping, aligned to 2,048 bytes, and long enough for a header. Its
        // status is reached as an atomic by us alone.
        let status = unsafe { AtomicU32::from_ptr(&raw mut (*header).tp_status) };
        // Acquire: the kernel has read what was there before.
        if status.load(Ordering::Acquire) != libc::TP_STATUS_AVAILABLE {
            return false;
        }
        let virtio = self.shape.head - HEAD;
        let len = u32::try_from(virtio + bytes.len()).expect("a frame that fits its slot");
        let copied = u16::try_from(bytes.len()).ok().filter(|&len| len <= COPIED).unwrap_or(0);
        let [first, second] = copied.to_ne_bytes();
        let header_of_virtio: [u8; VIRTIO] = [0, 0, first, second, 0, 0, 0, 0, 0, 0];
        // SAFETY: the slot is ours, as its status says. `is_too_long` has checked that the frame fits behind
        // the header, and a buffer is not in the ring, so the two don't overlap.
        unsafe {
            (&raw mut (*header).tp_next_offset).write(0);
            (&raw mut (*header).tp_len).write(len);
            (&raw mut (*header).tp_snaplen).write(len);
            ptr::copy_nonoverlapping(header_of_virtio.as_ptr(), slot.add(HEAD).as_ptr(), virtio);
            ptr::copy_nonoverlapping(bytes.as_ptr(), slot.add(self.shape.head).as_ptr(), bytes.len());
        }
        // Release: the kernel sees the frame once it sees the status.
        status.store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.next = (self.next + 1) % self.shape.slots;
        self.asked = true;
        true
    }

    /// Asks the kernel to send what is in the ring. Congestion and an interface that is down leave the frames
    /// there for the next time.
    pub(super) fn kick(&mut self, socket: &OwnedFd) -> io::Result<()> {
        if !self.asked {
            return Ok(());
        }
        match sys::kick_send(socket) {
            Ok(()) => self.asked = false,
            Err(cause) if is_passing(&cause) => {}
            Err(cause) => return Err(cause),
        }
        Ok(())
    }

    /// The slot to fill next.
    fn slot(&self) -> NonNull<u8> {
        // SAFETY: `next` is less than the number of slots, so the place is in the mapping.
        unsafe { self.first.add(self.next * self.shape.slot) }
    }
}

/// Whether a call that sends may succeed later.
fn is_passing(cause: &io::Error) -> bool {
    let passing = [libc::EAGAIN, libc::ENOBUFS, libc::EINTR, libc::EBUSY, libc::ENETDOWN];
    cause.raw_os_error().is_some_and(|code| passing.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_fill_blocks_and_hold_the_longest_frame() {
        for (frames, longest) in [(1, 64), (1024, 1522), (1000, 1522), (7, 9022), (3, 65_000)] {
            for takes_virtio in [false, true] {
                let shape = Shape::new(frames, longest, takes_virtio);
                assert!(shape.slots >= frames as usize && shape.slot >= (shape.head + longest).min(BLOCK));
                assert_eq!(shape.bytes() % BLOCK, 0);
                assert_eq!(BLOCK % shape.slot, 0);
                let [block, blocks, slot, slots, ..] = shape.request();
                assert_eq!(block / slot * blocks, slots);
            }
        }
    }

    #[test]
    fn a_full_ring_takes_no_more() {
        let shape = Shape::new(32, 1522, true);
        let mapping = Mapping::anonymous(shape.bytes()).expect("memory");
        let mut ring = Transmit::new(&mapping, 0, shape, 1500);
        let mut memory = Memory::new(64).expect("memory");
        let frame = |memory: &mut Memory, len| memory.copy_of(&vec![7; len]).expect("a buffer");
        let mut frames: Vec<Frame> = (0..40).map(|_| frame(&mut memory, 100)).collect();
        let mut counts = PortCounts::default();
        assert_eq!(ring.put(&mut memory, &mut frames, &mut counts), 32);
        assert_eq!((counts.sent, frames.len(), memory.free()), (32, 8, 56));
        // A frame that is too long is taken off though the ring is full.
        frames.insert(0, frame(&mut memory, 1515));
        assert_eq!(ring.put(&mut memory, &mut frames, &mut counts), 1);
        assert_eq!((counts.refused, frames.len(), memory.free()), (1, 8, 56));
        frames.drain(..).for_each(|frame| memory.give(frame));
    }
}
