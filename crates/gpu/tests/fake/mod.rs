//! A device made up for tests: streams that run in any order that their events allow, and faults on demand.
//!
//! Work is queued and done in small steps, a random stream's each time, whenever somebody asks whether an event has come. A copy or a
//! kernel takes several steps; so whatever isn't ordered against it gets in between sooner or later, and a batch that should have
//! waited for a patch sees a part of it. A lookup of one block announces its end where it is asked to, some steps after its last result and
//! some before its end, up to which it counts as using its memory. What no driver may be asked is noted, and a test ends by looking at the notes:
//!
//! - access to memory that wasn't taken, or was given back, or past its end
//! - memory given back while queued work has its address
//! - copies from or to memory of this process that isn't pinned
//! - anything left over when the driver ends without being lost

#![allow(unsafe_code)] // pinned memory by its address, which is what is tested
#![allow(clippy::unwrap_used)] // it helps tests

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use wirespeed_gpu::GpuError;
use wirespeed_gpu::driver::{DevicePtr, Driver, Event, Graph, Kernel, Pinned, Properties, Shape, Stream};

type Result<T> = std::result::Result<T, GpuError>;

/// What a test does to the device, and what it learns of it.
pub(crate) struct Control {
    /// Calls so far.
    pub(crate) calls: AtomicU64,
    /// From this call on the device is lost.
    pub(crate) lose_at: AtomicU64,
    /// The launch of this number, from 1 on, is refused, once.
    pub(crate) refuse_launch: AtomicU64,
    /// While it is set nothing is done, and no event comes.
    pub(crate) hangs: AtomicBool,
    /// While it is set no lookup announces its end.
    pub(crate) is_silent: AtomicBool,
    /// While it is set what has announced its end doesn't come to it, and no event comes.
    pub(crate) holds_ends: AtomicBool,
    /// Panics at the next launch.
    pub(crate) panics: AtomicBool,
    pub(crate) launches: Mutex<HashMap<String, u64>>,
    pub(crate) replays: AtomicU64,
    /// What was left in device memory that nobody gave back.
    pub(crate) left: Mutex<BTreeMap<u64, Vec<u8>>>,
    notes: Mutex<Vec<String>>,
    ended: AtomicBool,
}

impl Control {
    /// What went wrong so far. Panics where anything did.
    pub(crate) fn check(&self) {
        let notes = self.notes.lock().unwrap();
        assert!(notes.is_empty(), "{notes:#?}");
    }

    /// The same once the driver has ended.
    pub(crate) fn check_ended(&self) {
        assert!(self.ended.load(Ordering::SeqCst), "the driver lives");
        self.check();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    pub(crate) fn lose_after(&self, calls: u64) {
        self.lose_at.store(self.calls.load(Ordering::SeqCst) + calls, Ordering::SeqCst);
    }

    pub(crate) fn launched(&self, kernel: &str) -> u64 {
        self.launches.lock().unwrap().get(kernel).copied().unwrap_or(0)
    }

    fn note(&self, what: impl Into<String>) {
        self.notes.lock().unwrap().push(what.into());
    }
}

pub(crate) struct Fake {
    control: Arc<Control>,
    properties: Properties,
    random: u64,
    is_lost: bool,
    used: u64,
    next_address: u64,
    /// Blocks by address, with the first of their allocation.
    blocks: BTreeMap<u64, (u64, Vec<u8>)>,
    /// Pinned memory by its address on the device.
    pinned: BTreeMap<u64, Box<[u64]>>,
    streams: HashMap<Stream, VecDeque<Op>>,
    /// By event: how often it was recorded, and which of these have come.
    events: HashMap<Event, (u64, u64)>,
    times: HashMap<Event, u64>,
    graphs: HashMap<Graph, Vec<Op>>,
    capture: Option<(Stream, Vec<Op>)>,
    launches: u64,
    ids: u64,
    steps: u64,
}

#[derive(Clone)]
enum Op {
    /// From an address of this process to one of the device, or the other way, or within; and how far it has come.
    Copy {
        to: Place,
        from: Place,
        bytes: usize,
        done: usize,
    },
    Launch {
        kernel: String,
        blocks: u32,
        arguments: [Vec<u8>; 2],
        done: u64,
        /// Whether it has said so.
        is_announced: bool,
    },
    Record(Event, u64),
    Wait(Event, u64),
}

#[derive(Clone, Copy)]
enum Place {
    Host(u64),
    Device(u64),
}

impl Fake {
    /// A device with so many bytes of memory, whose work goes in the order that the seed says.
    pub(crate) fn start(seed: u64, memory: u64) -> (Box<dyn Driver>, Arc<Control>) {
        let control = Arc::new(Control {
            calls: AtomicU64::new(0),
            lose_at: AtomicU64::new(u64::MAX),
            refuse_launch: AtomicU64::new(u64::MAX),
            hangs: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
            holds_ends: AtomicBool::new(false),
            panics: AtomicBool::new(false),
            launches: Mutex::default(),
            replays: AtomicU64::new(0),
            left: Mutex::default(),
            notes: Mutex::default(),
            ended: AtomicBool::new(false),
        });
        let properties = Properties {
            name: "made up".into(),
            capability: (9, 0),
            memory,
            multiprocessors: 4,
            shared_per_block: 100 << 10,
            l2: 1 << 20,
            bus: "none".into(),
        };
        let fake = Self {
            control: Arc::clone(&control),
            properties,
            random: seed * 2 + 1,
            is_lost: false,
            used: 0,
            next_address: 1 << 20,
            blocks: BTreeMap::new(),
            pinned: BTreeMap::new(),
            streams: HashMap::new(),
            events: HashMap::new(),
            times: HashMap::new(),
            graphs: HashMap::new(),
            capture: None,
            launches: 0,
            ids: 0,
            steps: 0,
        };
        (Box::new(fake), control)
    }

