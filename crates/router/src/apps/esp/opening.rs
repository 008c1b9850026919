//! Packets that came through tunnels: opened, checked against the policies of packets that come in, and put
//! together where they came in fragments.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use wirespeed_esp::gpu::{Arrived, Batch, Offload};
use wirespeed_esp::{Arrival, Beginning, Direction, Fault, Inbound, Opened, Sa, State, open};

use super::Esp;
use super::asked::NO_TUPLE;
use super::places::Places;
use super::read::Read;
use super::wrap::strip;
use crate::{Chunk, Memory, Reason, Verdict, narrow};

/// Frames that were opened, each with the association that it came through.
type Through<'s> = Vec<(u32, &'s Sa)>;

impl Esp<'_> {
    /// Opens the ESP packets of a chunk, or gives them to the GPU. Returns the frames whose inner packets are
    /// there.
    pub(super) fn open<'s>(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        read: &Read,
        state: &'s Arc<State>,
    ) -> (Through<'s>, Option<Batch<Arrived>>) {
        let mut openings = Vec::with_capacity(read.envelopes.len());
        let mut beginning = Beginning::new(state);
        for &(frame, envelope) in &read.envelopes {
            match beginning.begin(envelope, frame as usize) {
                Ok(opening) => openings.push(opening),
                Err(fault) => self.fail(chunk, frame as usize, fault),
            }
        }
        drop(beginning);
        let asks_gpu = self.asks_gpu(chunk);
        let mut places = Places { frames: chunk.frames(), packets: &read.packets, memory };
        if let Some(gpu) = self.gpu.as_mut().filter(|_| asks_gpu) {
            return (Vec::new(), gpu.get_mut().open(state, openings, &places));
        }
        if self.late > 0 {
            // The window has to see packets in their order.
            return (Vec::new(), Offload::open_later(state, openings));
        }
        let mut outcomes = Vec::with_capacity(openings.len());
        open(&openings, &mut places, &mut self.scratch, &mut outcomes);
        let mut through = Vec::with_capacity(openings.len());
        for (opening, outcome) in openings.iter().zip(outcomes) {
            if self.opened(chunk, memory, read, (opening.at, opening.sa()), outcome) {
                through.push((narrow::u32(opening.at), opening.sa()));
            }
        }
        (through, None)
    }

    /// Takes opened packets back from the GPU.
    pub(super) fn take_opened<'b>(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        read: &Read,
        batch: &'b Batch<Arrived>,
    ) -> Through<'b> {
        let mut outcomes = Vec::with_capacity(batch.len());
        if let Some(gpu) = self.gpu.as_mut().map(RefCell::get_mut) {
            let mut places = Places { frames: chunk.frames(), packets: &read.packets, memory };
            gpu.opened(batch, &mut places, &mut self.scratch, &mut outcomes);
        }
        let mut through = Vec::with_capacity(outcomes.len());
        for (place, (at, outcome)) in outcomes.into_iter().enumerate() {
            if self.opened(chunk, memory, read, (at, batch.sa(place)), outcome) {
                through.push((narrow::u32(at), batch.sa(place)));
            }
        }
        through
    }

    /// Goes on with a packet that was opened, or drops it. Returns whether its inner packet is there.
    fn opened(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        read: &Read,
        (at, sa): (usize, &Sa),
        outcome: Result<Opened, Fault>,
    ) -> bool {
        match outcome {
            Ok(opened) => {
                strip(chunk, memory, at, read.packets[at].into(), opened);
                self.counts.opened += 1;
                if opened.is_moved {
                    self.tell_moved(sa);
                }
                true
            }
            Err(fault) => {
                self.fail(chunk, at, fault);
                false
            }
        }
    }

    /// Asks the policies for packets that came in about those that were opened, and about those in the clear.
    pub(super) fn check_inbound(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        read: &Read,
        through: &[(u32, &Sa)],
        clear: &[u32],
    ) {
        let is_asked = || !self.reader.rules(Direction::In).are_empty();
        if through.is_empty() && !is_asked() && self.reader.state().inbound(0, None) == Inbound::Accept {
            return;
        }
        let mut through: Vec<(u32, Option<&Sa>)> =
            through.iter().map(|&(frame, sa)| (frame, Some(sa))).collect();
        through.extend(clear.iter().map(|&frame| (frame, None)));
        let frames: Vec<u32> = through.iter().map(|&(frame, _)| frame).collect();
        let mut asked = std::mem::take(&mut self.asked);
        asked.ask(self.reader.rules(Direction::In), chunk, memory, &read.packets, &frames);
        let state = self.reader.state();
        for (&(frame, sa), &policy) in through.iter().zip(asked.policies()) {
            let at = frame as usize;
            match state.inbound(policy, sa) {
                _ if policy == NO_TUPLE => chunk.decide(at, Verdict::Drop(Reason::Cut)),
                Inbound::Accept => continue,
                Inbound::Unprotected => self.fail(chunk, at, Fault::Unprotected),
                Inbound::Discard => self.fail(chunk, at, Fault::Policy),
            }
            if sa.is_some() {
                // It was secret, so it goes to no capture of drops.
                memory.bytes_mut(&chunk.frames()[at])[read.packets[at].into()..].fill(0);
            }
        }
        self.asked = asked;
    }

    /// Takes a fragment of an ESP packet. Returns what has come with the last one: the frame has the whole
    /// packet then. Else the frame is decided about.
    #[cold]
    pub(super) fn join(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        at: usize,
        start: usize,
        state: &State,
    ) -> Arrival {
        let bytes = memory.bytes(&chunk.frames()[at]);
        let (link, packet) = bytes.split_at(start);
        let (whole, failed) = {
            let mut fragments = self.reader.fragments();
            (fragments.take(packet, Instant::now()), fragments.take_given_up())
        };
        self.counts.reassembly_failed += failed;
        let Some(whole) = whole else {
            self.fail(chunk, at, Fault::Fragment);
            return Arrival::Fragment;
        };
        let whole = [link, &whole].concat();
        if !memory.rewrite(chunk.frame_mut(at), &whole) {
            self.fail(chunk, at, Fault::Long);
            return Arrival::Fragment;
        }
        self.counts.reassembled += 1;
        Arrival::read(&whole[start..], |address| state.is_end(address), |port| state.is_port(port))
    }
}
