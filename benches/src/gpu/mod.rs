//! GPUs: kernels, ceilings, whole trips, and the GPU side of the papers' figures.
//!
//! ```text
//! kernel   keys and results on the device      kernels     beside DIR-24-8's kernel and a bare gather of the same run
//! trip     keys and results in pinned memory   trips       beside the same bytes over the bus with no kernel between
//! ```

pub mod bench;
pub mod ceiling;
pub mod figures;
pub mod in_form;
pub mod kernels;
pub mod names;
pub mod options;
pub mod plot;
pub mod record;
pub mod trip;
pub mod tuples;
pub mod updates;

use anyhow::Result;
use wirespeed_gpu::driver::{Cuda, Driver, Properties};
use wirespeed_kernels_host::{HostDriver, Sanitizers};

use crate::machine::Machine;

/// The device that is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Device {
    /// The first GPU of this machine
    #[default]
    Gpu,
    /// The kernels built for this machine's CPU: shows that a measurement runs, and its rates mean nothing
    Host,
}

impl Device {
    /// A driver of it.
    pub fn open(self) -> Result<Box<dyn Driver>> {
        Ok(match self {
            Self::Gpu => Box::new(Cuda::open(0)?),
            Self::Host => Box::new(HostDriver::start(&wirespeed_kernels_host::build(Sanitizers::Off)?)?),
        })
    }
}

/// A name for a GPU's directory.
pub fn slug(gpu: &Properties) -> String {
    let words = gpu.name.to_lowercase();
    words.split(|c: char| !c.is_ascii_alphanumeric()).collect::<Vec<_>>().join("-")
}

/// Describes a GPU and its machine, one line a property.
pub fn describe(gpu: &Properties, gpus: usize, machine: &Machine) -> String {
    format!(
        "gpu: {}\ngpus: {}\ncompute capability: {}.{}\nmultiprocessors: {}\ngpu memory: {} GiB\ngpu l2: {} MiB\n{}",
        gpu.name,
        gpus,
        gpu.capability.0,
        gpu.capability.1,
        gpu.multiprocessors,
        gpu.memory >> 30,
        gpu.l2 >> 20,
        machine.describe()
    )
}
