//! Routers side by side: `lookupctl route`, DPDK's testpmd and the kernel's forwarding, from memory to memory
//! and between virtual interfaces; switches beside Open vSwitch, and tunnels beside DPDK's ciphers.
//!
//! ```text
//! Programs   lookupctl, blast, dpdk-testpmd, dpdk-test-crypto-perf, ovs-vswitchd, ip: those that are there
//! Lane       a router in a setting ──► run ──► a rate, or why it is left out
//! race       lanes in turns, round after round ──► Sheet   medians, with commands
//! sweep      offered load ──► rate, latencies, device ──► Sheet
//! ```
//!
//! A frame that a router forwards counts, not one that it only receives. In lanes of changes of flows a rate
//! is that of the changes. Rates of virtual interfaces are those of the kernel beneath them: compare them
//! with each other only.

mod controller;
mod live;
mod memory;
mod programs;
mod race;
mod sweep;
mod switch;
mod tunnels;

pub use live::lanes as live_lanes;
pub use memory::lanes as memory_lanes;
pub use programs::Programs;
pub use race::{Lane, Run, race};
pub use sweep::sweep;
pub use switch::lanes as switch_lanes;
pub use tunnels::lanes as tunnel_lanes;
