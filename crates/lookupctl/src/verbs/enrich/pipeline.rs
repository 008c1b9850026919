//! The threads: one reads, all cores work, one writes in order, one follows the files of tables.
//!
//! A worker cuts the next block itself, one at a time, so the block's bytes are near the core that works on
//! them. With each block comes a channel of one answer; the writer gets these channels in the order of
//! blocks. Queues are bounded, so memory is that of a few blocks for each worker, whatever the input.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use wirespeed_commands::enrich::{Followed, Now, Version, Versions, follow};
use wirespeed_records::{Block, Error, Format, Plan, Splitter};

use super::columns::Shared;
use super::pieces::Output;
use super::spare::Spare;
use super::summary::Summary;
use super::values::Values;
use super::work::{Done, Worker};
use crate::busy::Busy;
use crate::interrupt;

/// The time after which records leave though their block has room for more.
const IDLE: Duration = Duration::from_millis(20);
/// The time between reports of progress.
const TELL: Duration = Duration::from_secs(1);

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
    versions: Versions<Values>,
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
        followed: Vec<Followed<Values>>,
        versions: Vec<Arc<Version<Values>>>,
        to: &mut dyn Write,
    ) -> Result<Summary>
    where
        P: FnMut(Format, &[String]) -> Result<Plan, String> + Send,
    {
        let (to_writer, slots) = sync_channel::<Slot>(2 * self.threads + 2);
        let now = Now::new(versions);
        let ended = Ended(Arc::default());
        let spares = Arc::<Spares>::default();
        let chunks = self.read(input, Arc::clone(&spares));
        follow(followed, now.clone(), Arc::clone(&ended.0));
        let cutter = Cutter {
            splitter,
            chunks,
            to_writer,
            now,
            is_over: Arc::clone(&ended.0),
            block: self.block,
            spares: &spares,
            may_cut: false,
            end: None,
        };
        let cutter = Arc::new(Mutex::new(cutter));
        std::thread::scope(|scope| {
            for _ in 0..self.threads {
                let cutter = Arc::clone(&cutter);
                scope.spawn(|| self.work(cutter, &spares));
            }
            // The writer's channel ends with the last worker.
            drop(cutter);
            // A worker may wait for input: it has to see the end.
            let _ended = ended;
            // When this fails, `slots` is dropped with it, and the workers end.
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

    fn work<P>(&self, cutter: Arc<Mutex<Cutter<'_, P>>>, spares: &Spares)
    where
        P: FnMut(Format, &[String]) -> Result<Plan, String>,
    {
        let mut worker = Worker::new(self.lenient);
        loop {
            let job = cutter.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(Job { block, versions, done }) = job else { break };
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
            if told.elapsed() > TELL {
                told = Instant::now();
                busy.now(format!("enriching: {}", summary.rate()));
            }
        }
        Ok(summary)
    }
}

/// Says that the run is over when this is dropped, also by a panic.
struct Ended(Arc<AtomicBool>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The end of the input.
enum End {
    /// The last record may lack its own end.
    Whole,
    /// A signal: no more is read, and only whole records leave.
    Signal,
    /// The input failed after whole records.
    Failed(Error),
}

/// The input as blocks, for the worker that has the lock.
struct Cutter<'s, P> {
    splitter: Splitter<P>,
    chunks: Receiver<io::Result<Chunk>>,
    to_writer: SyncSender<Slot>,
    now: Now<Values>,
    is_over: Arc<AtomicBool>,
    block: usize,
    spares: &'s Spares,
    /// Whether there may be a block in what was read: enough was, or no more came for a while.
    may_cut: bool,
    end: Option<End>,
}

impl<P> Cutter<'_, P>
where
    P: FnMut(Format, &[String]) -> Result<Plan, String>,
{
    /// The next block of records. `None` after the last one, and when the run is over.
    fn next(&mut self) -> Option<Job> {
        while !self.is_over.load(Ordering::Acquire) {
            if !self.may_cut {
                self.read()?;
                continue;
            }
            if let Some(bytes) = self.spares.blocks.take() {
                self.splitter.give_back(bytes);
            }
            match self.splitter.next(matches!(self.end, Some(End::Whole))) {
                Ok(None) => self.may_cut = false,
                Ok(Some(block)) => {
                    let (done, slot) = sync_channel(1);
                    self.to_writer.send(Ok(slot)).ok()?;
                    if block.layout.is_some() {
                        return Some(Job { block, versions: self.now.versions(), done });
                    }
                    // What is no record passes as it is.
                    let lines = memchr::memchr_iter(b'\n', &block.bytes).count() as u64;
                    let _ = done.send(Done { bytes: block.bytes.into(), lines, ..Done::default() });
                }
                Err(error) => (self.end, self.may_cut) = (Some(End::Failed(error)), false),
            }
        }
        None
    }

    /// Reads more of the input. `None` if it has ended, or nobody takes its blocks.
    fn read(&mut self) -> Option<()> {
        if let Some(end) = &mut self.end {
            if let End::Failed(error) = std::mem::replace(end, End::Signal) {
                let _ = self.to_writer.send(Err(error));
            }
            return None;
        }
        self.may_cut = true;
        if interrupt::is_interrupted() {
            self.end = Some(End::Signal);
            return Some(());
        }
        match self.chunks.recv_timeout(IDLE) {
            Ok(Ok(Chunk { bytes, len })) => {
                self.splitter.push(&bytes[..len]);
                self.spares.read.give_back(bytes);
                self.may_cut = self.splitter.waiting() >= self.block;
            }
            Ok(Err(error)) => self.end = Some(End::Failed(Error::Read(error.to_string()))),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.end = Some(End::Whole),
        }
        Some(())
    }
}
