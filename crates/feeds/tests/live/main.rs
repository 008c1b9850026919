//! Feeds over real sockets: the kernel in network namespaces of the tests' own, FRR and GoBGP where they are
//! installed, and senders of our own.
//!
//! Namespaces need root. A test that can't run prints `skipped:` with the reason.

#![allow(clippy::unwrap_used)] // a test's helpers may panic like the test

mod bmp;
mod bridge;
mod churn;
mod daemons;
mod follower;
mod fpm;
mod kernel;
#[path = "../parsers/model.rs"]
mod model;
mod namespace;
mod overrun;
#[path = "../senders/mod.rs"]
mod senders;
