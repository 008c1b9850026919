//! A GPU, through the CUDA driver.
//!
//! The driver is opened at run time: a machine without a driver gets [`GpuError::NoDriver`]. All calls use
//! the raw interface (`cudarc::driver::sys`). The safe interface above it records an event at every use of a
//! slice, sleeps on events, and has neither mapped memory nor the PTX compiler's log.
//!
//! `unsafe` is used for foreign calls. Each call gets handles that this driver made and has not destroyed,
//! and places on the stack for results. A method that passes a caller's memory is unsafe itself.

#![allow(unsafe_code)]

mod devices;
mod error;
mod modules;

use std::collections::{BTreeMap, HashMap};
use std::ffi::{c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::{self, CUresult};

pub use devices::devices;

use super::{DevicePtr, Driver, Event, Graph, Kernel, Pinned, Properties, Result, Shape, Stream};
use crate::error::GpuError;
use devices::{count, device, properties_of};
use error::call;
use modules::Function;

/// The architecture of the kernels' PTX.
const NEEDED_CAPABILITY: (u32, u32) = (7, 0);
/// Alignment of a block of memory.
const ALIGN: usize = 256;

/// Kept while graphs are made or destroyed and while memory is freed.
///
/// All that open a GPU in a process share its primary context. The driver may be called from many threads,
/// but a call that waited for the whole context crashed in `libcuda` while another thread made a graph
/// (driver 580). Freeing memory may wait for the context, too. None of these calls is in the way of a batch.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    // It guards no data, so a thread that panicked has left nothing half done.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A GPU.
#[derive(Debug)]
pub struct Cuda {
    device: sys::CUdevice,
    context: sys::CUcontext,
    properties: Properties,
    lost: Option<GpuError>,
    modules: BTreeMap<&'static str, sys::CUmodule>,
    functions: HashMap<Kernel, Function>,
    /// Allocations by their address.
    taken: HashMap<DevicePtr, sys::CUdeviceptr>,
    pinned: HashMap<DevicePtr, *mut c_void>,
    streams: Vec<Stream>,
    events: Vec<Event>,
}

// SAFETY: handles of the driver may be used from any thread, one at a time, where the context is current;
// `bind` sees to that.
unsafe impl Send for Cuda {}

impl Cuda {
    /// Opens a GPU by its number. Uses its primary context, which other users in the process share.
    pub fn open(number: usize) -> Result<Self> {
        let there = count()?;
        if number >= there {
            return Err(GpuError::NoSuchDevice { asked: number, there });
        }
        let properties = properties_of(number)?;
        if properties.capability < NEEDED_CAPABILITY {
            let (name, found) = (properties.name, properties.capability);
            return Err(GpuError::DeviceTooOld { name, found, needed: NEEDED_CAPABILITY });
        }
        let device = device(number)?;
        let mut context = ptr::null_mut();
        // SAFETY: see the head.
        call("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut context, device) })?;
        Ok(Self {
            device,
            context,
            properties,
            lost: None,
            modules: BTreeMap::new(),
            functions: HashMap::new(),
            taken: HashMap::new(),
            pinned: HashMap::new(),
            streams: Vec::new(),
            events: Vec::new(),
        })
    }

    /// Makes the context current on this thread. Fails if the device is lost.
    fn bind(&mut self) -> Result<()> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        // This is done for each call, because the thread may have used another GPU in between: some 20 ns.
        // SAFETY: see the head.
        self.check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.context) })
    }

    /// Converts the result of a call, and remembers an error that means that the device is lost.
    fn check(&mut self, name: &'static str, result: CUresult) -> Result<()> {
        let checked = call(name, result);
        if let Err(error) = &checked
            && error.is_fatal()
        {
            self.lost = Some(error.clone());
        }
        checked
    }
}

