//! [`Shared`]: the part of a device that its owner shares with the handles.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use crossbeam_channel::Receiver;

use super::calibration::Calibration;
use super::command::Staging;
use super::memory::Account;
use super::options::GpuOptions;
use super::pool::Pool;
use crate::driver::Properties;
use crate::error::GpuError;

/// The part that the owner shares with the handles.
pub(super) struct Shared {
    pub(super) options: GpuOptions,
    pub(super) properties: Properties,
    pub(super) pool: Pool,
    /// The reason why the device can't be used any more.
    pub(super) lost: OnceLock<GpuError>,
    pub(super) load: Load,
    pub(super) account: Account,
    pub(super) stagings: Receiver<Staging>,
    pub(super) calibration: Mutex<Option<Calibration>>,
    ids: AtomicU64,
}

/// The number of keys under way.
#[derive(Debug, Default)]
pub(super) struct Load(AtomicU64);

impl Shared {
    pub(super) fn new(properties: Properties, options: GpuOptions, stagings: Receiver<Staging>) -> Self {
        Self {
            properties,
            pool: Pool::new(&options.slots),
            lost: OnceLock::new(),
            load: Load::default(),
            account: Account::new(options.memory_cap),
            stagings,
            calibration: Mutex::new(None),
            ids: AtomicU64::new(0),
            options,
        }
    }

    pub(super) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Says that the device can't be used any more. The first reason counts.
    pub(super) fn lose(&self, why: GpuError) {
        if self.lost.set(why.clone()).is_ok() {
            tracing::error!(device = self.properties.name, "{why}");
        }
        self.pool.close(why);
    }

    /// The reason why there is no answer. If the owner has ended, or is about to say why, the device counts
    /// as lost from now on.
    pub(super) fn why_lost(&self) -> GpuError {
        if self.lost.get().is_none() {
            self.lose(GpuError::Lost("its owner thread has ended".into()));
        }
        self.lost.get().cloned().expect("it is lost now if it wasn't")
    }
}

impl Load {
    pub(super) fn add(&self, keys: usize) {
        self.0.fetch_add(keys as u64, Ordering::Relaxed);
    }

    pub(super) fn done(&self, keys: usize) {
        self.0.fetch_sub(keys as u64, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
