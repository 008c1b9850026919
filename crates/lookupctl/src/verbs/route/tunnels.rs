//! The tunnels of `--app esp`: read from a file that is followed, and told at the end; and the GPUs that seal
//! and open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use wirespeed::Reloader;
use wirespeed_esp::gpu::driver::{Cuda, devices};
use wirespeed_esp::gpu::{self, Offload, Use};
use wirespeed_esp::read::Lines;
use wirespeed_esp::{Change, Database, Error, Reader, Replaced};
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
    pub(super) fn give<'t>(&self, worker: usize, gateway: Esp<'t>) -> Esp<'t> {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match parts.get_mut(worker).and_then(Option::take) {
            Some(part) => gateway.gpu(part),
            None => gateway,
        }
    }
}

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How often it is looked whether SIGHUP came.
const TICK: Duration = Duration::from_millis(100);

/// Tunnels that follow their file.
pub(super) struct Tunnels {
    database: Mutex<Database>,
    watch: Mutex<Watch>,
    /// The UDP ports whose packets are taken, where that is settled at the start.
    ports: Option<Vec<u16>>,
}

impl Tunnels {
    /// Reads associations and policies. Fails if the file can't be used.
    pub(super) fn open(options: &Options) -> Result<Self> {
        let path = options.sad.as_ref().context("--app esp needs associations and policies: --sad FILE")?;
        let (watch, changes) = Watch::begin(path)?;
        let mut database = Database::new()?;
        database.apply(changes).with_context(|| format!("{}", path.display()))?;
        let ports = (!options.interfaces.is_empty()).then(|| database.state().ports().to_vec());
        Ok(Self { database: Mutex::new(database), watch: Mutex::new(watch), ports })
    }

    /// A reader, for a worker.
    pub(super) fn reader(&self) -> Reader {
        self.database().reader()
    }

    /// The UDP ports that are for ESP.
    pub(super) fn ports(&self) -> Vec<u16> {
        self.database().state().ports().to_vec()
    }

    /// Does some work, and follows the file meanwhile.
    pub(super) fn followed<R>(&self, work: impl FnOnce() -> R) -> R {
        std::thread::scope(|scope| {
            // It is dropped at the end of the work, by a panic too.
            let (working, is_over) = channel::<()>();
            scope.spawn(move || {
                while is_over.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    self.look();
                }
            });
            let done = work();
            drop(working);
            done
        })
    }

    /// Takes the file's content if there is another one, and tells it.
    fn look(&self) {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(changes) = watch.next() else { return };
        let name = watch.path.display().to_string();
        match changes.and_then(|changes| self.replace(&name, changes)) {
            Ok(Replaced { kept, changed, added, ended, policies, .. }) => {
                watch.is_used();
                let associations = kept + changed + added;
                eprintln!(
                    "{name}: read again: associations: {associations}, new: {added}, changed: {changed}, ended: {ended}; \
                     policies that differ: {policies}"
                );
            }
            Err(error) => {
                if let Some(error) = watch.is_bad(format!("{error:#}")) {
                    eprintln!("tunnels stay as they are: {error}");
                }
            }
        }
    }

    fn replace(&self, name: &str, changes: Vec<Change>) -> Result<Replaced> {
        if changes.is_empty() {
            // All would go out in the clear: rather a file that is being written.
            bail!("{name}: there is no line of an association or a policy in it");
        }
        for change in &changes {
            let (Change::AddSa(config) | Change::SetSa(config)) = change else { continue };
            let port = config.ports.map(|ports| ports.dst);
            if let (Some(port), Some(taken)) = (port, &self.ports)
                && !taken.contains(&port)
            {
                bail!(
                    "{name}: packets to UDP port {port}, of association {:#x}, can be taken from the next start on only",
                    config.spi
                );
            }
        }
        self.database().replace(changes).with_context(|| name.to_owned())
    }

    fn database(&self) -> MutexGuard<'_, Database> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the numbers from which each association that was used goes on.
    pub(super) fn tell(&self) {
        tell(&self.database());
    }
}

