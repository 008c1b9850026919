//! The kernels compiled for the CPU, as a [`Driver`]: for tests on machines without a GPU.
//!
//! The host's C++ compiler builds all kernels and `server.cpp` into a program, under address and
//! undefined-behaviour sanitizers unless asked otherwise. A [`HostDriver`] is a process of it: device memory
//! is that process's memory, each block an allocation of its own, so that a kernel that reads past a
//! section's padding ends the process, and that ends in [`GpuError::Lost`] with the sanitizer's report.
//!
//! Work is done in the order in which it is given, and who asks for an event waits for it, so events have
//! always come; that is one of the orders that a GPU may choose. Pinned memory is a file that both processes
//! map: what a kernel puts there is seen at once.

mod build;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufReader, BufWriter, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use memmap2::{MmapMut, MmapOptions};
use tempfile::NamedTempFile;
use wirespeed_gpu::GpuError;
use wirespeed_gpu::driver::{DevicePtr, Driver, Event, Graph, Kernel, Pinned, Properties, Shape, Stream};
use wirespeed_image::rounds;

pub use build::{BuildError, Sanitizers, build};

type Result<T> = std::result::Result<T, GpuError>;

/// A device that is a process of this machine.
#[derive(Debug)]
pub struct HostDriver {
    server: Child,
    requests: BufWriter<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// What the process says before it ends.
    complaint: Option<JoinHandle<String>>,
    lost: Option<GpuError>,
    switch: Arc<AtomicBool>,
    properties: Properties,
    /// Blocks by the address of the first of an allocation: their number and bytes in all.
    taken: HashMap<DevicePtr, u64>,
    pinned: HashMap<DevicePtr, (MmapMut, NamedTempFile)>,
    /// What the server knows of kernels that were asked for: the most threads of a block.
    kernels: HashMap<Kernel, u32>,
    events: HashMap<Event, Instant>,
    graphs: HashMap<Graph, Vec<Work>>,
    capture: Option<Vec<Work>>,
    last_id: u64,
}

/// What a graph is made of.
#[derive(Clone, Debug)]
enum Work {
    In { to: DevicePtr, from: HostPtr, bytes: usize },
    Out { to: HostPtr, from: DevicePtr, bytes: usize },
    Within { to: DevicePtr, from: DevicePtr, bytes: usize },
    Launch { kernel: Kernel, shape: Shape, arguments: [Vec<u8>; 2] },
}

/// A place in this process.
#[derive(Clone, Copy, Debug)]
struct HostPtr(*mut u8);

// SAFETY: an address; the calls that use it are unsafe and argue for it.
#[allow(unsafe_code)]
unsafe impl Send for HostPtr {}

/// Bytes of memory that the device says it has.
const MEMORY: u64 = 8 << 30;

impl HostDriver {
    /// Builds the program, where that hasn't been done, and starts a process of it for a test. Returns
    /// `None`, after saying why, on a machine without a compiler. A plain run of the tests gets the program
    /// without sanitizers always, so that it builds one program and not two.
    ///
    /// # Panics
    ///
    /// Panics if the compiler refuses the kernels, or if the process doesn't start.
    #[must_use]
    pub fn for_tests(sanitizers: Sanitizers) -> Option<Self> {
        let sanitizers = if rounds::is_plain() { Sanitizers::Off } else { sanitizers };
        match build(sanitizers) {
            Ok(program) => Some(Self::start(&program).expect("the process starts")),
            Err(why @ BuildError::NoCompiler) => {
                eprintln!("skipped: {why}");
                None
            }
            Err(refused) => panic!("{refused}"),
        }
    }

