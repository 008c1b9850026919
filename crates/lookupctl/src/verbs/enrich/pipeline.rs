//! The threads: one reads, one cuts, all cores work, one writes in order, one follows the files of tables.
//!
//! Queues are bounded, so memory is that of a few blocks for each worker, whatever the input. Each block
//! comes with a channel of one answer; the writer gets these channels in the order of blocks.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use wirespeed_records::{Block, Error, Format, Plan, Splitter};

use super::columns::Shared;
use super::pieces::Output;
use super::spare::Spare;
use super::summary::Summary;
use super::table::{Followed, Version, Versions};
use super::work::{Done, Worker};
use crate::busy::Busy;
use crate::interrupt;

/// The time after which records leave though their block has room for more.
const IDLE: Duration = Duration::from_millis(20);
/// The time between looks at the files of tables.
const LOOK: Duration = Duration::from_secs(1);

/// The settings of a run.
pub(super) struct Pipeline {
    /// The input, for messages.
    pub(super) name: String,
    pub(super) threads: usize,
    /// The bytes of a block.
    pub(super) block: usize,
    pub(super) lenient: bool,
    pub(super) shape: Shared,
}

/// A block for a worker.
struct Job {
    block: Block,
    versions: Versions,
    done: SyncSender<Done>,
}

/// Memory of blocks that are done.
#[derive(Default)]
struct Spares {
    /// Bytes as they were read, all of the length of a block.
    read: Spare<Vec<u8>>,
    /// Blocks of records.
    blocks: Spare<Vec<u8>>,
    /// What workers made of them.
    made: Spare<Output>,
}

/// Bytes that were read.
struct Chunk {
    bytes: Vec<u8>,
    /// The number of them that are of the input.
    len: usize,
}

/// The answer for the next block, or the reason why there is none.
type Slot = Result<Receiver<Done>, Error>;

impl Pipeline {
    /// Enriches the input's records, and writes them. Returns the counts.
    pub(super) fn run<P>(
        &self,
        input: impl Read + Send + 'static,
        splitter: Splitter<P>,
        followed: Vec<Followed>,
        versions: Vec<Arc<Version>>,
        to: &mut dyn Write,
    ) -> Result<Summary>
    where
        P: FnMut(Format, &[String]) -> Result<Plan, String> + Send,
    {
        let queued = 2 * self.threads + 2;
        let (to_workers, jobs) = sync_channel::<Job>(queued);
        let (to_writer, slots) = sync_channel::<Slot>(queued);
        let (jobs, now) = (Mutex::new(jobs), Now::new(versions));
        let ended = Ended(Arc::default());
        let spares = Arc::<Spares>::default();
        let chunks = self.read(input, Arc::clone(&spares));
        follow(followed, now.clone(), Arc::clone(&ended.0));
        std::thread::scope(|scope| {
            for _ in 0..self.threads {
                scope.spawn(|| self.work(&jobs, &spares));
            }
            let is_over = Arc::clone(&ended.0);
            let cutter = Cutter { to_workers, to_writer, now, is_over, block: self.block, spares: &spares };
            scope.spawn(move || cutter.run(splitter, &chunks));
            // The cutter may wait for input: it has to see the end.
            let _ended = ended;
            // When this fails, `slots` is dropped with it, and the other threads end.
            self.write(slots, &spares, to)
        })
    }

