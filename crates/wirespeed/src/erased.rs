//! Engines without their types: the engine of a table is chosen at run time, and a virtual call leads to it.
//!
//! One call a batch, or one a single lookup: it covers entering and the lookup, which the compiler sees as
//! one.

use std::sync::Arc;

use wirespeed_fib::{
    Address, Applied, BuildError, Engine, LiveTable, Lookup, NextHop, NextHops, Rib, Update,
};
use wirespeed_image::Table;
use wirespeed_image::live;

use crate::error::Error;
use crate::image_file;

/// A live table of some engine.
pub(crate) trait AnyLive<A: Address>: Send {
    /// [`LiveTable::apply_if`].
    fn apply_if(
        &mut self,
        updates: &[Update<A>],
        is_agreed: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Applied>, BuildError>;
    fn reader(&self) -> Box<dyn AnyReader<A>>;
    fn rib(&self) -> &Rib<A>;
    fn rebuilds(&self) -> u64;
    fn memory_usage(&self) -> u64;
    fn save(&self, next_hops: &NextHops, path: &std::path::Path) -> Result<(), Error>;
}

impl<A: Address, E: Engine<A>> AnyLive<A> for LiveTable<A, E> {
    fn apply_if(
        &mut self,
        updates: &[Update<A>],
        is_agreed: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Applied>, BuildError> {
        Self::apply_if(self, updates, is_agreed)
    }

    fn reader(&self) -> Box<dyn AnyReader<A>> {
        Box::new(Self::reader(self))
    }

    fn rib(&self) -> &Rib<A> {
        self.model()
    }

    fn rebuilds(&self) -> u64 {
        Self::rebuilds(self)
    }

    fn memory_usage(&self) -> u64 {
        Self::memory_usage(self)
    }

    fn save(&self, next_hops: &NextHops, path: &std::path::Path) -> Result<(), Error> {
        image_file::save(&*Self::reader(self).enter(), self.model(), next_hops, path).map(drop)
    }
}

/// A reading end of some engine's table.
pub(crate) trait AnyReader<A: Address>: Send {
    fn enter(&self) -> Held<'_, dyn Lookup<A>>;
    fn lookup(&self, address: A) -> NextHop;
    fn clone_box(&self) -> Box<dyn AnyReader<A>>;
}

/// One state of some engine's table, by what looks up in it.
pub(crate) enum Held<'a, L: ?Sized> {
    /// The state of a table that changes: held against its writer.
    Live(live::Guard<'a, L>),
    /// The state of a table that doesn't change.
    Fixed(&'a L),
}

impl<L: ?Sized> Held<'_, L> {
    #[inline]
    pub(crate) fn table(&self) -> &L {
        match self {
            Self::Live(guard) => guard,
            Self::Fixed(table) => table,
        }
    }
}

impl<A: Address, T: Table + Lookup<A>> AnyReader<A> for live::Reader<T> {
    fn enter(&self) -> Held<'_, dyn Lookup<A>> {
        Held::Live(live::Guard::map(Self::enter(self), |table| table as &dyn Lookup<A>))
    }

    fn lookup(&self, address: A) -> NextHop {
        Self::enter(self).lookup(address)
    }

    fn clone_box(&self) -> Box<dyn AnyReader<A>> {
        Box::new(self.clone())
    }
}

impl<A: Address, T: Table + Lookup<A>> AnyReader<A> for Arc<T> {
    fn enter(&self) -> Held<'_, dyn Lookup<A>> {
        Held::Fixed(&**self)
    }

    fn lookup(&self, address: A) -> NextHop {
        T::lookup(self, address)
    }

    fn clone_box(&self) -> Box<dyn AnyReader<A>> {
        Box::new(Self::clone(self))
    }
}
