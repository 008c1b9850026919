//! Packets sealed and opened on an NVIDIA GPU, in chunks: the feature `gpu`.
//!
//! ```text
//! Device::set       keys ──────────────► device memory, overwritten when they are replaced or dropped
//! Chunk::place      frames, from the ESP header on ─► pinned memory of a slot
//! Device::start     copy in ─► esp_sha1_open ─► esp_open ─► copy out          a stream for each slot
//!                   copy in ─► esp_seal ─► esp_sha1_seal ─► copy out
//! Device::wait      frames and verdicts are in the slot again
//! ```
//!
//! A [`Device`] does what needs keys, and nothing else: it encrypts, decrypts, makes tags and checks them.
//! Headers, padding, sequence numbers and the replay window stay with [`Sealing`](crate::Sealing) and
//! [`Opening`](crate::Opening) on the CPU: [`Chunk::push_unsealed`] and [`Chunk::push_opening`] take their
//! packets, [`Chunk::sealed`] and [`Chunk::opened`] give them back. Several slots are under way at once, so
//! that copies in, kernels and copies out overlap.
//!
//! [`Offload`] does all of this for a worker of a router: it puts keys on the device, decides by measured
//! costs which packets go there, and seals and opens on the CPU what a device that fails leaves.
//!
//! The kernels are `kernels/esp.cu`. Their time depends on lengths alone, not on keys or texts.
//!
//! # A frame sealed
//!
//! ```no_run
//! use wirespeed_esp::gpu::driver::Cuda;
//! use wirespeed_esp::gpu::{Device, Transform, Options};
//! use wirespeed_esp::{Keys, Secret};
//!
//! let mut device = Device::new(Box::new(Cuda::open(0)?), &Options::default())?;
//! device.set(0, &Keys::Gcm(Secret::new(vec![7; 20])), false)?;
//! let mut chunk = device.chunk(0)?;
//! // An ESP header, a vector of eight bytes and a text; the place of the tag is behind them.
//! let frame = chunk.place(0, 0, 16 + 64 + 16)?;
//! frame.fill(1);
//! device.start(0, Transform::Seal)?;
//! device.wait(0)?;
//! let sealed = device.chunk(0)?.frame(0).to_vec();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aes;
mod chunk;
mod device;
#[cfg(test)]
mod erased_tests;
mod keys;
mod layout;
mod offload;
mod packets;
mod slot;
#[cfg(test)]
mod tests;

pub use chunk::Chunk;
pub use device::{Device, Options};
pub use offload::{Arrived, Batch, Counts, Offload, Sealed, Use};
pub use slot::Transform;
pub use wirespeed_gpu::driver;
