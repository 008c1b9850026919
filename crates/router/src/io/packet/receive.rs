//! [`Receive`]: the ring of received frames, in blocks (TPACKET_V3).
//!
//! ```text
//! block:  status, number of frames, offset of the first | header, frame | header, frame | …
//! header: offset of the next header, lengths, status, offset of the frame, VLAN tag
//! ```
//!
//! The kernel fills a block and sets a bit in its status: the block is ours. Cleared, it is the kernel's.

#![allow(unsafe_code)] // memory that is shared with the kernel

use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{tpacket_block_desc, tpacket3_hdr};

use super::super::PortCounts;
use super::super::checksum::finish;
use super::super::sys::Mapping;
use crate::{Frame, Memory};

/// Bytes of a block: less than the largest frame is possible.
const BLOCK: u32 = 128 << 10;

/// Bytes that a frame is reckoned with. Frames in blocks have any length.
const FRAME: u32 = 2048;

/// The size of a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    blocks: u32,
    wait_ms: u32,
}

impl Shape {
    /// The ring of about this many bytes, with two blocks at least.
    pub(super) fn new(bytes: u32, wait_ms: u32) -> Self {
        Self { blocks: (bytes / BLOCK).max(2), wait_ms: wait_ms.max(1) }
    }

    /// The request to the kernel: `struct tpacket_req3`.
    pub(super) const fn request(self) -> [u32; 7] {
        [BLOCK, self.blocks, FRAME, self.blocks * (BLOCK / FRAME), self.wait_ms, 0, 0]
    }

    /// Bytes of the ring.
    pub(super) const fn bytes(self) -> usize {
        self.blocks as usize * BLOCK as usize
    }
}

/// The ring of received frames.
#[derive(Debug)]
pub(super) struct Receive {
    first: NonNull<u8>,
    shape: Shape,
    /// The block to read from.
    block: u32,
    /// Frames of this block that wait, and the offset of the next one in it; `None` if the block is not known
    /// to be ours.
    rest: Option<(u32, usize)>,
}

// SAFETY: the mapping that it points into is not bound to a thread.
unsafe impl Send for Receive {}

impl Receive {
    /// The ring at the start of a mapping, which must live as long as the ring is used.
    pub(super) fn new(mapping: &Mapping, shape: Shape) -> Self {
        let first = mapping.at(0, shape.bytes()).expect("the mapping has both rings");
        Self { first, shape, block: 0, rest: None }
    }

    /// Copies at most `most` frames to buffers and adds those that `keeps` wants: their number. Ends early
    /// where no buffer is free.
    pub(super) fn frames(
        &mut self,
        memory: &mut Memory,
        frames: &mut Vec<Frame>,
        most: usize,
        keeps: impl Fn(&[u8]) -> bool,
        counts: &mut PortCounts,
    ) -> usize {
        let mut given = 0;
        while given < most && memory.free() > 0 {
            let Some(seen) = self.next() else { break };
            match seen.copy(memory) {
                Some(frame) if keeps(memory.bytes(&frame)) => {
                    given += 1;
                    counts.received += 1;
                    frames.push(frame);
                }
                Some(frame) => memory.give(frame),
                None => counts.refused += 1,
            }
            self.advance();
        }
        given
    }

