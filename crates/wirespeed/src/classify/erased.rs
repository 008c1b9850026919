//! Engines of rules without their types, as [`crate::erased`] has those of addresses. A state is the table
//! and the actions of its rules.

use std::path::Path;
use std::sync::Arc;

use wirespeed_classify::read::{Doubts, Lines};
use wirespeed_classify::{Actions, Applied, Engine, LiveRules, Lookup, RuleSet, RuleUpdate, UpdateError};
use wirespeed_fib::NextHops;
use wirespeed_image::Table;
use wirespeed_image::live::{self, State};

use super::image_file;
use super::ranked::RuleBeside;
use crate::engine::RuleTuple;
use crate::erased::Held;
use crate::error::Error;

/// A live table of some engine.
pub(crate) trait AnyLive<T: RuleTuple>: Send {
    fn apply(&mut self, updates: &[RuleUpdate<T>]) -> Result<Applied, UpdateError>;
    fn reader(&self) -> Box<dyn AnyReader<T>>;
    fn rules(&self) -> &RuleSet<T>;
    fn rebuilds(&self) -> u64;
    fn memory_usage(&self) -> u64;
    fn save(&self, labels: &NextHops, doubts: &Doubts<T>, path: &Path) -> Result<(), Error>;
}

impl<T: RuleTuple, E: Engine<T>, B: RuleBeside<T>> AnyLive<T> for LiveRules<T, E, B> {
    fn apply(&mut self, updates: &[RuleUpdate<T>]) -> Result<Applied, UpdateError> {
        Self::apply(self, updates)
    }

    fn reader(&self) -> Box<dyn AnyReader<T>> {
        Box::new(Self::reader(self))
    }

    fn rules(&self) -> &RuleSet<T> {
        self.model()
    }

    fn rebuilds(&self) -> u64 {
        Self::rebuilds(self)
    }

    fn memory_usage(&self) -> u64 {
        Self::memory_usage(self) + 2 * Self::reader(self).enter_state().beside.memory_usage()
    }

    fn save(&self, labels: &NextHops, doubts: &Doubts<T>, path: &Path) -> Result<(), Error> {
        let (reader, rules) = (Self::reader(self), self.model());
        // Updates may have changed which lines the rules come from.
        let beside = (doubts, &Lines::default());
        image_file::save::<T, E>(&reader.enter(), rules, labels, beside, path).map(drop)
    }
}

/// One state of some engine's table.
pub(crate) trait AnyState<T: RuleTuple>: Send + Sync {
    fn table(&self) -> &dyn Lookup<T>;
    fn actions(&self) -> &Actions;
    /// The priority of a rule; `None` if there is none of that number, or if no answer can be in doubt.
    fn priority(&self, number: u32) -> Option<u32>;
}

impl<T: RuleTuple, X: Table + Lookup<T>, B: RuleBeside<T>> AnyState<T> for State<X, B> {
    fn table(&self) -> &dyn Lookup<T> {
        &self.table
    }

    fn actions(&self) -> &Actions {
        self.beside.actions()
    }

    fn priority(&self, number: u32) -> Option<u32> {
        self.beside.priority(number)
    }
}

/// A reading end of some engine's table.
pub(crate) trait AnyReader<T: RuleTuple>: Send {
    fn enter(&self) -> Held<'_, dyn AnyState<T>>;
    fn lookup(&self, tuple: &T) -> u32;
    fn clone_box(&self) -> Box<dyn AnyReader<T>>;
}

impl<T: RuleTuple, X: Table + Lookup<T>, B: RuleBeside<T>> AnyReader<T> for live::Reader<X, B> {
    fn enter(&self) -> Held<'_, dyn AnyState<T>> {
        Held::Live(live::Guard::map(self.enter_state(), |state| state as &dyn AnyState<T>))
    }

    fn lookup(&self, tuple: &T) -> u32 {
        Self::enter(self).lookup(tuple)
    }

    fn clone_box(&self) -> Box<dyn AnyReader<T>> {
        Box::new(self.clone())
    }
}

impl<T: RuleTuple, X: Table + Lookup<T>, B: RuleBeside<T>> AnyReader<T> for Arc<State<X, B>> {
    fn enter(&self) -> Held<'_, dyn AnyState<T>> {
        Held::Fixed(&**self)
    }

    fn lookup(&self, tuple: &T) -> u32 {
        self.table.lookup(tuple)
    }

    fn clone_box(&self) -> Box<dyn AnyReader<T>> {
        Box::new(Self::clone(self))
    }
}
