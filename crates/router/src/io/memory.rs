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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::{Port, PortCounts};
use crate::checksum::changed;
use crate::frame::Mark;
use crate::header::{IPV4, IPV6, TYPE_IPV4, TYPE_IPV6, be16, network};
use crate::{Error, Frame, Memory, narrow};

/// Rounds that a frame makes before it gets its hops back: its time to live has to last so long.
pub const ROUNDS: u8 = 60;

/// Gives frames, one after the other, without an end. A call hands the bytes of the next frame to its
/// argument, which copies them to a buffer at once. Of several frames in one call the first one counts.
pub type Source = Box<dyn FnMut(&mut dyn FnMut(&[u8])) + Send>;

/// A port whose frames come from a [`Source`], and which takes every frame that is sent. The ports of a
/// worker share the frames that come round: traffic that leaves by one port only comes in at all of them
/// again.
pub struct MemoryPort {
    name: String,
    ring: Arc<Mutex<Ring>>,
    /// Whether it answers for the frames of the ring.
    is_first: bool,
    counts: PortCounts,
}

/// The frames that come round.
struct Ring {
    source: Source,
    /// Frames that are to be received, in order.
    ready: VecDeque<Frame>,
    /// Free buffers that stay for others, such as ICMP errors.
    reserve: usize,
    /// Frames that are still to be received, by any port.
    left: u64,
    load: Option<Load>,
}

/// Bounds of the frames that the ports of a worker give, all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Ends the ports after this number of frames.
    pub count: Option<u64>,
    /// Frames that come a second, as if from a sender of this rate. Without it there are always more.
    pub rate: Option<f64>,
}

/// A sender of a fixed rate. Frames that a worker is late for wait, as in the ring of a card.
struct Load {
    rate: f64,
    since: Option<Instant>,
    given: f64,
}

impl Load {
    /// Frames that wait.
    #[allow(clippy::cast_possible_truncation)] // at most RING
    fn waiting(&mut self) -> usize {
        /// The most frames that wait: a sender's later frames are lost, as with a full ring.
        const RING: f64 = 65_536.0;
        let since = *self.since.get_or_insert_with(Instant::now);
        let sent = since.elapsed().as_secs_f64() * self.rate;
        // What is lost was not given, but its time is over.
        self.given = self.given.max(sent - RING);
        (sent - self.given).max(0.0) as usize
    }
}

impl MemoryPort {
    /// The ports of a worker, by name. They fill the free buffers with frames now; a sixteenth of all buffers
    /// stays free.
    pub fn ports(
        names: impl IntoIterator<Item = String>,
        source: Source,
        memory: &mut Memory,
        limits: Limits,
    ) -> Vec<Self> {
        let buffers = memory.buffers() as usize;
        let mut ring = Ring {
            source,
            ready: VecDeque::with_capacity(buffers),
            reserve: buffers / 16,
            left: limits.count.unwrap_or(u64::MAX),
            load: limits.rate.map(|rate| Load { rate, since: None, given: 0.0 }),
        };
        while ring.make(memory) {}
        let ring = Arc::new(Mutex::new(ring));
        let port = |(at, name)| Self {
            name,
            ring: Arc::clone(&ring),
            is_first: at == 0,
            counts: PortCounts::default(),
        };
        names.into_iter().enumerate().map(port).collect()
    }

    /// The ring. One thread has all ports that share it, so the lock is free.
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    /// Makes a frame. Returns `false` if there is no free buffer for it, or none that is large enough.
    fn make(&mut self, memory: &mut Memory) -> bool {
        if memory.free() <= self.reserve {
            return false;
        }
        let mut made = None;
        (self.source)(&mut |bytes| {
            if made.is_none() {
                made = memory.copy_of(bytes);
            }
        });
        let Some(frame) = made else { return false };
        // It fits a buffer, which is shorter than 2^16.
        *memory.mark(&frame) = Mark { rounds: ROUNDS, len: narrow::u16(frame.len()), is_added: false };
        self.ready.push_back(frame);
        true
    }

    /// Takes frames that were sent: those that can come round do, the buffers of others go back.
    fn take(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>) {
        if frames.iter().fold(true, |all, frame| all & comes_round(frame, memory)) {
            return self.ready.extend(frames.drain(..));
        }
        for frame in frames.drain(..) {
            let mark = *memory.mark(&frame);
            if mark.rounds > 0 && usize::from(mark.len) == frame.len() {
                self.ready.push_back(frame);
            } else if usize::from(mark.len) == frame.len() && renew(memory.bytes_mut(&frame)) {
                memory.mark(&frame).rounds = ROUNDS;
                self.ready.push_back(frame);
            } else {
                memory.give(frame);
            }
        }
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
        let mut ring = self.ring();
        let most = usize::try_from(ring.left).unwrap_or(usize::MAX).min(most);
        let most = ring.load.as_mut().map_or(most, |load| load.waiting().min(most));
        while ring.ready.len() < most && ring.make(memory) {}
        let taken = most.min(ring.ready.len());
        let (one, other) = ring.ready.as_slices();
        let from_one = taken.min(one.len());
        frames.extend(one[..from_one].iter().map(Frame::again));
        frames.extend(other[..taken - from_one].iter().map(Frame::again));
        drop(ring.ready.drain(..taken));
        ring.left -= taken as u64;
        if let Some(load) = &mut ring.load {
            load.given += taken as f64;
        }
        drop(ring);
        self.counts.received += taken as u64;
        Ok(taken)
    }

    fn send(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error> {
        let sent = frames.len();
        self.ring().take(memory, frames);
        self.counts.sent += sent as u64;
        Ok(sent)
    }

    fn held(&self) -> usize {
        if self.is_first { self.ring().ready.len() } else { 0 }
    }

    fn close(&mut self, memory: &mut Memory) {
        self.ring().ready.drain(..).for_each(|frame| memory.give(frame));
    }

    fn is_at_end(&self) -> bool {
        self.ring().left == 0
    }

    fn can_wait(&self) -> bool {
        // The sender of a given rate goes on.
        self.ring().load.is_none()
    }

    fn counts(&self) -> PortCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames that come from a source which gives so many a call, and the buffers that are free then.
    fn received(gives: usize) -> (Vec<Vec<u8>>, usize) {
        let mut memory = Memory::new(16).unwrap();
        let mut number = 0;
        let source: Source = Box::new(move |give| {
            for _ in 0..gives {
                number += 1;
                give(&[number; 60]);
            }
        });
        let mut ports = MemoryPort::ports(["in".to_owned()], source, &mut memory, Limits::default());
        let mut frames = Vec::new();
        let count = ports[0].receive(&mut memory, &mut frames, 4).unwrap();
        assert_eq!(count, frames.len());
        let bytes = frames.iter().map(|frame| memory.bytes(frame).to_vec()).collect();
        frames.into_iter().for_each(|frame| memory.give(frame));
        ports[0].close(&mut memory);
        (bytes, memory.free())
    }

    #[test]
    fn a_call_of_the_source_makes_one_frame_and_no_buffer_is_lost() {
        assert_eq!(received(0), (vec![], 16));
        assert_eq!(received(1), (vec![vec![1; 60], vec![2; 60], vec![3; 60], vec![4; 60]], 16));
        assert_eq!(received(2), (vec![vec![1; 60], vec![3; 60], vec![5; 60], vec![7; 60]], 16));
    }
}
