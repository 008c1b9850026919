//! [`Device`]: keys on a GPU, and chunks of frames on their way through it.

#![allow(unsafe_code)] // memory of the driver, by address

use std::fmt;
use std::time::Duration;

use bytemuck::{Zeroable, bytes_of, cast_slice};
use wirespeed_gpu::GpuError;
use wirespeed_gpu::driver::{DevicePtr, Driver, Pinned, Shape, Stream};

use super::aes;
use super::chunk::Chunk;
use super::keys::Prepared;
use super::layout::{ChunkArgument, DeviceKeys, Frame, POWERS, SHARED, WorkArgument, kernel};
use super::slot::{Slot, Standing, Transform};
use crate::crypto::Keys;
use crate::error::Error;

/// Threads of a multiprocessor that ciphers keep busy: their registers allow no more.
const THREADS: u32 = 768;
/// Threads of a block of ciphers, the most first. The table of AES is made once a block, so large blocks are
/// better, unless some multiprocessors would get none.
const BLOCKS: [u32; 2] = [256, 128];
/// Threads of a block of HMAC, which is serial in a frame: one warp, so that few frames go to many
/// multiprocessors.
const HMAC_THREADS: u32 = 32;

/// All kernels.
const KERNELS: [&str; 4] = ["esp_seal", "esp_sha1_seal", "esp_sha1_open", "esp_open"];

/// The capacities of a [`Device`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Places for keys: one for each security association.
    pub keys: u32,
    /// Chunks that can be under way at once.
    pub slots: usize,
    /// The most frames of a chunk.
    pub frames: usize,
    /// The most bytes of a chunk. Each frame takes a multiple of 16.
    pub bytes: usize,
    /// Threads that work on a frame: 4, 8, 16 or 32. `None` decides for each chunk, by the mean length of its
    /// frames.
    pub lanes: Option<usize>,
}

impl Default for Options {
    /// 1,024 associations, and four chunks of 2 MB and at most 16,384 frames.
    fn default() -> Self {
        Self { keys: 1024, slots: 4, frames: 16_384, bytes: 2 << 20, lanes: None }
    }
}

/// The fewest lanes of a frame.
const LANES: usize = 4;

impl Options {
    pub(super) fn check(&self) -> Result<(), Error> {
        let within = |option, found, least, most| match found {
            found if (least..=most).contains(&found) => Ok(()),
            found => Err(Error::Option { option, found, least, most }),
        };
        within("keys", usize::try_from(self.keys).unwrap_or(usize::MAX), 1, 1 << 20)?;
        within("slots", self.slots, 1, 64)?;
        within("frames", self.frames, 1, 1 << 22)?;
        within("bytes", self.bytes, 64, 1 << 30)?;
        match self.lanes {
            Some(found) if !found.is_power_of_two() || !(LANES..=POWERS).contains(&found) => {
                Err(Error::Lanes { found, least: LANES, most: POWERS })
            }
            _ => Ok(()),
        }
    }
}

/// A GPU that seals and opens ESP frames. Its copies of keys and its frames are overwritten when it is
/// dropped.
pub struct Device {
    driver: Box<dyn Driver>,
    stream: Stream,
    slots: Vec<Slot>,
    /// Keys, and the table of AES.
    blocks: Vec<DevicePtr>,
    /// Keys on their way to the device. The driver would copy them from other memory through some of its own,
    /// which nobody overwrites.
    staging: Pinned,
    /// Bytes of the tag of each keys' frames; none where there are no keys.
    tags: Vec<Option<usize>>,
    /// The number of times that keys were set or cleared.
    epoch: u64,
    lanes: Option<usize>,
}

impl Device {
    /// Allocates memory for keys and chunks. Fails if an option is out of its limits, or if the driver has
    /// not enough memory.
    pub fn new(mut driver: Box<dyn Driver>, options: &Options) -> Result<Self, Error> {
        options.check()?;
        // A driver compiles kernels at their first use, for a tenth of a second and more: no packet waits for
        // it.
        for name in KERNELS {
            driver.blocks_per_multiprocessor(&kernel(name), HMAC_THREADS, 0)?;
        }
        let stream = driver.stream()?;
        let keys = vec![0_u8; size_of::<DeviceKeys>() * options.keys as usize];
        let table = aes::rounds_table();
        let blocks = driver.alloc(&[keys.len(), size_of_val(&table)])?;
        for (&to, bytes) in blocks.iter().zip([&keys[..], cast_slice(&table)]) {
            // SAFETY: the block was allocated with this length, and the source lives until the copy is waited
            // for.
            unsafe { driver.copy_in(stream, to, bytes.as_ptr(), bytes.len()) }?;
            driver.synchronize(stream)?;
        }
        let staging = driver.alloc_pinned(size_of::<DeviceKeys>())?;
        let slot = |_| Slot::new(&mut *driver, options.frames, options.bytes);
        let slots = (0..options.slots).map(slot).collect::<Result<Vec<_>, _>>()?;
        let tags = vec![None; options.keys as usize];
        Ok(Self { driver, stream, slots, blocks, staging, tags, epoch: 0, lanes: options.lanes })
    }

