//! Live ports between network namespaces that the tests make themselves: two hosts joined by a forwarder that
//! is built on the ports alone.
//!
//! ```text
//! namespace left        namespace middle                right
//! hl ───────────── veth ─ ml   forwarder   mr ─ veth ────────── hr
//! 10.0.1.2, fd01::2      10.0.1.1, fd01::1   10.0.2.1, fd02::1    10.0.2.2, fd02::2
//! ```
//!
//! The forwarder leaves TTLs as they are and the kernel takes one off: so a ping tells who forwarded it.
//! Tests print `skipped:` where namespaces can't be made.

#![cfg(target_os = "linux")]

mod forward;
mod part;
mod ports;
mod rates;
mod world;

/// The process that a test started: a part of it, in a namespace.
#[test]
#[ignore = "other tests start it in a process of its own"]
fn part() {
    part::play();
}
