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
pub mod updates;
