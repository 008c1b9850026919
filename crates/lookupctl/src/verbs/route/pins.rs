//! [`Pins`]: the cores of the workers, if they are pinned.

use anyhow::Result;
use wirespeed_router::Error;

use super::options::Options;

/// The cores of the workers, if they are pinned.
pub(super) struct Pins {
    #[cfg(target_os = "linux")]
    cores: Option<wirespeed_router::Cores>,
}

impl Pins {
    /// Refuses cores that are too few, or that this process may not run on.
    #[cfg(target_os = "linux")]
    pub(super) fn of(options: &Options, workers: usize) -> Result<Self> {
        Ok(Self { cores: options.cores(workers)? })
    }

    /// Refuses to pin.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn of(options: &Options, _: usize) -> Result<Self> {
        if options.pins() {
            anyhow::bail!("workers can be pinned to cores on Linux only");
        }
        Ok(Self {})
    }

    /// Pins the calling thread, which is this worker's: before it makes its memory, so that this lies near.
    pub(super) fn pin(&self, worker: usize) -> Result<(), Error> {
        #[cfg(target_os = "linux")]
        if let Some(core) = self.cores.as_ref().and_then(|cores| cores.of(worker)) {
            return wirespeed_router::Cores::pin(core);
        }
        let _ = worker;
        Ok(())
    }
}
