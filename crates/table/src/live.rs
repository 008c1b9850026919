//! [`Live`]: a model, its engine and the live copies of its table, kept in step.

use std::fmt::{self, Debug};
use std::mem::take;

use wirespeed_image::live::{Applied, Follower, Reader, Writer};
use wirespeed_image::{Patch, Table};

use crate::companion::Companion;
use crate::control::{AnyTables, Control, growing};
use crate::domain::{Domain, Model, Undone};
use crate::engine::Engine;
use crate::error::BuildError;
use crate::options::BuildOptions;

/// A table that takes updates while any number of readers look up. It has one owner; readers are independent.
///
/// Memory: the model, what the engine holds, and two copies of the table (four while it is rebuilt). Sections
/// that the copies [share](wirespeed_image::Table::share) are there once.
pub struct Live<D: Domain, E: Engine<D>, B: Companion<D> = ()> {
    control: Control<D, B>,
    tables: Tables<D, E, B>,
}

/// The engine and the copies of its table.
struct Tables<D: Domain, E: Engine<D>, B: Companion<D>> {
    /// `None` for a table that came compiled, and after a call that failed: the next change builds one. The
    /// table agrees with the model in any case.
    engine: Option<E>,
    writer: Writer<E::Table, B>,
    /// The next state for readers, while a call makes it.
    next: Next<E, E::Table>,
}

/// The next state for readers.
#[derive(Default)]
enum Next<E, T> {
    /// The current state.
    #[default]
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
        let control = Control { model, wanted, options, reach, changed: Vec::new(), rebuilds: 0 };
        Self { control, tables: Tables { engine, writer, next: Next::Same } }
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
        let updates: Vec<_> = updates.into_iter().collect();
        self.control.change(&mut self.tables, &updates, wanted, &mut is_agreed)
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
        model: D::Model,
        wanted: Option<B::Wanted>,
        is_agreed: impl FnOnce() -> bool,
    ) -> Result<Option<Applied>, BuildError> {
        let mut is_agreed = Some(is_agreed);
        let mut is_agreed = || is_agreed.take().is_some_and(|is_agreed| is_agreed());
        self.control.replace(&mut self.tables, model, wanted, &mut is_agreed)
    }

    /// Adds a follower, such as a copy on a GPU. It is made from the current table, and is told of every
    /// change from now on.
    pub fn follow<F: Follower<E::Table> + 'static, X>(
        &mut self,
        make: impl FnOnce(&E::Table) -> Result<F, X>,
    ) -> Result<(), X> {
        self.tables.writer.follow(make)
    }

    /// The number of leading bits of a key that lookups may depend on, for addresses: the length of the
    /// longest prefix that the table ever had.
    pub fn reach(&self) -> u8 {
        self.control.reach
    }

    /// A reader of the table.
    pub fn reader(&self) -> Reader<E::Table, B> {
        self.tables.writer.reader()
    }

    /// The current model.
    pub fn model(&self) -> &D::Model {
        &self.control.model
    }

    /// The number of updates after which the table was rebuilt.
    pub fn rebuilds(&self) -> u64 {
        self.control.rebuilds
    }

    /// Bytes held: both copies of the table, the engine and the model.
    pub fn memory_usage(&self) -> u64 {
        let engine = self.tables.engine.as_ref().map_or(0, E::memory_usage);
        self.tables.writer.memory_usage() + engine + self.control.model.memory_usage()
    }
}

impl<D: Domain, E: Engine<D>, B: Companion<D>> Debug for Live<D, E, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("engine", &E::NAME).finish_non_exhaustive()
    }
}

impl<D: Domain, E: Engine<D>, B: Companion<D>> AnyTables<D, B> for Tables<D, E, B> {
    fn take(&mut self, source: &D::Source, changed: &[D::Change]) {
        let table = self.writer.current();
        if self.engine.as_mut().is_some_and(|engine| engine.take(&table, source, changed).is_err()) {
            self.engine = None;
        }
    }

    fn patch(&mut self, source: &D::Source, changed: &[D::Change]) -> bool {
        let Some(engine) = &mut self.engine else { return false };
        let patch = engine.patch(&self.writer.current(), source, changed);
        let is_patch = patch.is_ok();
        self.next = patch.map_or(Next::Same, Next::Patch);
        is_patch
    }

    fn grow(&mut self, source: &D::Source, options: &BuildOptions) -> bool {
        let grown =
            self.engine.as_mut().and_then(|engine| engine.grow(&self.writer.current(), source, options));
        let Some((engine, table)) = self.engine.take().zip(grown) else { return false };
        self.next = Next::Table(engine, table);
        true
    }

    fn build(&mut self, source: &D::Source, options: &BuildOptions) -> Result<(), BuildError> {
        let (engine, table) = E::build(source, options)?;
        self.next = Next::Table(engine, table);
        Ok(())
    }

    fn later_head_room(&self) -> u32 {
        E::LATER_HEAD_ROOM
    }

    fn drop_engine(&mut self) {
        self.engine = None;
    }

    fn drop_next(&mut self) {
        self.next = Next::Same;
    }

    fn is_rebuilt(&self) -> bool {
        matches!(self.next, Next::Table(..))
    }

    fn publish(&mut self, beside: B::Change) -> usize {
        match take(&mut self.next) {
            Next::Same => self.writer.change_beside(beside),
            Next::Patch(patch) => {
                let writes = patch.writes().len();
                self.writer.patch_with(patch, beside).expect("an engine's patch fits its own table");
                return writes;
            }
            Next::Table(engine, table) => {
                self.engine = Some(engine);
                self.writer.replace_with(table, beside);
            }
        }
        0
    }

    fn take_back(&mut self, source: &D::Source, changed: &[D::Change], undone: Undone) {
        let Next::Patch(there) = take(&mut self.next) else { return };
        // The engine has taken the changes. It takes them back, and its writes there and back form one patch,
        // after which every lookup is answered as before.
        if let (Undone::Retold, Some(engine)) = (undone, self.engine.as_mut()) {
            let mut table = E::Table::clone(&self.writer.current());
            table.apply(&there).expect("an engine's patch fits its own table");
            engine.unpublished();
            if let Ok(back) = engine.update(&table, source, changed) {
                let patched = self.writer.patch_with(there.then(back), B::Change::default());
                return patched.expect("an engine's patch fits its own table");
            }
        }
        self.engine = None;
    }

    fn reach(&mut self, bits: u8) {
        self.writer.reach(bits);
    }
}
