//! What the kernels and all above them are held against, on the host build of the kernels or on a GPU
//! ([`device`]).

#[macro_use]
mod addresses;

mod announce;
mod classify;
mod conformance;
mod constants;
mod device;
mod engines;
mod fleet;
mod ip;
mod kernel_names;
mod large;
mod mirror;
mod names;
mod runtime;
mod shapes;
