//! The tunnels of `--app esp`: read from a file, and told at the end; and the GPUs that seal and open.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use wirespeed_esp::gpu::driver::{Cuda, devices};
use wirespeed_esp::gpu::{self, Offload, Use};
use wirespeed_esp::read::Lines;
use wirespeed_esp::{Database, Error};
use wirespeed_router::App;
use wirespeed_router::apps::Esp;

use super::options::{AppName, Options};
use crate::device::Device;

/// The GPUs of the workers that have one.
#[derive(Default)]
pub(super) struct Gpus(Mutex<Vec<Option<Offload>>>);

impl Gpus {
    /// Opens a part of a GPU for each of these workers, of all GPUs in turns, for `--app esp`. Fails if
    /// `--device gpu` finds none.
    pub(super) fn open(options: &Options, workers: usize) -> Result<Self> {
        let device = options.device();
        let there = match devices() {
            _ if device == Device::Cpu || options.app != AppName::Esp => return Ok(Self::default()),
            Ok(gpus) => gpus.len(),
            Err(why) if device == Device::Gpu => bail!("--device gpu: {why}"),
            Err(why) => {
                if device == Device::Auto {
                    eprintln!("no usable GPU: {why}; the CPU seals and opens packets");
                }
                return Ok(Self::default());
            }
        };
        let by = if device == Device::Gpu { Use::Always } else { Use::ByCost };
        let open = |worker: usize| -> Result<Offload, Error> {
            let driver = Box::new(Cuda::open(worker % there)?);
            Ok(Offload::new(gpu::Device::new(driver, &Offload::OPTIONS)?, by))
        };
        let mut parts = Vec::new();
        for worker in 0..workers {
            parts.push(match open(worker) {
                Ok(offload) => Some(offload),
                Err(why) if device == Device::Gpu => bail!("--device gpu: {why}"),
                Err(why) => {
                    eprintln!("no usable GPU for worker {worker}: {why}; the CPU seals and opens packets");
                    None
                }
            });
        }
        Ok(Self(Mutex::new(parts)))
    }

    /// Gives the gateway of a worker its part of a GPU, once.
    pub(super) fn give<'t, A: App>(&self, worker: usize, gateway: Esp<'t, A>) -> Esp<'t, A> {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match parts.get_mut(worker).and_then(Option::take) {
            Some(part) => gateway.gpu(part),
            None => gateway,
        }
    }
}

/// Reads associations and policies. A line that is skipped is an error: a policy that is not there lets
/// packets out in the clear.
pub(super) fn load(options: &Options) -> Result<Database> {
    let path = options.sad.as_ref().context("--app esp needs associations and policies: --sad FILE")?;
    let lines = Lines::read_file(path)?;
    if let Some(first) = lines.skipped.first() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        lines.skipped.iter().for_each(|skipped| *counts.entry(skipped.skip.name()).or_default() += 1);
        let counts: Vec<String> = counts.iter().map(|(reason, count)| format!("{reason}: {count}")).collect();
        bail!("{}: {first} (lines that can't be used: {})", path.display(), counts.join(", "));
    }
    let mut database = Database::new()?;
    database.apply(lines.changes).with_context(|| format!("{}", path.display()))?;
    Ok(database)
}

/// Tells the numbers from which each association that was used goes on.
pub(super) fn tell(database: &Database) {
    for sa in database.state().sas() {
        let (packets, bytes) = sa.carried();
        if packets > 0 {
            let (sent, received) = (sa.sent(), sa.received());
            let halves = |name: &str, number: u64| match number >> 32 {
                0 => format!("{name} {number}"),
                high => format!("{name} {} {name}-hi {high}", number & 0xffff_ffff),
            };
            eprintln!(
                "association {:#x} to {}: {packets} packets, {bytes} bytes; it goes on with {} {}",
                sa.spi(),
                sa.tunnel().1,
                halves("replay-oseq", sent),
                halves("replay-seq", received),
            );
        }
    }
}
