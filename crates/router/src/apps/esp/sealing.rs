//! Packets that go into tunnels: asked about, sealed, and cut where they are too large.

use std::cell::RefCell;

use wirespeed_esp::gpu::{Batch, Sealed};
use wirespeed_esp::{Direction, Fault, Outbound, Sa, Sealing, State, Unsealed, seal};

use super::asked::NO_TUPLE;
use super::places::Places;
use super::read::Read;
use super::wrap::wrap;
use super::{Esp, cut};
use crate::{Chunk, Memory, Reason, Verdict, narrow};

impl Esp<'_> {
    /// Asks the policies for packets that go out, and seals those that are to be protected, or gives them to
    /// the GPU, and waits for it if they are `late`.
    pub(super) fn seal(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        read: &mut Read,
        mut frames: Vec<u32>,
        is_late: bool,
    ) -> Option<Batch<Sealed>> {
        frames.retain(|&frame| chunk.is_undecided(frame as usize));
        // Numbers in another order than frames would leave the other end's window behind.
        frames.sort_unstable();
        let mut asked = std::mem::take(&mut self.asked);
        asked.ask(self.reader.rules(Direction::Out), chunk, memory, &read.packets, &frames);
        let state = self.reader.state();
        let mut ready: Vec<(u32, Sealing<'_>)> = Vec::with_capacity(frames.len());
        // Frames in a row mostly have one policy.
        let mut last = (0, state.outbound(0));
        for (&frame, &policy) in frames.iter().zip(asked.policies()) {
            let at = frame as usize;
            if policy == NO_TUPLE {
                chunk.decide(at, Verdict::Drop(Reason::Cut));
                continue;
            }
            if policy != last.0 {
                last = (policy, state.outbound(policy));
            }
            match last.1 {
                Outbound::Pass if self.host == Some(chunk.port()) => self.fail(chunk, at, Fault::Policy),
                Outbound::Pass => {}
                Outbound::Discard => self.fail(chunk, at, Fault::Policy),
                Outbound::Unkeyed => self.fail(chunk, at, Fault::Unkeyed),
                Outbound::Protect(sa) => {
                    let start = usize::from(read.packets[at]);
                    match Sealing::begin(sa, &memory.bytes(&chunk.frames()[at])[start..]) {
                        Ok(sealing) => ready.push((frame, sealing)),
                        Err(Fault::TooBig)
                            if self.cut(chunk, memory, read, at, (policy, sa), &state, &mut ready) => {}
                        Err(fault) => {
                            self.fail(chunk, at, fault);
                            // Who sent a packet that came through a tunnel is not where the frame came from.
                            if read.clear.contains(&frame) {
                                self.tell(chunk, memory, at, start, sa, fault);
                            }
                        }
                    }
                }
            }
        }
        let mut unsealed: Vec<Unsealed<'_>> = Vec::with_capacity(ready.len());
        for run in ready.chunk_by(|(_, one), (_, other)| one.is_beside(other)) {
            let mut numbers = run[0].1.take(run.len());
            for &(frame, sealing) in run {
                let at = frame as usize;
                match wrap(chunk, memory, at, read.packets[at].into(), sealing, &mut numbers) {
                    Ok(wrapped) => {
                        unsealed.push(wrapped);
                        read.long.extend(sealing.cut_to().map(|most| (frame, most)));
                    }
                    Err(fault) => self.fail(chunk, at, fault),
                }
            }
        }
        self.counts.sealed += unsealed.len() as u64;
        let asks_gpu = self.asks_gpu(chunk);
        let mut batch = None;
        let mut places = Places { frames: chunk.frames(), packets: &read.packets, memory };
        match self.gpu.as_mut().filter(|_| asks_gpu).map(RefCell::get_mut) {
            Some(gpu) => {
                batch = gpu.seal(&state, &mut unsealed, &places);
                gpu.seal_here(&unsealed, &mut places, &mut self.scratch);
                if is_late && let Some(batch) = &batch {
                    gpu.sealed(batch, &mut places, &mut self.scratch);
                }
            }
            None => seal(&unsealed, &mut places, &mut self.scratch),
        }
        drop(unsealed);
        self.asked = asked;
        batch
    }

    /// Cuts a packet that is too large for a tunnel, if it may be cut, and lays its parts ready to be sealed.
    /// A packet of a policy for ports is sealed whole: its parts would have none. Returns whether it may be
    /// cut.
    #[cold]
    #[allow(clippy::too_many_arguments)] // what `seal` has
    fn cut<'s>(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        read: &mut Read,
        at: usize,
        (policy, sa): (u32, &'s Sa),
        state: &State,
        ready: &mut Vec<(u32, Sealing<'s>)>,
    ) -> bool {
        let start = usize::from(read.packets[at]);
        let most = sa.most_inner();
        let packet = &memory.bytes(&chunk.frames()[at])[start..];
        if !cut::may_cut(packet, most) {
            return false;
        }
        let places = if state.is_for_ports(policy, sa) {
            Some(vec![at])
        } else {
            cut::cut_v4(chunk, memory, at, start, most)
        };
        let Some(places) = places else {
            self.fail(chunk, at, Fault::Buffer);
            return true;
        };
        self.counts.fragmented += u64::from(places.len() > 1);
        read.packets.resize(chunk.len(), narrow::u16(start));
        for place in places {
            match Sealing::begin_large(sa, &memory.bytes(&chunk.frames()[place])[start..]) {
                Ok(sealing) => ready.push((narrow::u32(place), sealing)),
                Err(fault) => self.fail(chunk, place, fault),
            }
        }
        true
    }

    /// Cuts sealed packets that are larger than their paths take, and brings all parts in order.
    pub(super) fn cut_sealed(&mut self, chunk: &mut Chunk, memory: &mut Memory, read: &Read) {
        for &(frame, most) in &read.long {
            let (at, start) = (frame as usize, usize::from(read.packets[frame as usize]));
            if !chunk.is_undecided(at) {
                continue;
            }
            let is_v4 = memory.bytes(&chunk.frames()[at])[start] >> 4 == 4;
            let is_cut = if is_v4 {
                cut::cut_v4(chunk, memory, at, start, most.into()).is_some()
            } else {
                cut::cut_v6(chunk, memory, at, start, most, self.reader.next_id())
            };
            if is_cut {
                self.counts.fragmented += 1;
            } else {
                self.fail(chunk, at, Fault::Buffer);
            }
        }
        chunk.settle();
    }
}
