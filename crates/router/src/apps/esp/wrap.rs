//! The tunnel's headers around a packet in its frame: made and taken off, where the link's header moves.

use wirespeed_esp::{Fault, Opened, Sealing, Taken, Unsealed};

use crate::header::{ETHERNET, TYPE_IPV4, TYPE_IPV6};
use crate::{Chunk, Memory, narrow};

/// Moves the link's header of so many bytes within a frame. Most have no tags, so that their length is known
/// here.
fn move_link(bytes: &mut [u8], from: usize, to: usize, len: usize) {
    match bytes[from..].first_chunk::<ETHERNET>() {
        Some(&header) if len == ETHERNET => bytes[to..to + ETHERNET].copy_from_slice(&header),
        _ => bytes.copy_within(from..from + len, to),
    }
}

/// Takes the tunnel's headers and trailer off a frame. The link's header moves to the inner packet.
pub(super) fn strip(chunk: &mut Chunk, memory: &mut Memory, at: usize, start: usize, opened: Opened) {
    let bytes = memory.bytes_mut(&chunk.frames()[at]);
    move_link(bytes, 0, opened.start, start);
    let kind = if opened.is_ipv4 { TYPE_IPV4 } else { TYPE_IPV6 };
    bytes[opened.start + start - 2..opened.start + start].copy_from_slice(&kind.to_be_bytes());
    let frame = chunk.frame_mut(at);
    // Frames are shorter than 2^16 bytes.
    frame.strip_front(narrow::u16(opened.start));
    frame.truncate(narrow::u16(start + opened.len));
}

/// Makes room for the tunnel's headers and trailer in a frame, and writes them.
pub(super) fn wrap<'s>(
    chunk: &mut Chunk,
    memory: &mut Memory,
    at: usize,
    start: usize,
    sealing: Sealing<'s>,
    numbers: &mut Taken<'s>,
) -> Result<Unsealed<'s>, Fault> {
    let (head, tail) = (narrow::u16(sealing.head()), narrow::u16(sealing.tail()));
    let frame = chunk.frame_mut(at);
    // What follows the packet is padding of the link.
    frame.truncate(narrow::u16(start + sealing.inner()));
    if !memory.grow_back(frame, tail) || !frame.grow_front(head) {
        return Err(Fault::Buffer);
    }
    let bytes = memory.bytes_mut(&chunk.frames()[at]);
    move_link(bytes, head.into(), 0, start);
    let kind = if sealing.is_ipv4() { TYPE_IPV4 } else { TYPE_IPV6 };
    bytes[start - 2..start].copy_from_slice(&kind.to_be_bytes());
    let written = sealing.write_next(at, &mut bytes[start..], numbers);
    if written.is_err() {
        // It is dropped as it came.
        move_link(bytes, 0, head.into(), start);
        let frame = chunk.frame_mut(at);
        frame.strip_front(head);
        frame.truncate(narrow::u16(start + sealing.inner()));
    }
    written
}
