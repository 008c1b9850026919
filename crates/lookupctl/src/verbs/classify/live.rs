//! [`AnyLive`]: the live table of some engine, behind a trait, as [`compiled`](super::compiled) has tables
//! that stay.

use anyhow::{Context, Result};
use wirespeed::GpuError;
use wirespeed::classify::device::beside;
use wirespeed::classify::image_file::RuleImageFile;
use wirespeed::engine::{EngineName, OnDevice, RuleTuple, Visitor, visit};
use wirespeed::gpu::classify::{Offload, Remote, Use};
use wirespeed::gpu::runtime::{Fleet, GpuOptions};
use wirespeed_classify::{BuildOptions, Engine, LiveRules, Lookup, RuleSet, RuleUpdate};
use wirespeed_image::{Image, Table};

use super::compiled::cannot_build;
use crate::device::Device;
use crate::verbs::replay::either::OnEither;
use crate::verbs::replay::erased::AnyPlace;
use crate::verbs::replay::feed::Live;
use crate::verbs::replay::place::{OnCpu, Tuples};
use crate::verbs::replay::play;

/// The live table of some engine.
pub(super) trait AnyLive<T: RuleTuple>: Live<Update = RuleUpdate<T>> + Send {
    /// Gives the table as it is now, and its image.
    fn with(&self, then: &mut dyn FnMut(&dyn Lookup<T>, &Image));
    /// What looks tuples up in it as it then is, however it changed meanwhile.
    fn looker(&self) -> Looker<T>;
    /// The table on GPUs, which follow it from now on.
    fn upload(&mut self, fleet: &Fleet) -> Result<Remote<T>, GpuError>;
    /// The table on GPUs beside it, measured, where GPUs are asked for and usable.
    fn offload(&mut self, wanted: &Wanted<'_, T>) -> Result<Option<Offload<T>>>;
    /// Where a trace is looked up in it.
    fn place<'p>(
        &self,
        trace: &'p [T],
        offload: Option<Offload<T>>,
        in_flight: usize,
    ) -> Box<dyn AnyPlace + 'p>;
}

/// Looks tuples up.
pub(super) type Looker<T> = Box<dyn Fn(&[T], &mut [u32])>;

/// What is asked of GPUs.
pub(super) struct Wanted<'a, T> {
    pub(super) device: Device,
    pub(super) gpus: GpuOptions,
    /// Tuples to measure with.
    pub(super) sample: &'a [T],
    pub(super) by: Use,
    /// Threads of the CPU beside it.
    pub(super) threads: usize,
}

/// Compiles a set for an engine and puts it live.
pub(super) fn build<T: RuleTuple>(
    engine: EngineName,
    rules: RuleSet<T>,
    options: BuildOptions,
) -> Result<Box<dyn AnyLive<T>>> {
    visit(engine, Build { rules, options })?.with_context(|| cannot_build(engine))
}

/// Puts an image live that takes no updates.
pub(super) fn adopt<T: RuleTuple>(image: RuleImageFile) -> Result<Box<dyn AnyLive<T>>> {
    visit(image.engine(), Adopt(image))?
}

struct Build<T> {
    rules: RuleSet<T>,
    options: BuildOptions,
}

impl<T: RuleTuple> Visitor<T> for Build<T> {
    type Output = Result<Box<dyn AnyLive<T>>>;

    fn visit<E: Engine<T, Table: OnDevice>>(self) -> Self::Output {
        Ok(Box::new(Held::<T, E>(LiveRules::new(self.rules, self.options)?)))
    }
}

struct Adopt(RuleImageFile);

impl<T: RuleTuple> Visitor<T> for Adopt {
    type Output = Result<Box<dyn AnyLive<T>>>;

    fn visit<E: Engine<T, Table: OnDevice>>(self) -> Self::Output {
        let table = self.0.into_table::<E::Table>()?;
        Ok(Box::new(Held::<T, E>(LiveRules::resume(RuleSet::new(), table, BuildOptions::default()))))
    }
}

/// The live table of one engine.
struct Held<T: RuleTuple, E: Engine<T>>(LiveRules<T, E>);

impl<T: RuleTuple, E: Engine<T>> Live for Held<T, E> {
    type Update = RuleUpdate<T>;

    fn take(&mut self, updates: &[RuleUpdate<T>]) -> Result<()> {
        self.0.take(updates)
    }

    fn rebuilds(&self) -> u64 {
        self.0.rebuilds()
    }
}

impl<T: RuleTuple, E: Engine<T, Table: OnDevice>> AnyLive<T> for Held<T, E> {
    fn with(&self, then: &mut dyn FnMut(&dyn Lookup<T>, &Image)) {
        let reader = self.0.reader();
        let table = reader.enter();
        then(&*table, table.image());
    }

    fn looker(&self) -> Looker<T> {
        let reader = self.0.reader();
        Box::new(move |tuples, found| reader.enter().lookup_batch(tuples, found))
    }

    fn upload(&mut self, fleet: &Fleet) -> Result<Remote<T>, GpuError> {
        let remote = Remote::upload(fleet, &*self.0.reader().enter(), &[])?;
        self.0.follow(|_| Ok::<_, GpuError>(remote.follower()))?;
        Ok(remote)
    }

    fn offload(&mut self, wanted: &Wanted<'_, T>) -> Result<Option<Offload<T>>> {
        let Wanted { device, gpus, sample, by, threads } = wanted;
        let beside = |fleet: &Fleet, table: &E::Table| beside(fleet, table, sample, *by, *threads);
        play::offload(*device, gpus, beside, |make| self.0.follow(make))
    }

    fn place<'p>(
        &self,
        trace: &'p [T],
        offload: Option<Offload<T>>,
        in_flight: usize,
    ) -> Box<dyn AnyPlace + 'p> {
        let (trace, reader) = (Tuples(trace), self.0.reader());
        match offload {
            None => Box::new(OnCpu { trace, reader }),
            Some(offload) => Box::new(OnEither { trace, reader, offload, in_flight }),
        }
    }
}

/// A live table takes updates through its box.
impl<T: RuleTuple> Live for Box<dyn AnyLive<T>> {
    type Update = RuleUpdate<T>;

    fn take(&mut self, updates: &[RuleUpdate<T>]) -> Result<()> {
        (**self).take(updates)
    }

    fn rebuilds(&self) -> u64 {
        (**self).rebuilds()
    }
}
