//! The figures of the GPU record: each a sheet, and for most a plot.

mod batches;
mod dispatch;
mod gpus;
mod kernels;
mod latency;
mod levels;
mod subject;
mod updates;

pub use batches::batches;
pub use dispatch::dispatch;
pub use gpus::gpus;
pub use kernels::{kernels_v4, kernels_v6};
pub use latency::latency;
pub use levels::levels;
pub use subject::{Best, Subject};
pub use updates::updates;

use wirespeed_fib::{BuildOptions, Strides};

/// The amount of measuring.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Keys of a trace that kernels look up.
    pub keys: usize,
    /// Launches of each measurement.
    pub rounds: usize,
    /// Seconds of each trip.
    pub seconds: f64,
}

#[allow(clippy::cast_precision_loss)] // for reading
fn giga(rate: f64) -> String {
    format!("{:.3}", rate / 1e9)
}

/// How tables are built that lookups on a GPU run in.
fn for_gpu() -> BuildOptions {
    BuildOptions { strides: Strides::FastestOnGpu, ..BuildOptions::default() }
}
