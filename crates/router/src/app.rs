//! [`App`]: what a router does with frames, in PacketShader's three steps.
//!
//! ```text
//!             worker                                   application
//! receive ──► chunk ──► pre_shade:  parse, validate, take keys out, submit the lookups ──► Pending
//!                       (shade)     the CPU or a GPU looks up; several chunks are under way
//!             chunk ◄── post_shade: take the answers, rewrite the frames, decide about each
//! transmit ◄──
//! ```

use crate::{Chunk, Memory};

/// What a router does with frames. Each worker has one of its own, so nothing in it is shared unless it says
/// so.
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

    /// Whether the answers are there, so that [`post_shade`](Self::post_shade) does not wait.
    fn is_ready(&self, pending: &Self::Pending) -> bool {
        let _ = pending;
        true
    }

    /// Takes the answers, rewrites the frames and decides about each.
    fn post_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory, pending: Self::Pending);

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
