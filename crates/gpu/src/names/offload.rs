//! [`Offload`]: lookups of names that go to the CPU or to GPUs, and never fail for a GPU's sake.

use wirespeed_namelookup::{Match, NameLpm, Names};

use super::remote::Remote;
use crate::dispatch::{Counts, Dispatcher, Meter, Place, Use};
use crate::error::GpuError;

/// A table of names on GPUs beside the same table on the CPU. Whoever looks up brings the CPU's along; what a GPU can't answer is
/// answered by that, with one warning for all.
pub struct Offload {
    remote: Remote,
    dispatcher: Dispatcher,
}

impl Offload {
    /// The table on GPUs, when to use it, and what lookups cost on the CPU.
    pub fn new(remote: Remote, by: Use, meter: Meter) -> Self {
        Self { remote, dispatcher: Dispatcher::new(by, meter) }
    }

    /// The table on GPUs.
    pub const fn remote(&self) -> &Remote {
        &self.remote
    }

    /// How many names went where since the start.
    pub fn counts(&self) -> Counts {
        self.dispatcher.counts()
    }

    /// Where a batch of so many names goes now.
    pub fn place(&self, names: usize) -> Place {
        let is_there = self.remote.is_out().is_none();
        self.dispatcher.place(names, is_there.then_some(|| self.remote.estimate(names)))
    }

    /// The result of each name into the same place of `results`; `cpu` is the table where the CPU is to look up.
    ///
    /// Panics when the lengths differ.
    pub fn lookup_batch(&self, names: Names<'_>, results: &mut [u32], cpu: &impl NameLpm) {
        let gpu = |results: &mut [u32]| self.remote.lookup_batch(names, results);
        self.answer(names.len(), results, gpu, |results| cpu.lookup_batch(names, results));
    }

    /// The same with the lengths that matched.
    ///
    /// Panics when the lengths differ.
    pub fn match_batch(&self, names: Names<'_>, matches: &mut [Match], cpu: &impl NameLpm) {
        let gpu = |matches: &mut [Match]| self.remote.match_batch(names, matches);
        self.answer(names.len(), matches, gpu, |matches| cpu.match_batch(names, matches));
    }

    fn answer<T>(
        &self,
        names: usize,
        found: &mut [T],
        gpu: impl FnOnce(&mut [T]) -> Result<(), GpuError>,
        cpu: impl FnOnce(&mut [T]),
    ) {
        if self.place(names) == Place::Gpu {
            match gpu(found) {
                Ok(()) => return self.dispatcher.count(Place::Gpu, names),
                Err(error) => self.dispatcher.warn(&error),
            }
        }
        self.dispatcher.on_cpu(names, || cpu(found));
    }
}
