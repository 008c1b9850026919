//! [`OpenFlow`]: the switch as an application of the router, one for each worker.
//!
//! ```text
//! pre_shade    frames are brought near; a large chunk's tuples go to the classifier's device
//! post_shade   one entry into the state: the match fields of each frame, as far as the first table needs
//!              them; a probe of each class that is not in the classifier, for all frames together, and the
//!              classifier's answers for frames that it may have a better flow for; then the same in each
//!              later table that frames come to; frames whose flows output them as they are or drop are
//!              decided at once, the others are interpreted one by one
//! ```

use std::sync::atomic::Ordering;

use wirespeed::gpu::dispatch::Place;
use wirespeed_image::left_right::Entrance;
use wirespeed_router::{App, Chunk, Memory, PortId, Reason, Verdict};

use crate::ahead::Ahead;
use crate::error::Error;
use crate::inject::PREFIX;
use crate::interpret::{Counters, Interpreter};
use crate::pipeline::answers::{Answers, Known};
use crate::pipeline::class::Probe;
use crate::pipeline::edit::Packet;
use crate::pipeline::hit::Hit;
use crate::pipeline::hot::Quick;
use crate::pipeline::learn::Learned;
use crate::pipeline::row::Short;
use crate::pipeline::state::{PortState, State};
use crate::pipeline::table::Table;
use crate::search::{AT_ONCE, Batch, Frames, Sources, find};
use crate::switch::{Shared, Switch};
use crate::wire::Key;

/// The application of a worker of an OpenFlow switch.
pub struct OpenFlow {
    switch: Switch,
    worker: usize,
    entrance: Entrance<State>,
    learned: Learned,
    sources: Sources,
    spare: Vec<Pending>,
    scratch: Scratch,
    counters: Counters,
}

/// Memory of lookups that is used again.
#[derive(Default)]
struct Scratch {
    short: Vec<Short>,
    whole: Vec<Key>,
    probes: Vec<Probe>,
    ahead: Ahead,
    packet: Packet,
}

/// A chunk under way: its lookups in the classifier of the first table.
#[derive(Default)]
pub struct Pending(Batch);

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").field("tuples", &self.0.len()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for OpenFlow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenFlow").field("worker", &self.worker).finish_non_exhaustive()
    }
}

impl Switch {
    /// The application of the next worker.
    pub fn app(&self) -> Result<OpenFlow, Error> {
        let workers = self.0.options.workers;
        let worker = self.0.taken.fetch_add(1, Ordering::Relaxed);
        if worker >= workers {
            self.0.taken.store(workers, Ordering::Relaxed);
            return Err(Error::Workers { workers });
        }
        Ok(OpenFlow::new(self.clone(), worker))
    }
}

impl OpenFlow {
    fn new(switch: Switch, worker: usize) -> Self {
        Self {
            worker,
            entrance: switch.0.entrances.entrance(),
            learned: Learned::default(),
            sources: Sources::default(),
            spare: Vec::new(),
            scratch: Scratch::default(),
            counters: Counters::default(),
            switch,
        }
    }

    /// Whether a chunk is of the port whose frames are of controllers.
    fn is_injector(&self, chunk: &Chunk) -> bool {
        chunk.port().index() >= self.switch.0.options.numbering().count()
    }

    /// The number in OpenFlow of the port of a chunk.
    fn number(shared: &Shared, chunk: &Chunk) -> u32 {
        shared.options.numbering().number(chunk.port().index())
    }

    /// Sends the frames of controllers: each has its port before it.
    fn inject(&self, chunk: &mut Chunk, memory: &Memory) {
        let shared = &*self.switch.0;
        for at in 0..chunk.len() {
            let Some(&port) = memory.first::<4>(&chunk.frames()[at]) else { continue };
            chunk.frame_mut(at).strip_front(PREFIX);
            let port = shared.port_of(u32::from_be_bytes(port));
            if let Some(port) = port {
                let bytes = chunk.frames()[at].len() as u64;
                shared.tallies.sent[port.index()].add(self.worker, 1, bytes);
            }
            chunk.decide(at, port.map_or(Verdict::Drop(Reason::NoPort), Verdict::Out));
        }
    }
}

