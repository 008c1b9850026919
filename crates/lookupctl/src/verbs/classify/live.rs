//! [`AnyLive`]: the live table of some engine, behind a trait, as [`compiled`](super::compiled) has tables that stay.

use anyhow::{Context, Result};
use wirespeed::GpuError;
use wirespeed::classify::device::beside;
use wirespeed::classify::engine::{EngineName, OnDevice, Visitor, visit};
use wirespeed::classify::image_file::RuleImageFile;
use wirespeed::gpu::classify::{Offload, Remote, Use};
use wirespeed::gpu::runtime::{Fleet, GpuOptions};
use wirespeed_classify::{BuildOptions, Classify, ClassifyEngine, LiveRules, RuleSet, RuleUpdate, Tuple};
use wirespeed_image::{Image, Table};

use super::compiled::cannot_build;
use crate::device::Device;
use crate::verbs::replay::either::OnEither;
use crate::verbs::replay::erased::{AnyPlace, Erased};
use crate::verbs::replay::feed::Live;
use crate::verbs::replay::place::{OnCpu, Tuples};
use crate::verbs::replay::play;

/// The live table of some engine.
pub(super) trait AnyLive<T: Tuple>: Live<Update = RuleUpdate<T>> + Send {
    /// Gives the table as it is now, and its image.
    fn with(&self, then: &mut dyn FnMut(&dyn Classify<T>, &Image));
    /// It on GPUs, which follow it from now on.
    fn upload(&mut self, fleet: &Fleet) -> Result<Remote<T>, GpuError>;
    /// The same beside it where GPUs are asked for and usable, measured.
    fn offload(&mut self, wanted: &Wanted<'_, T>) -> Result<Option<Offload<T>>>;
    /// Where a trace is looked up in it.
    fn place<'p>(&self, trace: &'p [T], offload: Option<Offload<T>>, in_flight: usize) -> Erased<'p>;
}

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
pub(super) fn build<T: Tuple>(
    engine: EngineName,
    rules: RuleSet<T>,
    options: BuildOptions,
) -> Result<Box<dyn AnyLive<T>>> {
    visit(engine, Build { rules, options }).with_context(|| cannot_build(engine))
}

/// Puts an image live that takes no updates.
pub(super) fn adopt<T: Tuple>(image: RuleImageFile) -> Result<Box<dyn AnyLive<T>>> {
    visit(image.engine(), Adopt(image))
}

struct Build<T> {
    rules: RuleSet<T>,
    options: BuildOptions,
}

impl<T: Tuple> Visitor<T> for Build<T> {
    type Output = Result<Box<dyn AnyLive<T>>>;

    fn visit<E: ClassifyEngine<T>>(self) -> Self::Output {
        Ok(Box::new(Held::<T, E> { live: LiveRules::new(self.rules, self.options)?, kernels: None }))
    }

    fn visit_on_device<E: ClassifyEngine<T, Table: OnDevice>>(self) -> Self::Output {
        let kernels = Some(Kernels::<T, E>::of());
        Ok(Box::new(Held { live: LiveRules::new(self.rules, self.options)?, kernels }))
    }
}

struct Adopt(RuleImageFile);

impl Adopt {
    fn live<T: Tuple, E: ClassifyEngine<T>>(self) -> Result<LiveRules<T, E>> {
        Ok(LiveRules::resume(RuleSet::new(), self.0.into_table::<E::Table>()?, BuildOptions::default()))
    }
}

impl<T: Tuple> Visitor<T> for Adopt {
    type Output = Result<Box<dyn AnyLive<T>>>;

    fn visit<E: ClassifyEngine<T>>(self) -> Self::Output {
        Ok(Box::new(Held::<T, E> { live: self.live()?, kernels: None }))
    }

    fn visit_on_device<E: ClassifyEngine<T, Table: OnDevice>>(self) -> Self::Output {
        Ok(Box::new(Held { live: self.live()?, kernels: Some(Kernels::<T, E>::of()) }))
    }
}

/// That of an engine.
struct Held<T: Tuple, E: ClassifyEngine<T>> {
    live: LiveRules<T, E>,
    kernels: Option<Kernels<T, E>>,
}

/// What can be done on GPUs with an engine that there are kernels for.
struct Kernels<T: Tuple, E: ClassifyEngine<T>> {
    upload: Uploading<T, E>,
    offload: Offloading<T, E>,
}

/// As [`AnyLive::upload`] does it.
type Uploading<T, E> = fn(&mut LiveRules<T, E>, &Fleet) -> Result<Remote<T>, GpuError>;
/// As [`AnyLive::offload`] does it.
type Offloading<T, E> = fn(&mut LiveRules<T, E>, &Wanted<'_, T>) -> Result<Option<Offload<T>>>;

impl<T: Tuple, E: ClassifyEngine<T, Table: OnDevice>> Kernels<T, E> {
    fn of() -> Self {
        Self {
            upload: |live, fleet| {
                let remote = Remote::upload(fleet, &*live.reader().enter(), &[])?;
                live.follow(|_| Ok::<_, GpuError>(remote.follower()))?;
                Ok(remote)
            },
            offload: |live, wanted| {
                let Wanted { device, gpus, sample, by, threads } = wanted;
                let beside = |fleet: &Fleet, table: &E::Table| beside(fleet, table, sample, *by, *threads);
                play::offload(*device, gpus, beside, |make| live.follow(make))
            },
        }
    }
}

impl<T: Tuple, E: ClassifyEngine<T>> Live for Held<T, E> {
    type Update = RuleUpdate<T>;

    fn take(&mut self, updates: &[RuleUpdate<T>]) -> Result<()> {
        self.live.take(updates)
    }

    fn rebuilds(&self) -> u64 {
        self.live.rebuilds()
    }
}

impl<T: Tuple, E: ClassifyEngine<T>> AnyLive<T> for Held<T, E> {
    fn with(&self, then: &mut dyn FnMut(&dyn Classify<T>, &Image)) {
        let reader = self.live.reader();
        let table = reader.enter();
        then(&*table, table.image());
    }

    fn upload(&mut self, fleet: &Fleet) -> Result<Remote<T>, GpuError> {
        match &self.kernels {
            Some(kernels) => (kernels.upload)(&mut self.live, fleet),
            None => Err(no_kernel(E::NAME)),
        }
    }

    fn offload(&mut self, wanted: &Wanted<'_, T>) -> Result<Option<Offload<T>>> {
        match &self.kernels {
            Some(kernels) => (kernels.offload)(&mut self.live, wanted),
            None => wanted.device.unless_missing(Err(no_kernel(E::NAME))),
        }
    }

    fn place<'p>(&self, trace: &'p [T], offload: Option<Offload<T>>, in_flight: usize) -> Erased<'p> {
        let (trace, reader) = (Tuples(trace), self.live.reader());
        let place: Box<dyn AnyPlace + 'p> = match offload {
            None => Box::new(OnCpu { trace, reader }),
            Some(offload) => Box::new(OnEither { trace, reader, offload, in_flight }),
        };
        Erased(place)
    }
}

/// Of an engine of the CPU.
pub(super) fn no_kernel(engine: &str) -> GpuError {
    GpuError::Unsupported(format!("there is no kernel for {engine}"))
}

/// A live table takes updates through its box.
impl<T: Tuple> Live for Box<dyn AnyLive<T>> {
    type Update = RuleUpdate<T>;

    fn take(&mut self, updates: &[RuleUpdate<T>]) -> Result<()> {
        (**self).take(updates)
    }

    fn rebuilds(&self) -> u64 {
        (**self).rebuilds()
    }
}
