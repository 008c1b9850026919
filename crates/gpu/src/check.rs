//! [`check`]: tests whether kernels run on a GPU.

use bytemuck::bytes_of;

use crate::driver::{Cuda, Driver, Shape, writers};
use crate::error::GpuError;

/// Opens a GPU by its number, loads a module and runs a kernel that changes one word. An error is the reason
/// why the GPU is not usable.
pub fn check(device: usize) -> Result<(), GpuError> {
    run(&mut Cuda::open(device)?)
}

/// Runs the kernel of [`check`] on any driver.
#[allow(unsafe_code)] // one launch and two copies, each waited for
pub fn run(driver: &mut dyn Driver) -> Result<(), GpuError> {
    const VALUE: u64 = 0x0123_4567_89ab_cdef;
    let stream = driver.stream()?;
    let blocks = driver.alloc(&[8, 16])?;
    let write = [blocks[0].0, VALUE];
    let (no_words, mut found) = ([0u64; 3], [0u8; 8]);
    let shape = Shape::row(1, 32, 0);
    // SAFETY: what is copied lives on this stack until the stream is waited for, the device's blocks until
    // they are given back, and the arguments are those of the kernel: one write of eight bytes.
    unsafe {
        driver.copy_in(stream, blocks[1], bytes_of(&write).as_ptr(), 16)?;
        driver.launch(
            stream,
            &writers::patch(),
            shape,
            [bytes_of(&[blocks[1].0, 1]), bytes_of(&no_words)],
        )?;
        driver.copy_out(stream, found.as_mut_ptr(), blocks[0], 8)?;
        driver.synchronize(stream)?;
        driver.free(&blocks);
    }
    match u64::from_le_bytes(found) {
        VALUE => Ok(()),
        other => Err(GpuError::Call {
            call: "patch",
            why: format!("a kernel wrote {other:#x} instead of {VALUE:#x}"),
        }),
    }
}
