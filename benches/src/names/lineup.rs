//! Who takes part: the project's engines and their rivals.

use anyhow::Result;
use wirespeed::engine::EngineName;
use wirespeed_image::Table as _;
use wirespeed_namelookup::mata::Mata;
use wirespeed_namelookup::{
    Acta, BuildOptions, Engine, HEAD_ROOM, Lookup, Name, NameDomain, NameTable, NameUpdate, Names,
};

use super::OfNames;
use super::rivals::{DoubleArray, LinearHash, Patricia, TwoStageHash};
use crate::engines::{compiled, live};
use crate::lineup;
use crate::table::{Contestant, answers_are_results};

/// A contestant that is yet to be built.
pub type Entry = lineup::Entry<OfNames>;

/// The most names for a rival that takes half a minute for as many.
const SLOW: usize = 5_000_000;

/// The engine that ratios are to: NDN-DPDK's scheme.
pub const REFERENCE: &str = "hash-two-stage";

/// Engines and rivals that look up.
pub fn lookups() -> Vec<Entry> {
    vec![
        compiled(EngineName::Acta),
        compiled(EngineName::Mata),
        compiled(EngineName::MataNw),
        compiled(EngineName::Ata),
        compiled(EngineName::Stt),
        Entry::of(REFERENCE, TwoStageHash::build),
        linear(),
        Entry::of("yada", DoubleArray::build).up_to(SLOW),
        patricia(),
    ]
}

/// Entries that take updates: engines live, and alone without a copy that readers see.
pub fn updates() -> Vec<Entry> {
    vec![
        live("acta-live", EngineName::Acta, ()),
        alone::<Acta>(),
        live("mata-live", EngineName::Mata, ()),
        alone::<Mata>(),
        linear(),
        patricia(),
    ]
}

fn linear() -> Entry {
    Entry::of("hash-linear", LinearHash::build)
}

fn patricia() -> Entry {
    Entry::of("patricia-tree", |names| Ok(Patricia::build(names)))
}

fn alone<E: Engine<NameDomain>>() -> Entry {
    Entry::of(E::NAME, Alone::<E>::build)
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

impl<E: Engine<NameDomain>> Contestant<OfNames> for Alone<E> {
    answers_are_results!(u32);

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
