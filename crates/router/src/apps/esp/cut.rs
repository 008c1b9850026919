//! Cutting: packets that are larger than a tunnel's path takes.
//!
//! ```text
//! IPv4 that may be cut      │ inner packet │ ─► │ part │ part │ ─► each is sealed        (RFC 4301, section 7)
//! IPv6 of 1,280 bytes, or
//! policies for ports        │ inner packet │ ─► sealed whole ─► │ fragment │ fragment │   (RFC 791; RFC 8200, 4.5)
//! ```
//!
//! Routers would cut a sealed packet of IPv4, too. They send the parts behind other packets, and then those
//! reach the other end in another order than that of their numbers.

use super::super::ip::v4;
use crate::header::{IPV6, TYPE_IPV6, be16};
use crate::{Chunk, Memory, narrow};

/// The least that every link of IPv4 takes (RFC 791, 3.2).
const LEAST_V4: usize = 68;
/// Bytes of a fragment header of IPv6, and its number as a next header.
const FRAGMENT: usize = 8;
const PROTOCOL_FRAGMENT: u8 = 44;

/// Whether a packet, which is too large, may be cut to so many bytes.
pub(super) fn may_cut(packet: &[u8], most: usize) -> bool {
    packet[0] >> 4 == 4 && !v4::dont_fragment(packet) && most >= LEAST_V4
}

/// Cuts the IPv4 packet of a frame, which begins at `start`. Returns the frames of its parts, or `None`
/// without free buffers: then it is whole still.
pub(super) fn cut_v4(
    chunk: &mut Chunk,
    memory: &mut Memory,
    at: usize,
    start: usize,
    most: usize,
) -> Option<Vec<usize>> {
    let whole = memory.bytes(&chunk.frames()[at]).to_vec();
    let (link, packet) = whole.split_at(start);
    let payload = &packet[v4::header_length(packet)..v4::total_length(packet).into()];
    let pieces = v4::pieces(packet, narrow::u16(most));
    let parts = pieces.map(|piece| [link, &v4::fragment_header(packet, &piece), &payload[piece]].concat());
    spread(chunk, memory, at, parts.collect())
}

/// Cuts the IPv6 packet of a frame, which begins at `start`, as its source. Returns whether there were free
/// buffers for it.
pub(super) fn cut_v6(
    chunk: &mut Chunk,
    memory: &mut Memory,
    at: usize,
    start: usize,
    most: u16,
    id: u32,
) -> bool {
    let whole = memory.bytes(&chunk.frames()[at]).to_vec();
    let (head, payload) = whole.split_at(start + IPV6);
    debug_assert_eq!(be16(head, start - 2), TYPE_IPV6);
    // Offsets count units of eight bytes. A path takes 1,280 bytes at the least.
    let each = (usize::from(most) - IPV6 - FRAGMENT) & !7;
    let part = |(at, part): (usize, &[u8])| {
        let mut head = head.to_vec();
        let next = std::mem::replace(&mut head[start + 6], PROTOCOL_FRAGMENT);
        head[start + 4..start + 6].copy_from_slice(&narrow::u16(FRAGMENT + part.len()).to_be_bytes());
        let offset = at * each;
        let has_more = u16::from(offset + part.len() < payload.len());
        let field = narrow::u16(offset) | has_more;
        [&head[..], &[next, 0], &field.to_be_bytes(), &id.to_be_bytes(), part].concat()
    };
    let parts = payload.chunks(each).enumerate().map(part).collect();
    spread(chunk, memory, at, parts).is_some()
}

/// Puts parts of a frame in its place: the first into its buffer, the others into frames of their own.
/// Returns their places. Without free buffers nothing is done.
fn spread(chunk: &mut Chunk, memory: &mut Memory, at: usize, parts: Vec<Vec<u8>>) -> Option<Vec<usize>> {
    let (first, others) = parts.split_first()?;
    let made: Vec<_> = others.iter().map_while(|part| memory.copy_of(part)).collect();
    if made.len() < others.len() || !memory.rewrite(chunk.frame_mut(at), first) {
        made.into_iter().for_each(|frame| memory.give(frame));
        return None;
    }
    let mut places = vec![at];
    places.extend(made.into_iter().map(|frame| chunk.add(memory, at, frame)));
    Some(places)
}
