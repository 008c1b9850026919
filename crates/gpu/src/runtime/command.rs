//! [`Command`]: requests to the owner. Their order in the channel is the order of a table's states.

use crossbeam_channel::Sender;

use super::Result;
use super::calibration::Calibration;
use super::form::Form;
use super::on_device::{DeviceKeys, DeviceMemory, Enqueued};
use super::slot::Slot;
use super::tune::{Tuned, Tuning};
use super::writes::Writes;
use crate::driver::{DevicePtr, Event, Pinned, Stream};
use wirespeed_image::device::Program;

pub(super) type Answer<T> = Sender<Result<T>>;

pub(super) enum Command {
    Submit(Box<Slot>),
    /// Allocates device memory for a copy of a table.
    Alloc(Vec<usize>, Answer<Copy>),
    /// Frees a copy when nothing uses it any more.
    Free(u64),
    /// Uploads a piece of a table.
    Upload {
        copy: u64,
        to: DevicePtr,
        staging: Staging,
        bytes: usize,
    },
    /// Answers when all earlier uploads are done.
    Uploaded(Answer<()>),
    /// Makes a copy a table, or the next state of a table.
    Install(Box<Install>),
    Drop(u64),
    /// Requires at least these numbers of bytes of a table's keys and results from now on.
    Require {
        table: u64,
        key_bytes: usize,
        result_bytes: usize,
    },
    Patch {
        table: u64,
        writes: Writes,
        version: u64,
        one_by_one: bool,
    },
    /// Answers when all earlier patches are done.
    Settled(Answer<()>),
    LookUp(Box<OnDevice>),
    Tune {
        slot: Box<Slot>,
        table: u64,
        form: Form,
        answer: Answer<Tuning>,
    },
    /// Sets launches that an earlier run found.
    Tuned(Vec<Tuned>),
    Calibrated(Box<Calibration>),
}

/// Device memory of one copy of a table.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) id: u64,
    pub(super) blocks: Vec<DevicePtr>,
}

/// Pinned memory through which a piece of a table is uploaded. Only its holder uses it, as with a slot.
pub(super) struct Staging {
    pub(super) memory: Pinned,
    pub(super) event: Event,
}

impl Staging {
    /// Copies bytes to its start. Panics if there are too many.
    pub(super) fn fill(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.memory.len, "a piece is no longer than the staging memory");
        #[allow(unsafe_code)] // pinned memory as a slice
        // SAFETY: the driver gave `len` bytes, zeroed, which stay until the owner gives them back; the device
        // reads them only while the owner has this value, and so nobody else now.
        let to = unsafe { std::slice::from_raw_parts_mut(self.memory.host, bytes.len()) };
        to.copy_from_slice(bytes);
    }
}

pub(super) struct Install {
    pub(super) table: u64,
    pub(super) copy: u64,
    pub(super) programs: Vec<Program>,
    pub(super) version: u64,
}

/// A lookup of keys that are on the device.
pub(super) struct OnDevice {
    pub(super) table: u64,
    pub(super) stream: Stream,
    pub(super) keys: DeviceKeys,
    pub(super) results: DeviceMemory,
    pub(super) answer: Answer<Enqueued>,
}
