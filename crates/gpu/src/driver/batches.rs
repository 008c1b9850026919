//! [`Batches`]: the first argument of every lookup kernel, in the layout of `kernels/batch.cuh`.

use bytemuck::{Pod, Zeroable};

use super::DevicePtr;

/// The most batches of a launch.
pub const MOST: usize = 8;

/// A batch: its keys, and places for its results. All zeros is no batch.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct KernelBatch {
    /// The keys, or their first plane.
    pub keys: DevicePtr,
    /// Their second plane, if they have one.
    pub low: DevicePtr,
    /// The place for the results.
    pub results: DevicePtr,
    /// The number of keys.
    pub count: u64,
    /// The address of a word for each block of the row, where it writes the mark when it is done. Null for
    /// none.
    pub done: DevicePtr,
    /// The mark.
    pub mark: u32,
    /// Bytes of a result, for kernels whose table does not say it.
    pub result_bytes: u32,
}

/// The batches of a launch. The rows of blocks of its [`Shape`](super::Shape) are as many.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Batches {
    of: [KernelBatch; MOST],
}

impl Batches {
    /// One batch or more. Panics if there are more than [`MOST`].
    pub fn of(batches: &[KernelBatch]) -> Self {
        let mut of = [KernelBatch::zeroed(); MOST];
        of[..batches.len()].copy_from_slice(batches);
        Self { of }
    }
}
