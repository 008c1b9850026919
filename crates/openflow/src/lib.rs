//! An OpenFlow 1.3 switch: an application of the router, and the channel to its controllers.
//!
//! ```text
//! controllers ─ TCP ─► Channel ─► flows, groups, meters, ports ─ published ─► OpenFlow, one a worker ◄─► frames
//!              ◄─────  packets, flows that are gone, statistics ◄────────────── counters by worker
//! ```
//!
//! A [`Switch`] is what workers and controllers share. Each worker of a router has an [`OpenFlow`] of it, and
//! a [`Channel`] connects it to controllers. [`wire`] is the codec; [`flows`] reads flows as `ovs-ofctl`
//! writes them.
//!
//! A controller's bundle of changes is made whole or not at all, and frames see no part of it (extension 230
//! of the ONF).
//!
//! Exact matches are found by one hash, whatever their number. Wildcards are found by priority: in the
//! façade's classifier, on the CPU or on a GPU, and in a hash table for each mask until that is built. Each
//! table has a classifier. It takes masks over all fields but the target of neighbour discovery.
//!
//! # A flow, a frame, a port
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use wirespeed_openflow::{Switch, SwitchOptions};
//! use wirespeed_openflow::wire::{Action, Field, FlowMod, Instructions, Match};
//! use wirespeed_router::io::Port;
//! use wirespeed_router::io::memory::{Limits, MemoryPort};
//! use wirespeed_router::{Memory, Published, Settings, Worker};
//!
//! let switch = Switch::new(SwitchOptions::with_ports(["in", "out"]))?;
//! let output = Instructions {
//!     apply: vec![Action::Output { port: 2, max_len: 0 }],
//!     has_apply: true,
//!     ..Instructions::default()
//! };
//! switch.flow_mod(&FlowMod::add(0, 100, Match::all().with(Field::InPort, 1), output))?;
//!
//! let mut memory = Memory::new(64)?;
//! let names = ["in".to_owned(), "out".to_owned()];
//! let frames = Box::new(|give: &mut dyn FnMut(&[u8])| give(&[0; 64]));
//! let ports = MemoryPort::ports(names, frames, &mut memory, Limits { count: Some(100), rate: None });
//! let ports = ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
//! let mut worker = Worker::new(switch.app()?, memory, ports, Settings::default());
//! let stats = worker.run(&AtomicBool::new(false), &Published::default())?;
//! assert!(stats.is_whole() && stats.frames_out > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ahead;
mod app;
mod channel;
mod error;
pub mod flows;
mod inject;
mod interpret;
mod pipeline;
mod search;
mod switch;
pub mod wire;

pub use app::{OpenFlow, Pending};
pub use channel::{Channel, Session, Target};
pub use error::Error;
pub use inject::Injector;
pub use switch::{Fail, PortInfo, Switch, SwitchOptions};
