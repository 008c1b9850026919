//! [`Worker`]: one thread that takes frames from its ports through the pipeline and out again.
//!
//! ```text
//! ports ─ receive ─► open chunks, one a port ─ full, dry or due ─► pre_shade ─► under way ─► post_shade ─► queues of ports ─► ports
//!                                                                             (the device looks up)
//! ```
//!
//! A worker has a queue of each device, its own memory, chunks and application. It shares with others only
//! what is known about a GPU's late chunks. Chunks come back in the order in which they went, so the order
//! within a flow is kept.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::any_app::{AnyApp, any};
use crate::io::Port;
use crate::lateness::Lateness;
use crate::sizing::{Sizing, UNDER_WAY};
use crate::stats::Stats;
use crate::tracer::Tracer;
use crate::{App, Chunk, Error, Frame, Memory, PortId, Reason, Report, Verdict, narrow};

/// Frames of a chunk for the CPU: their lines and the answers stay in the nearest caches.
pub const CHUNK: usize = 256;
/// Frames that wait for a port before more are dropped.
const QUEUE: usize = 4096;
/// Rounds without a frame before the worker sleeps until one comes.
const IDLE_ROUNDS: u32 = 2000;
/// How long it sleeps at most: so long takes it to see that it has to end.
const SLEEP_MS: i32 = 20;
/// How long frames may wait for full ports at the end.
const DRAIN: Duration = Duration::from_millis(500);
/// How often statistics are published.
const PUBLISH: Duration = Duration::from_millis(100);

/// A receiver of frames for the operating system.
pub trait Kernel: Send {
    /// Takes a frame that came from a port. An error is counted nowhere else: the frame counts as given.
    fn take(&mut self, port: PortId, frame: &[u8]);
}

/// Settings of a worker.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Frames of a chunk for the CPU.
    pub chunk: usize,
    /// Frames of a chunk for a GPU; `None` asks the application.
    pub gpu_chunk: Option<usize>,
    /// The time that a frame may stay in the router.
    pub deadline: Duration,
    /// Frames whose way is told.
    pub trace: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { chunk: CHUNK, gpu_chunk: None, deadline: Duration::from_micros(500), trace: 0 }
    }
}

/// The report that a worker shows others while it runs.
#[derive(Debug, Default)]
pub struct Published(Mutex<Report>);

impl Published {
    /// A copy of what the worker did, at most a tenth of a second old.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.report().stats
    }

    /// A copy of what the worker did, with the counters of its application and its ports.
    #[must_use]
    pub fn report(&self) -> Report {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A port with the frames that wait for it.
struct Queue {
    port: Box<dyn Port>,
    /// The chunk that is being filled.
    open: Chunk,
    /// Whether the last call to receive gave all that was asked for.
    has_more: bool,
    forwarded: Vec<Frame>,
    /// The number of frames among these that an application added to chunks.
    added: usize,
    made: Vec<Frame>,
}

impl Queue {
    /// Received frames that wait, and their bytes.
    fn received(&self, memory: &Memory) -> (usize, u64) {
        let received = self.forwarded.iter().filter(|frame| self.added == 0 || !memory.is_added(frame));
        received.fold((0, 0), |(frames, bytes), frame| (frames + 1, bytes + frame.len() as u64))
    }
}

/// A thread's part of a router.
pub struct Worker<'a> {
    app: Box<dyn AnyApp + 'a>,
    memory: Memory,
    queues: Vec<Queue>,
    kernel: Option<Box<dyn Kernel>>,
    settings: Settings,
    sizing: Sizing,
    /// Whether all ports let their frames wait, so that none has to be dropped for a full port.
    loses_nothing: bool,
    under_way: VecDeque<Chunk>,
    spare: Vec<Chunk>,
    stats: Stats,
    tracer: Tracer,
    drops: Option<Box<dyn DropSink>>,
}

/// A receiver of copies of dropped frames.
pub trait DropSink: Send {
    /// Takes a copy of a frame that is dropped.
    fn dropped(&mut self, reason: Reason, frame: &[u8]);
}

