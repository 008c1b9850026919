//! Tuples on the device: every kernel against the engine on the CPU and the oracle; images that no engine
//! made; tables on GPUs that follow live ones.

mod damaged;
mod device;
mod engines;
mod follow;
