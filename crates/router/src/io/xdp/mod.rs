//! Ports of AF_XDP: [`XdpPort`], a queue of an interface, without copies between interfaces.
//!
//! ```text
//! interface ──► Program ──┬─► transit: receive ring ──► frames of the worker's Memory
//!                         └─► the rest: the kernel, as if there was no router
//! interface ◄── transmit ring ◄── frames;  completion ring ──► their buffers, free again
//!                fill ring ◄── free buffers
//! ```

mod held;
mod instruction;
mod options;
mod port;
mod program;
mod region;
mod ring;
mod socket;
mod umem;

pub use options::{BusyPoll, Copying, XdpOptions};
pub use port::XdpPort;
pub use program::{Attach, Program, Withheld};
pub use umem::Umem;
