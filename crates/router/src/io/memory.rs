//! [`MemoryPort`]: frames made in memory, and a sink that takes frames back.
//!
//! ```text
//! source ──► frames, each in a buffer of its own ──► receive ─► router ─► send ──┐
//!                     ▲                                                          │
//!                     └── a frame comes round again with its time to live ◄──────┘
//! ```
//!
//! It is a network card without a wire: no system call, no copy. A frame is written once, and comes round
//! again as the router left it, with new link-layer addresses and one hop fewer. After [`ROUNDS`] it gets its
//! hops back. So what is measured is the router, not the making of frames; and the frames lie in more memory
//! than caches hold, if there are enough buffers.

use std::collections::VecDeque;

use super::{Port, PortCounts};
use crate::checksum::changed;
use crate::frame::Mark;
use crate::header::{IPV4, IPV6, TYPE_IPV4, TYPE_IPV6, be16, network};
use crate::{Error, Frame, Memory};

/// Rounds that a frame makes before it gets its hops back: its time to live has to last so long.
pub const ROUNDS: u8 = 60;

/// Gives frames, one after the other, without an end: writes the next one's bytes to an empty vector.
pub type Source = Box<dyn FnMut(&mut Vec<u8>) + Send>;

/// A port whose frames come from a [`Source`], and which takes every frame that is sent.
pub struct MemoryPort {
    name: String,
    source: Source,
    /// Frames that are to be received, in order.
    ready: VecDeque<Frame>,
    /// Free buffers that stay for others, such as ICMP errors.
    reserve: usize,
    /// Frames that are still to be received.
    left: u64,
    bytes: Vec<u8>,
    counts: PortCounts,
}

impl MemoryPort {
    /// A port that fills its share of the free buffers with frames now: one of `shares` equal ones. A sixteenth
    /// of all buffers stays free. `limit` ends it after a number of frames.
    pub fn new(
        name: impl Into<String>,
        source: Source,
        memory: &mut Memory,
        shares: usize,
        limit: Option<u64>,
    ) -> Self {
        let buffers = memory.buffers() as usize;
        let mut port = Self {
            name: name.into(),
            source,
            ready: VecDeque::with_capacity(buffers),
            reserve: buffers / 16,
            left: limit.unwrap_or(u64::MAX),
            bytes: Vec::new(),
            counts: PortCounts::default(),
        };
        let share = memory.free().saturating_sub(port.reserve) / shares.max(1);
        for _ in 0..share {
            if !port.make(memory) {
                break;
            }
        }
        port
    }

    /// Makes a frame. Returns `false` if there is no free buffer for it.
    fn make(&mut self, memory: &mut Memory) -> bool {
        if memory.free() <= self.reserve {
            return false;
        }
        self.bytes.clear();
        (self.source)(&mut self.bytes);
        let Some(frame) = memory.copy_of(&self.bytes) else {
            self.counts.refused += 1;
            return false;
        };
        // It fits a buffer, which is shorter than 2^16.
        *memory.mark(&frame) = Mark { rounds: ROUNDS, len: frame.len() as u16 };
        self.ready.push_back(frame);
        true
    }
}

/// Counts a round of a frame. Returns whether it can come round again as it is: a port made it, it has its
/// length still, and its time to live lasts.
#[inline]
fn comes_round(frame: &Frame, memory: &mut Memory) -> bool {
    let mark = memory.mark(frame);
    mark.rounds = mark.rounds.saturating_sub(1);
    (mark.rounds > 0) & (usize::from(mark.len) == frame.len())
}

/// Gives a packet back the hops that it made. Returns `false` if it is no IP packet.
fn renew(frame: &mut [u8]) -> bool {
    let Ok((kind, at)) = network(frame) else { return false };
    let packet = &mut frame[at..];
    match kind {
        TYPE_IPV4 if packet.len() >= IPV4 => {
            let (old, sum) = (be16(packet, 8), be16(packet, 10));
            packet[8] = packet[8].saturating_add(ROUNDS);
            let sum = changed(sum, old, be16(packet, 8));
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        TYPE_IPV6 if packet.len() >= IPV6 => packet[7] = packet[7].saturating_add(ROUNDS),
        _ => return false,
    }
    true
}

impl Port for MemoryPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn receive(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>, most: usize) -> Result<usize, Error> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(most);
        while self.ready.len() < most && self.make(memory) {}
        let taken = most.min(self.ready.len());
        let (one, other) = self.ready.as_slices();
        let from_one = taken.min(one.len());
        frames.extend(one[..from_one].iter().map(Frame::again));
        frames.extend(other[..taken - from_one].iter().map(Frame::again));
        drop(self.ready.drain(..taken));
        self.left -= taken as u64;
        self.counts.received += taken as u64;
        Ok(taken)
    }

    fn send(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error> {
        let sent = frames.len();
        self.counts.sent += sent as u64;
        if frames.iter().fold(true, |all, frame| all & comes_round(frame, memory)) {
            self.ready.extend(frames.drain(..));
            return Ok(sent);
        }
        for frame in frames.drain(..) {
            let mark = *memory.mark(&frame);
            if mark.rounds > 0 && usize::from(mark.len) == frame.len() {
                self.ready.push_back(frame);
            } else if mark.len > 0 && renew(memory.bytes_mut(&frame)) {
                memory.mark(&frame).rounds = ROUNDS;
                self.ready.push_back(frame);
            } else {
                memory.give(frame);
            }
        }
        Ok(sent)
    }

    fn held(&self) -> usize {
        self.ready.len()
    }

    fn close(&mut self, memory: &mut Memory) {
        self.ready.drain(..).for_each(|frame| memory.give(frame));
    }

    fn is_at_end(&self) -> bool {
        self.left == 0
    }

    fn counts(&self) -> PortCounts {
        self.counts
    }
}
