//! Memory of a device that had keys or frames in it: it is overwritten before it is freed. And kernels: no
//! chunk is the first use of one.

#![allow(unsafe_code)] // the memory is looked at by address

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use wirespeed_gpu::GpuError;
use wirespeed_gpu::driver::{DevicePtr, Driver, Event, Graph, Kernel, Pinned, Properties, Shape, Stream};
use wirespeed_rng::Rng;

use super::layout::{DeviceKeys, HEADER};
use super::tests::{Case, driver, fill, keys, run, small};
use super::{Device, Transform};

type Result<T> = std::result::Result<T, GpuError>;

/// A driver whose memory can be looked at, and what memory held when it was freed.
struct Watched {
    properties: Properties,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    driver: Box<dyn Driver>,
    /// The bytes of each block that is not free.
    sizes: HashMap<DevicePtr, usize>,
    pinned: Vec<Pinned>,
    freed: Vec<Vec<u8>>,
    /// The kernels that were asked about: a driver compiles them then, or else when they are launched.
    compiled: Vec<String>,
}

impl Shared {
    /// The content of a block.
    fn content(&mut self, block: DevicePtr) -> Vec<u8> {
        let mut bytes = vec![0; self.sizes[&block]];
        let stream = self.driver.stream().unwrap();
        // SAFETY: 1. The block has this length and is not free. 2. The bytes live until the copy is waited
        // for. 3. The tests have nothing under way here.
        unsafe { self.driver.copy_out(stream, bytes.as_mut_ptr(), block, bytes.len()) }.unwrap();
        self.driver.synchronize(stream).unwrap();
        bytes
    }

    /// The content of all memory that is not free.
    fn all(&mut self) -> Vec<Vec<u8>> {
        let blocks: Vec<DevicePtr> = self.sizes.keys().copied().collect();
        let blocks = blocks.into_iter().map(|block| self.content(block)).collect::<Vec<_>>();
        blocks.into_iter().chain(self.pinned.iter().map(read)).collect()
    }
}

/// The content of pinned memory.
fn read(memory: &Pinned) -> Vec<u8> {
    // SAFETY: 1. The driver gave memory of this length, and it is not free. 2. The tests have nothing under
    // way that writes to it.
    unsafe { std::slice::from_raw_parts(memory.host, memory.len) }.to_vec()
}

impl Watched {
    fn with<T>(&self, call: impl FnOnce(&mut dyn Driver) -> T) -> T {
        call(&mut *self.shared.lock().unwrap().driver)
    }
}

impl Driver for Watched {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn free_memory(&mut self) -> Result<u64> {
        self.with(|driver| driver.free_memory())
    }

    fn alloc(&mut self, blocks: &[usize]) -> Result<Vec<DevicePtr>> {
        let found = self.with(|driver| driver.alloc(blocks))?;
        self.shared.lock().unwrap().sizes.extend(found.iter().copied().zip(blocks.iter().copied()));
        Ok(found)
    }

    unsafe fn free(&mut self, blocks: &[DevicePtr]) {
        let mut shared = self.shared.lock().unwrap();
        for block in blocks {
            let bytes = shared.content(*block);
            shared.freed.push(bytes);
            shared.sizes.remove(block);
        }
        // SAFETY: as the caller says.
        unsafe { shared.driver.free(blocks) }
    }

    fn alloc_pinned(&mut self, bytes: usize) -> Result<Pinned> {
        let memory = self.with(|driver| driver.alloc_pinned(bytes))?;
        self.shared.lock().unwrap().pinned.push(memory);
        Ok(memory)
    }

    unsafe fn free_pinned(&mut self, memory: Pinned) {
        let mut shared = self.shared.lock().unwrap();
        shared.freed.push(read(&memory));
        shared.pinned.retain(|known| known.host != memory.host);
        // SAFETY: as the caller says.
        unsafe { shared.driver.free_pinned(memory) }
    }

    fn stream(&mut self) -> Result<Stream> {
        self.with(|driver| driver.stream())
    }

    fn event(&mut self, timed: bool) -> Result<Event> {
        self.with(|driver| driver.event(timed))
    }

    unsafe fn copy_in(&mut self, stream: Stream, to: DevicePtr, from: *const u8, bytes: usize) -> Result<()> {
        // SAFETY: as the caller says.
        self.with(|driver| unsafe { driver.copy_in(stream, to, from, bytes) })
    }

    unsafe fn copy_out(&mut self, stream: Stream, to: *mut u8, from: DevicePtr, bytes: usize) -> Result<()> {
        // SAFETY: as the caller says.
        self.with(|driver| unsafe { driver.copy_out(stream, to, from, bytes) })
    }

    unsafe fn copy_within(
        &mut self,
        stream: Stream,
        to: DevicePtr,
        from: DevicePtr,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: as the caller says.
        self.with(|driver| unsafe { driver.copy_within(stream, to, from, bytes) })
    }

    unsafe fn launch(
        &mut self,
        stream: Stream,
        kernel: &Kernel,
        shape: Shape,
        arguments: [&[u8]; 2],
    ) -> Result<()> {
        let is_known = self.shared.lock().unwrap().compiled.contains(&kernel.name);
        assert!(is_known, "{} is compiled while a chunk waits", kernel.name);
        // SAFETY: as the caller says.
        self.with(|driver| unsafe { driver.launch(stream, kernel, shape, arguments) })
    }

