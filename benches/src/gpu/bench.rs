//! A device to measure on: memory filled from here, launches timed by events.

use std::time::Instant;

use anyhow::Result;
use bytemuck::bytes_of;
use rayon::prelude::*;
use wirespeed_fib::{Address, NextHop};
use wirespeed_gpu::driver::batches::{Batches, KernelBatch};
use wirespeed_gpu::driver::{DevicePtr, Driver, Event, Properties, Shape, Stream};
use wirespeed_gpu::ip::{KeyBytes, pack};
use wirespeed_gpu::runtime::Planes;
use wirespeed_image::SectionId;
use wirespeed_image::device::{Kind, OnDevice, Program, Sections};

use super::Device;
use crate::report::median;

/// A GPU with a stream and two events around what is timed.
pub struct Bench {
    /// The GPU, or what stands for one.
    pub driver: Box<dyn Driver>,
    /// The stream that launches go to.
    pub stream: Stream,
    began: Event,
    ended: Event,
    /// One without times, which costs less.
    done: Event,
    /// Streams that nobody uses at present, each with an event without times.
    pub(crate) spare: Vec<(Stream, Event)>,
}

/// Keys on the device, in the planes of their kind, and room for their results.
#[derive(Debug)]
pub struct Keys {
    /// Bytes of a key.
    pub bytes: usize,
    /// The number of keys.
    pub count: usize,
    blocks: Vec<DevicePtr>,
}

/// A table on the device, with its programs.
#[derive(Debug)]
pub struct Uploaded {
    sections: Vec<DevicePtr>,
    /// The ways to look up in it.
    pub programs: Vec<Program>,
}

/// Threads of a block that are tried.
pub const THREADS: [u32; 4] = [128, 256, 512, 1024];

#[allow(unsafe_code)] // every call is waited for before what it uses is given back
impl Bench {
    /// The first GPU.
    pub fn open() -> Result<Self> {
        Self::on(Device::Gpu)
    }

    /// A device of a kind.
    pub fn on(device: Device) -> Result<Self> {
        let mut driver = device.open()?;
        let (stream, began, ended) = (driver.stream()?, driver.event(true)?, driver.event(true)?);
        let done = driver.event(false)?;
        Ok(Self { driver, stream, began, ended, done, spare: Vec::new() })
    }

    /// The properties of the GPU.
    pub fn properties(&self) -> &Properties {
        self.driver.properties()
    }

    /// Copies bytes to the device.
    pub fn put(&mut self, to: DevicePtr, bytes: &[u8]) -> Result<()> {
        // SAFETY: the source lives until the copy is waited for.
        unsafe { self.driver.copy_in(self.stream, to, bytes.as_ptr(), bytes.len()) }?;
        Ok(self.driver.synchronize(self.stream)?)
    }

    /// Takes memory for some bytes and fills it.
    pub fn fill(&mut self, bytes: &[u8]) -> Result<DevicePtr> {
        let block = self.driver.alloc(&[bytes.len()])?;
        self.put(block[0], bytes)?;
        Ok(block[0])
    }

    /// Gives memory back.
    pub fn free(&mut self, blocks: &[DevicePtr]) -> Result<()> {
        self.driver.synchronize(self.stream)?;
        // SAFETY: the stream's work is done, and there is no other.
        unsafe { self.driver.free(blocks) };
        Ok(())
    }

    /// Puts a table's image on the device.
    pub fn upload<T: OnDevice>(&mut self, table: &T) -> Result<Uploaded> {
        let image = table.image();
        let ids: Vec<_> =
            (0..image.sections()).map(|at| u16::try_from(at).map(SectionId)).collect::<Result<_, _>>()?;
        let bytes: Vec<_> = ids.iter().map(|&id| image.padded(id).len()).collect();
        let sections = self.driver.alloc(&bytes)?;
        for (&id, &to) in ids.iter().zip(&sections) {
            self.put(to, image.padded(id))?;
        }
        let programs = table.programs(Sections(&sections))?;
        Ok(Uploaded { sections, programs })
    }

    /// Gives a table's memory back.
    pub fn forget(&mut self, table: &Uploaded) -> Result<()> {
        self.free(&table.sections)
    }

    /// Puts keys on the device, each in so many bytes.
    pub fn keys<A: Address>(&mut self, addresses: &[A], bytes: usize) -> Result<Keys> {
        let planes = planes(addresses, bytes);
        let blocks = self.driver.alloc(&[planes[0].len(), planes[1].len(), 4 * addresses.len()])?;
        for (plane, &to) in planes.iter().zip(&blocks) {
            self.put(to, plane)?;
        }
        Ok(Keys { bytes, count: addresses.len(), blocks })
    }

    /// Gives keys' memory back.
    pub fn drop_keys(&mut self, keys: &Keys) -> Result<()> {
        self.free(&keys.blocks)
    }

    /// Looks up all keys once.
    pub fn launch(&mut self, program: &Program, keys: &Keys, shape: Shape) -> Result<()> {
        let batch = one_batch(keys.blocks[0], keys.blocks[1], keys.blocks[2], keys.count, 0);
        let arguments = [bytes_of(&batch), &program.table[..]];
        // SAFETY: keys, results and the table stay until they are given back, which waits for the stream.
        Ok(unsafe { self.driver.launch(self.stream, &program.kernel(keys.bytes), shape, arguments) }?)
    }

