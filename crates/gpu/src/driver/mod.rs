//! Drivers run kernels: CUDA, or the host build of the same kernels.
//!
//! A [`Driver`] is one device with its memory, streams, events, launches and graphs. It knows neither tables
//! nor keys. [`Cuda`] is a GPU. Tests use another driver, which runs the kernels on the CPU in another
//! process (the `wirespeed-kernels-host` crate). So all code above drivers is tested on machines without a
//! GPU.
//!
//! Work goes to streams. Each stream does its work in order. [`Driver::record`] and [`Driver::wait`] order
//! the work of different streams.

pub mod batches;
mod cuda;
pub mod writers;

pub use cuda::{Cuda, devices};
pub use wirespeed_image::device::{DevicePtr, Kernel};

use crate::error::GpuError;

type Result<T> = std::result::Result<T, GpuError>;

/// A stream of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream(pub u64);

/// An event of a driver: a point in a stream's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event(pub u64);

/// Work that was recorded once and is launched as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Graph(pub u64);

/// Memory of this process that the device can read and write at the full speed of the bus. It stays at its
/// address until it is given back or its driver ends.
#[derive(Clone, Copy, Debug)]
pub struct Pinned {
    /// The address for this process.
    pub host: *mut u8,
    /// The address for kernels.
    pub device: DevicePtr,
    /// The number of bytes.
    pub len: usize,
}

// SAFETY: it is an address and a length; whoever reads or writes through it argues for that there.
#[allow(unsafe_code)]
unsafe impl Send for Pinned {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Pinned {}

/// The number of threads of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The number of blocks of a row.
    pub blocks: u32,
    /// The number of rows of blocks. A lookup has a row for each of its batches, other kernels have one.
    pub rows: u32,
    /// The number of threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
}

impl Shape {
    /// One row of blocks.
    pub const fn row(blocks: u32, threads: u32, shared: u32) -> Self {
        Self { blocks, rows: 1, threads, shared }
    }
}

/// The properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// The device's name.
    pub name: String,
    /// Compute capability, such as (9, 0).
    pub capability: (u32, u32),
    /// Bytes of memory.
    pub memory: u64,
    /// The number of multiprocessors.
    pub multiprocessors: u32,
    /// The most bytes of shared memory that a block can use.
    pub shared_per_block: u32,
    /// Bytes of L2.
    pub l2: u64,
    /// The address on the PCI bus, such as `0000:3b:00.0`.
    pub bus: String,
}

/// One device. All calls come from one thread at a time. Calls that give work to a stream return before the
/// work is done.
///
/// After an error that says that the device is lost ([`GpuError::Lost`]) every later call fails, too.
#[allow(unsafe_code)] // addresses and streams are the caller's to keep straight; each such method says what it counts on
pub trait Driver: Send {
    /// The properties of the device.
    fn properties(&self) -> &Properties;

    /// Bytes of free device memory.
    fn free_memory(&mut self) -> Result<u64>;

    /// Allocates device memory in one piece for blocks of these sizes, each aligned to 256 bytes.
    /// [`GpuError::OutOfMemory`] states the needed and the free bytes.
    fn alloc(&mut self, blocks: &[usize]) -> Result<Vec<DevicePtr>>;

    /// Frees all blocks of one [`alloc`](Self::alloc).
    ///
    /// # Safety
    /// No work that uses them is under way.
    unsafe fn free(&mut self, blocks: &[DevicePtr]);

    /// Allocates pinned memory, zeroed, which the CPU can read at full speed.
    fn alloc_pinned(&mut self, bytes: usize) -> Result<Pinned>;

    /// Frees pinned memory.
    ///
    /// # Safety
    /// Neither this process nor the device uses it any more.
    unsafe fn free_pinned(&mut self, memory: Pinned);

    /// Makes a stream.
    fn stream(&mut self) -> Result<Stream>;

    /// Makes an event. The time between two `timed` events can be measured.
    fn event(&mut self, timed: bool) -> Result<Event>;

    /// Copies to the device.
    ///
    /// # Safety
    /// `from` is valid for `bytes` bytes and stays unchanged until the copy is done; so does `to` on the
    /// device. A copy of memory that is not pinned waits until the memory has been read.
    unsafe fn copy_in(&mut self, stream: Stream, to: DevicePtr, from: *const u8, bytes: usize) -> Result<()>;

    /// Copies from the device.
    ///
    /// # Safety
    /// Like [`copy_in`](Self::copy_in), in the other direction.
    unsafe fn copy_out(&mut self, stream: Stream, to: *mut u8, from: DevicePtr, bytes: usize) -> Result<()>;

    /// Copies within the device.
    ///
    /// # Safety
    /// Both are valid for `bytes` bytes until the copy is done.
    unsafe fn copy_within(
        &mut self,
        stream: Stream,
        to: DevicePtr,
        from: DevicePtr,
        bytes: usize,
    ) -> Result<()>;

    /// Launches a kernel with its two arguments, plain structs in the layout of the kernel's source. The
    /// arguments are copied.
    ///
    /// # Safety
    /// The arguments are of the types that the kernel takes, and the memory that they point to stays valid
    /// until the kernel is done.
    unsafe fn launch(
        &mut self,
        stream: Stream,
        kernel: &Kernel,
        shape: Shape,
        arguments: [&[u8]; 2],
    ) -> Result<()>;

    /// The number of blocks with this many threads and bytes of shared memory that a multiprocessor runs at
    /// once. 0 if a single block is too large.
    fn blocks_per_multiprocessor(&mut self, kernel: &Kernel, threads: u32, shared: u32) -> Result<u32>;

    /// Sets an event to the end of the stream's work so far.
    fn record(&mut self, event: Event, stream: Stream) -> Result<()>;

    /// Makes the stream's further work wait for the last recording of an event. An event that was never
    /// recorded is not waited for.
    fn wait(&mut self, stream: Stream, event: Event) -> Result<()>;

    /// Whether the work before an event is done. True for an event that was never recorded.
    fn is_done(&mut self, event: Event) -> Result<bool>;

    /// Milliseconds between two timed events whose work is done.
    fn elapsed_ms(&mut self, from: Event, to: Event) -> Result<f32>;

    /// Waits until all work of a stream is done.
    fn synchronize(&mut self, stream: Stream) -> Result<()>;

    /// Starts to record the stream's work instead of doing it.
    fn begin_capture(&mut self, stream: Stream) -> Result<()>;

    /// Ends the recording, and makes a graph of the copies and launches with their arguments.
    fn end_capture(&mut self, stream: Stream) -> Result<Graph>;

    /// Does the work of a graph on a stream.
    ///
    /// # Safety
    /// Like each recorded call.
    unsafe fn replay(&mut self, graph: Graph, stream: Stream) -> Result<()>;

    /// Drops a graph.
    fn drop_graph(&mut self, graph: Graph);
}
