//! Opening all GPUs of this machine.

use crate::driver::{Cuda, devices};
use crate::error::GpuError;
use crate::runtime::{Fleet, Gpu, GpuOptions};

/// Starts every usable GPU. If there is none, fails with the error of the first.
pub fn open_all(options: &GpuOptions) -> Result<Fleet, GpuError> {
    let mut gpus = Vec::new();
    let mut why = GpuError::NoDevice;
    for number in 0..devices()?.len() {
        let started = Cuda::open(number).and_then(|driver| Gpu::start(Box::new(driver), options.clone()));
        match started {
            Ok(gpu) => gpus.push(gpu),
            Err(error) => {
                tracing::warn!("GPU {number} is not in use: {error}");
                why = error;
            }
        }
    }
    if gpus.is_empty() { Err(why) } else { Fleet::new(gpus) }
}
