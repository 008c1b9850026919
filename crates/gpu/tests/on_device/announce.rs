//! What the blocks of a lookup say of their ends, in memory that the CPU polls: its results are there with
//! the last one.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytemuck::{bytes_of, cast_slice};
use wirespeed_gpu::driver::batches::{Batches, KernelBatch};
use wirespeed_gpu::driver::{DevicePtr, Kernel, Pinned, Shape};

use crate::device::{device, lock};

const LEN: u32 = 1 << 16;
const KEYS: usize = 1000;
const ROUNDS: u32 = 300;
/// The most blocks of a round.
const BLOCKS: u32 = 16;

fn key(round: u32, at: u32) -> u32 {
    (at ^ round << 16).wrapping_mul(0x9e37_79b1).rotate_left(16)
}

/// Each round with other keys, over the results of the round before.
#[test]
#[allow(unsafe_code)] // plays the runtime
fn results_are_there_with_the_mark() {
    let Some(device) = device() else { return };
    let mut device = lock(&device);
    let table = device.driver.alloc(&[4 * LEN as usize]).expect("there is memory");
    let elements: Vec<u32> = (0..LEN).map(|at| !at).collect();
    device.write(table[0], cast_slice(&elements));
    let mut pin = |bytes| device.driver.alloc_pinned(bytes).expect("there is memory");
    let (keys, results, flag) = (pin(4 * KEYS), pin(4 * KEYS), pin(64));
    let argument = [table[0].0, u64::from(LEN - 1)];
    let kernel = Kernel { module: "gather", name: "gather_w4_k4".into() };
    let stream = device.stream;
    for round in 1..=ROUNDS {
        let count = KEYS - round as usize % 7;
        let of_round = (0..).take(count).map(|at| key(round, at));
        // SAFETY: there is room for so many; the device reads keys no more, as it has said.
        let to = unsafe { std::slice::from_raw_parts_mut(keys.host.cast::<u32>(), count) };
        to.iter_mut().zip(of_round.clone()).for_each(|(to, key)| *to = key);
        let batch = Batches::of(&[KernelBatch {
            keys: keys.device,
            low: DevicePtr(0),
            results: results.device,
            count: count as u64,
            done: flag.device,
            mark: round,
            result_bytes: 0,
        }]);
        let blocks = 1 + round % BLOCKS;
        let shape = Shape::row(blocks, [32, 256, 1024][round as usize % 3], 0);
        let arguments = [bytes_of(&batch), bytes_of(&argument)];
        // SAFETY: all of it lives until the stream is waited for below.
        unsafe { device.driver.launch(stream, &kernel, shape, arguments) }.expect("it is launched");
        // An event is what sends it on its way; nobody asks for that one.
        let event = device.driver.event(false).expect("there are events");
        device.driver.record(event, stream).expect("it is recorded");
        (0..blocks).for_each(|block| wait_for(&flag, block, round));
        // SAFETY: the device has said that they are there, and writes there no more before the next launch.
        let found = unsafe { std::slice::from_raw_parts(results.host.cast::<u32>(), count) };
        assert!(found.iter().copied().eq(of_round.map(|key| !(key & (LEN - 1)))), "round {round}");
    }
    device.driver.synchronize(stream).expect("it is done");
    // SAFETY: the stream has been waited for.
    unsafe {
        device.driver.free(&table);
        [keys, results, flag].into_iter().for_each(|memory| device.driver.free_pinned(memory));
    }
}

#[allow(unsafe_code)] // a word that the device writes
fn wait_for(flag: &Pinned, block: u32, mark: u32) {
    assert!(4 * (block as usize + 1) <= flag.len);
    // SAFETY: pinned memory starts at a page and holds the word (just checked); only the device writes it.
    let word = unsafe { AtomicU32::from_ptr(flag.host.cast::<u32>().add(block as usize)) };
    let patience = Instant::now() + Duration::from_secs(20);
    while word.load(Ordering::Acquire) != mark {
        assert!(Instant::now() < patience, "mark {mark} of block {block} never comes");
    }
}