impl Driver for Cuda {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn free_memory(&mut self) -> Result<u64> {
        self.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: see the head.
        self.check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) })?;
        Ok(free as u64)
    }

    fn alloc(&mut self, blocks: &[usize]) -> Result<Vec<DevicePtr>> {
        self.bind()?;
        let mut ends = 0;
        let offsets: Vec<u64> = blocks
            .iter()
            .map(|&bytes| {
                let start = ends;
                ends += bytes.max(1).next_multiple_of(ALIGN);
                start as u64
            })
            .collect();
        if ends == 0 {
            return Ok(Vec::new());
        }
        let mut base = 0;
        // SAFETY: see the head.
        let result = unsafe { sys::cuMemAlloc_v2(&raw mut base, ends) };
        if result == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return Err(GpuError::OutOfMemory { needed: ends as u64, free: self.free_memory()? });
        }
        self.check("cuMemAlloc", result)?;
        self.taken.insert(DevicePtr(base), base);
        Ok(offsets.into_iter().map(|offset| DevicePtr(base).plus(offset)).collect())
    }

    unsafe fn free(&mut self, blocks: &[DevicePtr]) {
        let Some(base) = blocks.first().and_then(|first| self.taken.remove(first)) else {
            return;
        };
        if self.bind().is_ok() {
            let freed = {
                let _alone = alone();
                // SAFETY: the caller promises that nothing uses it. Where it fails the device is lost, and
                // its memory with it.
                unsafe { sys::cuMemFree_v2(base) }
            };
            let _ = self.check("cuMemFree", freed);
        }
    }

    fn alloc_pinned(&mut self, bytes: usize) -> Result<Pinned> {
        self.bind()?;
        let failed = |error: GpuError| match error {
            GpuError::Call { why, .. } => GpuError::Pinned { needed: bytes as u64, why },
            lost => lost,
        };
        let (mut host, mut mapped) = (ptr::null_mut(), 0);
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: see the head.
        let result = unsafe { sys::cuMemHostAlloc(&raw mut host, bytes.max(1), flags) };
        self.check("cuMemHostAlloc", result).map_err(failed)?;
        // SAFETY: see the head; the memory was just taken with that flag.
        let result = unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut mapped, host, 0) };
        self.check("cuMemHostGetDevicePointer", result)?;
        // SAFETY: it is ours and that long.
        unsafe { ptr::write_bytes(host.cast::<u8>(), 0, bytes) };
        self.pinned.insert(DevicePtr(mapped), host);
        Ok(Pinned { host: host.cast(), device: DevicePtr(mapped), len: bytes })
    }

    unsafe fn free_pinned(&mut self, memory: Pinned) {
        let Some(host) = self.pinned.remove(&memory.device) else {
            return;
        };
        if self.bind().is_ok() {
            let freed = {
                let _alone = alone();
                // SAFETY: the caller promises that nobody uses it.
                unsafe { sys::cuMemFreeHost(host) }
            };
            let _ = self.check("cuMemFreeHost", freed);
        }
    }

    fn stream(&mut self) -> Result<Stream> {
        self.bind()?;
        let mut stream = ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;
        // SAFETY: see the head.
        self.check("cuStreamCreate", unsafe { sys::cuStreamCreate(&raw mut stream, flags) })?;
        let stream = Stream(stream.expose_provenance() as u64);
        self.streams.push(stream);
        Ok(stream)
    }

    fn event(&mut self, timed: bool) -> Result<Event> {
        self.bind()?;
        let mut event = ptr::null_mut();
        let flags = match timed {
            true => sys::CUevent_flags::CU_EVENT_DEFAULT,
            false => sys::CUevent_flags::CU_EVENT_DISABLE_TIMING,
        };
        // SAFETY: see the head.
        self.check("cuEventCreate", unsafe { sys::cuEventCreate(&raw mut event, flags as c_uint) })?;
        let event = Event(event.expose_provenance() as u64);
        self.events.push(event);
        Ok(event)
    }

    unsafe fn copy_in(&mut self, on: Stream, to: DevicePtr, from: *const u8, bytes: usize) -> Result<()> {
        self.bind()?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller's.
        let result = unsafe { sys::cuMemcpyHtoDAsync_v2(to.0, from.cast(), bytes, stream(on)) };
        self.check("cuMemcpyHtoDAsync", result)
    }

    unsafe fn copy_out(&mut self, on: Stream, to: *mut u8, from: DevicePtr, bytes: usize) -> Result<()> {
        self.bind()?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller's.
        let result = unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from.0, bytes, stream(on)) };
        self.check("cuMemcpyDtoHAsync", result)
    }

    unsafe fn copy_within(&mut self, on: Stream, to: DevicePtr, from: DevicePtr, bytes: usize) -> Result<()> {
        self.bind()?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller's.
        let result = unsafe { sys::cuMemcpyDtoDAsync_v2(to.0, from.0, bytes, stream(on)) };
        self.check("cuMemcpyDtoDAsync", result)
    }

    unsafe fn launch(
        &mut self,
        on: Stream,
        kernel: &Kernel,
        shape: Shape,
        arguments: [&[u8]; 2],
    ) -> Result<()> {
        self.bind()?;
        let function = self.function(kernel, shape.shared)?;
        let mut places = arguments.map(|argument| argument.as_ptr().cast::<c_void>().cast_mut());
        // SAFETY: the caller promises that the arguments are what the kernel takes; the driver copies them
        // before it returns.
        let result = unsafe {
            sys::cuLaunchKernel(
                function,
                shape.blocks,
                shape.rows,
                1,
                shape.threads,
                1,
                1,
                shape.shared,
                stream(on),
                places.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        self.check("cuLaunchKernel", result)
    }

    fn blocks_per_multiprocessor(&mut self, kernel: &Kernel, threads: u32, shared: u32) -> Result<u32> {
        self.bind()?;
        if shared > self.properties.shared_per_block {
            return Ok(0);
        }
        let function = self.function(kernel, shared)?;
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        let mut most = 0;
        // SAFETY: see the head.
        let result = unsafe { sys::cuFuncGetAttribute(&raw mut most, attribute, function) };
        self.check("cuFuncGetAttribute", result)?;
        // The occupancy of blocks that a launch would refuse is not reported as 0.
        if threads > most.unsigned_abs() {
            return Ok(0);
        }
        let mut blocks = 0;
        // SAFETY: see the head.
        let result = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                function,
                int(threads),
                shared as usize,
            )
        };
        self.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", result)?;
        Ok(blocks.unsigned_abs())
    }

    fn record(&mut self, point: Event, on: Stream) -> Result<()> {
        self.bind()?;
        // SAFETY: see the head.
        self.check("cuEventRecord", unsafe { sys::cuEventRecord(event(point), stream(on)) })
    }

    fn wait(&mut self, on: Stream, point: Event) -> Result<()> {
        self.bind()?;
        // SAFETY: see the head.
        self.check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(stream(on), event(point), 0) })
    }

    fn is_done(&mut self, point: Event) -> Result<bool> {
        self.bind()?;
        // SAFETY: see the head.
        match unsafe { sys::cuEventQuery(event(point)) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            result => self.check("cuEventQuery", result).map(|()| true),
        }
    }

    fn elapsed_ms(&mut self, from: Event, to: Event) -> Result<f32> {
        self.bind()?;
        let mut elapsed = MaybeUninit::uninit();
        // SAFETY: see the head.
        let result = unsafe { sys::cuEventElapsedTime(elapsed.as_mut_ptr(), event(from), event(to)) };
        self.check("cuEventElapsedTime", result)?;
        // SAFETY: a call that succeeds has written it.
        Ok(unsafe { elapsed.assume_init() })
    }

    fn synchronize(&mut self, on: Stream) -> Result<()> {
        self.bind()?;
        // SAFETY: see the head.
        self.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(stream(on)) })
    }

    fn begin_capture(&mut self, on: Stream) -> Result<()> {
        self.bind()?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: see the head.
        self.check("cuStreamBeginCapture", unsafe { sys::cuStreamBeginCapture_v2(stream(on), mode) })
    }

    fn end_capture(&mut self, on: Stream) -> Result<Graph> {
        self.bind()?;
        let (mut recorded, mut ready) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: see the head.
        let result = unsafe { sys::cuStreamEndCapture(stream(on), &raw mut recorded) };
        self.check("cuStreamEndCapture", result)?;
        let alone = alone();
        // SAFETY: see the head.
        let result = unsafe { sys::cuGraphInstantiateWithFlags(&raw mut ready, recorded, 0) };
        let made = self.check("cuGraphInstantiate", result);
        // SAFETY: it was just recorded, and what was made of it stands alone.
        let destroyed = unsafe { sys::cuGraphDestroy(recorded) };
        drop(alone);
        made?;
        self.check("cuGraphDestroy", destroyed)?;
        Ok(Graph(ready.expose_provenance() as u64))
    }

    unsafe fn replay(&mut self, work: Graph, on: Stream) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller's.
        self.check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(graph(work), stream(on)) })
    }

    fn drop_graph(&mut self, work: Graph) {
        if self.bind().is_ok() {
            let result = {
                let _alone = alone();
                // SAFETY: see the head. The driver keeps what is still running.
                unsafe { sys::cuGraphExecDestroy(graph(work)) }
            };
            let _ = self.check("cuGraphExecDestroy", result);
        }
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // An error here has occurred before, and a lost device has nothing to give back.
        if self.bind().is_ok() {
            // SAFETY: see the head. Nothing is used after it is destroyed: all work is waited for first. That
            // of callers' streams has an event here.
            unsafe {
                let mut waited = self
                    .streams
                    .iter()
                    .map(|&on| sys::cuStreamSynchronize(stream(on)))
                    .chain(self.events.iter().map(|&point| sys::cuEventSynchronize(event(point))));
                if waited.all(|result| result == CUresult::CUDA_SUCCESS) {
                    let _alone = alone();
                    for (_, host) in self.pinned.drain() {
                        let _ = sys::cuMemFreeHost(host);
                    }
                    for (_, base) in self.taken.drain() {
                        let _ = sys::cuMemFree_v2(base);
                    }
                    for &point in &self.events {
                        let _ = sys::cuEventDestroy_v2(event(point));
                    }
                    for &on in &self.streams {
                        let _ = sys::cuStreamDestroy_v2(stream(on));
                    }
                    for &module in self.modules.values() {
                        let _ = sys::cuModuleUnload(module);
                    }
                }
            }
        }
        // SAFETY: see the head. It was retained once.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// Converts a number to the signed type of the driver. It is far below the limit.
fn int(number: u32) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}

fn stream(stream: Stream) -> sys::CUstream {
    ptr::with_exposed_provenance_mut(handle(stream.0))
}

fn event(event: Event) -> sys::CUevent {
    ptr::with_exposed_provenance_mut(handle(event.0))
}

fn graph(graph: Graph) -> sys::CUgraphExec {
    ptr::with_exposed_provenance_mut(handle(graph.0))
}

/// Converts a handle to an address.
fn handle(number: u64) -> usize {
    usize::try_from(number).expect("the driver is there for 64-bit machines only")
}
