//! [`Wiring`]: the ports of each worker, as the command line names them.

use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use wirespeed_openflow::Switch;
use wirespeed_router::io::Port;
use wirespeed_router::io::capture::{CapturePort, CaptureWriter, DropCapture};
use wirespeed_router::io::memory::{Limits, MemoryPort, Source};
use wirespeed_router::io::traffic::{Traffic, again};
use wirespeed_router::{DropSink, Error, HEAD_ROOM, Memory, PortId};

use super::options::{From, Options};
use super::tables::{Tables, mac_of};

/// Bytes between buffers: a line more than 2,048, so that the first lines of frames are in all sets of a
/// cache.
const STRIDE: u32 = 2048 + 64;
/// Bytes of the largest frame that fits a buffer.
pub(super) const LARGEST_FRAME: usize = (STRIDE - HEAD_ROOM as u32) as usize;

/// The ports of a router, to be opened by its workers.
pub(super) struct Wiring {
    /// The frames that each worker has in memory, if they come from there.
    made: Option<Box<dyn Fn(usize) -> Source + Send + Sync>>,
    count: Option<u64>,
    load: Option<f64>,
    buffers: u32,
    workers: usize,
    /// Ports of a capture, which one worker takes.
    captures: Mutex<Vec<Box<dyn Port>>>,
    sinks: usize,
    writers: Vec<CaptureWriter>,
    drops: Option<CaptureWriter>,
    switch: Option<Switch>,
    started: Started,
}

/// How often a worker that is ready looks whether the others are.
const LOOK: Duration = Duration::from_micros(100);

/// The time when all workers were ready.
struct Started {
    ready: Mutex<usize>,
    since: OnceLock<Instant>,
}

impl Wiring {
    /// Opens files. Fails if one can't be read or written.
    pub(super) fn of(options: &Options, tables: &Tables) -> Result<Self> {
        let mut source = CapturePort::new("in");
        let workers = options.threads();
        let mut made: Option<Box<dyn Fn(usize) -> Source + Send + Sync>> = None;
        match &options.r#in {
            From::File(path) => source = source.from_file(path)?,
            From::Again(path) => {
                let frames = CapturePort::frames(path, LARGEST_FRAME)?;
                made = Some(Box::new(move |_| again(&frames)));
            }
            From::Made(sizes) => {
                let to = match tables {
                    Tables::Ip(ip) => ip.to.clone(),
                    // Any addresses: the switch has no table to draw them from.
                    Tables::Switch(_) => (0..options.buffers).map(address).collect(),
                    // The options refuse it.
                    Tables::Names(_) => [].into(),
                };
                let traffic = Traffic { to, sizes: *sizes, mac: mac_of(PortId(0)) };
                made = Some(Box::new(move |worker| traffic.source(worker, workers)));
            }
        }
        // Files that are written lose what was in them: only once all that is read is there.
        let drops = options.drops.as_deref().map(CaptureWriter::create).transpose()?;
        let (mut writers, mut ports) = (Vec::new(), Vec::new());
        for (at, out) in (1..).zip(&options.out) {
            let name = if options.out.len() > 1 { format!("out{at}") } else { "out".to_owned() };
            let mut port = CapturePort::new(name);
            if out != "sink" {
                let writer = CaptureWriter::create(Path::new(out))?;
                if at == 1 {
                    // What goes back to the source is an interface of the first capture.
                    source = source.to_writer(&writer)?;
                }
                port = port.to_writer(&writer)?;
                writers.push(writer);
            }
            ports.push(Box::new(port) as Box<dyn Port>);
        }
        let sinks = ports.len();
        ports.insert(0, Box::new(source));
        Ok(Self {
            made,
            count: options.count,
            load: options.load,
            buffers: options.buffers(),
            workers,
            captures: Mutex::new(ports),
            sinks,
            writers,
            drops,
            switch: match tables {
                Tables::Switch(switch) => Some(switch.switch.clone()),
                _ => None,
            },
            started: Started { ready: Mutex::new(0), since: OnceLock::new() },
        })
    }

    /// The memory and the ports of a worker.
    pub(super) fn open(&self, worker: usize) -> Result<(Memory, Vec<Box<dyn Port>>), Error> {
        let mut memory = Memory::with_stride(self.buffers, STRIDE)?;
        let mut ports = std::mem::take(&mut *self.captures.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(made) = &self.made {
            let count = self.sinks + 1;
            // Files take what is sent: then there is one worker.
            let count = if self.writers.is_empty() { count } else { 1 };
            let names = (0..count).map(|port| if port == 0 { "in".to_owned() } else { format!("out{port}") });
            let limits = Limits {
                count: self.count.map(|all| share(all, worker as u64, self.workers as u64)),
                rate: self.load.map(|load| load / self.workers as f64),
            };
            let in_memory = MemoryPort::ports(names, made(worker), &mut memory, limits);
            ports.drain(..count.min(ports.len()));
            ports.splice(..0, in_memory.into_iter().map(|port| Box::new(port) as Box<dyn Port>));
        }
        // Frames that controllers send come in at a port behind all others, of one worker.
        if let Some(injector) = self.switch.as_ref().and_then(Switch::injector) {
            ports.push(Box::new(injector));
        }
        Ok((memory, ports))
    }

    /// Waits until all workers are ready, or nothing is to be done any more. One that began before the others
    /// would forward frames in a time that does not count.
    pub(super) fn wait_for_all(&self, stop: &AtomicBool) {
        let mut ready = self.started.ready.lock().unwrap_or_else(PoisonError::into_inner);
        *ready += 1;
        if *ready == self.workers {
            self.started.since.get_or_init(Instant::now);
        }
        drop(ready);
        while self.started().is_none() && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
    }

    /// The time when all workers were ready.
    pub(super) fn started(&self) -> Option<Instant> {
        self.started.since.get().copied()
    }

    /// A sink for dropped frames of a worker.
    pub(super) fn drops(&self) -> Option<Box<dyn DropSink>> {
        Some(Box::new(DropCapture::new(self.drops.as_ref()?)))
    }

    /// Writes all captures out.
    pub(super) fn finish(&self) -> Result<()> {
        for writer in self.writers.iter().chain(&self.drops) {
            writer.finish()?;
        }
        Ok(())
    }
}

/// An IPv4 address of a number, in 10.0.0.0/8.
fn address(at: usize) -> IpAddr {
    let [.., a, b, c] = at.to_be_bytes();
    IpAddr::from([10, a, b, c])
}

/// Part `part` of `parts` of a number: all parts add up to it.
const fn share(all: u64, part: u64, parts: u64) -> u64 {
    all / parts + (part < all % parts) as u64
}
