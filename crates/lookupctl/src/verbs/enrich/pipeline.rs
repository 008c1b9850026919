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
use super::summary::Summary;
use super::table::{Followed, Version};
use super::work::{Done, Versions, Worker};
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
        let chunks = self.read(input);
        follow(followed, now.clone(), Arc::clone(&ended.0));
        std::thread::scope(|scope| {
            for _ in 0..self.threads {
                scope.spawn(|| self.work(&jobs));
            }
            let is_over = Arc::clone(&ended.0);
            let cutter = Cutter { to_workers, to_writer, now, is_over, block: self.block };
            scope.spawn(move || cutter.run(splitter, &chunks));
            // The cutter may wait for input: it has to see the end.
            let _ended = ended;
            // When this fails, `slots` is dropped with it, and the other threads end.
            self.write(slots, to)
        })
    }

    /// Reads on a thread of its own, which may wait for input for ever: nobody waits for it.
    fn read(&self, mut input: impl Read + Send + 'static) -> Receiver<io::Result<Vec<u8>>> {
        let (to_cutter, chunks) = sync_channel(4);
        let len = self.block;
        std::thread::spawn(move || {
            loop {
                let mut chunk = vec![0; len];
                let read = match input.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(read) => {
                        chunk.truncate(read);
                        Ok(chunk)
                    }
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

    fn work(&self, jobs: &Mutex<Receiver<Job>>) {
        let mut worker = Worker::new(self.lenient);
        loop {
            let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(Job { block, versions, done }) = job else { break };
            let (Some(layout), Some(shape)) = (&block.layout, self.shape.get()) else { continue };
            let made = worker.run(&block, layout, shape, versions);
            // The writer may be gone.
            let _ = done.send(made);
        }
    }

    /// Writes what the workers made, in order.
    fn write(&self, slots: Receiver<Slot>, to: &mut dyn Write) -> Result<Summary> {
        let (mut summary, busy, mut told) = (Summary::new(), Busy::with("enriching"), Instant::now());
        let name = &self.name;
        for slot in slots {
            let slot = slot.map_err(|error| anyhow!("{name}: line {}: {error}", summary.lines + 1))?;
            let done = slot.recv().map_err(|_| anyhow!("a worker ended early"))?;
            to.write_all(&done.bytes)?;
            to.flush()?;
            if let Some((line, reason)) = done.fault {
                let line = summary.lines + line + 1;
                bail!("{name}: line {line}: {reason} (--lenient passes such records through)");
            }
            summary.add(&done);
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
struct Cutter {
    to_workers: SyncSender<Job>,
    to_writer: SyncSender<Slot>,
    now: Now,
    is_over: Arc<AtomicBool>,
    block: usize,
}

impl Cutter {
    fn run<P>(&self, mut splitter: Splitter<P>, chunks: &Receiver<io::Result<Vec<u8>>>)
    where
        P: FnMut(Format, &[String]) -> Result<Plan, String>,
    {
        let (mut ends, mut failed) = (false, None);
        while !ends && !self.is_over.load(Ordering::Acquire) {
            // After Ctrl-C the records that are complete leave, and no more is read.
            let stops = interrupt::is_interrupted();
            if !stops {
                match chunks.recv_timeout(IDLE) {
                    Ok(Ok(chunk)) => {
                        splitter.push(&chunk);
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
        done.send(Done { bytes: block.bytes, lines, ..Done::default() }).ok()
    }
}
