//! [`Slot`]: pinned memory for a chunk, memory of the device for it, and the stream that they move on.

use wirespeed_gpu::GpuError;
use wirespeed_gpu::driver::{DevicePtr, Driver, Event, Pinned, Stream};

use super::layout::{ALIGN, Frame};

/// The work of a device on frames: both ways of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// Frames are encrypted and get their tags.
    Seal,
    /// Tags are checked, and frames whose tags are right are decrypted. The text of others becomes zeroes.
    Open,
}

/// The state of a slot's chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Frames are placed.
    Filling,
    /// The device has the chunk.
    UnderWay(Transform),
    /// The chunk is back.
    Done(Transform),
}

/// A chunk's memory, here and on the device.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) stream: Stream,
    pub(super) standing: Standing,
    /// Bytes of frames, and one byte for each frame's verdict.
    pub(super) bytes: Pinned,
    pub(super) verdicts: Pinned,
    /// Frames, as the kernels take them.
    pub(super) frames: Pinned,
    /// Where each frame begins, and how long it is with its tag.
    pub(super) spans: Vec<(usize, usize)>,
    pub(super) used: usize,
    /// Whether a frame has a tag of HMAC-SHA1.
    pub(super) has_hmac: bool,
    /// The state of the device's keys when the first frame came.
    pub(super) epoch: u64,
    /// The device's memory: bytes, frames, verdicts.
    pub(super) blocks: [DevicePtr; 3],
    /// The device's memory as it was allocated.
    pub(super) taken: Vec<DevicePtr>,
    /// Before and behind the kernels, and behind all.
    pub(super) events: [Event; 3],
}

impl Slot {
    /// Allocates for so many frames and bytes.
    pub(super) fn new(driver: &mut dyn Driver, frames: usize, bytes: usize) -> Result<Self, GpuError> {
        let bytes = bytes.next_multiple_of(ALIGN);
        let taken = driver.alloc(&[bytes, frames * size_of::<Frame>(), frames])?;
        // What fails behind this leaves memory to the driver, which frees it when it ends: with the device.
        let blocks = [taken[0], taken[1], taken[2]];
        Ok(Self {
            stream: driver.stream()?,
            standing: Standing::Filling,
            bytes: driver.alloc_pinned(bytes)?,
            verdicts: driver.alloc_pinned(frames)?,
            frames: driver.alloc_pinned(frames * size_of::<Frame>())?,
            spans: Vec::with_capacity(frames),
            used: 0,
            has_hmac: false,
            epoch: 0,
            blocks,
            taken,
            events: [driver.event(true)?, driver.event(true)?, driver.event(false)?],
        })
    }

    /// Empties the chunk.
    pub(super) fn clear(&mut self) {
        self.standing = Standing::Filling;
        self.spans.clear();
        (self.used, self.has_hmac) = (0, false);
    }
}
