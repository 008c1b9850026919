//! Our own engines, as users of the façade have them: what [`wirespeed::engine`] lists is in every bench and
//! record.

use anyhow::Result;
use std::sync::Arc;
use wirespeed::engine::{
    Addresses, AnyLive, AnyReader, AnyTable, EngineName, Entered, Served, Wanted, of_domain,
};
use wirespeed_fib::{BuildOptions, NextHop, Update};

use crate::lineup::Entry;
use crate::table::{Contestant, lane};
use crate::trace::Keys;

/// The engines as they look up when nothing else happens.
pub fn lookups<A: Addresses>() -> Vec<Entry<A>> {
    let entry = |engine: EngineName| {
        Entry::new(engine.as_str(), move |rib| {
            lane(engine.as_str(), rib, |rib| Compiled::<A>::build(engine, rib))
        })
    };
    of_domain::<A>().map(entry).collect()
}

/// The engines as live tables that take updates.
pub fn updates<A: Addresses>() -> Vec<Entry<A>> {
    let entry = |engine: EngineName| {
        Entry::new(engine.as_str(), move |rib| {
            lane(engine.as_str(), rib, |rib| Live::<A>::build(engine, rib.clone(), ()))
        })
    };
    of_domain::<A>().map(entry).collect()
}

/// A compiled table by itself.
pub struct Compiled<D: Served>(pub Box<dyn AnyTable<D>>);

impl<D: Served> Compiled<D> {
    /// Compiles.
    pub fn build(engine: EngineName, source: &D::Source) -> Result<Self> {
        Ok(Self(D::compile(engine, source, &BuildOptions::default())??.table))
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.0.image().bytes()
    }
}

/// A live table: its model, its engine, two copies of the compiled table, looked up through a reader.
pub struct Live<D: Served> {
    live: Box<dyn AnyLive<D>>,
    reader: Arc<dyn AnyReader<D>>,
}

impl<D: Served> Live<D> {
    /// Compiles.
    pub fn build(engine: EngineName, model: D::Model, wanted: Wanted<D>) -> Result<Self> {
        let live = D::live(engine, model, BuildOptions::default(), wanted)??;
        let reader = live.reader();
        Ok(Self { live, reader })
    }

    /// Its table as it is now.
    pub fn enter(&self) -> Entered<'_, D> {
        self.reader.enter()
    }

    /// Looks a batch up.
    pub fn lookup_batch(&self, keys: D::Keys<'_>, results: &mut [D::Result]) {
        self.reader.lookup_batch(keys, results);
    }

    /// Applies updates; false where it can't.
    pub fn apply(&mut self, updates: &[D::Update]) -> bool {
        self.live.apply(updates).is_ok()
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.live.memory_usage()
    }

    /// The table and its reader, for two threads.
    pub fn split(self) -> (Box<dyn AnyLive<D>>, Arc<dyn AnyReader<D>>) {
        (self.live, self.reader)
    }
}

impl<A: Addresses> Contestant<A> for Compiled<A> {
    type Answer = NextHop;

    fn next_hop(answer: NextHop) -> NextHop {
        answer
    }

    fn many(&self, keys: Keys<'_, A>, answers: &mut [NextHop]) {
        self.0.lookup_batch(keys.host, answers);
    }

    #[inline]
    fn one(&self, key: A) -> NextHop {
        self.0.lookup(key)
    }

    fn memory(&self) -> Option<u64> {
        Some(self.bytes())
    }
}

impl<A: Addresses> Contestant<A> for Live<A> {
    type Answer = NextHop;

    fn next_hop(answer: NextHop) -> NextHop {
        answer
    }

    fn many(&self, keys: Keys<'_, A>, answers: &mut [NextHop]) {
        self.lookup_batch(keys.host, answers);
    }

    fn one(&self, key: A) -> NextHop {
        self.enter().table.lookup(key)
    }

    fn update(&mut self, updates: &[Update<A>]) -> bool {
        self.apply(updates)
    }

    fn memory(&self) -> Option<u64> {
        Some(self.bytes())
    }
}
