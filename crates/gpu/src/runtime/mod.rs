//! The engine room: one device in use by any number of threads.
//!
//! ```text
//!  threads            Gpu (Clone, Send, Sync)                        owner thread, the only one that calls the driver
//!  ───────            ─────────────────────                         ────────────────────────────────────────────────
//!  batch() ◄───────── pool of slots ◄────────────┐
//!    fill keys        (pinned keys and results,  │ dropped
//!  submit() ────────► their buffers, a stream)   │               ┌► stream 0  keys in ─► kernel ─► results out ─┐
//!  Ticket ──wait()──► Done: results, version ────┘   commands ───┼► stream 1  keys in ─► kernel ─► results out  │ events
//!  table.patch() ─────────────────────────────────►  in one      ├► patches           writes in ─► patch        │ polled
//!  table.replace() ───────────────────────────────►  order       └► uploads  pieces in                          │
//!                                                 ◄──────────────────────────────────────────────────────────────┘
//! ```
//!
//! A slot is a value that moves: from the pool to the thread that fills it, through the channel to the owner,
//! and back with its ticket. Only its holder accesses its memory. This alone separates the accesses of the
//! submitter, the device and the reader.
//!
//! The order of commands is the order of states. A patch between two batches in the channel is between them
//! on the device: its kernel waits for the kernels of all earlier batches, and the kernels of all later
//! batches wait for it; copies wait for nothing. So each batch sees one state of its table, and
//! [`Done::version`] tells which state.
//!
//! Handles keep the owner alive: it ends, and frees everything, when the last [`Gpu`], [`TableHandle`],
//! [`Batch`], [`Ticket`] and [`Done`] of it is gone. If the device is lost or does not answer, every ticket
//! ends with that error and still has its keys, so that another device can answer them.

mod batch;
mod calibrate;
mod calibration;
mod command;
mod core;
mod flag;
mod fleet;
mod form;
mod gpu;
mod graphs;
mod memory;
mod on_device;
mod options;
mod owner;
mod planes;
mod pool;
mod reply;
mod shared;
mod slot;
mod submitter;
mod table;
mod tune;
mod writes;

pub use batch::{Batch, Done, Ticket};
pub use calibration::{Calibration, Curve, Measured};
pub use fleet::{Fleet, FleetBatch, FleetTable};
pub use form::Form;
pub use gpu::Gpu;
pub use memory::Usage;
pub use on_device::{DeviceKeys, DeviceMemory, Enqueued};
pub use options::{GpuOptions, SlotSize, Transfer, Way};
pub use planes::Planes;
pub use submitter::Submitter;
pub use table::TableHandle;
pub use tune::{Company, Tuned, Tuning};

use std::sync::{Mutex, MutexGuard, PoisonError};

type Result<T> = std::result::Result<T, crate::error::GpuError>;

/// Locks a mutex. No lock is held while a value is inconsistent, so a panic of another thread leaves every
/// value valid.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
