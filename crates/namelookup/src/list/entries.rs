//! [`Entries`]: the entries of a list, and how they become a table.
//!
//! Names share few combinations of entries: nearly all of a hosts file have one exact entry with one value.
//! So each combination is stored once, and a name holds its number:
//!
//! ```text
//! names      /com/ads 1   /com/ads/good 2          a NameTable, with numbers of patterns
//! patterns   1: [ - , - , - , value 7 ]            the entry of each scope, exact to subtree
//!            2: [ exception, - , - , - ]
//! ```

use rustc_hash::FxHashMap;

use super::answers::{Answers, Kind, Resolved, Slot, Slots};
use super::entry::{Precedence, Scope, Verdict};
use crate::name::Name;
use crate::table::{NameTable, NodeId};

/// The entry of a name and a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Cell {
    precedence: Precedence,
    verdict: Verdict,
    /// The number of the reading that it is from.
    reading: u32,
}

/// An entry that was there before another one of its name and scope.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "text"), allow(dead_code))] // readers of lists look at its parts
pub(crate) struct Before {
    pub(crate) precedence: Precedence,
    pub(crate) verdict: Verdict,
    /// Whether it is from the same reading.
    pub(crate) is_of_reading: bool,
}

/// The entries of a name, by scope.
type Pattern = [Option<Cell>; Scope::ALL.len()];

/// The entries of a list of domains, to be [resolved](Self::resolve).
///
/// Memory: that of a [`NameTable`] with the same names, and little more.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    /// Results are numbers of patterns, from 1.
    names: NameTable,
    patterns: Vec<Pattern>,
    numbers: FxHashMap<Pattern, u32>,
    len: usize,
    kind: Kind,
    /// The number of the last reading.
    reading: u32,
}

/// The number of entries of a list by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries by scope, in the order of [`Scope::ALL`]; exceptions are among them.
    pub by_scope: [usize; Scope::ALL.len()],
    /// Entries that are exceptions.
    pub exceptions: usize,
}

impl Entries {
    /// Makes an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Inserts an entry. Returns whether the name had one of this scope already, of which one stays: that of
    /// the higher level, then of the higher weight, then the new one. O(length of the name).
    ///
    /// Panics after 4 billion different combinations of entries at a name.
    pub fn insert(&mut self, name: &Name, scope: Scope, precedence: Precedence, verdict: Verdict) -> bool {
        self.replace(name, scope, precedence, verdict).is_some()
    }

    /// Starts the reading of another list, so that its entries can be told from those before.
    #[cfg(feature = "text")]
    pub(crate) const fn start_reading(&mut self) {
        self.reading = self.reading.wrapping_add(1);
    }

    /// Inserts an entry like [`insert`](Self::insert). Returns the one that was there.
    pub(crate) fn replace(
        &mut self,
        name: &Name,
        scope: Scope,
        precedence: Precedence,
        verdict: Verdict,
    ) -> Option<Before> {
        let reading = self.reading;
        let number = self.names.result(name);
        let mut pattern = self.pattern(number);
        let cell = &mut pattern[scope.index()];
        let before = *cell;
        if cell.is_none_or(|old| old.precedence <= precedence) {
            *cell = Some(Cell { precedence, verdict, reading });
            let pattern = self.number(pattern);
            if pattern != number {
                self.names.insert(name, pattern);
            }
        }
        self.len += usize::from(before.is_none());
        before.map(|Cell { precedence, verdict, reading: of }| Before {
            precedence,
            verdict,
            is_of_reading: of == reading,
        })
    }

    /// The verdict of the entry of a name and a scope, if there is one. O(length of the name).
    pub fn entry(&self, name: &Name, scope: Scope) -> Option<Verdict> {
        self.pattern(self.names.result(name))[scope.index()].map(|cell| cell.verdict)
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (crate::name::NameBuf, Scope, Precedence, Verdict)> + '_ {
        self.names.iter().flat_map(|(name, number)| {
            let pattern = self.pattern(number);
            Scope::ALL.into_iter().filter_map(move |scope| {
                let cell = pattern[scope.index()]?;
                Some((name.clone(), scope, cell.precedence, cell.verdict))
            })
        })
    }

    /// The number of entries.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of names that have entries.
    pub const fn names(&self) -> usize {
        self.names.len()
    }

    /// The names that have entries, and the names above them, without the root.
    pub fn components(&self) -> usize {
        self.names.node_count() - 1
    }