    /// Puts keys at a number. Waits for all chunks that are under way. `is_extended` says that sequence
    /// numbers have 64 bits.
    ///
    /// Fails if a key has a wrong length, if the suite is not for devices, or if there is no such number.
    pub fn set(&mut self, number: u32, keys: &Keys, is_extended: bool) -> Result<(), Error> {
        let prepared = Prepared::new(keys, is_extended)?;
        self.write(number, &prepared.keys, Some(prepared.tag))
    }

    /// Overwrites the keys at a number. Waits for all chunks that are under way. Fails if there is no such
    /// number.
    pub fn clear(&mut self, number: u32) -> Result<(), Error> {
        self.write(number, &DeviceKeys::zeroed(), None)
    }

    fn write(&mut self, number: u32, keys: &DeviceKeys, tag: Option<usize>) -> Result<(), Error> {
        let most = u32::try_from(self.tags.len()).unwrap_or(u32::MAX);
        let tags = usize::try_from(number).ok().and_then(|at| self.tags.get_mut(at));
        let kept = tags.ok_or(Error::KeysNumber { asked: number, most })?;
        // Until the new ones are there, there are none.
        *kept = None;
        self.epoch += 1;
        for slot in &self.slots {
            self.driver.synchronize(slot.stream)?;
        }
        let to = self.blocks[0].plus(u64::from(number) * size_of::<DeviceKeys>() as u64);
        // SAFETY: 1. The staging memory is that of one `DeviceKeys`, begins at a page, and only this function
        // uses it, one call at a time. 2. There are keys of this length at each number below `most`. 3. No
        // kernel reads them meanwhile: all streams were waited for. 4. The copy is waited for before the
        // source is overwritten; where that fails the device is lost.
        let copied = unsafe {
            self.staging.host.cast::<DeviceKeys>().write(*keys);
            let copied = self.driver.copy_in(self.stream, to, self.staging.host, size_of::<DeviceKeys>());
            let copied = copied.and_then(|()| self.driver.synchronize(self.stream));
            self.staging.host.write_bytes(0, size_of::<DeviceKeys>());
            copied
        };
        copied?;
        *kept = tag;
        Ok(())
    }

    /// The number of places for keys.
    #[must_use]
    pub fn places(&self) -> u32 {
        // The options limit them.
        u32::try_from(self.tags.len()).unwrap_or(u32::MAX)
    }

