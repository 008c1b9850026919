//! [`Chunk`]: frames that go through the pipeline together, and what is decided about each.
//!
//! ```text
//! frames    | f0 | f1 | f2 | …       tickets of 8 bytes
//! verdicts  | v0 | v1 | v2 | …       4 bytes each, written by the application
//! made      frames that the application makes, such as ICMP errors and fragments
//! ```
//!
//! A frame's bytes stay in their buffer. A stage reads and writes arrays of its own, element by element
//! (PacketShader's chunk, slide "Chunk": the packets' data and their description lie apart).

use std::time::Instant;

use crate::{Frame, Memory, Reason};

/// The number of a port of a router: its place in the list of ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortId(pub u16);

impl PortId {
    /// Its place in a list of ports.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The fate of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is decided yet.
    #[default]
    Undecided,
    /// The frame goes out of a port.
    Out(PortId),
    /// The frame is dropped, and counted.
    Drop(Reason),
    /// The operating system takes the frame: it is for the router itself, or its next hop has to be resolved.
    Kernel,
    /// The application gave the frame to controllers, and to nobody else.
    Controller,
}

/// Frames that came from one port, in order.
#[derive(Debug)]
pub struct Chunk {
    port: PortId,
    /// The time when the first frame was received.
    first: Option<Instant>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) made: Vec<(PortId, Frame)>,
    /// The place of the received frame that each added one is to follow: added ones lie behind those that
    /// were received until [`settle`](Self::settle).
    added: Vec<usize>,
    /// The number of frames that were received.
    received: usize,
    is_for_gpu: bool,
    is_by_gpu: bool,
}

impl Chunk {
    /// An empty chunk with memory for a number of frames.
    pub(crate) fn new(frames: usize) -> Self {
        Self {
            port: PortId(0),
            first: None,
            frames: Vec::with_capacity(frames),
            verdicts: Vec::with_capacity(frames),
            made: Vec::new(),
            added: Vec::new(),
            received: 0,
            is_for_gpu: false,
            is_by_gpu: false,
        }
    }

    /// Begins again, for frames of a port.
    pub(crate) fn begin(&mut self, port: PortId) {
        debug_assert!(self.frames.is_empty() && self.made.is_empty(), "frames would be lost");
        self.added.clear();
        (self.port, self.first, self.is_for_gpu, self.is_by_gpu) = (port, None, false, false);
        self.verdicts.clear();
    }

    /// Notes when its frames came: the first of them counts.
    pub(crate) fn came(&mut self, now: Instant) {
        self.first.get_or_insert(now);
    }

    /// The time when its first frame came.
    pub(crate) const fn first(&self) -> Option<Instant> {
        self.first
    }

    /// All frames are there: a verdict for each.
    pub(crate) fn close(&mut self) {
        self.verdicts.resize(self.frames.len(), Verdict::Undecided);
        self.received = self.frames.len();
    }

    /// The number of frames that were received: others were added.
    pub(crate) const fn received(&self) -> usize {
        self.received
    }

    /// Notes that the chunk has the size for a GPU. Workers call this.
    pub fn set_for_gpu(&mut self) {
        self.is_for_gpu = true;
    }

    /// Whether the chunk has the size for a GPU. Other chunks are for the CPU, unless all have to go to a
    /// GPU.
    #[must_use]
    pub const fn is_for_gpu(&self) -> bool {
        self.is_for_gpu
    }

    /// Notes that a GPU looked its keys up, for the statistics.
    pub fn set_by_gpu(&mut self) {
        self.is_by_gpu = true;
    }

    /// Whether a GPU looked its keys up.
    #[must_use]
    pub const fn is_by_gpu(&self) -> bool {
        self.is_by_gpu
    }

    /// The port that its frames came from.
    #[must_use]
    pub const fn port(&self) -> PortId {
        self.port
    }

    /// The number of frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there is no frame.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The frames.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// A frame, to be stripped or grown.
    ///
    /// Panics if there is no frame `at`.
    pub fn frame_mut(&mut self, at: usize) -> &mut Frame {
        &mut self.frames[at]
    }

    /// The verdicts on the frames, in their order.
    #[must_use]
    pub fn verdicts(&self) -> &[Verdict] {
        &self.verdicts
    }

    /// Whether nothing is decided about a frame yet.
    ///
    /// Panics if there is no frame `at`.
    #[inline]
    #[must_use]
    pub fn is_undecided(&self, at: usize) -> bool {
        self.verdicts[at] == Verdict::Undecided
    }

    /// Decides about a frame. A later call changes the decision.
    ///
    /// Panics if there is no frame `at`.
    #[inline]
    pub fn decide(&mut self, at: usize, verdict: Verdict) {
        self.verdicts[at] = verdict;
    }

    /// Adds a frame that the application made of the frame `after`, such as a fragment, to be decided about
    /// like the others. It counts as made. Its place is behind all others until [`settle`](Self::settle) is
    /// called. Returns that place.
    ///
    /// Panics if there is no frame `after`.
    pub fn add(&mut self, memory: &mut Memory, after: usize, frame: Frame) -> usize {
        let place = self.frames.len();
        assert!(after < place, "a frame follows one of the chunk");
        memory.mark(&frame).is_added = true;
        // Frames that were settled are in order, like those that were received.
        let settled = place - self.added.len();
        self.added.push(if after < settled { after } else { self.added[after - settled] });
        self.frames.push(frame);
        self.verdicts.push(Verdict::Undecided);
        place
    }

    /// Adds a frame that the application made of no other. It counts as made.
    pub fn add_own(&mut self, memory: &mut Memory, frame: Frame) {
        memory.mark(&frame).is_added = true;
        self.frames.push(frame);
        self.verdicts.push(Verdict::Undecided);
    }

    /// Moves frames that were added to their places behind the frames that they were made of. Then other
    /// frames have other places.
    pub fn settle(&mut self) {
        if self.added.is_empty() {
            return;
        }
        let settled = self.frames.len() - self.added.len();
        let keys = (0..settled).chain(std::mem::take(&mut self.added));
        let mut all: Vec<_> = keys.zip(self.frames.drain(..).zip(self.verdicts.drain(..))).collect();
        all.sort_by_key(|&(key, _)| key);
        for (_, (frame, verdict)) in all {
            self.frames.push(frame);
            self.verdicts.push(verdict);
        }
    }

    /// Sends a frame out of a port that the application made itself: its buffer comes from the worker's
    /// [`Memory`](crate::Memory).
    pub fn send(&mut self, port: PortId, frame: Frame) {
        self.made.push((port, frame));
    }
}
