//! [`Interpreter`]: frames of a chunk that need more than a verdict, one by one.
//!
//! A frame's bytes are copied out of its buffer, changed there, and written back where the packet is first
//! output. Further outputs are frames of their own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wirespeed_router::{Chunk, Memory, PortId, Reason, Verdict};

use crate::pipeline::answers::Known;
use crate::pipeline::edit::{Packet, Stopped};
use crate::pipeline::flow::Flow;
use crate::pipeline::learn::Learned;
use crate::pipeline::run::{Fate, Output, PacketIn, Run, Sink};
use crate::pipeline::state::State;
use crate::switch::Shared;

/// Numbers of frames by their fate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) no_flow: u64,
    pub(crate) dropped_by_flow: u64,
    pub(crate) metered: u64,
    pub(crate) spent: u64,
    pub(crate) packet_ins: u64,
    pub(crate) lost_packet_ins: u64,
    pub(crate) copies: u64,
    pub(crate) lost_copies: u64,
    pub(crate) classified: u64,
    pub(crate) classified_later: u64,
}

/// Executes the flows of frames of a chunk.
pub(crate) struct Interpreter<'c> {
    pub(crate) state: &'c State,
    pub(crate) shared: &'c Shared,
    pub(crate) worker: usize,
    /// The time in nanoseconds.
    pub(crate) now: u64,
    /// The number in OpenFlow of the port that the chunk came from.
    pub(crate) in_port: u32,
    pub(crate) learned: &'c mut Learned,
    pub(crate) counters: &'c mut Counters,
    /// Memory of earlier packets, used again.
    pub(crate) packet: &'c mut Packet,
    pub(crate) chunk: &'c mut Chunk,
    pub(crate) memory: &'c mut Memory,
}

impl Interpreter<'_> {
    /// Takes a frame through the tables from its flow in the first one on, and decides about it. Without a
    /// flow it is forwarded as by a switch without OpenFlow.
    pub(crate) fn frame(&mut self, at: usize, flow: Option<&Arc<Flow>>, known: Known<'_>) {
        let Self { state, shared, worker, now, packet, .. } = self;
        let (state, shared, worker, now) = (*state, *shared, *worker, *now);
        packet.begin(self.memory.bytes(&self.chunk.frames()[at]), self.in_port);
        let mut sink = FrameSink {
            shared,
            learned: self.learned,
            counters: self.counters,
            chunk: self.chunk,
            memory: self.memory,
            at,
            first: None,
            is_told: false,
            unsent: None,
        };
        let mut run = Run { state, tallies: &shared.tallies, worker, now, sink: &mut sink, known };
        let fate = match flow {
            Some(flow) => run.tables(packet, Some(flow)),
            None => {
                run.normal(packet);
                Fate::Done
            }
        };
        let FrameSink { first, is_told, unsent, .. } = sink;
        let verdict = match (first, fate) {
            (Some(port), _) => Verdict::Out(port),
            (None, Fate::Metered) => {
                self.counters.metered += 1;
                Verdict::Drop(Reason::Application)
            }
            // Controllers have it.
            (None, _) if is_told => Verdict::Controller,
            (None, Fate::Stopped(Stopped::Part)) => Verdict::Drop(Reason::Fragment),
            (None, Fate::Stopped(Stopped::Spent)) => {
                self.counters.spent += 1;
                Verdict::Drop(Reason::Expired)
            }
            (None, Fate::NoFlow) => {
                self.counters.no_flow += 1;
                Verdict::Drop(Reason::NoRoute)
            }
            (None, Fate::Done) => match unsent {
                Some(reason) => Verdict::Drop(reason),
                None => {
                    self.counters.dropped_by_flow += 1;
                    Verdict::Drop(Reason::Denied)
                }
            },
        };
        self.chunk.decide(at, verdict);
    }
}

/// Where the packets of a frame go to.
struct FrameSink<'c> {
    shared: &'c Shared,
    learned: &'c mut Learned,
    counters: &'c mut Counters,
    chunk: &'c mut Chunk,
    memory: &'c mut Memory,
    /// The place of the frame in the chunk.
    at: usize,
    /// The port of the first output, whose bytes the frame has from then on.
    first: Option<PortId>,
    is_told: bool,
    /// Why an output was none, if there was one.
    unsent: Option<Reason>,
}

impl FrameSink<'_> {
    /// Gives the frame the bytes of its first output, in another buffer if they are too many for its own.
    fn rewrite(&mut self, bytes: &[u8]) -> bool {
        let frame = self.chunk.frame_mut(self.at);
        if self.memory.rewrite(frame, bytes) {
            return true;
        }
        let Some(other) = self.memory.copy_of(bytes) else { return false };
        let old = std::mem::replace(frame, other);
        self.memory.give(old);
        true
    }
}

impl Sink for FrameSink<'_> {
    fn output(&mut self, port: u32, bytes: &[u8]) -> Output {
        let port = self.shared.port_of(port).unwrap_or(PortId(u16::MAX));
        if self.first.is_none() && self.rewrite(bytes) {
            self.first = Some(port);
        } else if self.first.is_some()
            && let Some(frame) = self.memory.copy_of(bytes)
        {
            self.counters.copies += 1;
            self.chunk.send(port, frame);
        } else {
            self.counters.lost_copies += 1;
            self.unsent(Reason::NoBuffer);
            return Output::Lost;
        }
        Output::Sent
    }

    fn unsent(&mut self, reason: Reason) {
        self.unsent.get_or_insert(reason);
    }

    fn packet_in(&mut self, packet: PacketIn) {
        match self.shared.packet_ins.try_send(packet) {
            Ok(()) => {
                self.is_told = true;
                self.counters.packet_ins += 1;
            }
            Err(_) => {
                self.unsent.get_or_insert(Reason::QueueFull);
                self.counters.lost_packet_ins += 1;
                self.shared.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn learned(&mut self) -> &mut Learned {
        self.learned
    }
}
