//! [`Live`]: a model, its engine and the live copies of its table, kept in step.

use std::fmt::Debug;

use wirespeed_image::live::{Applied, Beside, Follower, Reader, Writer};
use wirespeed_image::{ImageError, Patch, Table};

use crate::domain::{Domain, Model, Undone};
use crate::engine::Engine;
use crate::error::BuildError;
use crate::options::BuildOptions;

/// What readers get to see of a model beside the results that lookups return, such as the actions of rules:
/// it is of one state with the table.
pub trait Companion<D: Domain>: Beside<Change: Default> {
    /// How much of a model readers need to see, if that is a choice.
    type Wanted: Copy + Debug + Send + 'static;

    /// What there is of a model.
    fn of(model: &D::Model, wanted: Self::Wanted) -> Self;

    /// Adds to a change what further changes do to it: the model is what it is after them.
    fn changed(model: &D::Model, wanted: Self::Wanted, changed: &[D::Change], change: &mut Self::Change);

    /// What makes it that of another model.
    fn replaced(model: &D::Model, wanted: Self::Wanted) -> Self::Change;
}

/// Nothing.
impl<D: Domain> Companion<D> for () {
    type Wanted = ();

    fn of(_: &D::Model, (): ()) {}
    fn changed(_: &D::Model, (): (), _: &[D::Change], (): &mut ()) {}
    fn replaced(_: &D::Model, (): ()) {}
}

/// A table that takes updates while any number of readers look up. One owner; readers are independent of it.
///
/// Memory: the model, what the engine holds, and two copies of the table (four while it is rebuilt).
#[derive(Debug)]
pub struct Live<D: Domain, E: Engine<D>, B: Companion<D> = ()> {
    model: D::Model,
    /// `None` for a table that came compiled, and after a call that failed: the next change builds. The table
    /// is that of the model all the same.
    engine: Option<E>,
    writer: Writer<E::Table, B>,
    /// How much of the model is beside the table.
    wanted: B::Wanted,
    options: BuildOptions,
    /// How many first bits of a key lookups may depend on.
    reach: u8,
    /// What the call that is under way has changed.
    changed: Vec<D::Change>,
    rebuilds: u64,
}

/// Changes that the memory of is kept.
const MUCH: usize = 1 << 14;

/// What readers are to see next.
enum Next<E, T> {
    /// What they see now.
    Same,
    /// What they see now, patched.
    Patch(Patch),
    /// Another table, with its engine.
    Table(E, T),
}

impl<D: Domain, E: Engine<D>> Live<D, E> {
    /// Builds the table of a model and puts it live.
    pub fn new(model: D::Model, options: BuildOptions) -> Result<Self, BuildError> {
        Self::with(model, options, ())
    }

    /// Puts a table live that was compiled before from the same model, such as one from a file, at once. The
    /// first update builds it anew: an engine does not go into an image.
    pub fn resume(model: D::Model, table: E::Table, options: BuildOptions) -> Self {
        Self::resume_with(model, table, options, ())
    }
}

impl<D: Domain, E: Engine<D>, B: Companion<D>> Live<D, E, B> {
    /// Builds a table and puts it live like [`new`](Live::new), with something beside it.
    pub fn with(mut model: D::Model, options: BuildOptions, wanted: B::Wanted) -> Result<Self, BuildError> {
        model.start();
        let asked = options.for_entries(model.len()).with_head_room(D::HEAD_ROOM);
        let (engine, table) = E::build(model.source(), &asked)?;
        Ok(Self::put(model, Some(engine), table, options, wanted))
    }

