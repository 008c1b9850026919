//! What runs kernels: the layer beneath which there is CUDA, or the host build of the same kernels.
//!
//! A [`Driver`] is one device as the owner of its context sees it: memory, streams, events, launches, graphs.
//! Nothing here knows of tables or keys. [`Cuda`] is a GPU. Tests have another, that runs the kernels on the
//! CPU in another process (the `wirespeed-kernels-host` crate), so that all above this line is tested on
//! machines without a GPU.
//!
//! Work goes to streams; each does its own in order, and [`Driver::record`] and [`Driver::wait`] order one
//! against another.

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

/// Work that was recorded once and is launched whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Graph(pub u64);

/// Memory of this process that the device can read and write, at full speed of the bus. At fixed places until
/// it is given back or its driver ends, whichever comes first.
#[derive(Clone, Copy, Debug)]
pub struct Pinned {
    /// Where it is for this process.
    pub host: *mut u8,
    /// Where it is for kernels.
    pub device: DevicePtr,
    /// Bytes.
    pub len: usize,
}

// SAFETY: it is an address and a length; whoever reads or writes through it argues for that there.
#[allow(unsafe_code)]
unsafe impl Send for Pinned {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Pinned {}

/// How many threads a launch has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Blocks.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
}

/// What a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Its name.
    pub name: String,
    /// Compute capability, such as (9, 0).
    pub capability: (u32, u32),
    /// Bytes of memory.
    pub memory: u64,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Most bytes of shared memory that a block can have.
    pub shared_per_block: u32,
    /// Bytes of L2.
    pub l2: u64,
    /// Where it is on the PCI bus, as `0000:3b:00.0`.
    pub bus: String,
}

/// One device. All calls come from one thread at a time; those that give work to a stream return before it is
/// done.
///
/// An error that means that the device is lost ([`GpuError::Lost`]) is for good: every later call fails too.
#[allow(unsafe_code)] // addresses and streams are the caller's to keep straight; each such method says what it counts on
pub trait Driver: Send {
    /// What it is.
    fn properties(&self) -> &Properties;

    /// Bytes of device memory that nobody has taken.
    fn free_memory(&mut self) -> Result<u64>;

    /// Takes device memory in one piece for blocks of so many bytes, each aligned to 256 bytes.
    /// [`GpuError::OutOfMemory`] has both sizes.
    fn alloc(&mut self, blocks: &[usize]) -> Result<Vec<DevicePtr>>;

    /// Gives back what one [`alloc`](Self::alloc) gave: all of its blocks.
    ///
    /// # Safety
    /// No work that uses them is under way.
    unsafe fn free(&mut self, blocks: &[DevicePtr]);

    /// Takes pinned memory, readable by the CPU at full speed, zeroed.
    fn alloc_pinned(&mut self, bytes: usize) -> Result<Pinned>;

    /// Gives pinned memory back.
    ///
    /// # Safety
    /// Nobody uses it any more, here or there.
    unsafe fn free_pinned(&mut self, memory: Pinned);

    /// A new stream.
    fn stream(&mut self) -> Result<Stream>;

    /// A new event; `timed` ones can be asked for the time between them.
    fn event(&mut self, timed: bool) -> Result<Event>;

    /// Copies to the device.
    ///
    /// # Safety
    /// `from` is good for `bytes` and stays so, unchanged, until the copy is done; so is `to` on the device.
    /// Memory that isn't pinned makes this wait until it is read.
    unsafe fn copy_in(&mut self, stream: Stream, to: DevicePtr, from: *const u8, bytes: usize) -> Result<()>;

    /// Copies from the device.
    ///
    /// # Safety
    /// As [`copy_in`](Self::copy_in), the other way.
    unsafe fn copy_out(&mut self, stream: Stream, to: *mut u8, from: DevicePtr, bytes: usize) -> Result<()>;

    /// Copies from one place on the device to another.
    ///
    /// # Safety
    /// Both are good for `bytes` until the copy is done.
    unsafe fn copy_within(
        &mut self,
        stream: Stream,
        to: DevicePtr,
        from: DevicePtr,
        bytes: usize,
    ) -> Result<()>;

    /// Launches a kernel with its two arguments, plain structs as the kernel's source has them. They are
    /// copied.
    ///
    /// # Safety
    /// The arguments are what the kernel takes, and all that they point to stays good until it is done.
    unsafe fn launch(
        &mut self,
        stream: Stream,
        kernel: &Kernel,
        shape: Shape,
        arguments: [&[u8]; 2],
    ) -> Result<()>;

    /// How many blocks of so many threads with so much shared memory a multiprocessor holds at once; 0 where
    /// one is too many.
    fn blocks_per_multiprocessor(&mut self, kernel: &Kernel, threads: u32, shared: u32) -> Result<u32>;

    /// Sets an event to the end of what the stream has to do by now.
    fn record(&mut self, event: Event, stream: Stream) -> Result<()>;

    /// Lets the stream's further work wait for an event as it was last recorded. One never recorded is not
    /// waited for.
    fn wait(&mut self, stream: Stream, event: Event) -> Result<()>;

    /// Whether an event has come. An event never recorded has.
    fn is_done(&mut self, event: Event) -> Result<bool>;

    /// Milliseconds from one timed event to another; both have come.
    fn elapsed_ms(&mut self, from: Event, to: Event) -> Result<f32>;

    /// Waits until a stream has done all its work.
    fn synchronize(&mut self, stream: Stream) -> Result<()>;

    /// Begins to record the stream's work instead of doing it.
    fn begin_capture(&mut self, stream: Stream) -> Result<()>;

    /// Ends that, and makes a graph of what was recorded: copies and launches with the arguments they had.
    fn end_capture(&mut self, stream: Stream) -> Result<Graph>;

    /// Does a graph's work on a stream.
    ///
    /// # Safety
    /// As for each call that it was recorded from.
    unsafe fn replay(&mut self, graph: Graph, stream: Stream) -> Result<()>;

    /// Drops a graph.
    fn drop_graph(&mut self, graph: Graph);
}