    /// The next frame, which is ours until [`advance`](Self::advance).
    fn next(&mut self) -> Option<Seen<'_>> {
        let (waiting, offset) = match self.rest {
            Some(rest) => rest,
            None => {
                let (status, frames, first) = self.block_head();
                // Acquire: what the kernel wrote before it set the bit is seen.
                if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                    return None;
                }
                // SAFETY: the block is ours, so the kernel doesn't write to it; both fields are in it.
                let rest = unsafe { (frames.read(), first.read() as usize) };
                self.rest = Some(rest);
                rest
            }
        };
        if waiting == 0 {
            // The time ran out before the first frame came: an empty block.
            self.give_block();
            return None;
        }
        let header = size_of::<tpacket3_hdr>();
        assert!(offset + header <= BLOCK as usize, "the kernel's header lies in the block");
        // SAFETY: the header lies in the block, which is ours. Any bytes are a header.
        let header = unsafe { self.block_at(offset).cast::<tpacket3_hdr>().read_unaligned() };
        let start = offset + usize::from(header.tp_mac);
        let len = header.tp_snaplen as usize;
        assert!(start + len <= BLOCK as usize, "the kernel's frame lies in the block");
        // SAFETY: the bytes lie in the block, which is ours until `give_block`: that needs `self` for
        // writing, and the slice borrows it.
        let bytes = unsafe { slice::from_raw_parts(self.block_at(start).as_ptr(), len) };
        Some(Seen { bytes, header })
    }

    /// Goes past the frame that [`next`](Self::next) gave.
    fn advance(&mut self) {
        let Some((waiting, offset)) = self.rest else { return };
        if waiting <= 1 {
            return self.give_block();
        }
        let field = self.block_at(offset).cast::<u32>();
        // SAFETY: `next` has checked that this header lies in the block, and the block is still ours.
        let step = unsafe { field.read_unaligned() } as usize;
        self.rest = Some((waiting - 1, offset + step));
    }

    /// Hands the block to the kernel, and goes to the next one.
    fn give_block(&mut self) {
        let (status, ..) = self.block_head();
        // Release: our reads are done before the kernel writes.
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.rest = None;
        self.block = (self.block + 1) % self.shape.blocks;
    }

    /// Fields of the block's head: status, number of frames, offset of the first.
    fn block_head(&self) -> (&AtomicU32, NonNull<u32>, NonNull<u32>) {
        let head = self.block_at(0).cast::<tpacket_block_desc>().as_ptr();
        // SAFETY: the head lies in the mapping, which outlives the ring, and is aligned, since blocks are
        // multiples of a page. The status is reached as an atomic by us alone.
        unsafe {
            let head = &raw mut (*head).hdr.bh1;
            let status = AtomicU32::from_ptr(&raw mut (*head).block_status);
            let frames = NonNull::new_unchecked(&raw mut (*head).num_pkts);
            (status, frames, NonNull::new_unchecked(&raw mut (*head).offset_to_first_pkt))
        }
    }

    /// The place of a byte of the block.
    fn block_at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < BLOCK as usize, "an offset in the block");
        // SAFETY: blocks that there are, and an offset in the block: in the mapping.
        unsafe { self.first.add(self.block as usize * BLOCK as usize + offset) }
    }
}

/// A frame in the ring.
struct Seen<'r> {
    bytes: &'r [u8],
    header: tpacket3_hdr,
}

/// Bytes of both hardware addresses: a VLAN tag follows them.
const ADDRESSES: usize = 12;

impl Seen<'_> {
    /// Copies the frame to a buffer as it was on the wire: with its VLAN tag, and with its checksum. `None`
    /// if it doesn't fit, is cut, or has a checksum that can't be finished.
    fn copy(&self, memory: &mut Memory) -> Option<Frame> {
        let status = self.header.tp_status;
        let has = |bit: u32| status & bit != 0;
        if self.bytes.len() != self.header.tp_len as usize || self.bytes.len() < ADDRESSES {
            return None;
        }
        let frame = if has(libc::TP_STATUS_VLAN_VALID) {
            let kind =
                if has(libc::TP_STATUS_VLAN_TPID_VALID) { self.header.hv1.tp_vlan_tpid } else { 0x8100 };
            // Twelve bits of the VLAN, three of the priority and one of the drop eligibility: 16.
            let tag = u16::try_from(self.header.hv1.tp_vlan_tci & 0xffff).expect("16 bits");
            let frame = memory.take_for(self.bytes.len() + 4)?;
            let bytes = memory.bytes_mut(&frame);
            bytes[..ADDRESSES].copy_from_slice(&self.bytes[..ADDRESSES]);
            bytes[ADDRESSES..14].copy_from_slice(&kind.to_be_bytes());
            bytes[14..16].copy_from_slice(&tag.to_be_bytes());
            bytes[16..].copy_from_slice(&self.bytes[ADDRESSES..]);
            frame
        } else {
            memory.copy_of(self.bytes)?
        };
        if has(libc::TP_STATUS_CSUMNOTREADY) && !finish(memory.bytes_mut(&frame)) {
            memory.give(frame);
            return None;
        }
        Some(frame)
    }
}