    fn call(&mut self) -> Result<()> {
        let calls = self.control.calls.fetch_add(1, Ordering::SeqCst);
        self.is_lost |= calls >= self.control.lose_at.load(Ordering::SeqCst);
        if self.is_lost { Err(GpuError::Lost("as the test wants it".into())) } else { Ok(()) }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 33).unwrap() % limit
    }

    fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    fn address(&mut self, bytes: usize) -> u64 {
        let address = self.next_address;
        self.next_address += (bytes as u64 + 8192) & !4095;
        address
    }

    fn give(&mut self, stream: Stream, op: Op) {
        match &mut self.capture {
            Some((captured, ops)) if *captured == stream => {
                if matches!(op, Op::Record(..) | Op::Wait(..)) {
                    self.control.note("an event while a stream is recorded");
                }
                ops.push(op);
            }
            _ => self.streams.get_mut(&stream).expect("a stream of this driver").push_back(op),
        }
    }

    /// Does some work.
    fn run(&mut self) {
        if self.control.hangs.load(Ordering::SeqCst) {
            return;
        }
        for _ in 0..1 + self.below(6) {
            let ready = |ops: &VecDeque<Op>| match ops.front() {
                Some(Op::Wait(event, count)) => self.events[event].1 >= *count,
                Some(Op::Record(..) | Op::Launch { is_announced: true, .. }) => {
                    !self.control.holds_ends.load(Ordering::SeqCst)
                }
                Some(_) => true,
                None => false,
            };
            let mut streams: Vec<Stream> =
                self.streams.iter().filter(|(_, ops)| ready(ops)).map(|(&stream, _)| stream).collect();
            if streams.is_empty() {
                return;
            }
            streams.sort_by_key(|stream| stream.0);
            let stream = streams[self.below(streams.len())];
            let mut op = self.streams.get_mut(&stream).unwrap().pop_front().unwrap();
            self.steps += 1;
            if !self.step(&mut op) {
                self.streams.get_mut(&stream).unwrap().push_front(op);
            }
        }
    }

    /// Does a part of an operation; whether it is done.
    fn step(&mut self, op: &mut Op) -> bool {
        match op {
            Op::Wait(..) => true,
            Op::Record(event, count) => {
                let reached = &mut self.events.get_mut(event).unwrap().1;
                *reached = (*reached).max(*count);
                self.times.insert(*event, self.steps);
                true
            }
            Op::Copy { to, from, bytes, done } => {
                let part = (*bytes - *done).min(*bytes / 2 + 1);
                let data = self.read_place(*from, *done, part);
                self.write_place(*to, *done, &data);
                *done += part;
                *done == *bytes
            }
            Op::Launch { kernel, blocks, arguments, done, is_announced } => {
                let (kernel, arguments) = (kernel.clone(), arguments.clone());
                let count =
                    word(&arguments[0], if kernel == "patch" || kernel == "patch_one" { 1 } else { 3 });
                if kernel == "patch_one" {
                    self.store(word(&arguments[0], 0), word(&arguments[0], 1), word(&arguments[1], 0));
                    return true;
                }
                let part = (count - *done).min(count / 3 + 1);
                for i in *done..*done + part {
                    if kernel == "patch" {
                        self.patch(&arguments, i);
                    } else {
                        self.gather(&kernel, &arguments, i);
                    }
                }
                *done += part;
                if *done < count || kernel == "patch" {
                    return *done == count;
                }
                // Whatever comes next may come at once or later.
                if part == 0 && self.below(2) == 0 {
                    if *is_announced || self.control.is_silent.load(Ordering::SeqCst) {
                        return true;
                    }
                    *is_announced = true;
                    self.announce(*blocks, &arguments[0]);
                }
                false
            }
        }
    }

