//! Names on the device: every kernel against the engine on the CPU and the oracle; tables on GPUs that follow
//! live ones.

mod device;
mod engines;
mod follow;