/// Counts a frame by flows that only lead it on, and returns the last flow, which does not count it yet.
#[inline(never)] // to keep the loop over frames short
fn led_on<'s>(
    shared: &Shared,
    worker: usize,
    (bytes, now): (u64, u64),
    first: Hit<'s>,
    later: impl Iterator<Item = (u8, Hit<'s>)>,
) -> Hit<'s> {
    later.fold(first, |hit, (table, next)| {
        let table = usize::from(table);
        shared.tallies.looked_up[table].add(worker, 1, bytes);
        shared.tallies.matched[table].add(worker, 1, bytes);
        hit.count(worker, bytes, now);
        next
    })
}

/// The fate of a frame whose flow outputs it to a port as it is.
#[inline]
fn quick_verdict(state: &State, in_port: u32, to: u32) -> Verdict {
    match u16::try_from(to.wrapping_sub(1)) {
        _ if to == in_port => Verdict::Drop(Reason::SamePort),
        // A port that is there has fewer than 16 bits.
        Ok(port) if state.port(to).is_some_and(PortState::forwards) => Verdict::Out(PortId(port)),
        _ => Verdict::Drop(Reason::NoPort),
    }
}

/// The fate of a frame whose flow sends it back as it is.
#[inline]
fn back_verdict(state: &State, in_port: u32, port: PortId) -> Verdict {
    match state.port(in_port) {
        Some(port_state) if port_state.forwards() => Verdict::Out(port),
        _ => Verdict::Drop(Reason::NoPort),
    }
}

impl App for OpenFlow {
    type Pending = Pending;

