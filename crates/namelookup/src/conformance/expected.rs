//! [`Expected`]: the right answers of one table, by a method that shares nothing with engines and is fast on
//! millions of names.
//!
//! The entries in order, a slash before all other bytes, so that a name comes directly before all that is
//! beneath it. What matches a name is then the last entry not after it, or one that encloses that entry.

use std::cmp::Ordering;

use rayon::prelude::*;

use crate::found::Match;
use crate::name::Name;
use crate::oracle::Oracle;
use crate::table::NameTable;

/// A source of right answers.
pub trait Right {
    /// The longest prefix of the name that is in the table.
    fn right(&self, name: &Name) -> Match;
}

impl Right for Oracle {
    fn right(&self, name: &Name) -> Match {
        self.lookup(name)
    }
}

/// The right answers of one table. 24 bytes an entry, and its name.
#[derive(Debug, Default)]
pub struct Expected {
    text: Vec<u8>,
    /// Entries in the order of their names.
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: usize,
    len: u32,
    result: u32,
    /// The entry that is its longest prefix, [`NONE`] for none.
    outer: u32,
}

const NONE: u32 = u32::MAX;

impl Expected {
    /// The right answers of entries with results, each name once. O(n log n).
    pub fn of<N: AsRef<Name>>(entries: impl IntoIterator<Item = (N, u32)>) -> Self {
        let mut all = Self::default();
        for (name, result) in entries {
            let name = name.as_ref().as_bytes();
            let len = u32::try_from(name.len()).expect("a name's length");
            all.entries.push(Entry { start: all.text.len(), len, result, outer: NONE });
            all.text.extend(name.iter().map(|&byte| rank(byte)));
        }
        let Self { text, entries } = &mut all;
        let name = |entry: &Entry| &text[entry.start..][..entry.len as usize];
        entries.par_sort_unstable_by(|a, b| name(a).cmp(name(b)));
        let mut open: Vec<u32> = Vec::new();
        for (at, number) in (0..entries.len()).zip(0u32..) {
            while open.last().is_some_and(|&o| !encloses(name(&entries[o as usize]), name(&entries[at]))) {
                open.pop();
            }
            entries[at].outer = open.last().copied().unwrap_or(NONE);
            open.push(number);
        }
        all
    }

    /// The right answers of a table's entries.
    pub fn of_table(names: &NameTable) -> Self {
        Self::of(names.iter())
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn name(&self, entry: &Entry) -> &[u8] {
        &self.text[entry.start..][..entry.len as usize]
    }
}

impl Right for Expected {
    fn right(&self, name: &Name) -> Match {
        let name: Vec<u8> = name.as_bytes().iter().map(|&byte| rank(byte)).collect();
        let after = self.entries.partition_point(|entry| self.name(entry).cmp(&name) != Ordering::Greater);
        let Some(mut entry) = after.checked_sub(1).map(|at| &self.entries[at]) else { return Match::NONE };
        let last = self.name(entry);
        let common = last.iter().zip(&name).take_while(|(a, b)| a == b).count();
        loop {
            let len = entry.len as usize;
            if len <= common && name.get(len).is_none_or(|&next| next == rank(b'/')) {
                return Match::new(entry.result, len);
            }
            match entry.outer {
                NONE => return Match::NONE,
                outer => entry = &self.entries[outer as usize],
            }
        }
    }
}

/// A byte's place among all, a slash before all others.
const fn rank(byte: u8) -> u8 {
    match byte {
        b'/' => 0,
        0..b'/' => byte + 1,
        _ => byte,
    }
}

/// Whether a name is a prefix of another, both by [`rank`].
fn encloses(outer: &[u8], inner: &[u8]) -> bool {
    inner.starts_with(outer) && inner.get(outer.len()).is_none_or(|&next| next == rank(b'/'))
}
