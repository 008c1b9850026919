//! Our own engines, as users of the façade have them: what [`wirespeed::engine`] lists is in every bench and
//! record.

use anyhow::Result;
use std::sync::Arc;
use wirespeed::engine::{
    Addresses, AnyLive, AnyReader, AnyTable, EngineName, Entered, Served, Wanted, of_domain,
};
use wirespeed_fib::{BuildOptions, NextHop};
use wirespeed_table::Domain;

use crate::lineup::Entry;
use crate::table::{Contestant, Contested, answers_are_results};

/// A kind of contest in which our engines look up.
pub trait Ours:
    Contested<
        Source = <<Self as Ours>::Domain as Domain>::Source,
        Update = <<Self as Ours>::Domain as Domain>::Update,
        Result = <<Self as Ours>::Domain as Domain>::Result,
    >
{
    /// The engines' domain.
    type Domain: Served;

    /// A key as engines take it.
    fn key<'k>(key: Self::Key<'k>) -> <Self::Domain as Domain>::Key<'k>;

    /// Keys as engines take them.
    fn keys<'k>(keys: Self::Keys<'k>) -> <Self::Domain as Domain>::Keys<'k>;

    /// The result of what was found.
    fn found(found: <Self::Domain as Domain>::Found) -> Self::Result;
}

impl<A: Addresses> Ours for A {
    type Domain = A;

    fn key<'k>(key: <A as Contested>::Key<'k>) -> <A as Domain>::Key<'k> {
        key
    }

    fn keys<'k>(keys: <A as Contested>::Keys<'k>) -> <A as Domain>::Keys<'k> {
        keys.host
    }

    fn found(found: NextHop) -> NextHop {
        found
    }
}

/// The engines of addresses as they look up when nothing else happens.
pub fn lookups<A: Addresses>() -> Vec<Entry<A>> {
    of_domain::<A>().map(compiled).collect()
}

/// The engines of addresses as live tables that take updates.
pub fn updates<A: Addresses>() -> Vec<Entry<A>> {
    of_domain::<A>().map(|engine| live(engine.as_str(), engine, ())).collect()
}

/// An engine as it looks up when nothing else happens.
pub fn compiled<D: Ours>(engine: EngineName) -> Entry<D> {
    Entry::of(engine.as_str(), move |source| Compiled::<D::Domain>::build(engine, source))
}

/// An engine as a live table that takes updates.
pub fn live<D>(name: impl Into<String>, engine: EngineName, wanted: Wanted<D::Domain>) -> Entry<D>
where
    D: Ours<Source: Clone + Into<<D::Domain as Domain>::Model>>,
{
    Entry::of(name, move |source: &D::Source| {
        Live::<D::Domain>::build(engine, source.clone().into(), wanted.clone())
    })
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

impl<D: Ours> Contestant<D> for Compiled<D::Domain> {
    answers_are_results!(D::Result);

    fn many(&self, keys: D::Keys<'_>, answers: &mut [D::Result]) {
        self.0.lookup_batch(D::keys(keys), answers);
    }

    #[inline]
    fn one(&self, key: D::Key<'_>) -> D::Result {
        D::found(self.0.lookup(D::key(key)))
    }

    fn memory(&self) -> Option<u64> {
        Some(self.bytes())
    }
}

impl<D: Ours> Contestant<D> for Live<D::Domain> {
    answers_are_results!(D::Result);

    fn many(&self, keys: D::Keys<'_>, answers: &mut [D::Result]) {
        self.lookup_batch(D::keys(keys), answers);
    }

    fn one(&self, key: D::Key<'_>) -> D::Result {
        D::found(self.enter().table.lookup(D::key(key)))
    }

    fn update(&mut self, updates: &[D::Update]) -> bool {
        self.apply(updates)
    }

    fn memory(&self) -> Option<u64> {
        Some(self.bytes())
    }
}
