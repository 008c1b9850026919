//! What the hardware gives: gathers from memory, and bytes over the bus with nothing between.

use std::time::Instant;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use wirespeed_fib::V4;
use wirespeed_gpu::driver::{DevicePtr, Event, Pinned, Stream};
use wirespeed_image::device::{Program, Stem, Width};

use super::bench::Bench;

/// `Gather` of the kernel's source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Gather {
    elements: DevicePtr,
    mask: u64,
}

/// Keys a second of one read a key from a table of 2^`bits` elements of `width` bytes, by the fastest launch.
pub fn gather(bench: &mut Bench, count: usize, bits: u32, width: usize, rounds: usize) -> Result<f64> {
    let len = 1usize << bits;
    let table: Vec<u8> = (0..=250).cycle().take(len * width).collect();
    let elements = bench.fill(&table)?;
    let argument = Gather { elements, mask: len as u64 - 1 };
    let program = Program::new(Stem::of("gather").width('w', Width::of(width)?), &argument, width);
    let random =
        |at: u32| V4((at ^ at >> 15).wrapping_mul(0x9e37_79b1).rotate_left(13).wrapping_mul(0x85eb_ca6b));
    let addresses: Vec<V4> = (0..u32::try_from(count)?).map(random).collect();
    let keys = bench.keys(&addresses, 4)?;
    let mut best = 0.0f64;
    for shape in bench.shapes(&program, 4)? {
        best = best.max(bench.rate(&program, &keys, shape, rounds)?);
    }
    bench.drop_keys(&keys)?;
    bench.free(&[elements])?;
    Ok(best)
}

/// Batches over the bus with no kernel: as many keys a second as copies of the same bytes allow, by so many
/// streams. Bytes of one direction may be none.
#[allow(unsafe_code)] // all streams are waited for before anything is given back
pub fn bus(
    bench: &mut Bench,
    bytes_in: usize,
    bytes_out: usize,
    batch: usize,
    streams: usize,
    seconds: f64,
) -> Result<f64> {
    struct Lane {
        stream: Stream,
        done: Event,
        keys: Pinned,
        results: Pinned,
        blocks: Vec<DevicePtr>,
    }
    let (into, out) = (bytes_in * batch, bytes_out * batch);
    let mut lanes = Vec::new();
    for _ in 0..streams {
        lanes.push(Lane {
            stream: bench.driver.stream()?,
            done: bench.driver.event(false)?,
            keys: bench.driver.alloc_pinned(into.max(1))?,
            results: bench.driver.alloc_pinned(out.max(1))?,
            blocks: bench.driver.alloc(&[into.max(1), out.max(1)])?,
        });
    }
    let (mut count, began) = (0usize, Instant::now());
    while began.elapsed().as_secs_f64() < seconds {
        let at = count % lanes.len();
        let lane = &lanes[at];
        while !bench.driver.is_done(lane.done)? {
            std::hint::spin_loop();
        }
        // SAFETY: the lane's memory stays until its stream is waited for.
        unsafe {
            if into > 0 {
                bench.driver.copy_in(lane.stream, lane.blocks[0], lane.keys.host, into)?;
            }
            if out > 0 {
                bench.driver.copy_out(lane.stream, lane.results.host, lane.blocks[1], out)?;
            }
        }
        bench.driver.record(lane.done, lane.stream)?;
        count += 1;
    }
    for lane in &lanes {
        bench.driver.synchronize(lane.stream)?;
    }
    let elapsed = began.elapsed().as_secs_f64();
    for lane in lanes {
        // SAFETY: all streams have been waited for.
        unsafe {
            bench.driver.free(&lane.blocks);
            bench.driver.free_pinned(lane.keys);
            bench.driver.free_pinned(lane.results);
        }
    }
    #[allow(clippy::cast_precision_loss)] // a rate
    Ok((count * batch) as f64 / elapsed)
}
