//! The structs of `kernels/esp.cuh`, as the kernels take them, and the kernels' names.

use bytemuck::{Pod, Zeroable};
use wirespeed_gpu::driver::Kernel;

use super::aes;

/// Bytes of an ESP frame before its text: index, number, vector.
pub(super) const HEADER: usize = 16;
/// Frames begin at multiples of so many bytes.
pub(super) const ALIGN: usize = 16;
/// Powers of the hash key that are kept: the most lanes of a frame.
pub(super) const POWERS: usize = 32;
/// Bytes of shared memory that a block needs for the table of AES, and for each of its threads.
pub(super) const SHARED: (u32, u32) = (32 << 10, 20);

/// `EspKeys`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct DeviceKeys {
    pub(super) round_keys: [[u32; 4]; aes::MOST_KEYS],
    pub(super) salt: u32,
    pub(super) rounds: u32,
    pub(super) is_gcm: u32,
    pub(super) is_extended: u32,
    pub(super) hash: [[u32; 4]; POWERS],
}

/// `EspFrame`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Frame {
    pub(super) offset: u32,
    /// Bytes from the ESP header to the tag.
    pub(super) length: u32,
    pub(super) keys: u32,
    pub(super) high: u32,
}

/// `EspChunk`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ChunkArgument {
    pub(super) bytes: u64,
    pub(super) frames: u64,
    pub(super) verdicts: u64,
    pub(super) count: u64,
}

/// `EspWork`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct WorkArgument {
    pub(super) keys: u64,
    pub(super) table: u64,
    pub(super) lanes: u64,
}

/// A kernel of the module.
pub(super) fn kernel(name: &str) -> Kernel {
    Kernel { module: "esp", name: name.into() }
}
