//! [`TableCore`] and [`ReaderCore`]: the parts that tables and readers of all domains have in common.

use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "rules")]
use wirespeed_fib::NextHop;
use wirespeed_image::Image;
use wirespeed_image::live::Applied;
use wirespeed_table::{BuildError, BuildOptions};

use crate::device::{DeviceSettings, all_cores, offload};
use crate::engine::{AnyLive, AnyReader, EngineName, Entered, Served, Wanted, of_kind};
use crate::error::Error;
use crate::gpu::dispatch::Counts;
use crate::gpu::offload::{Offload, RemoteTable};
use crate::gpu::runtime::Fleet;
use crate::match_ids::{MatchIds, Pairs};
use crate::memory::Cap;
use crate::owned_keys::OwnedKeys;
use crate::settings::Choice;
use crate::turnover::Turnover;
use crate::uses::{Claims, Interned, LabelCounts, TableUses};

/// A live table with its copies on GPUs.
pub(crate) struct TableCore<D: Served> {
    live: Box<dyn AnyLive<D>>,
    choice: Choice,
    cap: Cap,
    /// The table on GPUs.
    offload: Option<Arc<Offload<D::Remote>>>,
    device_note: Option<String>,
    /// The pairs that results stand for, if they are no next hops.
    ids: Option<Arc<MatchIds>>,
    /// Calls that failed.
    refused: u64,
    /// The lines that were left out of the entries of an image file.
    left_out: u64,
    uses: Arc<TableUses>,
    turnover: Arc<Turnover>,
}

impl<D: Served> TableCore<D> {
    /// Builds the table of a model with an engine, or with `auto`, and a copy on GPUs that follows it if
    /// there are some.
    #[inline(never)] // one copy for all crates
    pub(crate) fn build(
        choice: Choice,
        model: D::Model,
        (cap, options): (Cap, BuildOptions),
        wanted: Wanted<D>,
        mut device: DeviceSettings,
    ) -> Result<Self, Error> {
        let live = match choice.is_auto {
            false => D::live(choice.engine, model, options, wanted)?,
            true => D::live_auto(model, options, wanted),
        };
        let mut live = live.map_err(of_build::<D>(choice.engine, cap))?;
        let offload = match device.fleet.clone() {
            None => None,
            Some(fleet) => {
                let sample = D::sample(live.model(), &fleet);
                let reach = device.longest_prefix.unwrap_or(live.reach());
                let there = offload(&mut *live, &fleet, sample.keys(None), reach, device.by(), all_cores());
                let there = device.or_cpu(there)?;
                if let (Some(offload), Some(_)) = (&there, device.longest_prefix) {
                    offload.remote().fix_reach();
                }
                there.map(Arc::new)
            }
        };
        Ok(Self::of(live, choice, cap, offload, device.note))
    }

    /// Takes results as numbers of pairs. Labels are attached later.
    pub(crate) fn with_ids(self, ids: Option<Arc<MatchIds>>) -> Self {
        Self { uses: Arc::new(TableUses::of_pairs(ids.clone())), ids, ..self }
    }

    /// The pairs that results stand for, if they are no next hops.
    pub(crate) fn ids(&self) -> Option<&Arc<MatchIds>> {
        self.ids.as_ref()
    }

    /// Makes a live table of an image that was compiled from this model by this engine, or by `auto`.
    pub(crate) fn resume(
        choice: Choice,
        model: D::Model,
        (path, image): (PathBuf, Image),
        wanted: Wanted<D>,
    ) -> Result<Self, Error> {
        let cap = Cap::Named;
        let live = match choice.is_auto {
            false => D::resume(choice.engine, model, image, cap.options(), wanted)?,
            true => D::resume_auto(model, image, cap.options(), wanted),
        };
        let live = live.map_err(|cause| Error::Image { path, cause })?;
        Ok(Self::of(live, choice, cap, None, None))
    }

    fn of(
        live: Box<dyn AnyLive<D>>,
        choice: Choice,
        cap: Cap,
        offload: Option<Arc<Offload<D::Remote>>>,
        device_note: Option<String>,
    ) -> Self {
        let (ids, uses, turnover) = (None, Arc::default(), Arc::default());
        Self { live, choice, cap, offload, device_note, ids, refused: 0, left_out: 0, uses, turnover }
    }

    /// Takes the number of lines that were left out of the file which it was opened from, for the next file.
    pub(crate) fn with_left_out(self, left_out: u64) -> Self {
        Self { left_out, ..self }
    }

    /// The lines that were left out of the file which it was opened from.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Forgets the lines that were left out: other entries take the place of all.
    pub(crate) fn forget_left_out(&mut self) {
        self.left_out = 0;
    }

    /// Returns the error for a table that could not be rebuilt.
    pub(crate) fn of_build(&self) -> impl Fn(BuildError) -> Error + use<D> {
        of_build::<D>(self.choice.engine, self.cap)
    }

