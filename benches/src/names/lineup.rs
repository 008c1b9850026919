//! Who takes part: the project's engines and their rivals.

use anyhow::Result;
use wirespeed::engine::EngineName;
use wirespeed_image::Table as _;
use wirespeed_namelookup::mata::Mata;
use wirespeed_namelookup::{
    Acta, BuildOptions, Engine, HEAD_ROOM, Lookup, Name, NameDomain, NameTable, NameUpdate, Names,
};

use super::lane::{Contestant, Lane};
use super::rivals::{DoubleArray, LinearHash, Patricia, TwoStageHash};
use crate::engines::{Compiled, Live};

/// A name and what builds it.
pub struct Entry {
    /// The name in tables and records.
    pub name: &'static str,
    /// The most names with which it is built within a minute or so.
    pub most: usize,
    #[allow(clippy::type_complexity)] // a constructor
    build: Box<dyn Fn(&'static str, &NameTable) -> Result<Lane>>,
}

/// The most names for a rival that takes half a minute for as many.
const SLOW: usize = 5_000_000;

impl Entry {
    fn new(name: &'static str, build: impl Fn(&'static str, &NameTable) -> Result<Lane> + 'static) -> Self {
        Self { name, most: usize::MAX, build: Box::new(build) }
    }

    /// Builds the lane.
    pub fn build(&self, names: &NameTable) -> Result<Lane> {
        (self.build)(self.name, names)
    }
}

/// What ratios are to: NDN-DPDK's scheme.
pub const REFERENCE: &str = "hash-two-stage";

/// Engines and rivals that look up.
pub fn lookups() -> Vec<Entry> {
    let yada = Entry::new("yada", |name, names| Lane::build(name, names, DoubleArray::build));
    vec![
        compiled(EngineName::Acta),
        compiled(EngineName::Mata),
        compiled(EngineName::MataNw),
        compiled(EngineName::Ata),
        compiled(EngineName::Stt),
        Entry::new(REFERENCE, |name, names| Lane::build(name, names, TwoStageHash::build)),
        linear(),
        Entry { most: SLOW, ..yada },
        patricia(),
    ]
}

/// Entries that take updates: engines live, and alone without a copy that readers see.
pub fn updates() -> Vec<Entry> {
    vec![
        live("acta-live", EngineName::Acta),
        alone::<Acta>(),
        live("mata-live", EngineName::Mata),
        alone::<Mata>(),
        linear(),
        patricia(),
    ]
}

fn linear() -> Entry {
    Entry::new("hash-linear", |name, names| Lane::build(name, names, LinearHash::build))
}

fn patricia() -> Entry {
    Entry::new("patricia-tree", |name, names| Lane::build(name, names, |names| Ok(Patricia::build(names))))
}

fn compiled(engine: EngineName) -> Entry {
    Entry::new(engine.as_str(), move |name, names| {
        Lane::build(name, names, |names| Compiled::<NameDomain>::build(engine, names))
    })
}

fn live(name: &'static str, engine: EngineName) -> Entry {
    Entry::new(name, move |name, names| {
        Lane::build(name, names, |names| Live::<NameDomain>::build(engine, names.clone().into(), ()))
    })
}

fn alone<E: Engine<NameDomain>>() -> Entry {
    Entry::new(E::NAME, |name, names| Lane::build(name, names, Alone::<E>::build))
}

impl Contestant for Compiled<NameDomain> {
    #[inline]
    fn one(&self, name: &Name) -> u32 {
        self.0.lookup(name).result
    }

    fn many(&self, names: Names<'_>, results: &mut [u32]) {
        self.0.lookup_batch(names, results);
    }

    fn memory(&self) -> Option<u64> {
        Some(self.bytes())
    }
}

impl Contestant for Live<NameDomain> {
    fn one(&self, name: &Name) -> u32 {
        self.enter().table.lookup(name).result
    }

    fn many(&self, names: Names<'_>, results: &mut [u32]) {
        self.lookup_batch(names, results);
    }

    fn update(&mut self, updates: &[NameUpdate]) -> bool {
        self.apply(updates)
    }

    fn memory(&self) -> Option<u64> {
        Some(self.bytes())
    }
}

/// An engine with its names and one image that its patches are applied to, for nobody to read meanwhile.
pub struct Alone<E: Engine<NameDomain>> {
    names: NameTable,
    engine: E,
    table: E::Table,
}

impl<E: Engine<NameDomain>> Alone<E> {
    /// Compiles names.
    pub fn build(names: &NameTable) -> Result<Self> {
        let mut names = names.clone();
        let options = Self::options();
        names.prepare(names.node_count() * options.head_room as usize / 100);
        let (engine, table) = E::build(&names, &options)?;
        names.track();
        Ok(Self { names, engine, table })
    }

    /// Options with the head room of live tables.
    fn options() -> BuildOptions {
        BuildOptions { head_room: HEAD_ROOM, ..BuildOptions::default() }
    }

    /// The table as it is now.
    pub const fn table(&self) -> &E::Table {
        &self.table
    }
}

impl<E: Engine<NameDomain>> Contestant for Alone<E> {
    fn one(&self, name: &Name) -> u32 {
        self.table.lookup(name).result
    }

    fn many(&self, names: Names<'_>, results: &mut [u32]) {
        self.table.lookup_batch(names, results);
    }

    fn update(&mut self, updates: &[NameUpdate]) -> bool {
        self.names.apply_all(updates);
        let changed = self.names.take_changed();
        let patch = self.engine.update(&self.table, &self.names, &changed);
        self.names.forget_gone(changed);
        match patch {
            Ok(patch) => self.table.apply(&patch).is_ok(),
            Err(_) => match E::build(&self.names, &Self::options()) {
                Ok((engine, table)) => {
                    (self.engine, self.table) = (engine, table);
                    true
                }
                Err(_) => false,
            },
        }
    }

    fn memory(&self) -> Option<u64> {
        Some(self.table.image().bytes() + self.engine.memory_usage() + self.names.memory_usage())
    }
}
