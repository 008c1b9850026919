//! GPUs: kernels, ceilings, whole trips, and the GPU side of the papers' figures.
//!
//! ```text
//! kernel   keys and results on the device      kernels     beside DIR-24-8's kernel and a bare gather of the same run
//! trip     keys and results in pinned memory   trips       beside the same bytes over the bus with no kernel between
//! ```

pub mod bench;
pub mod ceiling;
pub mod figures;
pub mod kernels;
pub mod names;
pub mod plot;
pub mod trip;
pub mod tuples;
pub mod updates;

use wirespeed_gpu::driver::Properties;

use crate::machine::Machine;

/// A name for a GPU's directory.
pub fn slug(gpu: &Properties) -> String {
    let words = gpu.name.to_lowercase();
    words.split(|c: char| !c.is_ascii_alphanumeric()).collect::<Vec<_>>().join("-")
}

/// What a GPU and its machine are, one line a property.
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