    /// As `announce_end` of `kernels/batch.cuh`.
    fn announce(&mut self, blocks: u32, batch: &[u8]) {
        let (done, mark) = (word(batch, 4), word(batch, 5));
        if done != 0 && blocks == 1 {
            self.store(done, mark, 4);
        }
    }

    fn patch(&mut self, [writes, widths]: &[Vec<u8>; 2], i: u64) {
        let at = word(writes, 0) + 16 * i;
        let (to, value) = (self.load(at, 8), self.load(at + 8, 8));
        let ends = [0, 1, 2].map(|w| (0..=w).map(|w| word(widths, w)).sum::<u64>());
        let bytes = ends.iter().position(|&end| i < end).map_or(8, |w| 1 << w);
        self.store(to, value, bytes);
    }

    /// As `kernels/gather.cuh`; and with keys of six bytes, whose planes are mixed.
    fn gather(&mut self, kernel: &str, [batch, table]: &[Vec<u8>; 2], i: u64) {
        let width: u64 = kernel[8..9].parse().unwrap();
        let key = match &kernel[9..] {
            "_k4" | "_plain_k4" => self.load(word(batch, 0) + 4 * i, 4),
            "_k6" => self.load(word(batch, 0) + 4 * i, 4) ^ self.load(word(batch, 1) + 2 * i, 2),
            other => unreachable!("{other}"),
        };
        let value = self.load(word(table, 0) + (key & word(table, 1)) * width, width);
        self.store(word(batch, 2) + i * width, value, width);
    }

    fn load(&mut self, at: u64, bytes: u64) -> u64 {
        let data = self.read_place(Place::Device(at), 0, usize::try_from(bytes).unwrap());
        let mut word = [0; 8];
        word[..data.len()].copy_from_slice(&data);
        u64::from_le_bytes(word)
    }

    fn store(&mut self, at: u64, value: u64, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap();
        self.write_place(Place::Device(at), 0, &value.to_le_bytes()[..bytes]);
    }

    fn read_place(&mut self, place: Place, skip: usize, bytes: usize) -> Vec<u8> {
        match self.find(place, skip, bytes) {
            // SAFETY: `find` gives what lies in a block of ours.
            Some(at) => unsafe { std::slice::from_raw_parts(at, bytes) }.to_vec(),
            None => vec![0; bytes],
        }
    }

    fn write_place(&mut self, place: Place, skip: usize, data: &[u8]) {
        if let Some(at) = self.find(place, skip, data.len()) {
            // SAFETY: as above; only the driver's thread is here, unless somebody breaks the rules that are tested.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), at, data.len()) };
        }
    }

    /// Where so many bytes lie, all in one block.
    fn find(&mut self, place: Place, skip: usize, bytes: usize) -> Option<*mut u8> {
        let found = match place {
            Place::Device(at) => {
                let at = at + skip as u64;
                let inside = |base: u64, len: usize| at >= base && at + bytes as u64 <= base + len as u64;
                let offset = |base: u64| usize::try_from(at - base).unwrap();
                match self.blocks.range_mut(..=at).next_back() {
                    Some((&base, (_, block))) if inside(base, block.len()) => {
                        Some(block[offset(base)..].as_mut_ptr())
                    }
                    _ => match self.pinned.range_mut(..=at).next_back() {
                        Some((&base, block)) if inside(base, block.len() * 8) => {
                            // SAFETY: it lies inside.
                            Some(unsafe { block.as_mut_ptr().cast::<u8>().add(offset(base)) })
                        }
                        _ => None,
                    },
                }
            }
            Place::Host(at) => {
                let at = at + skip as u64;
                let end = at + bytes as u64;
                self.pinned.values_mut().find_map(|block| {
                    let base = block.as_mut_ptr() as u64;
                    let inside = at >= base && end <= base + 8 * block.len() as u64;
                    // SAFETY: it lies inside.
                    inside.then(|| unsafe {
                        block.as_mut_ptr().cast::<u8>().add(usize::try_from(at - base).unwrap())
                    })
                })
            }
        };
        if found.is_none() {
            let at = match place {
                Place::Device(at) => format!("{at:#x} of the device"),
                Place::Host(at) => format!("{at:#x} of the process"),
            };
            self.control.note(format!("{bytes} bytes at {at} + {skip} are nobody's"));
        }
        found
    }