    /// Counts labels that lie beside the model, for the labels that are attached later.
    #[cfg(feature = "rules")]
    pub(crate) fn with_beside(self, beside: impl Iterator<Item = NextHop>) -> Self {
        Self { uses: Arc::new(TableUses::with(beside)), ..self }
    }

    /// Counts labels that lie beside the model: before a call that brings them.
    #[cfg(feature = "rules")]
    pub(crate) fn join_beside(&self, beside: impl Iterator<Item = NextHop>) {
        self.uses.join_beside(beside);
    }

    /// Takes such labels away after the call, and settles claims of the caller.
    #[cfg(feature = "rules")]
    pub(crate) fn leave_beside(&self, beside: impl Iterator<Item = NextHop>, settled: &[NextHop]) {
        self.uses.leave_beside(beside, settled);
    }

    /// Attaches the labels of a builder, and gives its claims up.
    pub(crate) fn with_labels(self, claims: Claims) -> Self {
        claims.labels().for_each(|labels| self.attach(labels));
        self
    }

    /// Counts the routes for these labels from now on.
    pub(crate) fn attach(&self, labels: &Arc<LabelCounts>) {
        self.uses.attach::<D>(labels, self.live.model());
    }

    /// Changes the table by these updates, tells the labels, and counts a call that fails. `None` says that
    /// the call did not happen.
    pub(crate) fn change(
        &mut self,
        updates: &[D::Update],
        change: impl FnOnce(&mut dyn AnyLive<D>) -> Result<Option<Applied>, Error>,
    ) -> Result<Option<Applied>, Error> {
        self.change_claimed(Interned::Updates, updates, change)
    }

    /// Changes the table like [`change`](Self::change). Each entry that the caller interned a label for
    /// settles a claim.
    pub(crate) fn change_claimed(
        &mut self,
        interned: Interned,
        updates: &[D::Update],
        change: impl FnOnce(&mut dyn AnyLive<D>) -> Result<Option<Applied>, Error>,
    ) -> Result<Option<Applied>, Error> {
        let watch = self.uses.watch::<D>(self.live.model(), updates);
        let mut changed = change(&mut *self.live);
        if let Err(Error::DefaultMemoryCap { engine, .. }) = &mut changed {
            *engine = self.engine();
        }
        if let Some(watch) = watch {
            let is_done = matches!(changed, Ok(Some(_)));
            watch.tell(self.live.model(), if is_done { interned } else { Interned::Nothing });
        }
        self.refused += u64::from(changed.is_err());
        changed
    }

    /// Counts a call that fails before it changes anything.
    pub(crate) fn counted<V>(&mut self, checked: Result<V, impl Into<Error>>) -> Result<V, Error> {
        self.refused += u64::from(checked.is_err());
        checked.map_err(Into::into)
    }

    pub(crate) fn reader(&self) -> ReaderCore<D> {
        let (offload, ids, uses) = (self.offload.clone(), self.ids.clone(), Arc::clone(&self.uses));
        let turnover = self.turnover();
        ReaderCore { inner: self.live.reader(), choice: self.choice, offload, ids, uses, turnover }
    }

    /// Tells readers that results change hands.
    pub(crate) fn turnover(&self) -> Arc<Turnover> {
        Arc::clone(&self.turnover)
    }

    /// Calls `give` with the current image of the table.
    pub(crate) fn with_image<R>(&self, give: impl FnOnce(&Image) -> R) -> R {
        give(self.live.reader().enter().table.image())
    }

    pub(crate) fn model(&self) -> &D::Model {
        self.live.model()
    }

    pub(crate) fn engine(&self) -> EngineName {
        match self.choice.is_auto {
            false => self.choice.engine,
            true => engine_of(&*self.live.reader()),
        }
    }

    pub(crate) fn fleet(&self) -> Option<&Fleet> {
        self.offload.as_ref().map(|offload| offload.remote().copies().fleet())
    }

    pub(crate) fn device_note(&self) -> Option<String> {
        let is_out = || self.offload.as_ref()?.remote().copies().is_out();
        self.device_note.clone().or_else(|| Some(is_out()?.to_string()))
    }

    #[cfg(feature = "gpu")]
    pub(crate) fn device_costs(&self) -> Vec<crate::gpu::costs::Cost> {
        self.offload.as_ref().map_or_else(Vec::new, |offload| offload.costs())
    }

    pub(crate) fn lookups(&self) -> Option<Counts> {
        self.offload.as_ref().map(|offload| offload.counts())
    }

    pub(crate) fn memory_usage(&self) -> u64 {
        self.live.memory_usage() + self.ids.as_deref().map_or(0, MatchIds::memory_usage)
    }

    pub(crate) fn rebuilds(&self) -> u64 {
        self.live.rebuilds()
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }
}

/// The engine of the current table of `auto`.
fn engine_of<D: Served>(reader: &dyn AnyReader<D>) -> EngineName {
    of_kind::<D>(reader.enter().table.image().kind()).expect("an engine of the domain compiled the table")
}

