//! Recorded feeds over messages made by hand: what they mean, cut at every byte, and at random.

#![allow(clippy::unwrap_used)] // a test's helpers may panic like the test

mod bmp;
mod fpm;
mod hostile;
mod kernel;
mod model;
mod second_opinion;
#[path = "../senders/mod.rs"]
mod senders;