impl<'a> Worker<'a> {
    /// A worker with an application and ports. The ports' frames are of this memory.
    pub fn new(app: impl App + 'a, memory: Memory, ports: Vec<Box<dyn Port>>, settings: Settings) -> Self {
        Self::of(any(app), memory, ports, settings)
    }

    fn of(app: Box<dyn AnyApp + 'a>, memory: Memory, ports: Vec<Box<dyn Port>>, settings: Settings) -> Self {
        let queue = |port| Queue {
            port,
            open: Chunk::new(settings.chunk),
            has_more: false,
            forwarded: Vec::new(),
            added: 0,
            made: Vec::new(),
        };
        let mut queues: Vec<Queue> = ports.into_iter().map(queue).collect();
        for (at, queue) in (0..).zip(&mut queues) {
            queue.open.begin(PortId(at));
        }
        let mut worker = Self {
            sizing: match settings.gpu_chunk {
                Some(_) => Sizing::new(settings.chunk, None).always(),
                None => Sizing::new(settings.chunk, None),
            },
            tracer: Tracer::new(settings.trace),
            loses_nothing: queues.iter().all(|queue| queue.port.can_wait()),
            app,
            memory,
            queues,
            kernel: None,
            settings,
            under_way: VecDeque::new(),
            spare: Vec::new(),
            stats: Stats::default(),
            drops: None,
        };
        worker.sizing.suit(worker.large());
        worker
    }

    /// The frames of a chunk for a GPU, if one is of use now.
    fn large(&self) -> Option<usize> {
        // Chunks under way, and those that are filled, have to leave buffers to receive in.
        let most = self.memory.buffers() as usize / (2 * (UNDER_WAY + self.queues.len().max(1)));
        let least = self.app.least_for_gpu();
        let suited =
            || self.app.suited_to_gpu().map(|suited| suited.min(most)).filter(|&suited| suited >= least);
        let large = self.settings.gpu_chunk.or_else(suited).map(|large| large.min(most));
        large.filter(|&large| large > self.settings.chunk)
    }

    /// Gives frames for the operating system to `kernel`. Without one they are counted only.
    #[must_use]
    pub fn kernel(mut self, kernel: Box<dyn Kernel>) -> Self {
        self.kernel = Some(kernel);
        self
    }

    /// Gives copies of dropped frames to `sink`.
    #[must_use]
    pub fn drops(mut self, sink: Box<dyn DropSink>) -> Self {
        self.drops = Some(sink);
        self
    }

    /// Shares what is known about late frames with the other workers.
    pub(crate) fn share(&mut self, lateness: &Arc<Lateness>) {
        self.sizing.share(lateness);
    }

    /// The ports.
    pub fn ports(&self) -> impl Iterator<Item = &dyn Port> + Clone {
        self.queues.iter().map(|queue| &*queue.port)
    }

    /// Runs until `stop` is set, or until no port gives frames any more. Then lets frames that are under way
    /// out, and closes the ports. Returns what was done.
    pub fn run(&mut self, stop: &AtomicBool, published: &Published) -> Result<Stats, Error> {
        let (mut idle, mut told) = (0_u32, Instant::now());
        let mut is_busy = true;
        while !stop.load(Ordering::Relaxed) && (is_busy || !self.is_at_end()) {
            is_busy = self.round()?;
            idle = if is_busy { 0 } else { idle.saturating_add(1) };
            if idle > IDLE_ROUNDS {
                self.sleep();
            }
            // Reading the clock costs a worker nothing beside a chunk, and an idle one has time.
            let now = Instant::now();
            if now.duration_since(told) >= PUBLISH {
                told = now;
                debug_assert!(self.audit().is_ok(), "{:?}", self.audit());
                self.publish(published);
                self.make()?;
                // An application's table may come to a GPU, or to another size, at any time.
                self.sizing.suit(self.large());
            }
        }
        self.drain()?;
        self.publish(published);
        self.audit()?;
        for queue in &mut self.queues {
            queue.port.close(&mut self.memory);
        }
        Ok(self.stats.clone())
    }

