//! `lookupctl route` between interfaces of namespaces: hosts that talk through it while routes, links and
//! neighbours change. Where namespaces or XDP programs are not allowed, the tests say that they skip.
//!
//! `WIRESPEED_SOAK=SECONDS` makes the soak last longer.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // every function here is a test or helps one

mod apps;
mod changes;
mod controllers;
mod daemons;
mod many;
mod peer;
mod queues;
mod soak;
mod traced;
mod traffic;
mod world;
