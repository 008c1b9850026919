//! [`App`]: what a router does with frames, in PacketShader's three steps.
//!
//! ```text
//!             worker                                   application
//! receive ──► chunk ──► pre_shade:  parse, validate, take keys out, submit the lookups ──► Pending
//!                       (shade)     the CPU or a GPU looks up; several chunks are under way
//!             chunk ◄── post_shade: take the answers, rewrite the frames, decide about each
//! transmit ◄──
//! ```

use crate::header::{TYPE_IPV4, TYPE_IPV6, network};
use crate::{Chunk, Memory, Verdict};

/// An IP packet of a frame, from its header to the frame's end.
#[derive(Clone, Copy, Debug)]
pub enum Packet<'p> {
    /// The packet is IPv4.
    V4(&'p [u8]),
    /// The packet is IPv6.
    V6(&'p [u8]),
}

/// An application: it decides what a router does with frames. Each worker has one of its own, so nothing in
/// it is shared unless it says so.
///
/// A chunk that was given to [`pre_shade`](Self::pre_shade) comes back to [`post_shade`](Self::post_shade),
/// in the order of chunks. A frame about which nothing is decided at the end is dropped as
/// [`Reason::Undecided`](crate::Reason::Undecided).
pub trait App {
    /// The state of a chunk while its keys are looked up.
    type Pending;

    /// Reads the frames, decides about those that are not to be forwarded, and starts the lookups of the
    /// others.
    fn pre_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory) -> Self::Pending;

    /// Does the same as [`pre_shade`](Self::pre_shade), and shows the IP packet of each frame that is not
    /// decided then to another application in front of this one, with the frame's place in the chunk. That
    /// one may decide about the frame.
    ///
    /// By default frames are read a second time for this. An application that reads packets shows each when
    /// it has read it.
    fn pre_shade_shown(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        mut show: impl FnMut(usize, Packet<'_>) -> Option<Verdict>,
    ) -> Self::Pending {
        let pending = self.pre_shade(chunk, memory);
        for at in 0..chunk.len() {
            if !chunk.is_undecided(at) {
                continue;
            }
            let bytes = memory.bytes(&chunk.frames()[at]);
            let verdict = match network(bytes) {
                Ok((TYPE_IPV4, packet)) => show(at, Packet::V4(&bytes[packet..])),
                Ok((TYPE_IPV6, packet)) => show(at, Packet::V6(&bytes[packet..])),
                _ => None,
            };
            if let Some(verdict) = verdict {
                chunk.decide(at, verdict);
            }
        }
        pending
    }

    /// Whether the answers are there, so that [`post_shade`](Self::post_shade) does not wait.
    fn is_ready(&self, pending: &Self::Pending) -> bool {
        let _ = pending;
        true
    }

    /// Takes the answers, rewrites the frames and decides about each.
    fn post_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory, pending: Self::Pending);

    /// Makes frames that answer no other, such as keepalives: it adds them to an empty chunk and decides
    /// about them. It is asked ten times a second. By default there are none.
    fn make(&mut self, chunk: &mut Chunk, memory: &mut Memory) {
        let _ = (chunk, memory);
    }

    /// The number of frames of a chunk that makes the best use of a GPU; `None` if the CPU looks up alone.
    fn suited_to_gpu(&self) -> Option<usize> {
        None
    }

    /// The fewest frames of a chunk that are worth a trip to a GPU: with fewer the trip takes longer than the
    /// work on the CPU.
    fn least_for_gpu(&self) -> usize {
        // Measured with lookups.
        8192
    }

    /// Reports what it counted, by name.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}
