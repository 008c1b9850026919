//! The runtime over a device that runs its work in any order that is allowed, and fails on demand (`fake`).
//!
//! Tables are gathered from. Where states are told apart all elements of a table are its version, so that a
//! batch is right when all its results are the version that it says it saw.

#![allow(clippy::unwrap_used)] // every function here is a test or helps one

mod batches;
mod common;
mod ends;
mod fake;
mod faults;
mod fleet;
mod joined;
mod memory;
mod states;
mod tuning;