    /// Counts the results of the last launch that are wrong.
    pub fn differing(&mut self, program: &Program, keys: &Keys, right: &[NextHop]) -> Result<usize> {
        let mut bytes = vec![0; keys.count * program.result_bytes];
        // SAFETY: the destination lives until the copy is waited for.
        unsafe { self.driver.copy_out(self.stream, bytes.as_mut_ptr(), keys.blocks[2], bytes.len()) }?;
        self.driver.synchronize(self.stream)?;
        let found = bytes.par_chunks(program.result_bytes);
        Ok(found.zip(right).filter(|&(found, &right)| wide(found) != right).count())
    }

    /// Overwrites the results of keys with what no lookup finds.
    pub fn spoil(&mut self, keys: &Keys) -> Result<()> {
        let bytes = vec![0xff; 4 * keys.count];
        self.put(keys.blocks[2], &bytes)
    }

    /// Keys a second by the median of some launches, after two that are not counted.
    pub fn rate(&mut self, program: &Program, keys: &Keys, shape: Shape, rounds: usize) -> Result<f64> {
        self.rate_of(keys.count, rounds, |bench| bench.launch(program, keys, shape))
    }

    /// Keys a second of whatever looks up so many keys, measured like [`rate`](Self::rate).
    pub fn rate_of(
        &mut self,
        count: usize,
        rounds: usize,
        launch: impl Fn(&mut Self) -> Result<()>,
    ) -> Result<f64> {
        let mut rates = Vec::with_capacity(rounds);
        for round in 0..rounds + 2 {
            self.driver.record(self.began, self.stream)?;
            launch(self)?;
            self.driver.record(self.ended, self.stream)?;
            self.driver.synchronize(self.stream)?;
            let seconds = f64::from(self.driver.elapsed_ms(self.began, self.ended)?) / 1e3;
            if round >= 2 {
                #[allow(clippy::cast_precision_loss)] // a rate
                rates.push(count as f64 / seconds);
            }
        }
        Ok(median(&rates))
    }

    /// Microseconds from launching a lookup of keys in pinned memory to its end, nothing between this and the
    /// driver: the median of some. Without keys what a launch takes that does nothing.
    pub fn lone<A: Address>(
        &mut self,
        program: &Program,
        addresses: &[A],
        key_bytes: usize,
        threads: u32,
        rounds: usize,
    ) -> Result<f64> {
        let planes = planes(addresses, key_bytes);
        let low = planes[0].len().next_multiple_of(16);
        let keys = self.driver.alloc_pinned(low + planes[1].len() + 16)?;
        let results = self.driver.alloc_pinned(4 * addresses.len() + 16)?;
        // SAFETY: the memory is that long, and no launch uses it yet.
        unsafe {
            keys.host.copy_from_nonoverlapping(planes[0].as_ptr(), planes[0].len());
            keys.host.add(low).copy_from_nonoverlapping(planes[1].as_ptr(), planes[1].len());
        }
        let batch = one_batch(keys.device, keys.device.plus(low as u64), results.device, addresses.len(), 0);
        let kernel = program.kernel(key_bytes);
        let shape = Shape::row(1, threads, program.shared);
        let mut times = Vec::new();
        for _ in 0..rounds {
            let began = Instant::now();
            // SAFETY: all stays until it is given back below, after the last launch was waited for.
            unsafe {
                self.driver.launch(self.stream, &kernel, shape, [bytes_of(&batch), &program.table])?;
            }
            self.driver.record(self.done, self.stream)?;
            while !self.driver.is_done(self.done)? {}
            times.push(began.elapsed().as_secs_f64() * 1e6);
        }
        // SAFETY: every launch was waited for.
        unsafe {
            self.driver.free_pinned(keys);
            self.driver.free_pinned(results);
        }
        Ok(median(&times))
    }

    /// The launches to try for a program: for each number of threads as many blocks as fit at once, and half
    /// of them.
    pub fn shapes(&mut self, program: &Program, kind: impl Into<Kind>) -> Result<Vec<Shape>> {
        let kernel = program.kernel(kind);
        let multiprocessors = self.properties().multiprocessors;
        let mut shapes = Vec::new();
        for threads in THREADS {
            let fit = self.driver.blocks_per_multiprocessor(&kernel, threads, program.shared)?;
            for each in [fit, fit / 2] {
                if each > 0 {
                    shapes.push(Shape::row(each * multiprocessors, threads, program.shared));
                }
            }
        }
        Ok(shapes)
    }
}

/// One batch, without a word to announce its end in. Bytes of a result are for kernels whose table does not
/// say it.
pub(super) fn one_batch(
    keys: DevicePtr,
    low: DevicePtr,
    results: DevicePtr,
    count: usize,
    result_bytes: usize,
) -> Batches {
    let (count, done, mark) = (count as u64, DevicePtr(0), 0);
    let result_bytes = u32::try_from(result_bytes).expect("few bytes a result");
    Batches::of(&[KernelBatch { keys, low, results, count, done, mark, result_bytes }])
}

/// A result of 1, 2 or 4 bytes.
fn wide(bytes: &[u8]) -> NextHop {
    let mut wide = [0; 4];
    wide[..bytes.len()].copy_from_slice(bytes);
    NextHop(u32::from_le_bytes(wide))
}

/// The planes of keys of so many bytes.
fn planes<A: Address>(addresses: &[A], key_bytes: usize) -> [Vec<u8>; 2] {
    let mut all = vec![0; Planes::of(key_bytes).bytes(addresses.len()).expect("few keys")];
    let form = pack(addresses, KeyBytes::of(A::FAMILY, key_bytes), &mut all).expect("there is room");
    let second = form.second().map_or_else(Vec::new, |second| all.split_off(second));
    all.truncate(Planes::of(key_bytes).widths().0 * addresses.len());
    [all, second]
}