    /// Takes all ports once. Returns whether there was anything to do.
    fn round(&mut self) -> Result<bool, Error> {
        let mut is_busy = false;
        for at in 0..self.queues.len() {
            is_busy |= self.receive(at)?;
        }
        is_busy |= self.finish(UNDER_WAY)?;
        is_busy |= self.transmit()?;
        Ok(is_busy)
    }

    /// Receives frames of a port, and starts its chunk if that is complete.
    fn receive(&mut self, at: usize) -> Result<bool, Error> {
        if self.queues[at].port.can_wait() && self.is_any_full() {
            return Ok(false);
        }
        let Queue { port, open, has_more, .. } = &mut self.queues[at];
        let before = open.len();
        // A burst at a time: a chunk for a GPU is filled by many, and other ports have their turn.
        let most = self.sizing.frames().saturating_sub(before).min(self.settings.chunk);
        let received = port.receive(&mut self.memory, &mut open.frames, most)?;
        if received > 0 {
            open.came(Instant::now());
            self.stats.frames_in += received as u64;
            self.stats.bytes_in += open.frames[before..].iter().map(|frame| frame.len() as u64).sum::<u64>();
        }
        *has_more = received == most;
        let is_full = open.len() >= self.sizing.frames();
        let is_due = || open.first().is_some_and(|first| first.elapsed() * 2 > self.settings.deadline);
        if !open.is_empty() && (is_full || received < most || is_due()) {
            self.start(at)?;
        }
        Ok(received > 0)
    }

    /// Whether so many frames wait for a port that the next chunk may not find a place.
    fn is_any_full(&self) -> bool {
        self.queues.iter().any(|queue| queue.forwarded.len() >= QUEUE / 2)
    }

    /// Starts the chunk of a port: the application reads it, and its keys are looked up.
    fn start(&mut self, at: usize) -> Result<(), Error> {
        // In the order of chunks, and no more than a GPU has at once.
        self.finish(self.sizing.under_way() - 1)?;
        let mut next = self.spare.pop().unwrap_or_else(|| Chunk::new(self.settings.chunk));
        // At most 2^16 ports: the router refuses more.
        next.begin(PortId(narrow::u16(at)));
        let mut chunk = std::mem::replace(&mut self.queues[at].open, next);
        chunk.close();
        if self.sizing.is_large() {
            chunk.set_for_gpu();
        }
        self.tracer.received(&chunk, &self.memory, self.queues[at].port.name());
        self.app.pre_shade(&mut chunk, &mut self.memory);
        self.under_way.push_back(chunk);
        Ok(())
    }

    /// Sends what the application makes without a frame that came.
    fn make(&mut self) -> Result<(), Error> {
        let mut chunk = self.spare.pop().unwrap_or_else(|| Chunk::new(self.settings.chunk));
        chunk.begin(PortId(0));
        chunk.close();
        self.app.make(&mut chunk, &mut self.memory);
        self.let_go(chunk)
    }

    /// Ends chunks that are done, in order, and waits for the first ones until at most `most` are under way.
    fn finish(&mut self, most: usize) -> Result<bool, Error> {
        let mut is_busy = false;
        while self.under_way.len() > most || self.app.is_ready() {
            let Some(chunk) = self.under_way.pop_front() else { break };
            self.end(chunk)?;
            is_busy = true;
        }
        Ok(is_busy)
    }

    /// Ends a chunk: the application decides, and the frames go where it says.
    fn end(&mut self, mut chunk: Chunk) -> Result<(), Error> {
        self.app.post_shade(&mut chunk, &mut self.memory);
        self.stats.chunk(chunk.is_by_gpu(), chunk.received(), self.sizing.why());
        self.tracer.decided(&chunk, &self.memory, |port| {
            self.queues.get(port.index()).map_or("no port", |queue| queue.port.name())
        });
        let (first, frames, from) = (chunk.first(), chunk.received(), chunk.port());
        let was_large = chunk.is_by_gpu() || frames > self.settings.chunk;
        if chunk.is_for_gpu() {
            self.sizing.went(chunk.is_by_gpu(), frames);
        }
        self.let_go(chunk)?;
        let now = Instant::now();
        if let Some(took) = first.map(|first| now.saturating_duration_since(first)) {
            self.stats.took(took, frames);
            if was_large {
                self.sizing.took(took, self.settings.deadline, frames);
            } else {
                self.sizing.took_small(took, self.settings.deadline, frames);
            }
        }
        let is_behind = self.queues.get(from.index()).is_some_and(|queue| queue.has_more);
        self.sizing.done(now, self.stats.frames_in, is_behind);
        Ok(())
    }