    /// Notes where queued work has an address in a range that is given back.
    fn check_unused(&self, device: std::ops::Range<u64>, host: std::ops::Range<u64>) {
        let uses = |place: &Place| match place {
            Place::Device(at) => device.contains(at),
            Place::Host(at) => host.contains(at),
        };
        for op in self.streams.values().flatten() {
            let used = match op {
                Op::Copy { to, from, .. } => uses(to) || uses(from),
                Op::Launch { arguments, .. } => arguments
                    .iter()
                    .flat_map(|bytes| bytes.chunks_exact(8))
                    .any(|bytes| device.contains(&u64::from_le_bytes(bytes.try_into().unwrap()))),
                Op::Record(..) | Op::Wait(..) => false,
            };
            if used {
                self.control.note(format!("{device:#x?} is given back while it is in use"));
            }
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap())
}

const KERNELS: [&str; 7] = [
    "gather_w4_plain_k4",
    "gather_w1_k4",
    "gather_w2_k4",
    "gather_w4_k4",
    "gather_w4_k6",
    "patch",
    "patch_one",
];

impl Driver for Fake {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn free_memory(&mut self) -> Result<u64> {
        self.call()?;
        Ok(self.properties.memory - self.used)
    }

    fn alloc(&mut self, blocks: &[usize]) -> Result<Vec<DevicePtr>> {
        self.call()?;
        let needed = blocks.iter().map(|&bytes| bytes as u64).sum();
        let free = self.properties.memory - self.used;
        if needed > free {
            return Err(GpuError::OutOfMemory { needed, free });
        }
        self.used += needed;
        let mut first = None;
        let mut taken = Vec::new();
        for &bytes in blocks {
            let at = self.address(bytes);
            let of = *first.get_or_insert(at);
            self.blocks.insert(at, (of, vec![0xcd; bytes]));
            taken.push(DevicePtr(at));
        }
        Ok(taken)
    }

    unsafe fn free(&mut self, blocks: &[DevicePtr]) {
        for block in blocks {
            match self.blocks.remove(&block.0) {
                Some((of, bytes)) if of == blocks[0].0 => {
                    self.used -= bytes.len() as u64;
                    self.check_unused(block.0..block.0 + bytes.len() as u64, 0..0);
                }
                _ => self.control.note("memory that wasn't taken so is given back"),
            }
        }
    }

    fn alloc_pinned(&mut self, bytes: usize) -> Result<Pinned> {
        self.call()?;
        let at = self.address(bytes);
        let mut block = vec![0u64; bytes.div_ceil(8)].into_boxed_slice();
        let host = block.as_mut_ptr().cast();
        self.pinned.insert(at, block);
        Ok(Pinned { host, device: DevicePtr(at), len: bytes })
    }

    unsafe fn free_pinned(&mut self, memory: Pinned) {
        let (at, host, len) = (memory.device.0, memory.host as u64, memory.len as u64);
        self.check_unused(at..at + len, host..host + len);
        if self.pinned.remove(&at).is_none() {
            self.control.note("pinned memory that wasn't taken is given back");
        }
    }

    fn stream(&mut self) -> Result<Stream> {
        self.call()?;
        let stream = Stream(self.id());
        self.streams.insert(stream, VecDeque::new());
        Ok(stream)
    }

    fn event(&mut self, _: bool) -> Result<Event> {
        self.call()?;
        let event = Event(self.id());
        self.events.insert(event, (0, 0));
        Ok(event)
    }

    unsafe fn copy_in(&mut self, stream: Stream, to: DevicePtr, from: *const u8, bytes: usize) -> Result<()> {
        self.call()?;
        self.give(
            stream,
            Op::Copy { to: Place::Device(to.0), from: Place::Host(from as u64), bytes, done: 0 },
        );
        Ok(())
    }

    unsafe fn copy_out(&mut self, stream: Stream, to: *mut u8, from: DevicePtr, bytes: usize) -> Result<()> {
        self.call()?;
        self.give(
            stream,
            Op::Copy { to: Place::Host(to as u64), from: Place::Device(from.0), bytes, done: 0 },
        );
        Ok(())
    }

