//! [`Patched`]: a table that is kept up to date by patches alone.

use wirespeed_image::{Image, Table};

use super::suite::Suite;
use super::tally::Tally;
use crate::domain::{Domain, Model};
use crate::engine::Engine;

/// A table that is kept up to date by patches alone, and built anew only when the engine asks.
#[derive(Debug)]
pub struct Patched<'t, D: Domain, S: Suite<D>, E: Engine<D>> {
    tally: &'t Tally<D, S, E>,
    /// The model of the table, as it is now.
    pub model: D::Model,
    engine: E,
    /// The table as it is now.
    pub table: E::Table,
    /// The number of times that it was built anew.
    pub rebuilds: usize,
}

impl<'t, D: Domain, S: Suite<D>, E: Engine<D>> Patched<'t, D, S, E> {
    /// `None` where the engine refuses the table.
    pub fn new(tally: &'t Tally<D, S, E>, mut model: D::Model, what: &str) -> Option<Self> {
        let (engine, table) = tally.build(model.source(), what)?;
        model.start();
        Some(Self { tally, model, engine, table, rebuilds: 0 })
    }

    /// Applies updates, which gives what changed; `None` where the engine refuses to hold what they make.
    pub fn apply(&mut self, updates: &[D::Update], what: &str) -> Option<Vec<D::Change>> {
        let (updates, mut changed): (Vec<_>, _) = (updates.iter().collect(), Vec::new());
        self.model.check(&updates).expect("an update of the suite is one that can be");
        self.model.apply(&updates, 0..updates.len());
        self.model.take_changed(&mut changed);
        if !changed.is_empty() {
            match self.engine.update(&self.table, self.model.source(), &changed) {
                Ok(patch) => self.table.apply(&patch).expect("an engine's patch fits its table"),
                Err(_) => {
                    (self.engine, self.table) = self.tally.build(self.model.source(), what)?;
                    self.rebuilds += 1;
                }
            }
        }
        self.model.settle();
        Some(changed)
    }

    /// Holds the table as it is now against what it is of; and its image, written and read; and one that is
    /// built anew.
    pub fn check_at_the_end(self, what: &str) {
        let Self { tally, model, table, .. } = self;
        S::check_all(&table, model.source(), what);
        let mut image = Vec::new();
        table.image().write(&mut image).expect("a Vec takes what is written");
        let again = Image::from_bytes(&image).and_then(E::Table::from_image);
        S::check_all(&again.expect("a patched image is valid"), model.source(), what);
        if let Some((_, table)) = tally.build(model.source(), what) {
            S::check_all(&table, model.source(), what);
        }
    }
}
