//! [`Control`]: a test's hold on a device.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a test does to the device, and what it learns of it.
pub(crate) struct Control {
    /// Calls so far.
    pub(crate) calls: AtomicU64,
    /// The call from which on the device is lost.
    pub(crate) lose_at: AtomicU64,
    /// The launch of this number, from 1 on, is refused, once.
    pub(crate) refuse_launch: AtomicU64,
    /// The next recording is ended by other code of the process.
    pub(crate) spoils_recording: AtomicBool,
    /// While it is set nothing is done, and no event comes.
    pub(crate) hangs: AtomicBool,
    /// While it is set no lookup announces its end.
    pub(crate) is_silent: AtomicBool,
    /// While it is set what has announced its end doesn't come to it, and no event comes.
    pub(crate) holds_ends: AtomicBool,
    /// Panics at the next launch.
    pub(crate) panics: AtomicBool,
    /// A launch waits while a test holds it.
    pub(crate) gate: Mutex<()>,
    /// Whether a launch is at the gate.
    pub(super) is_at_gate: AtomicBool,
    pub(crate) launches: Mutex<HashMap<String, u64>>,
    pub(crate) replays: AtomicU64,
    /// What was left in device memory that nobody gave back.
    pub(crate) left: Mutex<BTreeMap<u64, Vec<u8>>>,
    pub(super) notes: Mutex<Vec<String>>,
    pub(super) ended: AtomicBool,
}

impl Control {
    pub(super) fn new() -> Self {
        Self {
            calls: AtomicU64::new(0),
            lose_at: AtomicU64::new(u64::MAX),
            refuse_launch: AtomicU64::new(u64::MAX),
            spoils_recording: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
            holds_ends: AtomicBool::new(false),
            panics: AtomicBool::new(false),
            gate: Mutex::default(),
            is_at_gate: AtomicBool::new(false),
            launches: Mutex::default(),
            replays: AtomicU64::new(0),
            left: Mutex::default(),
            notes: Mutex::default(),
            ended: AtomicBool::new(false),
        }
    }

    /// What went wrong so far. Panics where anything did.
    pub(crate) fn check(&self) {
        let notes = self.notes.lock().unwrap();
        assert!(notes.is_empty(), "{notes:#?}");
    }

    /// What went wrong so far, after the driver has ended. Panics where anything did.
    pub(crate) fn check_ended(&self) {
        assert!(self.ended.load(Ordering::SeqCst), "the driver lives");
        self.check();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    pub(crate) fn lose_after(&self, calls: u64) {
        self.lose_at.store(self.calls.load(Ordering::SeqCst) + calls, Ordering::SeqCst);
    }

    pub(crate) fn launched(&self, kernel: &str) -> u64 {
        self.launches.lock().unwrap().get(kernel).copied().unwrap_or(0)
    }

    /// Holds a launch that `first` leads to, and meanwhile does what else there is to do.
    pub(crate) fn while_launching<R>(&self, first: impl FnOnce(), meanwhile: impl FnOnce() -> R) -> R {
        let _gate = self.gate.lock().unwrap();
        self.is_at_gate.store(false, Ordering::SeqCst);
        first();
        while !self.is_at_gate.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        meanwhile()
    }

    pub(super) fn note(&self, what: impl Into<String>) {
        self.notes.lock().unwrap().push(what.into());
    }
}