    unsafe fn copy_within(
        &mut self,
        stream: Stream,
        to: DevicePtr,
        from: DevicePtr,
        bytes: usize,
    ) -> Result<()> {
        self.call()?;
        self.give(stream, Op::Copy { to: Place::Device(to.0), from: Place::Device(from.0), bytes, done: 0 });
        Ok(())
    }

    unsafe fn launch(
        &mut self,
        stream: Stream,
        kernel: &Kernel,
        shape: Shape,
        arguments: [&[u8]; 2],
    ) -> Result<()> {
        self.call()?;
        self.launches += 1;
        if self.control.panics.swap(false, Ordering::SeqCst) {
            panic!("as the test wants it");
        }
        if self.launches == self.control.refuse_launch.load(Ordering::SeqCst) {
            return Err(GpuError::Call { call: "launch", why: "as the test wants it".into() });
        }
        if !KERNELS.contains(&kernel.name.as_str()) {
            return Err(GpuError::NoKernel(kernel.name.clone()));
        }
        if shape.blocks == 0 || !(1..=1024).contains(&shape.threads) || shape.shared > 100 << 10 {
            self.control.note(format!("{shape:?}"));
        }
        *self.control.launches.lock().unwrap().entry(kernel.name.clone()).or_default() += 1;
        let op = Op::Launch {
            kernel: kernel.name.clone(),
            blocks: shape.blocks,
            arguments: arguments.map(<[u8]>::to_vec),
            done: 0,
            is_announced: false,
        };
        self.give(stream, op);
        Ok(())
    }

    fn blocks_per_multiprocessor(&mut self, kernel: &Kernel, threads: u32, shared: u32) -> Result<u32> {
        self.call()?;
        if !KERNELS.contains(&kernel.name.as_str()) {
            return Err(GpuError::NoKernel(kernel.name.clone()));
        }
        Ok(if shared > 100 << 10 { 0 } else { 2048 / threads })
    }

    fn record(&mut self, event: Event, stream: Stream) -> Result<()> {
        self.call()?;
        let recorded = &mut self.events.get_mut(&event).expect("an event of this driver").0;
        *recorded += 1;
        let count = *recorded;
        self.give(stream, Op::Record(event, count));
        Ok(())
    }

    fn wait(&mut self, stream: Stream, event: Event) -> Result<()> {
        self.call()?;
        let count = self.events[&event].0;
        self.give(stream, Op::Wait(event, count));
        Ok(())
    }

    fn is_done(&mut self, event: Event) -> Result<bool> {
        self.call()?;
        self.run();
        let (recorded, reached) = self.events[&event];
        Ok(reached >= recorded)
    }

    fn elapsed_ms(&mut self, from: Event, to: Event) -> Result<f32> {
        self.call()?;
        let steps = self.times[&to] - self.times[&from];
        Ok(f32::from(u16::try_from(steps).unwrap_or(u16::MAX)) / 1e3)
    }

    fn synchronize(&mut self, stream: Stream) -> Result<()> {
        self.call()?;
        while !self.streams[&stream].is_empty() {
            self.call()?;
            self.run();
        }
        Ok(())
    }

    fn begin_capture(&mut self, stream: Stream) -> Result<()> {
        self.call()?;
        self.capture = Some((stream, Vec::new()));
        Ok(())
    }

    fn end_capture(&mut self, _: Stream) -> Result<Graph> {
        self.call()?;
        let (_, ops) = self.capture.take().expect("a stream is recorded");
        let graph = Graph(self.id());
        self.graphs.insert(graph, ops);
        Ok(graph)
    }

    unsafe fn replay(&mut self, graph: Graph, stream: Stream) -> Result<()> {
        self.call()?;
        self.control.replays.fetch_add(1, Ordering::SeqCst);
        let ops = self.graphs[&graph].clone();
        self.streams.get_mut(&stream).expect("a stream of this driver").extend(ops);
        Ok(())
    }

    fn drop_graph(&mut self, graph: Graph) {
        if self.graphs.remove(&graph).is_none() {
            self.control.note("a graph that there isn't is dropped");
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        if !self.is_lost && !std::thread::panicking() {
            for (what, left) in [
                ("blocks", self.blocks.len()),
                ("pinned blocks", self.pinned.len()),
                ("graphs", self.graphs.len()),
                ("operations", self.streams.values().map(VecDeque::len).sum()),
            ] {
                if left > 0 {
                    self.control.note(format!("{left} {what} are left over"));
                }
            }
        }
        let left = std::mem::take(&mut self.blocks);
        *self.control.left.lock().unwrap() = left.into_iter().map(|(at, (_, bytes))| (at, bytes)).collect();
        self.control.ended.store(true, Ordering::SeqCst);
    }
}
