//! [`OpenFlow`]: the switch as an application of the router, one for each worker.
//!
//! ```text
//! pre_shade    frames are brought near; a large chunk's tuples go to the classifier's device
//! post_shade   one entry into the state: the match fields of each frame, as far as the first table needs
//!              them; a probe of each class that is not in the classifier, for all frames together, and the
//!              classifier's answers for frames that it may have a better flow for; frames whose flow outputs
//!              them as they are or drops are decided at once, the others are interpreted one by one
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wirespeed::gpu::dispatch::Place;
use wirespeed::{Batches, Submitted};
use wirespeed_classify::{OpenFlow13Tuple, OpenFlowTuple};
use wirespeed_image::left_right::Entrance;
use wirespeed_router::{App, Chunk, Memory, PortId, Reason, Verdict};

use crate::error::Error;
use crate::inject::PREFIX;
use crate::interpret::{Counters, Interpreter};
use crate::pipeline::class::Probe;
use crate::pipeline::edit::Packet;
use crate::pipeline::front::{Front, Of, OfKey, Rules, Used};
use crate::pipeline::hit::Hit;
use crate::pipeline::hot::Quick;
use crate::pipeline::learn::Learned;
use crate::pipeline::row::{Row, Short};
use crate::pipeline::state::{PortState, State};
use crate::switch::{Shared, Switch};
use crate::wire::Key;

/// Frames up to which the classifier's answers are taken at once, without a batch that is handed over.
const AT_ONCE: usize = 1024;

/// The application of a worker of an OpenFlow switch.
pub struct OpenFlow {
    switch: Switch,
    worker: usize,
    entrance: Entrance<State>,
    learned: Learned,
    /// The batches of the classifier that was seen last, by the kind of its tuples.
    narrow: Seen<OpenFlowTuple>,
    wide: Seen<OpenFlow13Tuple>,
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
    numbers: Vec<u32>,
    packet: Packet,
}

/// A classifier, and its batches.
type Seen<T> = Option<(Arc<Front>, Batches<T>)>;

/// A chunk under way.
#[derive(Default)]
pub struct Pending {
    front: Option<Arc<Front>>,
    /// What the classifier is asked for, by the kind of its tuples.
    narrow: Asked<OpenFlowTuple>,
    wide: Asked<OpenFlow13Tuple>,
}

/// The tuples of a chunk that a classifier is asked for.
struct Asked<T: OfKey> {
    tuples: Vec<T>,
    /// The frames of the tuples.
    frames: Vec<u32>,
    submitted: Option<Submitted<T>>,
}

impl<T: OfKey> Default for Asked<T> {
    fn default() -> Self {
        Self { tuples: Vec::new(), frames: Vec::new(), submitted: None }
    }
}

impl<T: OfKey> Asked<T> {
    fn is_ready(&self) -> bool {
        self.submitted.as_ref().is_none_or(Submitted::is_ready)
    }

    /// Hands the tuples of a chunk to the device of a classifier.
    fn submit(
        &mut self,
        of: &Of<T>,
        front: &Arc<Front>,
        seen: &mut Seen<T>,
        chunk: (&Chunk, u32),
        memory: &Memory,
    ) {
        let (chunk, port) = chunk;
        if seen.as_ref().is_none_or(|(known, _)| !Arc::ptr_eq(known, front)) {
            *seen = Some((Arc::clone(front), of.reader().batches()));
        }
        let tuple = |frame| T::of_key(&T::Row::read(memory.bytes(frame), port));
        self.tuples.clear();
        self.tuples.extend(chunk.frames().iter().map(tuple));
        if let Some((_, batches)) = seen
            && let Some(mut batch) = batches.batch(self.tuples.len())
        {
            batch.extend_from(&self.tuples);
            self.submitted = Some(batch.submit());
        }
    }

