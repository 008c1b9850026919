//! [`Compiled`]: the table of some engine, behind a trait, so that verbs are compiled for each tuple and not
//! for each engine, too.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use wirespeed::GpuError;
use wirespeed::classify::image_file::{RuleImageFile, save};
use wirespeed::engine::{EngineName, OnDevice, RuleTuple, Visitor, visit};
use wirespeed::gpu::classify::{Meter, Offload, Remote, Use};
use wirespeed::gpu::runtime::Fleet;
use wirespeed_classify::{BuildError, BuildOptions, Engine, Lookup, RuleSet};
use wirespeed_image::{Image, Table};

use super::actions::Beside;

/// A compiled set.
pub(super) struct Compiled<T: RuleTuple> {
    pub(super) engine: EngineName,
    pub(super) table: Box<dyn AnyTable<T>>,
    /// Bytes that the engine holds beside it for updates; 0 of one that came compiled.
    pub(super) control_plane: u64,
    pub(super) build_time: Duration,
}

/// The table of some engine.
pub(super) trait AnyTable<T: RuleTuple>: Send + Sync {
    /// What looks up in it.
    fn lookups(&self) -> &dyn Lookup<T>;
    fn image(&self) -> &Image;
    /// The table on GPUs.
    fn upload(&self, fleet: &Fleet) -> Result<Remote<T>, GpuError>;
    /// Writes it to an image file with what lies beside it.
    fn save(&self, beside: &Beside<T>, to: &Path) -> Result<Image>;
}

impl<T: RuleTuple> Compiled<T> {
    /// Compiles a set for an engine.
    pub(super) fn build(
        engine: EngineName,
        rules: &RuleSet<T>,
        options: &BuildOptions,
    ) -> Result<Result<Self, BuildError>> {
        let began = Instant::now();
        let built = visit(engine, Build { rules, options })?;
        let timed =
            |(table, control_plane)| Self { engine, table, control_plane, build_time: began.elapsed() };
        Ok(built.map(timed))
    }

    /// Takes an image.
    pub(super) fn adopt(image: RuleImageFile) -> Result<Self> {
        let (began, engine) = (Instant::now(), image.engine());
        let table = visit(engine, Adopt(image))??;
        Ok(Self { engine, table, control_plane: 0, build_time: began.elapsed() })
    }

    /// The table on GPUs, where these are to look up.
    pub(super) fn offload(&self, fleet: Option<&Fleet>) -> Result<Option<Offload<T>>> {
        let Some(fleet) = fleet else { return Ok(None) };
        let remote = self.table.upload(fleet).with_context(|| cannot_upload(self.engine))?;
        Ok(Some(Offload::new(remote, Use::Always, Meter::new(1, Duration::ZERO))))
    }
}

/// Says that no GPU takes an engine's table.
pub(super) fn cannot_upload(engine: EngineName) -> String {
    format!("{engine} can't be brought to the GPU")
}

/// Says that an engine refuses the rules.
pub(super) fn cannot_build(engine: EngineName) -> String {
    format!("{engine} can't be built")
}

struct Build<'a, T> {
    rules: &'a RuleSet<T>,
    options: &'a BuildOptions,
}

impl<T: RuleTuple> Visitor<T> for Build<'_, T> {
    type Output = Result<(Box<dyn AnyTable<T>>, u64), BuildError>;

    fn visit<E: Engine<T, Table: OnDevice>>(self) -> Self::Output {
        let (engine, table) = E::build(self.rules, self.options)?;
        Ok((Box::new(Held::<T, E>(table)), engine.memory_usage()))
    }
}

struct Adopt(RuleImageFile);

impl<T: RuleTuple> Visitor<T> for Adopt {
    type Output = Result<Box<dyn AnyTable<T>>>;

    fn visit<E: Engine<T, Table: OnDevice>>(self) -> Self::Output {
        Ok(Box::new(Held::<T, E>(self.0.into_table()?)))
    }
}

/// The table of one engine.
struct Held<T: RuleTuple, E: Engine<T>>(E::Table);

impl<T: RuleTuple, E: Engine<T, Table: OnDevice>> AnyTable<T> for Held<T, E> {
    fn lookups(&self) -> &dyn Lookup<T> {
        &self.0
    }

    fn image(&self) -> &Image {
        self.0.image()
    }

    fn upload(&self, fleet: &Fleet) -> Result<Remote<T>, GpuError> {
        Remote::upload(fleet, &self.0, &[])
    }

    fn save(&self, beside: &Beside<T>, to: &Path) -> Result<Image> {
        let Beside { rules, labels, doubts, lines } = beside;
        Ok(save::<T, E>(&self.0, rules, labels, (doubts, lines), to)?)
    }
}
