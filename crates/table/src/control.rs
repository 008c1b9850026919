//! [`Control`]: the part of a live table that does not depend on its engine.

use wirespeed_image::ImageError;
use wirespeed_image::live::Applied;

use crate::companion::Companion;
use crate::domain::{Domain, Model, Undone};
use crate::error::BuildError;
use crate::options::BuildOptions;

/// A model and its changes. This is compiled once for all engines of a domain.
pub(crate) struct Control<D: Domain, B: Companion<D>> {
    pub(crate) model: D::Model,
    /// The choice of data beside the table.
    pub(crate) wanted: B::Wanted,
    pub(crate) options: BuildOptions,
    /// The number of leading bits of a key that lookups may depend on.
    pub(crate) reach: u8,
    /// The changes of the current call.
    pub(crate) changed: Vec<D::Change>,
    pub(crate) rebuilds: u64,
}

/// The most changes whose memory is kept between calls.
const MUCH: usize = 1 << 14;

/// The options of a live table of this number of entries, with this head room at least.
pub(crate) fn growing(options: &BuildOptions, entries: usize, head_room: u32) -> BuildOptions {
    BuildOptions { grows: true, ..options.for_entries(entries).with_head_room(head_room) }
}

/// The tables of any engine, as [`Control`] uses them.
pub(crate) trait AnyTables<D: Domain, B: Companion<D>> {
    /// Gives changes to the engine. An engine that fails is dropped.
    fn take(&mut self, source: &D::Source, changed: &[D::Change]);

    /// Makes the next state by a patch. `false` if the engine can't.
    fn patch(&mut self, source: &D::Source, changed: &[D::Change]) -> bool;

    /// Makes the next state by a table that the engine grows. `false` if it can't.
    fn grow(&mut self, source: &D::Source, options: &BuildOptions) -> bool;

    /// Makes the next state by a table that is built anew.
    fn build(&mut self, source: &D::Source, options: &BuildOptions) -> Result<(), BuildError>;

    /// The head room of a table that is built anew, in hundredths.
    fn later_head_room(&self) -> u32;

    /// Drops the engine: the next change builds one.
    fn drop_engine(&mut self);

    /// Drops the next state.
    fn drop_next(&mut self);

    /// Whether the next state is another table.
    fn is_rebuilt(&self) -> bool;

    /// Makes the next state visible to readers, with a change of the data beside it, and returns the number
    /// of elements that it wrote. Nothing here can fail.
    fn publish(&mut self, beside: B::Change) -> usize;

    /// Takes back the patch of changes that the model has taken back, if the next state is one.
    fn take_back(&mut self, source: &D::Source, changed: &[D::Change], undone: Undone);

    /// [`Writer::reach`](wirespeed_image::live::Writer::reach).
    fn reach(&mut self, bits: u8);
}

impl<D: Domain, B: Companion<D>> Control<D, B> {
    /// Applies updates for [`Live::apply_wanting`](crate::Live::apply_wanting). Calls `is_agreed` once at
    /// most.
    pub(crate) fn change(
        &mut self,
        tables: &mut dyn AnyTables<D, B>,
        updates: &[&D::Update],
        wanted: Option<B::Wanted>,
        is_agreed: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Applied>, D::Error> {
        self.model.check(updates)?;
        let (mut changes, mut beside) = (0, B::Change::default());
        for from in (0..updates.len()).step_by(D::TOGETHER) {
            let to = updates.len().min(from.saturating_add(D::TOGETHER));
            changes += self.model.apply(updates, from..to);
            self.take(tables, &mut beside);
        }
        let applied = match self.next(tables) {
            Ok(()) if is_agreed() => Ok(Some(Applied { changes, ..self.publish(tables, beside, wanted) })),
            Ok(()) => {
                let undone = self.model.undo(&mut self.changed);
                tables.take_back(self.model.source(), &self.changed, undone);
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

    /// Replaces the model for [`Live::replace_wanting`](crate::Live::replace_wanting).
    pub(crate) fn replace(
        &mut self,
        tables: &mut dyn AnyTables<D, B>,
        mut model: D::Model,
        wanted: Option<B::Wanted>,
        is_agreed: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Applied>, BuildError> {
        model.start();
        self.build_anew(tables, &model)?;
        if !is_agreed() {
            tables.drop_next();
            return Ok(None);
        }
        let (changes, reach) = (model.len(), model.reach());
        self.model = model;
        self.extend_reach(tables, reach);
        Ok(Some(Applied { changes, ..self.publish(tables, B::Change::default(), wanted) }))
    }

    /// Gives the changes to the engine.
    fn take(&mut self, tables: &mut dyn AnyTables<D, B>, beside: &mut B::Change) {
        let from = self.changed.len();
        self.model.take_changed(&mut self.changed);
        let changed = &self.changed[from..];
        if !changed.is_empty() {
            tables.take(self.model.source(), changed);
            B::changed(&self.model, self.wanted.clone(), changed, beside);
        }
    }

    /// Makes the next state for readers. After an error the engine is dropped.
    fn next(&self, tables: &mut dyn AnyTables<D, B>) -> Result<(), BuildError> {
        tables.drop_next();
        // A table that becomes empty is rebuilt, which gives back its memory.
        if self.changed.is_empty()
            || !self.model.is_empty()
                && (tables.patch(self.model.source(), &self.changed)
                    || tables.grow(self.model.source(), &self.growing(&self.model, tables)))
        {
            return Ok(());
        }
        tables.drop_engine();
        self.build_anew(tables, &self.model)
    }

    /// Builds the table of a model, with head room if it fits, otherwise with almost none.
    fn build_anew(&self, tables: &mut dyn AnyTables<D, B>, model: &D::Model) -> Result<(), BuildError> {
        let options = self.growing(model, tables);
        match tables.build(model.source(), &options) {
            Err(BuildError::Image(ImageError::OverCap { .. })) => {
                let head_room = self.options.head_room;
                tables.build(model.source(), &BuildOptions { tight: true, head_room, ..options })
            }
            built => built,
        }
    }

    /// The options of a table that is built anew.
    fn growing(&self, model: &D::Model, tables: &dyn AnyTables<D, B>) -> BuildOptions {
        growing(&self.options, model.len(), tables.later_head_room())
    }

    /// Makes the next state visible to readers, with another choice of data beside the table if `wanted` is
    /// one. Nothing here can fail.
    fn publish(
        &mut self,
        tables: &mut dyn AnyTables<D, B>,
        mut beside: B::Change,
        wanted: Option<B::Wanted>,
    ) -> Applied {
        let (is_other, rebuilt) = (wanted.is_some(), tables.is_rebuilt());
        if let Some(wanted) = wanted {
            self.wanted = wanted;
        }
        self.model.settle();
        self.extend_reach(tables, D::Model::reach_of(&self.changed));
        if is_other || rebuilt {
            beside = B::replaced(&self.model, self.wanted.clone());
        }
        self.rebuilds += u64::from(rebuilt);
        let is_new = is_other || rebuilt || !self.changed.is_empty();
        let writes = if is_new { tables.publish(beside) } else { 0 };
        Applied { changes: 0, writes, rebuilt }
    }

    /// Notes that lookups may depend on more bits from the next change on.
    fn extend_reach(&mut self, tables: &mut dyn AnyTables<D, B>, reach: u8) {
        if reach > self.reach {
            self.reach = reach;
            tables.reach(reach);
        }
    }
}