    /// Takes the answers of a chunk that was handed over, or asks for frames that the classifier may have a
    /// better flow for. Returns the number of frames that it was asked for, and whether a GPU answered.
    fn answers<'s, R: Row>(
        &mut self,
        of: &Of<T>,
        front: &'s Front,
        rows: &[R],
        numbers: &mut Vec<u32>,
        found: &mut [Option<Hit<'s>>],
    ) -> (usize, bool) {
        numbers.clear();
        if let Some(submitted) = self.submitted.take() {
            let answers = submitted.wait();
            numbers.resize(answers.len(), 0);
            answers.copy_to(numbers);
            numbers.iter().enumerate().for_each(|(at, &number)| better(&mut found[at], front, number));
            return (numbers.len(), answers.is_from_gpu());
        }
        self.tuples.clear();
        self.frames.clear();
        for (at, row) in (0_u32..).zip(rows) {
            if found[at as usize].is_none_or(|found| found.hot.priority < front.best()) {
                self.frames.push(at);
                self.tuples.push(T::of_key(row));
            }
        }
        numbers.resize(self.tuples.len(), 0);
        of.reader().lookup_batch(&self.tuples, numbers);
        for (&at, &number) in self.frames.iter().zip(&**numbers) {
            better(&mut found[at as usize], front, number);
        }
        (numbers.len(), false)
    }
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tuples = self.narrow.tuples.len() + self.wide.tuples.len();
        f.debug_struct("Pending").field("tuples", &tuples).finish_non_exhaustive()
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
            narrow: None,
            wide: None,
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

/// The lookups of a chunk in the first table.
struct Search<'s, 'c> {
    state: &'s State,
    worker: usize,
    in_port: u32,
    chunk: &'c mut Chunk,
    memory: &'c Memory,
    pending: &'c mut Pending,
    probes: &'c mut Vec<Probe>,
    numbers: &'c mut Vec<u32>,
}

impl<'s> Search<'s, '_> {
    /// Reads the fields of all frames into `rows` and finds their flows. Returns the number of frames that
    /// the classifier was asked for.
    fn all<R: Row>(&mut self, rows: &mut Vec<R>, found: &mut [Option<Hit<'s>>]) -> usize {
        let (in_port, memory) = (self.in_port, self.memory);
        let frames = self.chunk.frames();
        rows.resize(frames.len(), R::NONE);
        rows.iter_mut().zip(frames).for_each(|(row, frame)| row.read_to(memory.bytes(frame), in_port));
        // The answers hold only if the classifier is still that of the state.
        let table = &self.state.tables[0];
        let used = table
            .front()
            .filter(|used| self.pending.front.as_ref().is_some_and(|of| Arc::ptr_eq(of, &used.front)));
        table.lookup_batch(rows, found, self.probes, self.worker, used.is_some());
        let classified = used.map_or(0, |used| self.classify(&used.front, rows, found));
        if used.is_some_and(Used::has_lost) {
            self.replace_lost(rows, found);
        }
        classified
    }

    /// Asks all hash tables for frames whose flows are gone.
    fn replace_lost<R: Row>(&mut self, rows: &[R], found: &mut [Option<Hit<'s>>]) {
        let lost: Vec<usize> =
            (0..found.len()).filter(|&at| found[at].as_ref().is_some_and(Hit::is_gone)).collect();
        let rows: Vec<R> = lost.iter().map(|&at| rows[at]).collect();
        let mut others = vec![None; lost.len()];
        self.state.tables[0].lookup_batch(&rows, &mut others, self.probes, self.worker, false);
        lost.into_iter().zip(others).for_each(|(at, other)| found[at] = other);
    }

    /// Asks the classifier for flows that are better than those that are found. Returns the number of frames
    /// that it was asked for.
    fn classify<R: Row>(&mut self, front: &'s Front, rows: &[R], found: &mut [Option<Hit<'s>>]) -> usize {
        let Self { pending, numbers, .. } = self;
        let (asked, is_by_gpu) = match front.rules() {
            Rules::Narrow(of) => pending.narrow.answers(of, front, rows, numbers, found),
            Rules::Wide(of) => pending.wide.answers(of, front, rows, numbers, found),
        };
        if is_by_gpu {
            self.chunk.set_by_gpu();
        }
        asked
    }
}

/// Takes the flow of a classifier's rule, if its priority is higher.
#[inline]
fn better<'s>(found: &mut Option<Hit<'s>>, front: &'s Front, number: u32) {
    if let Some(hit) = front.flow(number)
        && found.is_none_or(|found| hit.hot.priority > found.hot.priority)
    {
        *found = Some(hit);
    }
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
        pending.front = None;
        if self.is_injector(chunk) {
            self.inject(chunk, memory);
            return pending;
        }
        chunk.frames().iter().for_each(|frame| memory.prefetch(frame));
        let state = self.entrance.enter();
        if !state.is_standalone {
            pending.front = state.tables[0].front().map(|used| Arc::clone(&used.front));
        }
        drop(state);
        if let Some(front) = pending.front.clone()
            && chunk.len() > AT_ONCE
        {
            let chunk = (&*chunk, Self::number(&self.switch.0, chunk));
            match front.rules() {
                Rules::Narrow(of) => pending.narrow.submit(of, &front, &mut self.narrow, chunk, memory),
                Rules::Wide(of) => pending.wide.submit(of, &front, &mut self.wide, chunk, memory),
            }
        }
        pending
    }

    fn is_ready(&self, pending: &Pending) -> bool {
        pending.narrow.is_ready() && pending.wide.is_ready()
    }

    fn post_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory, mut pending: Pending) {
        if chunk.is_empty() || self.is_injector(chunk) {
            self.spare.push(pending);
            return;
        }
        let Self { switch, worker, entrance, learned, scratch, counters, .. } = self;
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
        let Scratch { short, whole, probes, numbers, packet } = scratch;
        if !state.is_standalone {
            let pending = &mut pending;
            let mut search =
                Search { state: &state, worker, in_port, chunk, memory, pending, probes, numbers };
            let classified = match state.tables[0].is_short() {
                true => search.all(short, &mut found),
                false => search.all(whole, &mut found),
            };
            counters.classified += classified as u64;
            shared.tallies.looked_up[0].add(worker, frames, bytes);
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
                    by.frame(at, None);
                } else {
                    by.counters.no_flow += 1;
                    by.chunk.decide(at, Verdict::Drop(Reason::NoRoute));
                }
                continue;
            };
            let len = by.chunk.frames()[at].len() as u64;
            matched += 1;
            matched_bytes += len;
            let verdict = match hit.hot.quick() {
                Quick::No => {
                    by.frame(at, hit.flow());
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
            hit.count(worker, len, millis);
            if let Verdict::Out(port) = verdict {
                sent.add(shared, worker, port, len);
            }
            by.chunk.decide(at, verdict);
        }
        sent.flush(shared, worker);
        shared.tallies.matched[0].add(worker, matched, matched_bytes);
        drop(found);
        drop(state);
        (pending.narrow.submitted, pending.wide.submitted) = (None, None);
        pending.front = None;
        self.spare.push(pending);
    }

    fn suited_to_gpu(&self) -> Option<usize> {
        let state = self.entrance.enter();
        let suited = state.tables[0].front()?.front.rules().suited()?;
        (suited.place == Place::Gpu).then_some(suited.keys)
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