    /// Lets the frames of a chunk go where the application has decided.
    fn let_go(&mut self, mut chunk: Chunk) -> Result<(), Error> {
        let (frames, from) = (chunk.received(), chunk.port());
        let has_added = chunk.len() > frames;
        for queue in &mut self.queues {
            queue.forwarded.reserve(chunk.frames.len());
        }
        let verdicts = std::mem::take(&mut chunk.verdicts);
        for (frame, &verdict) in chunk.frames.drain(..).zip(&verdicts) {
            let is_added = has_added && self.memory.is_added(&frame);
            if let Verdict::Out(port) = verdict
                && let Some(queue) = self.queues.get_mut(port.index())
            {
                queue.forwarded.push(frame);
                queue.added += usize::from(is_added);
            } else if is_added {
                self.keep_added_back(frame, verdict, from);
            } else {
                self.keep_back(frame, verdict, from);
            }
        }
        chunk.verdicts = verdicts;
        for (port, frame) in chunk.made.drain(..) {
            match self.queues.get_mut(port.index()) {
                Some(queue) => queue.made.push(frame),
                None => {
                    self.stats.made_lost += 1;
                    self.memory.give(frame);
                }
            }
        }
        self.spare.push(chunk);
        self.transmit()?;
        Ok(())
    }

    /// Keeps a frame back that goes out of no port.
    fn keep_back(&mut self, frame: Frame, verdict: Verdict, from: PortId) {
        let reason = match verdict {
            Verdict::Kernel => {
                if let Some(kernel) = &mut self.kernel {
                    kernel.take(from, self.memory.bytes(&frame));
                }
                self.stats.to_kernel += 1;
                return self.memory.give(frame);
            }
            Verdict::Controller => {
                self.stats.to_controller += 1;
                return self.memory.give(frame);
            }
            Verdict::Drop(reason) => reason,
            Verdict::Out(_) => Reason::NoPort,
            Verdict::Undecided => Reason::Undecided,
        };
        self.drop_frame(frame, reason);
    }

    /// Keeps a frame back that the application added, and that goes out of no port.
    fn keep_added_back(&mut self, frame: Frame, verdict: Verdict, from: PortId) {
        match &mut self.kernel {
            Some(kernel) if verdict == Verdict::Kernel => {
                kernel.take(from, self.memory.bytes(&frame));
                self.stats.made += 1;
            }
            _ => self.stats.made_lost += 1,
        }
        self.memory.give(frame);
    }

    fn drop_frame(&mut self, frame: Frame, reason: Reason) {
        self.stats.dropped.count(reason);
        if let Some(sink) = &mut self.drops {
            sink.dropped(reason, self.memory.bytes(&frame));
        }
        self.memory.give(frame);
    }

