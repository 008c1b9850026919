//! [`Live`]: a model, its engine and the live copies of its table, kept in step.

use std::fmt::Debug;

use wirespeed_image::live::{Applied, Beside, Follower, Reader, Writer};
use wirespeed_image::{ImageError, Patch, Table};

use crate::domain::{Domain, Model, Undone};
use crate::engine::Engine;
use crate::error::BuildError;
use crate::options::BuildOptions;

/// Data of a model that readers see beside results, such as the actions of rules. It has the same state as
/// the table.
pub trait Companion<D: Domain>: Beside<Change: Default> {
    /// The choice of data that readers see.
    type Wanted: Clone + Debug + Send + Sync + 'static;

    /// Makes the data of a model.
    fn of(model: &D::Model, wanted: Self::Wanted) -> Self;

    /// Adds further changes to a change. `model` is the model after them.
    fn changed(model: &D::Model, wanted: Self::Wanted, changed: &[D::Change], change: &mut Self::Change);

    /// Makes the change that replaces the data by that of a model.
    fn replaced(model: &D::Model, wanted: Self::Wanted) -> Self::Change;
}

/// No data.
impl<D: Domain> Companion<D> for () {
    type Wanted = ();

    fn of(_: &D::Model, (): ()) {}
    fn changed(_: &D::Model, (): (), _: &[D::Change], (): &mut ()) {}
    fn replaced(_: &D::Model, (): ()) {}
}

/// A table that takes updates while any number of readers look up. It has one owner; readers are independent.
///
/// Memory: the model, what the engine holds, and two copies of the table (four while it is rebuilt). Sections
/// that the copies [share](wirespeed_image::Table::share) are there once.
#[derive(Debug)]
pub struct Live<D: Domain, E: Engine<D>, B: Companion<D> = ()> {
    model: D::Model,
    /// `None` for a table that came compiled, and after a call that failed: the next change builds one. The
    /// table agrees with the model in any case.
    engine: Option<E>,
    writer: Writer<E::Table, B>,
    /// The choice of data beside the table.
    wanted: B::Wanted,
    options: BuildOptions,
    /// The number of leading bits of a key that lookups may depend on.
    reach: u8,
    /// The changes of the current call.
    changed: Vec<D::Change>,
    rebuilds: u64,
}

/// The most changes whose memory is kept between calls.
const MUCH: usize = 1 << 14;

/// The options of a live table of this number of entries, with this head room at least.
fn growing(options: &BuildOptions, entries: usize, head_room: u32) -> BuildOptions {
    BuildOptions { grows: true, ..options.for_entries(entries).with_head_room(head_room) }
}

/// The next state for readers.
enum Next<E, T> {
    /// The current state.
    Same,
    /// The current state with a patch.
    Patch(Patch),
    /// Another table, with its engine.
    Table(E, T),
}

impl<D: Domain, E: Engine<D>> Live<D, E> {
    /// Builds the table of a model, and makes it live.
    pub fn new(model: D::Model, options: BuildOptions) -> Result<Self, BuildError> {
        Self::with(model, options, ())
    }

    /// Makes a compiled table of the same model live at once, such as one from a file. The first update
    /// rebuilds it, because an image does not contain an engine.
    pub fn resume(model: D::Model, table: E::Table, options: BuildOptions) -> Self {
        Self::resume_with(model, table, options, ())
    }
}

impl<D: Domain, E: Engine<D>, B: Companion<D>> Live<D, E, B> {
    /// Builds a live table like [`new`](Live::new), with data beside it.
    pub fn with(mut model: D::Model, options: BuildOptions, wanted: B::Wanted) -> Result<Self, BuildError> {
        model.start();
        let asked = growing(&options, model.len(), E::HEAD_ROOM);
        let (engine, table) = E::build(model.source(), &asked)?;
        Ok(Self::put(model, Some(engine), table, options, wanted))
    }

    /// Makes a table live like [`resume`](Live::resume), with data beside it.
    pub fn resume_with(
        mut model: D::Model,
        table: E::Table,
        options: BuildOptions,
        wanted: B::Wanted,
    ) -> Self {
        model.start();
        Self::put(model, None, table, options, wanted)
    }

    fn put(
        model: D::Model,
        engine: Option<E>,
        table: E::Table,
        options: BuildOptions,
        wanted: B::Wanted,
    ) -> Self {
        let writer = Writer::with(table, B::of(&model, wanted.clone()));
        let reach = model.reach();
        Self { model, engine, writer, wanted, options, reach, changed: Vec::new(), rebuilds: 0 }
    }