    /// Starts a process of the program at a path, as [`build`] gives it.
    pub fn start(program: &std::path::Path) -> std::io::Result<Self> {
        let mut server = Command::new(program)
            // Leaks are what the process ends with, as a device does; a report there would hide the one
            // before it.
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (Some(requests), Some(answers), Some(mut complaint)) =
            (server.stdin.take(), server.stdout.take(), server.stderr.take())
        else {
            unreachable!("all three are piped");
        };
        let complaint = std::thread::spawn(move || {
            let mut text = String::new();
            // What can't be read is not said.
            let _ = complaint.read_to_string(&mut text);
            text
        });
        Ok(Self {
            server,
            requests: BufWriter::with_capacity(1 << 16, requests),
            answers: BufReader::with_capacity(1 << 16, answers),
            complaint: Some(complaint),
            lost: None,
            switch: Arc::default(),
            properties: Properties {
                name: "host build of the kernels".into(),
                capability: (9, 0),
                memory: MEMORY,
                multiprocessors: 2,
                shared_per_block: 227 << 10,
                l2: 1 << 20,
                bus: "host".into(),
            },
            taken: HashMap::new(),
            pinned: HashMap::new(),
            kernels: HashMap::new(),
            events: HashMap::new(),
            graphs: HashMap::new(),
            capture: None,
            last_id: 0,
        })
    }

