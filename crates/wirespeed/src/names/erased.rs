//! Engines of names without their types, as [`crate::erased`] has those of addresses.

use std::path::Path;
use std::sync::Arc;

use wirespeed_image::{Table, live};
use wirespeed_namelookup::read::Labels;
use wirespeed_namelookup::{
    Applied, BuildError, Engine, LiveNames, Lookup, Match, Name, NameDomain, NameUpdate,
};

use super::NameRib;
use super::image_file;
use crate::erased::Held;
use crate::error::Error;

/// A live table of some engine.
pub(crate) trait AnyLive: Send {
    fn apply(&mut self, updates: &[NameUpdate]) -> Result<Applied, BuildError>;
    fn reader(&self) -> Box<dyn AnyReader>;
    fn rib(&self) -> &NameRib;
    fn rebuilds(&self) -> u64;
    fn memory_usage(&self) -> u64;
    fn save(&self, labels: &Labels, path: &Path) -> Result<(), Error>;
}

impl<E: Engine<NameDomain>> AnyLive for LiveNames<E> {
    fn apply(&mut self, updates: &[NameUpdate]) -> Result<Applied, BuildError> {
        Self::apply(self, updates)
    }

    fn reader(&self) -> Box<dyn AnyReader> {
        Box::new(Self::reader(self))
    }

    fn rib(&self) -> &NameRib {
        self.model().names()
    }

    fn rebuilds(&self) -> u64 {
        Self::rebuilds(self)
    }

    fn memory_usage(&self) -> u64 {
        Self::memory_usage(self)
    }

    fn save(&self, labels: &Labels, path: &Path) -> Result<(), Error> {
        image_file::save::<E>(
            &Self::reader(self).enter(),
            self.model().names(),
            labels,
            self.model().is_aggregated(),
            path,
        )
        .map(drop)
    }
}

/// A reading end of some engine's table.
pub(crate) trait AnyReader: Send {
    fn enter(&self) -> Held<'_, dyn Lookup<NameDomain>>;
    fn lookup(&self, name: &Name) -> Match;
    fn clone_box(&self) -> Box<dyn AnyReader>;
}

impl<T: Table + Lookup<NameDomain>> AnyReader for live::Reader<T> {
    fn enter(&self) -> Held<'_, dyn Lookup<NameDomain>> {
        Held::Live(live::Guard::map(Self::enter(self), |table| table as &dyn Lookup<NameDomain>))
    }

    fn lookup(&self, name: &Name) -> Match {
        Self::enter(self).lookup(name)
    }

    fn clone_box(&self) -> Box<dyn AnyReader> {
        Box::new(self.clone())
    }
}

impl<T: Table + Lookup<NameDomain>> AnyReader for Arc<T> {
    fn enter(&self) -> Held<'_, dyn Lookup<NameDomain>> {
        Held::Fixed(&**self)
    }

    fn lookup(&self, name: &Name) -> Match {
        T::lookup(self, name)
    }

    fn clone_box(&self) -> Box<dyn AnyReader> {
        Box::new(Self::clone(self))
    }
}