/// A file of associations and policies that is followed.
struct Watch {
    path: PathBuf,
    reloader: Reloader,
    looked: Instant,
    /// The content of a file that has changed. It is taken once the file has stayed as it is for a look: one
    /// that is written in place may be there in half, and then policies are missing.
    waiting: Option<Result<Vec<Change>>>,
    /// The reason why the last content was not taken, as it was told.
    told: Option<String>,
    /// Whether SIGHUP came.
    hangup: Arc<AtomicBool>,
}

impl Watch {
    /// Reads the file for the first time. From then on SIGHUP asks for it to be read again.
    fn begin(path: &Path) -> Result<(Self, Vec<Change>)> {
        let mut reloader = Reloader::new(path);
        // A pipe can be read once, and a file that is not there has its own words for it.
        let changes = match path.is_file() {
            true => reloader.if_changed(|path| Ok(read(path)))?.context("a file that was not read yet")??,
            false => read(path)?,
        };
        let hangup = Arc::default();
        #[cfg(unix)]
        {
            // Without a handler the signal ends the process, as it does elsewhere.
            let _ = signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(&hangup));
        }
        let (looked, path) = (Instant::now(), path.to_owned());
        Ok((Self { path, reloader, looked, waiting: None, told: None, hangup }, changes))
    }

    /// The content of the file that is to be taken now, if there is one.
    fn next(&mut self) -> Option<Result<Vec<Change>>> {
        let is_asked = self.hangup.swap(false, Ordering::Relaxed);
        if !is_asked && self.looked.elapsed() < LOOK {
            return None;
        }
        self.looked = Instant::now();
        if !self.path.is_file() {
            let is_there = self.path.exists();
            // What never was a file is not followed.
            let why = if is_there { "not a file, so it can't be read again" } else { "the file is gone" };
            let is_told = is_asked || !is_there;
            return is_told.then(|| bail!("{}: {why}", self.path.display()));
        }
        if is_asked {
            (self.reloader, self.waiting, self.told) = (Reloader::new(&self.path), None, None);
        }
        match self.reloader.if_changed(|path| Ok(read(path))) {
            Ok(Some(changes)) if is_asked => Some(changes),
            Ok(Some(changes)) => {
                self.waiting = Some(changes);
                None
            }
            Ok(None) => self.waiting.take(),
            Err(error) => Some(Err(error.into())),
        }
    }

    /// Notes that a content was taken.
    fn is_used(&mut self) {
        self.told = None;
    }

    /// Notes why a content was not taken, and gives the reason if it is another one than before. The file is
    /// looked at again even if its content stays: its permissions may change.
    fn is_bad(&mut self, why: String) -> Option<&str> {
        self.reloader = Reloader::new(&self.path);
        let is_new = self.told.as_ref() != Some(&why);
        is_new.then(|| &**self.told.insert(why))
    }
}

/// Reads associations and policies. A line that is skipped is an error: a policy that is not there lets
/// packets out in the clear.
fn read(path: &Path) -> Result<Vec<Change>> {
    let lines = Lines::read_file(path)?;
    if let Some(first) = lines.skipped.first() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        lines.skipped.iter().for_each(|skipped| *counts.entry(skipped.skip.name()).or_default() += 1);
        let counts: Vec<String> = counts.iter().map(|(reason, count)| format!("{reason}: {count}")).collect();
        bail!("{}: {first} (lines that can't be used: {})", path.display(), counts.join(", "));
    }
    lines.passed_over.iter().for_each(|word| eprintln!("{}: {word}", path.display()));
    Ok(lines.changes)
}

fn tell(database: &Database) {
    for sa in database.state().sas() {
        let (packets, bytes) = sa.carried();
        if packets > 0 {
            let (sent, received) = (sa.sent(), sa.received());
            let halves = |name: &str, number: u64| match number >> 32 {
                0 => format!("{name} {number}"),
                high => format!("{name} {} {name}-hi {high}", number & 0xffff_ffff),
            };
            eprintln!(
                "association {:#x} to {}: {packets} packets, {bytes} bytes{}; it goes on with {} {}",
                sa.spi(),
                sa.tunnel().1,
                if sa.is_expired() { ", expired" } else { "" },
                halves("replay-oseq", sent),
                halves("replay-seq", received),
            );
        }
    }
}