    /// Says that the device has so many bytes of memory.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.properties.memory = bytes;
        self
    }

    /// The constants of the kernels' sources: module, name, value.
    pub fn constants(&mut self) -> Result<Vec<(String, String, u64)>> {
        self.request(b'K', &[], &[])?;
        let len = self.answer()?;
        let mut text = vec![0; usize::try_from(len).unwrap_or(0)];
        self.read(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        let constant = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            Some((words.next()?, words.next()?, words.next()?.parse().ok()?))
        };
        Ok(text.lines().filter_map(constant).collect())
    }

    /// The switch that loses the device, from whatever thread: once it is set the process is ended at the
    /// next call.
    pub fn switch(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.switch)
    }

    fn kill(&mut self) {
        // One that has ended is what is wanted.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }

    fn id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn used(&self) -> u64 {
        self.taken.values().sum()
    }

    fn request(&mut self, what: u8, numbers: &[u64], then: &[u8]) -> Result<()> {
        self.request_parts(what, numbers, &[then])
    }

    fn request_parts(&mut self, what: u8, numbers: &[u64], then: &[&[u8]]) -> Result<()> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        if self.switch.load(Ordering::Relaxed) {
            self.kill();
        }
        let mut send = || {
            self.requests.write_all(&[what])?;
            numbers.iter().try_for_each(|number| self.requests.write_all(&number.to_le_bytes()))?;
            then.iter().try_for_each(|bytes| self.requests.write_all(bytes))
        };
        send().map_err(|error| self.lose(&error))
    }

    fn answer(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.read(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn read(&mut self, to: &mut [u8]) -> Result<()> {
        let read = self.requests.flush().and_then(|()| self.answers.read_exact(to));
        read.map_err(|error| self.lose(&error))
    }

    /// The process is gone: why, from what it said.
    fn lose(&mut self, error: &std::io::Error) -> GpuError {
        self.kill();
        let said = self.complaint.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let mut why = error.to_string();
        if !said.trim().is_empty() {
            let _ = write!(why, "\n{}", said.trim());
        }
        let lost = GpuError::Lost(why);
        self.lost = Some(lost.clone());
        lost
    }

    /// The most threads of a block of a kernel.
    fn known(&mut self, kernel: &Kernel) -> Result<u32> {
        if let Some(&threads) = self.kernels.get(kernel) {
            return Ok(threads);
        }
        self.request(b'N', &[kernel.name.len() as u64], kernel.name.as_bytes())?;
        let threads = self.answer()?;
        self.answer()?;
        self.answer()?;
        match u32::try_from(threads) {
            Ok(threads) if threads > 0 => {
                self.kernels.insert(kernel.clone(), threads);
                Ok(threads)
            }
            _ => Err(GpuError::NoKernel(kernel.name.clone())),
        }
    }

    fn give(&mut self, work: Work) -> Result<()> {
        match &mut self.capture {
            Some(graph) => {
                graph.push(work);
                Ok(())
            }
            None => self.work(&work),
        }
    }

    #[allow(unsafe_code)]
    fn work(&mut self, work: &Work) -> Result<()> {
        match work {
            Work::In { to, from, bytes } => {
                // SAFETY: whoever gave the copy promised that the source is good for so many bytes until it
                // is done.
                let source = unsafe { std::slice::from_raw_parts(from.0, *bytes) };
                self.request(b'W', &[to.0, *bytes as u64], source)
            }
            Work::Out { to, from, bytes } => {
                self.request(b'R', &[from.0, *bytes as u64], &[])?;
                // SAFETY: as above, of the destination.
                let target = unsafe { std::slice::from_raw_parts_mut(to.0, *bytes) };
                self.read(target)
            }
            Work::Within { to, from, bytes } => self.request(b'C', &[to.0, from.0, *bytes as u64], &[]),
            Work::Launch { kernel, shape, arguments: [a, b] } => {
                let name = (kernel.name.len() as u64).to_le_bytes();
                let numbers = [shape.blocks, shape.rows, shape.threads, shape.shared]
                    .map(|n| u64::from(n).to_le_bytes());
                let (a_len, b_len) = ((a.len() as u64).to_le_bytes(), (b.len() as u64).to_le_bytes());
                let parts = [&name[..], kernel.name.as_bytes(), numbers.as_flattened(), &a_len, a, &b_len, b];
                self.request_parts(b'L', &[], &parts)
            }
        }
    }

    /// Waits until all that was given is done: an answer to anything says so.
    fn settle(&mut self) -> Result<()> {
        self.request(b'N', &[0], &[])?;
        (0..3).try_for_each(|_| self.answer().map(drop))
    }
}

#[allow(unsafe_code)] // the trait's methods, which argue for themselves
impl Driver for HostDriver {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn free_memory(&mut self) -> Result<u64> {
        Ok(self.properties.memory.saturating_sub(self.used()))
    }

    fn alloc(&mut self, blocks: &[usize]) -> Result<Vec<DevicePtr>> {
        let needed = blocks.iter().map(|&bytes| bytes as u64).sum();
        let free = self.free_memory()?;
        if needed > free {
            return Err(GpuError::OutOfMemory { needed, free });
        }
        // All are asked for before the first answer is waited for: each wait is a change of processes.
        blocks.iter().try_for_each(|&bytes| self.request(b'A', &[bytes as u64], &[]))?;
        let taken = blocks.iter().map(|_| self.answer().map(DevicePtr)).collect::<Result<Vec<_>>>()?;
        if let Some(&first) = taken.first() {
            self.taken.insert(first, needed);
        }
        Ok(taken)
    }

    unsafe fn free(&mut self, blocks: &[DevicePtr]) {
        if let Some(first) = blocks.first() {
            assert!(self.taken.remove(first).is_some(), "memory that nobody took is given back");
        }
        for block in blocks {
            // Where the device is lost its memory is, too.
            let _ = self.request(b'F', &[block.0], &[]);
        }
    }

    fn alloc_pinned(&mut self, bytes: usize) -> Result<Pinned> {
        let failed = |why: std::io::Error| GpuError::Pinned { needed: bytes as u64, why: why.to_string() };
        let folder = std::path::Path::new("/dev/shm");
        let file = if folder.is_dir() { NamedTempFile::new_in(folder) } else { NamedTempFile::new() };
        let file = file.map_err(failed)?;
        file.as_file().set_len(bytes.max(1) as u64).map_err(failed)?;
        // SAFETY: the file is new, and only this process and its server know it.
        let mut map = unsafe { MmapOptions::new().map_mut(file.as_file()) }.map_err(failed)?;
        let path = file.path().to_string_lossy().into_owned();
        let mut then = path.clone().into_bytes();
        then.extend((bytes.max(1) as u64).to_le_bytes());
        self.request(b'M', &[path.len() as u64], &then)?;
        let device = DevicePtr(self.answer()?);
        let host = map.as_mut_ptr();
        self.pinned.insert(device, (map, file));
        Ok(Pinned { host, device, len: bytes })
    }

    unsafe fn free_pinned(&mut self, memory: Pinned) {
        assert!(self.pinned.remove(&memory.device).is_some(), "memory that nobody took is given back");
    }

    fn stream(&mut self) -> Result<Stream> {
        Ok(Stream(self.id()))
    }

    fn event(&mut self, _timed: bool) -> Result<Event> {
        Ok(Event(self.id()))
    }

    unsafe fn copy_in(&mut self, _: Stream, to: DevicePtr, from: *const u8, bytes: usize) -> Result<()> {
        self.give(Work::In { to, from: HostPtr(from.cast_mut()), bytes })
    }

    unsafe fn copy_out(&mut self, _: Stream, to: *mut u8, from: DevicePtr, bytes: usize) -> Result<()> {
        self.give(Work::Out { to: HostPtr(to), from, bytes })
    }

    unsafe fn copy_within(&mut self, _: Stream, to: DevicePtr, from: DevicePtr, bytes: usize) -> Result<()> {
        self.give(Work::Within { to, from, bytes })
    }

    unsafe fn launch(
        &mut self,
        _: Stream,
        kernel: &Kernel,
        shape: Shape,
        arguments: [&[u8]; 2],
    ) -> Result<()> {
        let most = self.known(kernel)?;
        if shape.blocks == 0
            || shape.rows == 0
            || shape.threads == 0
            || shape.threads > most
            || shape.shared > self.properties.shared_per_block
        {
            return Err(GpuError::Call {
                call: "launch",
                why: format!("{} can't have {shape:?}", kernel.name),
            });
        }
        self.give(Work::Launch { kernel: kernel.clone(), shape, arguments: arguments.map(<[u8]>::to_vec) })
    }

    fn blocks_per_multiprocessor(&mut self, kernel: &Kernel, threads: u32, shared: u32) -> Result<u32> {
        let most = self.known(kernel)?;
        if threads == 0 || threads > most || shared > self.properties.shared_per_block {
            return Ok(0);
        }
        let by_memory = (228 << 10) / (shared + 1024);
        Ok((2048 / threads).min(by_memory).min(32))
    }

    fn record(&mut self, event: Event, _: Stream) -> Result<()> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        self.events.insert(event, Instant::now());
        // On its way, as kernels announce their end without being asked.
        self.requests.flush().map_err(|error| self.lose(&error))
    }

    fn wait(&mut self, _: Stream, _: Event) -> Result<()> {
        self.lost.clone().map_or(Ok(()), Err)
    }

    fn is_done(&mut self, _: Event) -> Result<bool> {
        self.settle()?;
        Ok(true)
    }

    fn elapsed_ms(&mut self, from: Event, to: Event) -> Result<f32> {
        match (self.events.get(&from), self.events.get(&to)) {
            (Some(&from), Some(&to)) => Ok(to.saturating_duration_since(from).as_secs_f32() * 1e3),
            _ => Err(GpuError::Call { call: "elapsed", why: "an event was not recorded".into() }),
        }
    }

    fn synchronize(&mut self, _: Stream) -> Result<()> {
        self.settle()
    }

    fn begin_capture(&mut self, _: Stream) -> Result<()> {
        self.capture = Some(Vec::new());
        Ok(())
    }

    fn end_capture(&mut self, _: Stream) -> Result<Graph> {
        let graph = Graph(self.id());
        let work = self.capture.take().unwrap_or_default();
        self.graphs.insert(graph, work);
        Ok(graph)
    }

    unsafe fn replay(&mut self, graph: Graph, _: Stream) -> Result<()> {
        let work = self.graphs.get(&graph).cloned().unwrap_or_default();
        work.iter().try_for_each(|work| self.work(work))
    }

    fn drop_graph(&mut self, graph: Graph) {
        self.graphs.remove(&graph);
    }
}

impl Drop for HostDriver {
    fn drop(&mut self) {
        self.kill();
    }
}
