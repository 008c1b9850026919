//! A router of packets: frames in chunks, looked up in batches on the CPU or on a GPU.

mod error;
mod frame;
pub mod io;

pub use error::Error;
pub use frame::{Frame, HEAD_ROOM, Memory, STRIDE};