    /// Puts a table live like [`resume`](Live::resume), with something beside it.
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
        let writer = Writer::with(table, B::of(&model, wanted));
        let reach = model.reach();
        Self { model, engine, writer, wanted, options, reach, changed: Vec::new(), rebuilds: 0 }
    }

    /// Applies updates in order; readers that enter from now on see all of them, and none saw a part. Waits
    /// for readers that entered before the call before this one. Many updates a call cost less than one each:
    /// what they share is written once.
    ///
    /// An error where an update can't be applied, or the table has to be built anew and can't be: [the call
    /// then did not happen](wirespeed_image::live#when-an-update-fails).
    pub fn apply<'u>(&mut self, updates: impl IntoIterator<Item = &'u D::Update>) -> Result<Applied, D::Error>
    where
        D::Update: 'u,
    {
        // Nobody objects, so there is what was done.
        self.apply_if(updates, || true).map(Option::unwrap_or_default)
    }

    /// [`apply`](Self::apply), with a question before readers see anything: when all is ready, and nothing
    /// can fail any more, `is_agreed` is asked. Where it says no, the call did not happen, and there is
    /// `None`. So two tables change both or neither, one within the question of the other.
    pub fn apply_if<'u>(
        &mut self,
        updates: impl IntoIterator<Item = &'u D::Update>,
        is_agreed: impl FnOnce() -> bool,
    ) -> Result<Option<Applied>, D::Error>
    where
        D::Update: 'u,
    {
        let updates: Vec<_> = updates.into_iter().collect();
        self.model.check(&updates)?;
        let (mut changes, mut beside) = (0, B::Change::default());
        for from in (0..updates.len()).step_by(D::TOGETHER) {
            let to = updates.len().min(from.saturating_add(D::TOGETHER));
            changes += self.model.apply(&updates, from..to);
            self.take(&mut beside);
        }
        let applied = match self.next() {
            Ok(next) if is_agreed() => Ok(Some(Applied { changes, ..self.publish(next, beside) })),
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

    /// Has the engine take in what changed. One that can't is spent.
    fn take(&mut self, beside: &mut B::Change) {
        let from = self.changed.len();
        self.model.take_changed(&mut self.changed);
        let changed = &self.changed[from..];
        if changed.is_empty() {
            return;
        }
        let is_taken = |engine: &mut E| engine.take(self.model.source(), changed).is_ok();
        if !self.engine.as_mut().is_some_and(is_taken) {
            self.engine = None;
        }
        B::changed(&self.model, self.wanted, changed, beside);
    }

    /// What readers are to see after the changes. After an error the engine is spent, if it was asked.
    fn next(&mut self) -> Result<Next<E, E::Table>, BuildError> {
        if self.changed.is_empty() {
            return Ok(Next::Same);
        }
        // A table that was emptied is built anew, and gives back its memory.
        if let Some(engine) = self.engine.as_mut().filter(|_| !self.model.is_empty())
            && let Ok(patch) = engine.patch(&self.writer.current(), self.model.source(), &self.changed)
        {
            return Ok(Next::Patch(patch));
        }
        self.engine = None;
        self.built_anew().map(|(engine, table)| Next::Table(engine, table))
    }

    /// A table of the model, with head room unless it is that which doesn't fit.
    fn built_anew(&self) -> Result<(E, E::Table), BuildError> {
        let options = self.options.for_entries(self.model.len());
        match E::build(self.model.source(), &options.with_head_room(D::LATER_HEAD_ROOM)) {
            Err(BuildError::Image(ImageError::OverCap { .. })) => {
                E::build(self.model.source(), &BuildOptions { tight: true, ..options })
            }
            built => built,
        }
    }

    /// Has readers see it. Nothing here can fail.
    fn publish(&mut self, next: Next<E, E::Table>, beside: B::Change) -> Applied {
        let mut applied = Applied::default();
        self.model.settle();
        let reach = D::Model::reach_of(&self.changed);
        if reach > self.reach {
            self.reach = reach;
            self.writer.reach(reach);
        }
        match next {
            Next::Same => {}
            Next::Patch(patch) => {
                applied.writes = patch.writes().len();
                self.writer.patch_with(patch, beside).expect("an engine's patch fits its own table");
            }
            Next::Table(engine, table) => {
                self.engine = Some(engine);
                self.writer.replace_with(table, B::replaced(&self.model, self.wanted));
                self.rebuilds += 1;
                applied.rebuilt = true;
            }
        }
        applied
    }

    /// Makes all what it was before the call, of which this was to come.
    fn take_back(&mut self, next: Next<E, E::Table>) {
        let undone = self.model.undo(&mut self.changed);
        let Next::Patch(there) = next else { return };
        // The engine has taken the changes in. It takes them back, and what it writes there and back is one
        // patch, after which every lookup is answered as before it.
        if let (Undone::Retold, Some(engine)) = (undone, self.engine.as_mut()) {
            let mut table = E::Table::clone(&self.writer.current());
            table.apply(&there).expect("an engine's patch fits its own table");
            if let Ok(back) = engine.update(&table, self.model.source(), &self.changed) {
                let patched = self.writer.patch_with(there.then(back), B::Change::default());
                return patched.expect("an engine's patch fits its own table");
            }
        }
        self.engine = None;
    }

    /// Tells a follower, such as a copy on a GPU, of every change from now on; it is made of the table as it
    /// is now.
    pub fn follow<F: Follower<E::Table> + 'static, X>(
        &mut self,
        make: impl FnOnce(&E::Table) -> Result<F, X>,
    ) -> Result<(), X> {
        self.writer.follow(make)
    }

    /// How many first bits of a key lookups may depend on, for addresses: the length of the longest prefix
    /// that there has been.
    pub fn reach(&self) -> u8 {
        self.reach
    }

    /// A reader of the table.
    pub fn reader(&self) -> Reader<E::Table, B> {
        self.writer.reader()
    }

    /// What the user owns, as it is now.
    pub fn model(&self) -> &D::Model {
        &self.model
    }

    /// How often an update made the table outgrow itself.
    pub fn rebuilds(&self) -> u64 {
        self.rebuilds
    }

    /// Bytes held: both copies of the table, the engine's and the model's own.
    pub fn memory_usage(&self) -> u64 {
        let engine = self.engine.as_ref().map_or(0, E::memory_usage);
        self.writer.memory_usage() + engine + self.model.memory_usage()
    }
}