    /// Sends what waits for ports, and drops what does not fit their queues.
    fn transmit(&mut self) -> Result<bool, Error> {
        let mut is_busy = false;
        for at in 0..self.queues.len() {
            self.queues[at].port.poll(&mut self.memory)?;
            if self.queues[at].forwarded.is_empty() && self.queues[at].made.is_empty() {
                continue;
            }
            let (frames, bytes) = self.queues[at].received(&self.memory);
            let Queue { port, forwarded, .. } = &mut self.queues[at];
            let sent = port.send(&mut self.memory, forwarded)?;
            let (frames_left, bytes_left) = self.queues[at].received(&self.memory);
            self.stats.frames_out += (frames - frames_left) as u64;
            self.stats.bytes_out += bytes - bytes_left;
            let Queue { port, forwarded, added, made, .. } = &mut self.queues[at];
            let added_left = forwarded.len() - frames_left;
            self.stats.made += (*added - added_left) as u64;
            *added = added_left;
            let sent_made = if forwarded.is_empty() { port.send(&mut self.memory, made)? } else { 0 };
            self.stats.made += sent_made as u64;
            is_busy |= sent + sent_made > 0;
            // What can't be taken twice is lost beyond a bound; what can wait was not received.
            let most = if self.loses_nothing { usize::MAX } else { QUEUE };
            let (late, late_made) = (forwarded.len().min(most), made.len().min(QUEUE));
            let late: Vec<Frame> = forwarded.drain(late..).collect();
            for frame in made.drain(late_made..) {
                self.stats.made_lost += 1;
                self.memory.give(frame);
            }
            let has_added = *added > 0;
            for frame in late {
                if has_added && self.memory.is_added(&frame) {
                    self.queues[at].added -= 1;
                    self.stats.made_lost += 1;
                    self.memory.give(frame);
                } else {
                    self.drop_frame(frame, Reason::QueueFull);
                }
            }
        }
        Ok(is_busy)
    }

    /// Lets frames that are in chunks and queues out. What full ports do not take in time stays queued.
    fn drain(&mut self) -> Result<(), Error> {
        for at in 0..self.queues.len() {
            if !self.queues[at].open.is_empty() {
                self.start(at)?;
            }
        }
        self.finish(0)?;
        let until = Instant::now() + DRAIN;
        while self.waiting() > 0 && Instant::now() < until {
            if !self.transmit()? {
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    /// Frames that wait in queues, or in a port for its device.
    fn waiting(&self) -> usize {
        let of = |queue: &Queue| queue.forwarded.len() + queue.made.len() + queue.port.unsent();
        self.queues.iter().map(of).sum()
    }

    fn is_at_end(&self) -> bool {
        self.under_way.is_empty()
            && self.queues.iter().all(|queue| queue.port.is_at_end() && queue.open.is_empty())
            && self.queues.iter().all(|queue| queue.forwarded.is_empty() && queue.made.is_empty())
    }

    /// Sleeps until a port has a frame, for a short time at most.
    fn sleep(&self) {
        let mut descriptors = Vec::new();
        let mut ports = self.queues.iter().filter(|queue| !queue.port.is_at_end());
        if ports.all(|queue| queue.port.descriptors(&mut descriptors)) && self.under_way.is_empty() {
            crate::io::wait(&descriptors, SLEEP_MS);
        } else {
            std::thread::yield_now();
        }
    }

    /// Publishes the statistics of now.
    fn publish(&mut self, published: &Published) {
        let in_chunks = self
            .queues
            .iter()
            .map(|queue| queue.open.len() + queue.forwarded.len() - queue.added)
            .sum::<usize>()
            + self.under_way.iter().map(Chunk::received).sum::<usize>();
        self.stats.queued = in_chunks as u64;
        debug_assert!(self.stats.is_whole(), "{:?}", self.stats);
        let report = self.report();
        *published.0.lock().unwrap_or_else(PoisonError::into_inner) = report;
    }

    /// The work so far, with the counters of its application and its ports.
    #[must_use]
    pub fn report(&self) -> Report {
        let ports = self.ports();
        Report {
            stats: self.stats.clone(),
            counters: self.app.counters(),
            ports: ports.clone().map(|port| (port.name().to_owned(), port.counts())).collect(),
            damage: ports.filter_map(|port| Some(format!("{}: {}", port.name(), port.damage()?))).collect(),
            ended: None,
        }
    }

    /// Finds every buffer: free, in a chunk, in a queue or with a port.
    fn audit(&self) -> Result<(), Error> {
        let of =
            |queue: &Queue| queue.port.held() + queue.open.len() + queue.forwarded.len() + queue.made.len();
        let held = self.memory.free()
            + self.queues.iter().map(of).sum::<usize>()
            + self.under_way.iter().map(|chunk| chunk.len() + chunk.made.len()).sum::<usize>();
        let buffers = self.memory.buffers() as usize;
        if held == buffers { Ok(()) } else { Err(Error::Unaccounted { held, buffers }) }
    }
}