    /// The number of slots.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The chunk of a slot. Fails if it is under way, or if there is no such slot.
    pub fn chunk(&mut self, slot: usize) -> Result<Chunk<'_>, Error> {
        let there = self.slots.len();
        let found = self.slots.get_mut(slot).ok_or(Error::NoSlot { asked: slot, there })?;
        match found.standing {
            Standing::UnderWay(_) => Err(Error::UnderWay(slot)),
            _ => Ok(Chunk { slot: found, tags: &self.tags, epoch: self.epoch }),
        }
    }

    /// Gives a chunk to the device, and returns before its work is done. What was sealed may be opened as it
    /// came back, and the other way round.
    ///
    /// Fails if the slot is under way, or if its frames have had the same transform before: sealed twice,
    /// they would be clear. Fails, too, if keys were set or cleared since its first frame was placed: no
    /// frame is sealed by keys that it was not made for.
    pub fn start(&mut self, slot: usize, transform: Transform) -> Result<(), Error> {
        let at = slot;
        let epoch = self.chunk(at)?.slot.epoch;
        let slot = &mut self.slots[at];
        if slot.spans.is_empty() {
            slot.standing = Standing::Done(transform);
            return Ok(());
        }
        if slot.standing == Standing::Done(transform) {
            return Err(Error::Twice(at));
        }
        if epoch != self.epoch {
            return Err(Error::KeysChanged);
        }
        // Before the first call: what fails later may have left work under way.
        slot.standing = Standing::UnderWay(transform);
        let launches = Launches::new(slot, self.driver.properties().multiprocessors, self.lanes, transform);
        let [bytes, frames, verdicts] = slot.blocks;
        let count = slot.spans.len();
        let argument =
            ChunkArgument { bytes: bytes.0, frames: frames.0, verdicts: verdicts.0, count: count as u64 };
        let work =
            WorkArgument { keys: self.blocks[0].0, table: self.blocks[1].0, lanes: launches.lanes.into() };
        // SAFETY: 1. Each block on the device, and each piece of pinned memory, was allocated for the most
        // frames and bytes, which `place` keeps to. 2. Nobody writes to or reads the pinned memory until the
        // slot is waited for: `chunk` refuses. 3. The memory is freed when the device is dropped, which waits
        // before. 4. The arguments are those of the kernels; each frame's keys are among the places, lie
        // there since the frame was placed, and its bytes among those copied.
        unsafe {
            let driver = &mut self.driver;
            driver.copy_in(slot.stream, frames, slot.frames.host, count * size_of::<Frame>())?;
            driver.copy_in(slot.stream, bytes, slot.bytes.host, slot.used)?;
            driver.record(slot.events[0], slot.stream)?;
            for (name, shape) in launches.kernels.iter().flatten() {
                driver.launch(slot.stream, &kernel(name), *shape, [bytes_of(&argument), bytes_of(&work)])?;
            }
            driver.record(slot.events[1], slot.stream)?;
            driver.copy_out(slot.stream, slot.bytes.host, bytes, slot.used)?;
            if transform == Transform::Open {
                driver.copy_out(slot.stream, slot.verdicts.host, verdicts, count)?;
            }
            driver.record(slot.events[2], slot.stream)?;
        }
        Ok(())
    }

    /// Whether a slot's chunk is back, without waiting for it. Fails if the device does, or if there is no
    /// such slot.
    pub fn is_done(&mut self, slot: usize) -> Result<bool, Error> {
        let there = self.slots.len();
        let slot = self.slots.get_mut(slot).ok_or(Error::NoSlot { asked: slot, there })?;
        let Standing::UnderWay(transform) = slot.standing else { return Ok(true) };
        let is_done = self.driver.is_done(slot.events[2])?;
        if is_done {
            slot.standing = Standing::Done(transform);
        }
        Ok(is_done)
    }

    /// Waits for a slot's chunk. Fails if the device does, or if there is no such slot.
    pub fn wait(&mut self, slot: usize) -> Result<(), Error> {
        let there = self.slots.len();
        let slot = self.slots.get_mut(slot).ok_or(Error::NoSlot { asked: slot, there })?;
        if let Standing::UnderWay(transform) = slot.standing {
            self.driver.synchronize(slot.stream)?;
            slot.standing = Standing::Done(transform);
        }
        Ok(())
    }

    /// The time that the kernels took for the last chunk of a slot, without copies. Waits for it. Fails if
    /// the slot had none.
    pub fn kernels_took(&mut self, slot: usize) -> Result<Duration, Error> {
        self.wait(slot)?;
        let [before, behind, _] = self.slots[slot].events;
        let elapsed = self.driver.elapsed_ms(before, behind)?;
        Ok(Duration::from_secs_f64(f64::from(elapsed.max(0.0)) / 1e3))
    }

    /// Overwrites keys and frames, and frees all memory.
    fn free(&mut self) -> Result<(), GpuError> {
        for slot in &self.slots {
            self.driver.synchronize(slot.stream)?;
        }
        let zeroes = vec![0_u8; size_of::<DeviceKeys>() * self.tags.len()];
        // SAFETY: 1. All streams were waited for, so nothing uses any of this memory. 2. Lengths are those of
        // the allocations. 3. Sources live until the copies are waited for. 4. Nothing is used behind it: the
        // device is dropped.
        unsafe {
            let driver = &mut self.driver;
            driver.copy_in(self.stream, self.blocks[0], zeroes.as_ptr(), zeroes.len())?;
            for slot in &self.slots {
                slot.bytes.host.write_bytes(0, slot.bytes.len);
                driver.copy_in(self.stream, slot.blocks[0], slot.bytes.host, slot.bytes.len)?;
            }
            driver.synchronize(self.stream)?;
            driver.free(&self.blocks);
            driver.free_pinned(self.staging);
            for slot in self.slots.drain(..) {
                driver.free(&slot.taken);
                for memory in [slot.bytes, slot.verdicts, slot.frames] {
                    driver.free_pinned(memory);
                }
            }
        }
        Ok(())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // A device that fails here is lost, and its memory with it.
        let _ = self.free();
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("device", &self.driver.properties().name)
            .field("slots", &self.slots.len())
            .field("keys", &self.tags.iter().flatten().count())
            .finish_non_exhaustive()
    }
}

/// The kernels of a chunk in their order, and their shapes.
struct Launches {
    lanes: u32,
    kernels: [Option<(&'static str, Shape)>; 2],
}

impl Launches {
    fn new(slot: &Slot, multiprocessors: u32, lanes: Option<usize>, transform: Transform) -> Self {
        let frames = slot.spans.len();
        // Two blocks a lane at least, so that the sums of lanes are a small part of the work.
        let by_length = || (slot.used / 16 / frames / 2 + 1).next_power_of_two() / 2;
        let lanes = lanes.unwrap_or_else(by_length).clamp(4, POWERS);
        let lanes = u32::try_from(lanes).expect("32 at the most");
        let frames = u32::try_from(frames).expect("the options limit them");
        let all = frames.saturating_mul(lanes);
        let is_wide = |threads: &u32| all / threads >= 2 * multiprocessors;
        let threads = BLOCKS.into_iter().find(is_wide).unwrap_or(BLOCKS[1]);
        let (table, each) = SHARED;
        let blocks = all.div_ceil(threads).min(multiprocessors * (THREADS / threads));
        let cipher = Shape::row(blocks, threads, table + each * threads);
        let hmac = Shape::row(frames.div_ceil(HMAC_THREADS), HMAC_THREADS, 0);
        let kernels = match transform {
            Transform::Seal => [Some(("esp_seal", cipher)), slot.has_hmac.then_some(("esp_sha1_seal", hmac))],
            Transform::Open => [slot.has_hmac.then_some(("esp_sha1_open", hmac)), Some(("esp_open", cipher))],
        };
        Self { lanes, kernels }
    }
}
