//! Ports of AF_XDP: [`XdpPort`], a queue of an interface, without copies between interfaces.
//!
//! ```text
//! interface ──► Program ──┬─► transit: receive ring ──► frames of the worker's Memory
//!                         └─► the rest: the kernel, as if there was no router
//! interface ◄── transmit ring ◄── frames;  completion ring ──► their buffers, free again
//!                fill ring ◄── free buffers
//! ```
//!
//! One [`Program`] an interface, one [`Umem`] a worker, one port a queue of an interface. A worker that has
//! ports at several interfaces moves frames between them by their tickets.
//!
//! ```no_run
//! use std::sync::Arc;
//! use wirespeed_router::Memory;
//! use wirespeed_router::io::{Attach, Interface, LocalAddresses, Program, Tags, Umem, XdpOptions};
//!
//! let local = LocalAddresses::new();
//! local.set(["192.0.2.1".parse()?])?;
//! let mut memory = Memory::new(16_384)?;
//! let mut umem = Umem::new(&memory);
//! let mut ports = Vec::new();
//! for name in ["eth0", "eth1"] {
//!     let interface = Interface::open(name)?;
//!     if let Some(reason) = interface.unusable(memory.stride()) {
//!         println!("{name}: no AF_XDP: {reason}");
//!         continue;
//!     }
//!     let program = Arc::new(Program::attach(&interface, &local, Tags::Kernel, Attach::Auto)?);
//!     for queue in 0..interface.queues {
//!         ports.push(umem.open(&program, queue, &XdpOptions::default(), &mut memory)?);
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A process needs CAP_NET_RAW for the sockets, CAP_BPF and CAP_NET_ADMIN for the programs, and CAP_IPC_LOCK
//! or a sufficient RLIMIT_MEMLOCK for the memory.
//!
//! Traps:
//!
//! - Each queue needs a port, or else its frames go through the kernel.
//! - A virtual interface whose peer leaves checksums to hardware delivers them unfinished, and AF_XDP can't
//!   see that: switch [`Offload::TransmitChecksum`](super::Offload::TransmitChecksum) off at the peer.
//! - Hardware that takes VLAN tags off hides them from the program: see
//!   [`Offload::TagStripping`](super::Offload::TagStripping).

mod held;
mod instruction;
mod options;
mod port;
mod program;
mod region;
mod ring;
mod socket;
mod umem;

pub use options::{Copying, XdpOptions};
pub use port::XdpPort;
pub use program::{Attach, Program};
pub use umem::Umem;