    /// The number of entries by kind. O(names).
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for node in self.names.nodes() {
            let pattern = self.pattern(node.result());
            for (count, cell) in counts.by_scope.iter_mut().zip(pattern) {
                *count += usize::from(cell.is_some());
                let is_exception = cell.is_some_and(|cell| cell.verdict == Verdict::Exception);
                counts.exceptions += usize::from(is_exception);
            }
        }
        counts
    }

    /// The bytes held.
    pub fn memory_usage(&self) -> u64 {
        let of_pattern = size_of::<Pattern>() as u64;
        let known = self.numbers.capacity() as u64 * (of_pattern + 4);
        self.names.memory_usage() + self.patterns.capacity() as u64 * of_pattern + known
    }

    /// Marks the list as one of public suffixes: [`Resolved::suffix`] then answers.
    pub const fn mark_suffixes(&mut self) {
        self.kind = Kind::Suffixes;
    }

    /// Whether the list is one of public suffixes.
    pub fn is_of_suffixes(&self) -> bool {
        self.kind == Kind::Suffixes
    }

    /// Makes the table and the answers of the list: each name inherits from the names above it. O(bytes of
    /// all names). Memory of the names is reused.
    pub fn resolve(self) -> Resolved {
        let mut answers = Interned { answers: Answers::of(self.kind), numbers: FxHashMap::default() };
        let children = self.names.children();
        let mut results = Vec::with_capacity(self.names.len());
        let mut stack = vec![Above { id: NodeId::ROOT, depth: 0, inherited: None, of_parent: None }];
        while let Some(Above { id, depth, inherited, of_parent }) = stack.pop() {
            let node = self.names.node(id);
            let pattern = self.pattern(node.result());
            let own = |scope: Scope| {
                let Cell { precedence, verdict, .. } = pattern[scope.index()]?;
                Some(Candidate { level: precedence.level, depth, weight: precedence.weight, scope, verdict })
            };
            let deeper = best([inherited, own(Scope::Beneath), own(Scope::Subtree)]);
            if node.result() != 0 {
                let here = best([inherited, of_parent, own(Scope::Exact), own(Scope::Subtree)]);
                let child = best([deeper, own(Scope::OneLabel)]);
                let slots = [here, child, deeper].map(|found| found.map(|found| found.seen_from(depth)));
                results.push((id, answers.number(slots)));
            }
            let of_parent = own(Scope::OneLabel);
            stack.extend(children.of_node(node).map(|child| Above {
                id: child.id(),
                depth: depth + 1,
                inherited: deeper,
                of_parent,
            }));
        }
        let mut names = self.names;
        for (id, result) in results {
            let name = names.node(id).name();
            names.insert(&name, result);
        }
        Resolved { names, answers: answers.answers }
    }

    /// The pattern of a number; no entries for 0.
    fn pattern(&self, number: u32) -> Pattern {
        number.checked_sub(1).map_or([None; 4], |at| self.patterns[at as usize])
    }

    /// The number of a pattern.
    fn number(&mut self, pattern: Pattern) -> u32 {
        *self.numbers.entry(pattern).or_insert_with(|| {
            self.patterns.push(pattern);
            u32::try_from(self.patterns.len()).expect("fewer patterns than 32 bits count")
        })
    }
}

/// A node to resolve, with what it takes from the nodes above.
struct Above {
    id: NodeId,
    depth: u32,
    /// The best entry of a name above that covers this name and all beneath it.
    inherited: Option<Candidate>,
    /// The entry of the parent that covers this name alone.
    of_parent: Option<Candidate>,
}

/// An entry that may win. The order of fields is the order of the comparison.
#[derive(Clone, Copy)]
struct Candidate {
    level: u8,
    depth: u32,
    weight: u8,
    scope: Scope,
    verdict: Verdict,
}

impl Candidate {
    /// The entry as a name of this depth answers with it.
    const fn seen_from(self, depth: u32) -> Slot {
        Slot { verdict: self.verdict, scope: self.scope, up: depth - self.depth }
    }
}

/// The entry that wins.
fn best<const N: usize>(candidates: [Option<Candidate>; N]) -> Option<Candidate> {
    let narrower = |scope| std::cmp::Reverse(scope);
    candidates
        .into_iter()
        .flatten()
        .max_by_key(|found| (found.level, found.depth, found.weight, narrower(found.scope)))
}

/// Answers, and their numbers.
struct Interned {
    answers: Answers,
    numbers: FxHashMap<Slots, u32>,
}

impl Interned {
    fn number(&mut self, slots: Slots) -> u32 {
        *self.numbers.entry(slots).or_insert_with(|| self.answers.push(slots))
    }
}
