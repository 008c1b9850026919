//! [`TableHandle`]: the handle of a table on a device.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use wirespeed_image::{Image, Patch, SectionId};

use super::command::{Command, Copy, Install};
use super::core::Core;
use super::writes::{Places, Writes};
use super::{Result, locked};
use crate::driver::DevicePtr;
use crate::error::GpuError;
use wirespeed_image::device::{Program, Programs, Sections};

/// A table on a device. Clones share the table. Its memory is freed when the last clone is gone and no batch
/// uses it.
///
/// Each patch and each replacement makes the next version, starting at 0. They take effect in the order of
/// the calls, between batches: batches that were submitted earlier see the state before, later batches see
/// the state after.
#[derive(Clone)]
pub struct TableHandle {
    inner: Arc<Inner>,
}

struct Inner {
    core: Arc<Core>,
    id: u64,
    /// Held from a change's first step to its command, so that changes reach the owner in the order of their
    /// versions.
    places: Mutex<Places>,
    version: AtomicU64,
    result_bytes: AtomicU64,
}

impl TableHandle {
    pub(super) fn upload(
        core: &Arc<Core>,
        image: &Image,
        make: impl FnOnce(Sections<'_>) -> Programs,
    ) -> Result<Self> {
        let uploaded = Uploaded::new(core, image, make)?;
        let id = core.shared.next_id();
        let result_bytes = uploaded.result_bytes();
        let places = uploaded.install(id, 0)?;
        let inner = Inner {
            core: Arc::clone(core),
            id,
            places: Mutex::new(places),
            version: AtomicU64::new(0),
            result_bytes: AtomicU64::new(result_bytes as u64),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The last version that was made.
    pub fn version(&self) -> u64 {
        self.inner.version.load(Ordering::Acquire)
    }

    /// Bytes of a result.
    pub fn result_bytes(&self) -> usize {
        usize::try_from(self.inner.result_bytes.load(Ordering::Acquire)).expect("1, 2 or 4")
    }

    /// Applies a patch between batches, and returns its version. Does not wait for the device. Patches that
    /// come while others wait are sent together. O(writes).
    ///
    /// The table's engine must have checked the patch ([`Table::check`](wirespeed_image::Table::check)). Only
    /// its locations are checked here.
    pub fn patch(&self, patch: &Patch) -> Result<u64> {
        self.write(patch, false)
    }

    /// Applies a patch by one launch for each write: the method of GALE (GAMT, section 5), for comparison.
    pub fn patch_one_by_one(&self, patch: &Patch) -> Result<u64> {
        self.write(patch, true)
    }

    fn write(&self, patch: &Patch, one_by_one: bool) -> Result<u64> {
        let places = locked(&self.inner.places);
        let writes = Writes::of(patch, &places)?;
        let version = self.version() + 1;
        self.inner.core.order(Command::Patch { table: self.inner.id, writes, version, one_by_one })?;
        self.inner.version.store(version, Ordering::Release);
        Ok(version)
    }

    /// Requires at least `key_bytes` bytes of keys from now on, in the order of patches and batches. Batches
    /// with narrower keys come back with [`GpuError::NarrowKeys`](crate::GpuError::NarrowKeys).
    pub fn require(&self, key_bytes: usize) -> Result<()> {
        let _in_order = locked(&self.inner.places);
        self.inner.core.order(Command::Require { table: self.inner.id, key_bytes, result_bytes: 0 })
    }

    /// Makes results of at least `result_bytes` bytes from now on, in the order of patches, for lookups of
    /// keys on the device that state no width ([`Gpu::lookup_on`](super::Gpu::lookup_on)): later patches may
    /// bring results that are too large for fewer. Kernels that write results of any width allow this. A
    /// replacement has its own width again.
    pub fn widen(&self, result_bytes: usize) -> Result<()> {
        let _in_order = locked(&self.inner.places);
        self.inner.core.order(Command::Require { table: self.inner.id, key_bytes: 0, result_bytes })?;
        self.inner.result_bytes.fetch_max(result_bytes as u64, Ordering::AcqRel);
        Ok(())
    }

    /// Waits until the device has applied all earlier patches.
    pub fn settle(&self) -> Result<()> {
        self.inner.core.ask(Command::Settled)
    }

    /// Replaces the table's image, and returns the version: the scheme of GAMT's two copies. Lookups continue
    /// in the old image while the new one is uploaded on another stream. Then, between two batches, they
    /// change to the new image, and the old one's memory is freed when its last batch is done. So both take
    /// memory for a while. Patches wait until the new image is there.
    pub fn replace(&self, image: &Image, make: impl FnOnce(Sections<'_>) -> Programs) -> Result<u64> {
        let mut places = locked(&self.inner.places);
        let uploaded = Uploaded::new(&self.inner.core, image, make)?;
        let version = self.version() + 1;
        let result_bytes = uploaded.result_bytes();
        *places = uploaded.install(self.inner.id, version)?;
        self.inner.result_bytes.store(result_bytes as u64, Ordering::Release);
        self.inner.version.store(version, Ordering::Release);
        Ok(version)
    }

    pub(super) fn id(&self) -> u64 {
        self.inner.id
    }

    pub(super) fn is_of(&self, core: &Arc<Core>) -> bool {
        Arc::ptr_eq(&self.inner.core, core)
    }
}

impl std::fmt::Debug for TableHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableHandle").field("version", &self.version()).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Without an owner there is no table, either.
        drop(self.core.send(Command::Drop(self.id)));
    }
}

/// An image on the device that is not a table yet. Dropping it frees its memory.
struct Uploaded {
    core: Arc<Core>,
    /// Taken when it becomes a table.
    copy: Option<u64>,
    places: Places,
    programs: Vec<Program>,
}

impl Uploaded {
    fn new(core: &Arc<Core>, image: &Image, make: impl FnOnce(Sections<'_>) -> Programs) -> Result<Self> {
        let image = &*image.whole();
        let stays: Vec<SectionId> = sections(image, &core.shared.options.leave_out);
        let sizes = stays.iter().map(|&id| image.padded(id).len()).collect();
        let Copy { id: copy, blocks } = core.ask(|answer| Command::Alloc(sizes, answer))?;
        let mut at = vec![DevicePtr(0); image.sections()];
        for (&id, &block) in stays.iter().zip(&blocks) {
            at[usize::from(id.0)] = block;
        }
        let mut uploaded = Self {
            core: Arc::clone(core),
            copy: Some(copy),
            places: Places::new(image, at.clone()),
            programs: Vec::new(),
        };
        // This comes before the upload, so that a table without a kernel fails quickly.
        uploaded.programs = make(Sections(&at))?;
        uploaded.check_programs()?;
        for (&id, &block) in stays.iter().zip(&blocks) {
            uploaded.send(copy, block, image.padded(id))?;
        }
        core.ask(Command::Uploaded)?;
        Ok(uploaded)
    }

    fn check_programs(&self) -> Result<()> {
        let Some(first) = self.programs.first() else {
            return Err(GpuError::Unsupported("no program".into()));
        };
        if self.programs.iter().any(|program| program.result_bytes != first.result_bytes) {
            return Err(GpuError::Unsupported("programs with results of different widths".into()));
        }
        let (asked, most) = (first.result_bytes, self.core.shared.options.result_bytes);
        if asked > most {
            return Err(GpuError::TooWide { what: "results", asked, most });
        }
        Ok(())
    }

    /// Sends a section in pieces, each through pinned memory of an earlier piece.
    fn send(&self, copy: u64, to: DevicePtr, bytes: &[u8]) -> Result<()> {
        let shared = &self.core.shared;
        let mut to = to;
        for piece in bytes.chunks(shared.options.staging_bytes.max(1)) {
            let mut staging = shared.stagings.recv().map_err(|_| shared.why_lost())?;
            staging.fill(piece);
            let bytes = piece.len();
            self.core.order(Command::Upload { copy, to, staging, bytes })?;
            to = to.plus(bytes as u64);
        }
        Ok(())
    }

    fn result_bytes(&self) -> usize {
        self.programs[0].result_bytes
    }

    /// Makes it the state of a table.
    fn install(mut self, table: u64, version: u64) -> Result<Places> {
        let programs = std::mem::take(&mut self.programs);
        let copy = self.copy.expect("it is a table once at most");
        let install = Install { table, copy, programs, version };
        self.core.order(Command::Install(Box::new(install)))?;
        self.copy = None;
        Ok(std::mem::replace(&mut self.places, Places::none()))
    }
}

impl Drop for Uploaded {
    fn drop(&mut self) {
        if let Some(copy) = self.copy {
            drop(self.core.send(Command::Free(copy)));
        }
    }
}

/// The sections that go to the device.
fn sections(image: &Image, leave_out: &[String]) -> Vec<SectionId> {
    let goes = |usage: &wirespeed_image::SectionUsage| !leave_out.contains(&usage.name);
    let usage = image.memory_usage();
    (0..).map(SectionId).zip(&usage).filter(|(_, usage)| goes(usage)).map(|(id, _)| id).collect()
}