    /// Applies updates in order. Readers that enter from now on see all of them, and no reader sees a part.
    /// Waits for readers that entered before the previous call. One call with many updates costs less than a
    /// call for each: shared elements are written once.
    ///
    /// Fails if an update can't be applied, or if the table needs a rebuild that fails: [the call then did
    /// not happen](wirespeed_image::live#when-an-update-fails).
    pub fn apply<'u>(&mut self, updates: impl IntoIterator<Item = &'u D::Update>) -> Result<Applied, D::Error>
    where
        D::Update: 'u,
    {
        // `is_agreed` never says no, so there is always a result.
        self.apply_if(updates, || true).map(Option::unwrap_or_default)
    }

    /// Applies updates like [`apply`](Self::apply), and calls `is_agreed` when nothing can fail any more,
    /// before readers see the changes. If it returns false the call did not happen, and the result is `None`.
    /// Two tables change both or neither if one is changed in the other's `is_agreed`.
    pub fn apply_if<'u>(
        &mut self,
        updates: impl IntoIterator<Item = &'u D::Update>,
        is_agreed: impl FnOnce() -> bool,
    ) -> Result<Option<Applied>, D::Error>
    where
        D::Update: 'u,
    {
        self.apply_wanting(updates, None, is_agreed)
    }

    /// Applies updates like [`apply_if`](Self::apply_if). If `wanted` is a choice of data beside the table,
    /// readers see that data together with the updates, even if these change nothing; O(model).
    pub fn apply_wanting<'u>(
        &mut self,
        updates: impl IntoIterator<Item = &'u D::Update>,
        wanted: Option<B::Wanted>,
        is_agreed: impl FnOnce() -> bool,
    ) -> Result<Option<Applied>, D::Error>
    where
        D::Update: 'u,
    {
        let mut is_agreed = Some(is_agreed);
        let mut is_agreed = || is_agreed.take().is_some_and(|is_agreed| is_agreed());
        self.change(&updates.into_iter().collect::<Vec<_>>(), wanted, &mut is_agreed)
    }

    /// Applies updates for [`apply_wanting`](Self::apply_wanting). It is compiled once for all kinds of
    /// iterators, and calls `is_agreed` once at most.
    fn change(
        &mut self,
        updates: &[&D::Update],
        wanted: Option<B::Wanted>,
        is_agreed: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Applied>, D::Error> {
        self.model.check(updates)?;
        let (mut changes, mut beside) = (0, B::Change::default());
        for from in (0..updates.len()).step_by(D::TOGETHER) {
            let to = updates.len().min(from.saturating_add(D::TOGETHER));
            changes += self.model.apply(updates, from..to);
            self.take(&mut beside);
        }
        let applied = match self.next() {
            Ok(next) if is_agreed() => Ok(Some(Applied { changes, ..self.publish(next, beside, wanted) })),
            Ok(next) => {
                self.take_back(next);
                Ok(None)
            }
            Err(error) => {
                self.model.undo(&mut self.changed);
                Err(error.into())
            }
        };
        self.changed.clear();
        self.changed.shrink_to(MUCH);
        applied
    }

    /// Replaces the whole model. Readers that enter from now on see all of it, and no reader sees a part. The
    /// table is built anew beside the current one: four copies are in memory meanwhile. For a model that
    /// differs in few entries [`apply`](Self::apply) costs less.
    ///
    /// Fails if the table can't be built; calls `is_agreed` like [`apply_if`](Self::apply_if). In both cases
    /// the call did not happen.
    pub fn replace_if(
        &mut self,
        model: D::Model,
        is_agreed: impl FnOnce() -> bool,
    ) -> Result<Option<Applied>, BuildError> {
        self.replace_wanting(model, None, is_agreed)
    }

    /// Replaces the whole model like [`replace_if`](Self::replace_if), and with it the choice of data beside
    /// the table, if `wanted` is one.
    pub fn replace_wanting(
        &mut self,
        mut model: D::Model,
        wanted: Option<B::Wanted>,
        is_agreed: impl FnOnce() -> bool,
    ) -> Result<Option<Applied>, BuildError> {
        model.start();
        let (engine, table) = self.built_anew(&model)?;
        if !is_agreed() {
            return Ok(None);
        }
        let (changes, reach) = (model.len(), model.reach());
        self.model = model;
        self.extend_reach(reach);
        let published = self.publish(Next::Table(engine, table), B::Change::default(), wanted);
        Ok(Some(Applied { changes, ..published }))
    }

    /// Gives the changes to the engine. An engine that fails is dropped.
    fn take(&mut self, beside: &mut B::Change) {
        let from = self.changed.len();
        self.model.take_changed(&mut self.changed);
        let changed = &self.changed[from..];
        if changed.is_empty() {
            return;
        }
        let is_taken = |engine: &mut E| {
            let table = self.writer.current();
            engine.take(&table, self.model.source(), changed).is_ok()
        };
        if !self.engine.as_mut().is_some_and(is_taken) {
            self.engine = None;
        }
        B::changed(&self.model, self.wanted.clone(), changed, beside);
    }

    /// Makes the next state for readers. After an error of the engine it is dropped.
    fn next(&mut self) -> Result<Next<E, E::Table>, BuildError> {
        if self.changed.is_empty() {
            return Ok(Next::Same);
        }
        let mut grown = None;
        // A table that becomes empty is rebuilt, which gives back its memory.
        if let Some(engine) = self.engine.as_mut().filter(|_| !self.model.is_empty()) {
            let (table, source) = (self.writer.current(), self.model.source());
            if let Ok(patch) = engine.patch(&table, source, &self.changed) {
                return Ok(Next::Patch(patch));
            }
            let options = growing(&self.options, self.model.len(), E::LATER_HEAD_ROOM);
            grown = engine.grow(&table, source, &options);
        }
        let next = match self.engine.take().zip(grown) {
            Some(grown) => grown,
            None => self.built_anew(&self.model)?,
        };
        Ok(Next::Table(next.0, next.1))
    }

    /// Builds the table of a model, with head room if it fits, otherwise with almost none.
    fn built_anew(&self, model: &D::Model) -> Result<(E, E::Table), BuildError> {
        let options = growing(&self.options, model.len(), E::LATER_HEAD_ROOM);
        match E::build(model.source(), &options) {
            Err(BuildError::Image(ImageError::OverCap { .. })) => {
                let head_room = self.options.head_room;
                E::build(model.source(), &BuildOptions { tight: true, head_room, ..options })
            }
            built => built,
        }
    }

    /// Makes the next state visible to readers, with another choice of data beside the table if `wanted` is
    /// one. Nothing here can fail.
    fn publish(
        &mut self,
        next: Next<E, E::Table>,
        mut beside: B::Change,
        wanted: Option<B::Wanted>,
    ) -> Applied {
        let (mut applied, is_other) = (Applied::default(), wanted.is_some());
        if let Some(wanted) = wanted {
            self.wanted = wanted;
            beside = B::replaced(&self.model, self.wanted.clone());
        }
        self.model.settle();
        self.extend_reach(D::Model::reach_of(&self.changed));
        match next {
            Next::Same if is_other => self.writer.change_beside(beside),
            Next::Same => {}
            Next::Patch(patch) => {
                applied.writes = patch.writes().len();
                self.writer.patch_with(patch, beside).expect("an engine's patch fits its own table");
            }
            Next::Table(engine, table) => {
                self.engine = Some(engine);
                self.writer.replace_with(table, B::replaced(&self.model, self.wanted.clone()));
                self.rebuilds += 1;
                applied.rebuilt = true;
            }
        }
        applied
    }

    /// Notes that lookups may depend on more bits from the next change on.
    fn extend_reach(&mut self, reach: u8) {
        if reach > self.reach {
            self.reach = reach;
            self.writer.reach(reach);
        }
    }

    /// Takes back the changes of a call whose next state was this.
    fn take_back(&mut self, next: Next<E, E::Table>) {
        let undone = self.model.undo(&mut self.changed);
        let Next::Patch(there) = next else { return };
        // The engine has taken the changes. It takes them back, and its writes there and back form one patch,
        // after which every lookup is answered as before.
        if let (Undone::Retold, Some(engine)) = (undone, self.engine.as_mut()) {
            let mut table = E::Table::clone(&self.writer.current());
            table.apply(&there).expect("an engine's patch fits its own table");
            engine.unpublished();
            if let Ok(back) = engine.update(&table, self.model.source(), &self.changed) {
                let patched = self.writer.patch_with(there.then(back), B::Change::default());
                return patched.expect("an engine's patch fits its own table");
            }
        }
        self.engine = None;
    }

    /// Adds a follower, such as a copy on a GPU. It is made from the current table, and is told of every
    /// change from now on.
    pub fn follow<F: Follower<E::Table> + 'static, X>(
        &mut self,
        make: impl FnOnce(&E::Table) -> Result<F, X>,
    ) -> Result<(), X> {
        self.writer.follow(make)
    }

    /// The number of leading bits of a key that lookups may depend on, for addresses: the length of the
    /// longest prefix that the table ever had.
    pub fn reach(&self) -> u8 {
        self.reach
    }

    /// A reader of the table.
    pub fn reader(&self) -> Reader<E::Table, B> {
        self.writer.reader()
    }

    /// The current model.
    pub fn model(&self) -> &D::Model {
        &self.model
    }

    /// The number of updates after which the table was rebuilt.
    pub fn rebuilds(&self) -> u64 {
        self.rebuilds
    }

    /// Bytes held: both copies of the table, the engine and the model.
    pub fn memory_usage(&self) -> u64 {
        let engine = self.engine.as_ref().map_or(0, E::memory_usage);
        self.writer.memory_usage() + engine + self.model.memory_usage()
    }
}
