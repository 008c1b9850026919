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

/// Where batches are looked up: [`Builder::device`](crate::Builder::device).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Device {
    /// The cores of this machine.
    #[default]
    Cpu,
    /// The GPUs of this machine, all of them; building fails where none is usable.
    Gpu,
    /// The GPUs where a batch is back sooner from there, or as the bound on latency has it; else the CPU.
    /// Where no GPU is usable, or the build is without the feature `gpu`, it is always the CPU, and
    /// [`Table::device_note`](crate::Table::device_note) says why.
    Auto,
}

/// What a builder knows of devices.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceSettings {
    pub(crate) device: Device,
    pub(crate) latency_bound: Option<Duration>,
    pub(crate) fleet: Option<Fleet>,
    /// Why there are no GPUs, where that is known already.
    pub(crate) note: Option<String>,
}

impl DeviceSettings {
    /// Starts the GPUs, with these options, where they are wanted and not given. Without any, an error or the
    /// CPU, as the device has it.
    pub(crate) fn open(&mut self, options: &GpuOptions) -> Result<(), Error> {
        if self.device == Device::Cpu {
            self.fleet = None;
        } else if self.fleet.is_none() && self.note.is_none() {
            self.fleet = self.or_cpu(open_all(options))?;
        }
        Ok(())
    }

    /// Takes the result of a call to a GPU. An error stays one if only a GPU will do; else it becomes a note
    /// and a warning.
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

    /// When GPUs are used.
    pub(crate) fn by(&self) -> Use {
        match self.device {
            Device::Gpu => Use::Always,
            Device::Cpu | Device::Auto => Use::ByLoad(Policy { latency_bound: self.latency_bound }),
        }
    }
}

/// Brings a live table to GPUs, which follow it from then on, and measures what lookups of these keys cost
/// there and on the CPU, for so many threads. Lookups in the table depend on so many first bits of a key
/// ([`AnyLive::reach`]), if keys are addresses. Takes about a second.
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
    Ok(Offload::new(remote, by, meter))
}

/// A thread a core: how many are taken to look up where nobody says.
pub(crate) fn all_cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// What a batch of so many keys costs on this CPU.
fn measured(threads: usize, keys: usize, mut look_up: impl FnMut()) -> Meter {
    let mut time = || {
        let began = Instant::now();
        look_up();
        began.elapsed()
    };
    // The first brings the table into the caches, as traffic does.
    let first = time();
    Meter::measured(threads, keys, time().min(first))
}
