//! The made-up device as a driver: calls are counted, and their work queued.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use wirespeed_gpu::GpuError;
use wirespeed_gpu::driver::batches::KernelBatch;
use wirespeed_gpu::driver::{DevicePtr, Driver, Event, Graph, Kernel, Pinned, Properties, Shape, Stream};

use super::work::{KERNELS, Op, Place, Row, is_patch};
use super::{Fake, Result};

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
        self.control.is_at_gate.store(true, Ordering::SeqCst);
        drop(self.control.gate.lock().unwrap());
        if self.launches == self.control.refuse_launch.load(Ordering::SeqCst) {
            return Err(GpuError::Call { call: "launch", why: "as the test wants it".into() });
        }
        if !KERNELS.contains(&kernel.name.as_str()) {
            return Err(GpuError::NoKernel(kernel.name.clone()));
        }
        let [first, second] = arguments;
        // Of the batches of a lookup each is a row's, which sees no other.
        let each = if is_patch(&kernel.name) { first.len() } else { size_of::<KernelBatch>() };
        let parts: Vec<_> = first.chunks_exact(each).take(shape.rows as usize).collect();
        if shape.blocks == 0
            || shape.rows == 0
            || parts.len() != shape.rows as usize
            || !(1..=1024).contains(&shape.threads)
            || shape.shared > 100 << 10
        {
            self.control.note(format!("{shape:?}"));
        }
        *self.control.launches.lock().unwrap().entry(kernel.name.clone()).or_default() += 1;
        let row = |part: &&[u8]| Row {
            kernel: kernel.name.clone(),
            blocks: shape.blocks,
            arguments: [part.to_vec(), second.to_vec()],
            done: 0,
            announced: 0,
        };
        self.give(stream, Op::Launch(parts.iter().map(row).collect()));
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
        if self.control.spoils_recording.swap(false, Ordering::SeqCst) {
            let why = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED".into();
            return Err(GpuError::Call { call: "cuStreamEndCapture", why });
        }
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