    /// Reads on a thread of its own, which may wait for input for ever: nobody waits for it.
    fn read(
        &self,
        mut input: impl Read + Send + 'static,
        spares: Arc<Spares>,
    ) -> Receiver<io::Result<Chunk>> {
        let (to_cutter, chunks) = sync_channel(4);
        let len = self.block;
        std::thread::spawn(move || {
            loop {
                let mut bytes = spares.read.take().unwrap_or_default();
                bytes.resize(len, 0);
                let read = match input.read(&mut bytes) {
                    Ok(0) => break,
                    Ok(len) => Ok(Chunk { bytes, len }),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let is_last = read.is_err();
                if to_cutter.send(read).is_err() || is_last {
                    break;
                }
            }
        });
        chunks
    }

    fn work(&self, jobs: &Mutex<Receiver<Job>>, spares: &Spares) {
        let mut worker = Worker::new(self.lenient);
        loop {
            let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(Job { block, versions, done }) = job else { break };
            let (Some(layout), Some(shape)) = (&block.layout, self.shape.get()) else { continue };
            let made = worker.run(&block, layout, shape, versions, spares.made.take().unwrap_or_default());
            spares.blocks.give_back(block.bytes);
            // The writer may be gone.
            let _ = done.send(made);
        }
    }

    /// Writes what the workers made, in order.
    fn write(&self, slots: Receiver<Slot>, spares: &Spares, to: &mut dyn Write) -> Result<Summary> {
        let (mut summary, busy, mut told) = (Summary::new(), Busy::with("enriching"), Instant::now());
        let name = &self.name;
        for slot in slots {
            let slot = slot.map_err(|error| anyhow!("{name}: line {}: {error}", summary.lines + 1))?;
            let done = slot.recv().map_err(|_| anyhow!("a worker ended early"))?;
            to.write_all(done.bytes.bytes())?;
            to.flush()?;
            if let Some((line, reason)) = done.fault {
                let line = summary.lines + line + 1;
                bail!("{name}: line {line}: {reason} (--lenient passes such records through)");
            }
            summary.add(&done);
            spares.made.give_back(done.bytes);
            if told.elapsed() > LOOK {
                told = Instant::now();
                busy.now(format!("enriching: {}", summary.rate()));
            }
        }
        Ok(summary)
    }
}

/// The current tables.
#[derive(Clone)]
struct Now(Arc<Mutex<Versions>>);

impl Now {
    fn new(versions: Vec<Arc<Version>>) -> Self {
        Self(Arc::new(Mutex::new(Arc::new(versions))))
    }

    fn versions(&self) -> Versions {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes the version of a table current.
    fn set(&self, table: usize, version: Arc<Version>) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = (**now).clone();
        all[table] = version;
        *now = Arc::new(all);
    }
}

/// Looks at the files of tables, and makes new versions current, on a thread of its own. Nobody waits for it:
/// it may be in the middle of a large file at the end.
fn follow(mut followed: Vec<Followed>, now: Now, is_over: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        while !is_over.load(Ordering::Acquire) {
            std::thread::sleep(LOOK);
            for (at, table) in followed.iter_mut().enumerate() {
                if let Some(version) = table.next() {
                    now.set(at, version);
                }
            }
        }
    });
}

/// Says that the run is over when this is dropped, also by a panic.
struct Ended(Arc<AtomicBool>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The thread that cuts.
struct Cutter<'s> {
    to_workers: SyncSender<Job>,
    to_writer: SyncSender<Slot>,
    now: Now,
    is_over: Arc<AtomicBool>,
    block: usize,
    spares: &'s Spares,
}

impl Cutter<'_> {
    fn run<P>(&self, mut splitter: Splitter<P>, chunks: &Receiver<io::Result<Chunk>>)
    where
        P: FnMut(Format, &[String]) -> Result<Plan, String>,
    {
        let (mut ends, mut failed) = (false, None);
        while !ends && !self.is_over.load(Ordering::Acquire) {
            // After a signal the records that are complete leave, and no more is read.
            let stops = interrupt::is_interrupted();
            if !stops {
                match chunks.recv_timeout(IDLE) {
                    Ok(Ok(Chunk { bytes, len })) => {
                        splitter.push(&bytes[..len]);
                        self.spares.read.give_back(bytes);
                        if splitter.waiting() < self.block {
                            continue;
                        }
                    }
                    Ok(Err(error)) => failed = Some(error),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => ends = true,
                }
            }
            loop {
                if let Some(bytes) = self.spares.blocks.take() {
                    splitter.give_back(bytes);
                }
                let sent = match splitter.next(ends) {
                    Ok(None) => break,
                    Ok(Some(block)) => self.send(block),
                    Err(error) => {
                        let _ = self.to_writer.send(Err(error));
                        return;
                    }
                };
                if sent.is_none() {
                    return;
                }
            }
            if stops {
                return;
            }
            if let Some(error) = failed {
                let _ = self.to_writer.send(Err(Error::Read(error.to_string())));
                return;
            }
        }
    }

    /// Sends a block to a worker, or what is no record to the writer. `None` if nobody takes it any more.
    fn send(&self, block: Block) -> Option<()> {
        let (done, slot) = sync_channel(1);
        self.to_writer.send(Ok(slot)).ok()?;
        if block.layout.is_some() {
            let versions = self.now.versions();
            return self.to_workers.send(Job { block, versions, done }).ok();
        }
        let lines = memchr::memchr_iter(b'\n', &block.bytes).count() as u64;
        done.send(Done { bytes: block.bytes.into(), lines, ..Done::default() }).ok()
    }
}
