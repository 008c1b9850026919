//! [`ByDepth`]: a hash table for each number of components, and the hashes of a name's prefixes in one walk
//! over it.
//!
//! ```text
//! /com/parc/www/a      components   hash so far     table
//!     ▲    ▲   ▲ ▲          1          h1             1 ─► entries of one component: where their text starts, its length, result
//!                           2          h2             2
//! ```

use std::hash::Hasher;

use anyhow::{Context, Result};
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use wirespeed_namelookup::{Name, NameTable};

/// An entry: twelve bytes, and its text elsewhere.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    start: u32,
    len: u16,
    /// Components of the deepest entry below, where that is known.
    pub(super) deepest: u16,
    /// 0 where there is no entry of its own.
    pub(super) result: u32,
}

/// A table for each number of components.
pub(super) struct ByDepth {
    tables: Vec<HashTable<Entry>>,
    text: Vec<u8>,
    pub(super) root: u32,
}

/// Where a prefix ends and its hash.
#[derive(Clone, Copy, Default)]
pub(super) struct Prefix {
    end: usize,
    hash: u64,
}

/// The most components that are looked at; no entry may have more.
pub(super) const MOST: usize = 64;

/// A name's prefixes, from one component on.
pub(super) struct Prefixes {
    of: [Prefix; MOST],
    count: usize,
}

impl Prefixes {
    /// The prefixes of at most so many components.
    #[inline]
    pub(super) fn new(name: &Name, most: usize) -> Self {
        let mut prefixes = Self { of: [Prefix::default(); MOST], count: 0 };
        let (mut hasher, mut end) = (FxHasher::default(), 0);
        for component in name.components().take(most) {
            hasher.write(component);
            end += 1 + component.len();
            prefixes.of[prefixes.count] = Prefix { end, hash: hasher.finish() };
            prefixes.count += 1;
        }
        prefixes
    }

    /// How many.
    #[inline]
    pub(super) const fn count(&self) -> usize {
        self.count
    }
}

impl ByDepth {
    /// All entries of a table.
    pub(super) fn build(names: &NameTable) -> Result<Self> {
        let mut by_depth = Self { tables: Vec::new(), text: Vec::new(), root: 0 };
        for (name, result) in names.iter() {
            by_depth.insert(&name, result).with_context(|| name.to_string())?;
        }
        Ok(by_depth)
    }

    /// Components of the deepest entry.
    #[inline]
    pub(super) fn depth(&self) -> usize {
        self.tables.len()
    }

    /// The entry of a name's first components.
    #[inline]
    pub(super) fn find(&self, name: &Name, prefixes: &Prefixes, components: usize) -> Option<Entry> {
        let Prefix { end, hash } = prefixes.of[components - 1];
        let text = &name.as_bytes()[..end];
        self.tables[components - 1].find(hash, |entry| self.text(entry) == text).copied()
    }

    #[inline]
    fn text(&self, entry: &Entry) -> &[u8] {
        &self.text[entry.start as usize..][..usize::from(entry.len)]
    }

    /// Gives a name a result.
    pub(super) fn insert(&mut self, name: &Name, result: u32) -> Result<()> {
        self.with(name, |entry| entry.result = result)
    }

    /// Changes a name's entry, which is made where there is none; the root has only a result.
    pub(super) fn with(&mut self, name: &Name, change: impl FnOnce(&mut Entry)) -> Result<()> {
        let components = name.components().count();
        anyhow::ensure!(components <= MOST, "{components} components, there may be {MOST}");
        let mut entry = Entry {
            start: u32::try_from(self.text.len())?,
            len: u16::try_from(name.len())?,
            deepest: 0,
            result: self.root,
        };
        if components == 0 {
            change(&mut entry);
            self.root = entry.result;
            return Ok(());
        }
        entry.result = 0;
        while self.tables.len() < components {
            self.tables.push(HashTable::new());
        }
        let hash = Prefixes::new(name, components).of[components - 1].hash;
        let Self { tables, text, .. } = self;
        let table = &mut tables[components - 1];
        let is_it =
            |entry: &Entry| &text[entry.start as usize..][..usize::from(entry.len)] == name.as_bytes();
        if let Some(there) = table.find_mut(hash, is_it) {
            change(there);
            return Ok(());
        }
        change(&mut entry);
        table.insert_unique(hash, entry, |entry| rehash(text, entry));
        text.extend_from_slice(name.as_bytes());
        Ok(())
    }

    /// Takes a name out. Its text stays.
    pub(super) fn remove(&mut self, name: &Name) {
        let components = name.components().count();
        if components == 0 {
            self.root = 0;
        } else if components <= self.tables.len() {
            let hash = Prefixes::new(name, components).of[components - 1].hash;
            let text = &self.text;
            let is_it =
                |entry: &Entry| &text[entry.start as usize..][..usize::from(entry.len)] == name.as_bytes();
            if let Ok(found) = self.tables[components - 1].find_entry(hash, is_it) {
                found.remove();
            }
        }
    }
}

fn rehash(text: &[u8], entry: &Entry) -> u64 {
    let bytes = &text[entry.start as usize..][..usize::from(entry.len)];
    let mut hasher = FxHasher::default();
    bytes[1..].split(|&b| b == b'/').for_each(|component| hasher.write(component));
    hasher.finish()
}