    fn pre_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory) -> Pending {
        let mut pending = self.spare.pop().unwrap_or_default();
        if self.is_injector(chunk) {
            self.inject(chunk, memory);
            return pending;
        }
        chunk.frames().iter().for_each(|frame| memory.prefetch(frame));
        let state = self.entrance.enter();
        if !state.is_standalone {
            pending.0.begin(&state.tables[0]);
        }
        drop(state);
        let in_port = Self::number(&self.switch.0, chunk);
        pending.0.submit(&mut self.sources, &Frames { frames: chunk.frames(), memory, in_port });
        pending
    }

    fn is_ready(&self, pending: &Pending) -> bool {
        pending.0.is_ready()
    }

    fn post_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory, mut pending: Pending) {
        if chunk.is_empty() || self.is_injector(chunk) {
            self.spare.push(pending);
            return;
        }
        let Self { switch, worker, entrance, learned, sources, scratch, counters, .. } = self;
        let shared = &*switch.0;
        let state = entrance.enter();
        let (in_port, worker, now) = (Self::number(shared, chunk), *worker, shared.nanoseconds());
        let bytes: u64 = chunk.frames().iter().map(|frame| frame.len() as u64).sum();
        let port = chunk.port().index();
        let frames = chunk.len() as u64;
        if !state.port(in_port).is_some_and(PortState::receives) {
            shared.tallies.refused[port].add(worker, frames, bytes);
            (0..chunk.len()).for_each(|at| chunk.decide(at, Verdict::Drop(Reason::NoPort)));
            self.spare.push(pending);
            return;
        }
        shared.tallies.received[port].add(worker, frames, bytes);
        let mut found: Vec<Option<Hit<'_>>> = vec![None; chunk.len()];
        let Scratch { short, whole, probes, ahead, packet } = scratch;
        let mut answers = Answers::default();
        if !state.is_standalone {
            let (table, batch) = (&state.tables[0], &mut pending.0);
            let unread = Frames { frames: chunk.frames(), memory, in_port };
            let (classified, mut is_by_gpu) = if table.is_short() {
                unread.read(short);
                find(table, batch, short, &mut found, probes, worker)
            } else {
                unread.read(whole);
                find(table, batch, whole, &mut found, probes, worker)
            };
            counters.classified += classified as u64;
            shared.tallies.looked_up[0].add(worker, frames, bytes);
            if state.has_later {
                answers = ahead.answers(&state, unread, &found, sources, probes, worker);
                counters.classified_later += ahead.classified;
                is_by_gpu |= ahead.is_by_gpu;
            }
            if is_by_gpu {
                chunk.set_by_gpu();
            }
        }
        let (mut matched, mut matched_bytes) = (0, 0);
        let mut sent = Sent::default();
        let millis = now / 1_000_000;
        // Most frames of a chunk go to the port of the frame before them.
        let mut last = (0, Verdict::Drop(Reason::NoPort));
        let back = back_verdict(&state, in_port, chunk.port());
        let mut by = Interpreter {
            state: &state,
            shared,
            worker,
            now,
            in_port,
            learned,
            counters,
            packet,
            chunk,
            memory,
        };
        for (at, &hit) in found.iter().enumerate() {
            let Some(hit) = hit else {
                if state.is_standalone {
                    by.frame(at, None, Known::default());
                } else {
                    by.counters.no_flow += 1;
                    by.chunk.decide(at, Verdict::Drop(Reason::NoRoute));
                }
                continue;
            };
            let len = by.chunk.frames()[at].len() as u64;
            matched += 1;
            matched_bytes += len;
            let mut last_hit = hit;
            if hit.hot.quick() == Quick::No
                && let Some(later) = answers.plain(at)
            {
                last_hit = led_on(shared, worker, (len, millis), hit, later);
            }
            let verdict = match last_hit.hot.quick() {
                Quick::No => {
                    by.frame(at, hit.flow(), answers.of(at));
                    continue;
                }
                Quick::Output(to) => {
                    if to != last.0 {
                        last = (to, quick_verdict(&state, in_port, to));
                    }
                    last.1
                }
                Quick::Back => back,
                Quick::Drop => {
                    by.counters.dropped_by_flow += 1;
                    Verdict::Drop(Reason::Denied)
                }
            };
            last_hit.count(worker, len, millis);
            if let Verdict::Out(port) = verdict {
                sent.add(shared, worker, port, len);
            }
            by.chunk.decide(at, verdict);
        }
        sent.flush(shared, worker);
        shared.tallies.matched[0].add(worker, matched, matched_bytes);
        drop(answers);
        drop(found);
        drop(state);
        pending.0.end();
        self.spare.push(pending);
    }

    fn suited_to_gpu(&self) -> Option<usize> {
        let state = self.entrance.enter();
        let fronts = state.tables.iter().filter_map(Table::front);
        let suited = fronts.filter_map(|used| used.front.rules().suited());
        suited.filter(|suited| suited.place == Place::Gpu).map(|suited| suited.keys).max()
    }

    fn least_for_gpu(&self) -> usize {
        // A lookup among many wildcards takes the CPU longer than one of an address.
        2 * AT_ONCE
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let counters = &self.counters;
        vec![
            ("no_flow", counters.no_flow),
            ("dropped_by_flow", counters.dropped_by_flow),
            ("metered", counters.metered),
            ("spent", counters.spent),
            ("packet_ins", counters.packet_ins),
            ("lost_packet_ins", counters.lost_packet_ins),
            ("copies", counters.copies),
            ("lost_copies", counters.lost_copies),
            ("classified", counters.classified),
            ("classified_later", counters.classified_later),
        ]
    }
}

/// Frames in a row that go out of one port, counted together.
#[derive(Default)]
struct Sent {
    port: PortId,
    packets: u64,
    bytes: u64,
}

impl Sent {
    #[inline]
    fn add(&mut self, shared: &Shared, worker: usize, port: PortId, bytes: u64) {
        if self.port != port {
            self.flush(shared, worker);
            self.port = port;
        }
        self.packets += 1;
        self.bytes += bytes;
    }

    fn flush(&mut self, shared: &Shared, worker: usize) {
        if self.packets > 0 {
            shared.tallies.sent[self.port.index()].add(worker, self.packets, self.bytes);
        }
        (self.packets, self.bytes) = (0, 0);
    }
}
