//! [`Device`]: lookups on the CPU, on GPUs, or on either by load.
//!
//! ```text
//! Builder::device ──► gpus() ──► Fleet ──► offload(): the table on the GPUs, kept in step with the live one ──► Offload
//!                                                                                                               │ shared
//!                                            Reader::lookup_batch, Pipeline ── CPU or GPU, batch by batch ◄─────┘ by readers
//! ```

use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use wirespeed_table::Keys;

use crate::engine::{AnyLive, MEASURED, Served};
use crate::error::Error;
use crate::gpu::GpuError;
use crate::gpu::dispatch::{Meter, Policy, Use};
use crate::gpu::ip::open_all;
use crate::gpu::offload::Offload;
use crate::gpu::runtime::{Fleet, GpuOptions};

/// The device that looks batches up: [`Builder::device`](crate::Builder::device).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Device {
    /// The cores of this machine.
    #[default]
    Cpu,
    /// All GPUs of this machine. Building fails if none is usable.
    Gpu,
    /// GPUs or the CPU: each batch goes where it is answered sooner, or as the latency bound demands. Without
    /// a usable GPU, or without the feature `gpu`, the CPU looks up everything, and
    /// [`Table::device_note`](crate::Table::device_note) says why.
    Auto,
}

/// Settings of devices that a builder collects.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceSettings {
    pub(crate) device: Device,
    pub(crate) latency_bound: Option<Duration>,
    pub(crate) fleet: Option<Fleet>,
    /// The length of the longest prefix that a table of addresses will ever have, if it is stated.
    pub(crate) longest_prefix: Option<u8>,
    /// The reason why there are no GPUs, once it is known.
    pub(crate) note: Option<String>,
}

impl DeviceSettings {
    /// Starts the GPUs with these options, unless the CPU alone looks up or a fleet was given. If no GPU is
    /// usable, [`Device::Gpu`] makes this an error, and [`Device::Auto`] falls back to the CPU.
    pub(crate) fn open(&mut self, options: &GpuOptions) -> Result<(), Error> {
        if self.device == Device::Cpu {
            self.fleet = None;
        } else if self.fleet.is_none() && self.note.is_none() {
            self.fleet = self.or_cpu(open_all(options))?;
        }
        Ok(())
    }

    /// Takes the result of a call to a GPU. An error stays an error for [`Device::Gpu`]; for other devices it
    /// becomes a note and a warning.
    pub(crate) fn or_cpu<T>(&mut self, got: Result<T, GpuError>) -> Result<Option<T>, Error> {
        match got {
            Ok(got) => Ok(Some(got)),
            Err(error) if self.device == Device::Gpu => Err(error.into()),
            Err(error) => {
                #[cfg(feature = "gpu")]
                tracing::warn!("lookups run on the CPU: {error}");
                self.note = Some(error.to_string());
                Ok(None)
            }
        }
    }

    /// The policy by which batches go to GPUs.
    pub(crate) fn by(&self) -> Use {
        match self.device {
            Device::Gpu => Use::Always,
            Device::Cpu | Device::Auto => Use::ByLoad(Policy { latency_bound: self.latency_bound }),
        }
    }
}

/// Copies a live table to GPUs, which follow it from then on. Measures the cost of lookups of `keys` on the
/// GPUs and on the CPU, for this number of threads. Takes about a second. For addresses, `reach` is the
/// number of leading bits of a key that lookups depend on: [`AnyLive::reach`].
#[inline(never)] // one copy for all crates
pub fn offload<D: Served>(
    live: &mut dyn AnyLive<D>,
    fleet: &Fleet,
    keys: D::Keys<'_>,
    reach: u8,
    by: Use,
    threads: usize,
) -> Result<Offload<D::Remote>, GpuError> {
    let remote = live.upload(fleet, D::key_hint(keys, reach))?;
    let keys = keys.part(0..keys.len().min(MEASURED));
    let (reader, mut results) = (live.reader(), vec![D::Result::default(); keys.len()]);
    let meter = measured(threads, keys.len(), || reader.enter().table.lookup_batch(keys, &mut results));
    Ok(Offload::measured(remote, by, meter, keys))
}

/// The number of cores: the default number of threads that look up.
pub(crate) fn all_cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// Measures the cost of a batch of this many keys on this CPU.
fn measured(threads: usize, keys: usize, mut look_up: impl FnMut()) -> Meter {
    let mut time = || {
        let began = Instant::now();
        look_up();
        began.elapsed()
    };
    // The first pass brings the table into the caches, as traffic does.
    let first = time();
    Meter::measured(threads, keys, time().min(first))
}