    fn blocks_per_multiprocessor(&mut self, kernel: &Kernel, threads: u32, shared: u32) -> Result<u32> {
        self.shared.lock().unwrap().compiled.push(kernel.name.clone());
        self.with(|driver| driver.blocks_per_multiprocessor(kernel, threads, shared))
    }

    fn record(&mut self, event: Event, stream: Stream) -> Result<()> {
        self.with(|driver| driver.record(event, stream))
    }

    fn wait(&mut self, stream: Stream, event: Event) -> Result<()> {
        self.with(|driver| driver.wait(stream, event))
    }

    fn is_done(&mut self, event: Event) -> Result<bool> {
        self.with(|driver| driver.is_done(event))
    }

    fn elapsed_ms(&mut self, from: Event, to: Event) -> Result<f32> {
        self.with(|driver| driver.elapsed_ms(from, to))
    }

    fn synchronize(&mut self, stream: Stream) -> Result<()> {
        self.with(|driver| driver.synchronize(stream))
    }

    fn begin_capture(&mut self, stream: Stream) -> Result<()> {
        self.with(|driver| driver.begin_capture(stream))
    }

    fn end_capture(&mut self, stream: Stream) -> Result<Graph> {
        self.with(|driver| driver.end_capture(stream))
    }

    unsafe fn replay(&mut self, graph: Graph, stream: Stream) -> Result<()> {
        // SAFETY: as the caller says.
        self.with(|driver| unsafe { driver.replay(graph, stream) })
    }

    fn drop_graph(&mut self, graph: Graph) {
        self.with(|driver| driver.drop_graph(graph));
    }
}

/// Whether some of these pieces of memory have these bytes in them.
fn have(memory: &[Vec<u8>], bytes: &[u8]) -> bool {
    memory.iter().any(|piece| piece.windows(bytes.len()).any(|window| window == bytes))
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}

#[test]
fn keys_and_frames_are_overwritten_before_memory_is_freed() {
    let Some(driver) = driver() else { return };
    let properties = driver.properties().clone();
    let (sizes, pinned, freed, compiled) = (HashMap::new(), Vec::new(), Vec::new(), Vec::new());
    let shared = Arc::new(Mutex::new(Shared { driver, sizes, pinned, freed, compiled }));
    let options = small();
    let watched = Watched { properties, shared: Arc::clone(&shared) };
    let mut device = Device::new(Box::new(watched), &options).unwrap();
    let mut rng = Rng::new(8);
    let suites = keys(&mut rng);
    for (at, keys) in suites.iter().enumerate() {
        device.set(u32::try_from(at).unwrap(), keys, at % 2 == 1).unwrap();
    }
    let cases: Vec<Case> = (0..12).map(|at| Case::random(&mut rng, &suites, at % 6, 200)).collect();
    for slot in 0..options.slots {
        fill(&mut device, slot, &cases[6 * slot..][..6]);
        run(&mut device, slot, Transform::Seal);
        run(&mut device, slot, Transform::Open);
    }
    let texts: Vec<&[u8]> = cases.iter().map(|case| &case.frame[HEADER..][..32]).collect();
    // All of it is there, so what is looked at is the right memory.
    let len = size_of::<DeviceKeys>();
    let key_block = |shared: &mut Shared| {
        let mut blocks = shared.sizes.iter().filter(|&(_, &size)| size == len * options.keys as usize);
        let (&block, _) = blocks.next().unwrap();
        shared.content(block)
    };
    let before = key_block(&mut shared.lock().unwrap());
    let places: Vec<&[u8]> = before.chunks(len).collect();
    assert!(places.iter().all(|keys| !is_zero(&keys[..64])));
    let all = shared.lock().unwrap().all();
    assert!(texts.iter().all(|text| have(&all, text)));
    // None stays where keys wait for their copy.
    let pinned: Vec<Vec<u8>> = shared.lock().unwrap().pinned.iter().map(read).collect();
    assert!(places.iter().all(|keys| !have(&pinned, &keys[..16])), "keys on their way");
    // Keys that are cleared are gone, and others are not.
    device.clear(2).unwrap();
    let after = key_block(&mut shared.lock().unwrap());
    for (at, (keys, known)) in after.chunks(len).zip(&places).enumerate() {
        assert!(if at == 2 { is_zero(keys) } else { keys == *known }, "keys {at}");
    }
    drop(device);
    let shared = shared.lock().unwrap();
    assert!(shared.sizes.is_empty() && shared.pinned.is_empty(), "all memory was freed");
    // Two blocks, and three of each slot; pinned memory for keys, and three pieces of each slot.
    assert_eq!(shared.freed.len(), 2 + 1 + 6 * options.slots);
    assert!(texts.iter().all(|text| !have(&shared.freed, text)), "frames");
    for keys in &places {
        // Round keys, and the powers of the hash key or the states of the HMAC.
        assert!(!have(&shared.freed, &keys[..16]) && !have(&shared.freed, &keys[256..272]), "keys");
    }
    let erased = |size: usize| {
        let pieces: Vec<_> = shared.freed.iter().filter(|piece| piece.len() == size).collect();
        assert!(pieces.iter().all(|piece| is_zero(piece)), "{size} bytes");
        pieces.len()
    };
    // The keys, and frames on the device and here.
    assert_eq!((erased(before.len()), erased(options.bytes)), (1, 2 * options.slots));
}