/// Returns the error for a table of this engine that could not be built under a cap.
fn of_build<D: Served>(engine: EngineName, cap: Cap) -> impl Fn(BuildError) -> Error + use<D> {
    move |source| Error::of_build::<D>(engine, source, cap)
}

/// A reader, with the copies of its table on GPUs.
pub(crate) struct ReaderCore<D: Served> {
    inner: Arc<dyn AnyReader<D>>,
    choice: Choice,
    /// The table on GPUs.
    offload: Option<Arc<Offload<D::Remote>>>,
    /// The pairs that results stand for, if they are no next hops.
    ids: Option<Arc<MatchIds>>,
    /// The labels of the table are used as long as it is looked up in.
    uses: Arc<TableUses>,
    turnover: Arc<Turnover>,
}

impl<D: Served> ReaderCore<D> {
    /// Opens a reader of an image file, with the data that lies beside its table.
    pub(crate) fn open(
        engine: EngineName,
        (path, image): (PathBuf, Image),
        beside: D::Beside,
    ) -> Result<Self, Error> {
        let inner = D::open(engine, image, beside)?.map_err(|cause| Error::Image { path, cause })?;
        let (choice, uses, turnover) = (Choice::named(engine), Arc::default(), Arc::default());
        Ok(Self { inner, choice, offload: None, ids: None, uses, turnover })
    }

    /// Has batches looked up on GPUs.
    #[cfg(all(test, feature = "gpu"))]
    pub(crate) fn on(self, offload: Offload<D::Remote>) -> Self {
        Self { offload: Some(Arc::new(offload)), ..self }
    }

    /// Takes results as numbers of pairs.
    pub(crate) fn with_ids(self, ids: Option<MatchIds>) -> Self {
        Self { ids: ids.map(Arc::new), ..self }
    }

    /// The pairs that results stand for, if they are no next hops.
    #[inline]
    pub(crate) fn ids(&self) -> Option<&MatchIds> {
        self.ids.as_deref()
    }

    /// The pairs that results stand for. Fails if they are next hops.
    #[inline]
    pub(crate) fn pairs(&self) -> Result<Pairs<'_>, Error> {
        self.ids().map(MatchIds::pairs).ok_or(Error::NoPrefixLookups)
    }

    pub(crate) fn engine(&self) -> EngineName {
        match self.choice.is_auto {
            false => self.choice.engine,
            true => engine_of(&*self.inner),
        }
    }

    /// The table on GPUs.
    pub(crate) fn offload(&self) -> Option<&Offload<D::Remote>> {
        self.offload.as_deref()
    }

    /// Tells whether results changed hands.
    pub(crate) fn turnover(&self) -> &Turnover {
        &self.turnover
    }

    /// The reader on the CPU.
    pub(crate) fn any(&self) -> &dyn AnyReader<D> {
        &*self.inner
    }

    #[inline]
    pub(crate) fn enter(&self) -> Entered<'_, D> {
        self.inner.enter()
    }

    #[inline]
    pub(crate) fn lookup(&self, key: D::Key<'_>) -> D::Found {
        self.inner.lookup(key)
    }

    /// Looks a batch up on the CPU.
    #[inline]
    pub(crate) fn lookup_on_cpu(&self, keys: D::Keys<'_>, results: &mut [D::Result]) {
        self.inner.lookup_batch(keys, results);
    }

    /// Looks a batch up on the device that the table was built for.
    #[cfg(any(feature = "names", feature = "rules"))]
    pub(crate) fn lookup_batch(&self, keys: D::Keys<'_>, answers: &mut [D::Answer]) {
        self.look_up(keys, answers, |keys, results| self.lookup_on_cpu(keys, results));
    }

    /// [`lookup_batch`](Self::lookup_batch) on all cores.
    #[cfg(all(feature = "parallel", any(feature = "names", feature = "rules")))]
    pub(crate) fn par_lookup_batch(&self, keys: D::Keys<'_>, answers: &mut [D::Answer]) {
        self.look_up(keys, answers, |keys, results| self.enter().table.par_lookup_batch(keys, results));
    }

    #[cfg(any(feature = "names", feature = "rules"))]
    fn look_up(
        &self,
        keys: D::Keys<'_>,
        answers: &mut [D::Answer],
        on_cpu: impl FnOnce(D::Keys<'_>, &mut [D::Result]),
    ) {
        let results = D::results(answers);
        match &self.offload {
            None => on_cpu(keys, results),
            Some(offload) => offload.lookup_batch(keys, results, on_cpu),
        }
    }
}

impl<D: Served> Clone for ReaderCore<D> {
    fn clone(&self) -> Self {
        let (inner, uses) = (Arc::clone(&self.inner), Arc::clone(&self.uses));
        let (offload, ids, turnover) = (self.offload.clone(), self.ids.clone(), Arc::clone(&self.turnover));
        Self { inner, choice: self.choice, offload, ids, uses, turnover }
    }
}
