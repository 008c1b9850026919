//! [`Answers`]: what an engine's result stands for, and [`Resolved`], a list that is ready to be compiled.
//!
//! ```text
//! /com/ads/x/y      a lookup matches /com/ads: result 3, length 8, and two labels follow
//!                   answers 3: [ at the name | one label beneath | deeper ]
//!                                                                    └──► verdict, scope, labels up to the winning entry
//! ```

use super::entry::{Answer, Scope, Verdict};
use super::suffix::Suffix;
use crate::found::Match;
use crate::name::{Name, SLASH};
use crate::table::NameTable;

/// The winning entry, as seen from a name of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slot {
    pub(super) verdict: Verdict,
    pub(super) scope: Scope,
    /// Labels from the name of the table up to the name of the entry.
    pub(super) up: u32,
}

/// The winning entries at a name of the table, one label beneath it, and deeper.
pub(super) type Slots = [Option<Slot>; 3];

/// The purpose of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Names with values, and exceptions.
    #[default]
    Domains,
    /// Public suffixes.
    Suffixes,
}

/// The answers that the results of a table stand for.
///
/// Memory: a few dozen bytes for each different answer, which are few.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    kind: Kind,
    slots: Vec<Slots>,
}

impl Answers {
    pub(super) const fn of(kind: Kind) -> Self {
        Self { kind, slots: Vec::new() }
    }

    /// Adds answers. Returns their number.
    pub(super) fn push(&mut self, slots: Slots) -> u32 {
        self.slots.push(slots);
        u32::try_from(self.slots.len()).expect("fewer answers than 32 bits count")
    }

    /// The winning entry for a name, by the match that a table gives for it. `None` if no entry covers the
    /// name. O(length of the name beyond the match, and of the labels up to the entry).
    pub fn answer(&self, name: &Name, found: Match) -> Option<Answer> {
        let slots = self.slots.get(usize::try_from(found.result.checked_sub(1)?).ok()?)?;
        let (matched, rest) = name.as_bytes().split_at_checked(found.length as usize)?;
        let at = match rest {
            [] => 0,
            [_, rest @ ..] if rest.contains(&SLASH) => 2,
            _ => 1,
        };
        let Slot { verdict, scope, up } = slots[at]?;
        let mut entry = Name::new_unchecked(matched);
        for _ in 0..up {
            entry = entry.parent()?;
        }
        let length = u32::try_from(entry.len()).ok()?;
        Some(Answer { verdict, scope, length })
    }

    /// The public suffix of a name. `None` if the list is not one of public suffixes, and for the root.
    pub fn suffix<'n>(&self, name: &'n Name, found: Match) -> Option<Suffix<'n>> {
        (self.kind == Kind::Suffixes).then(|| Suffix::of(name, self.answer(name, found)))?
    }

    /// Whether the list is one of public suffixes.
    pub fn is_of_suffixes(&self) -> bool {
        self.kind == Kind::Suffixes
    }

    /// The number of different answers, which is also the largest result of the table.
    pub const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The largest value of all answers; 0 if there is none.
    pub fn largest_value(&self) -> u32 {
        self.slots.iter().flatten().flatten().map(|slot| slot.verdict.result()).max().unwrap_or(0)
    }

    /// The bytes held.
    pub fn memory_usage(&self) -> u64 {
        (self.slots.capacity() * size_of::<Slots>()) as u64
    }

    /// The answers as bytes, for storing beside an image: the kind of the list, then ten bytes for each of an
    /// answer's three entries. These are what it is (0 none, 1 a value, 2 an exception), its scope, its value
    /// and the labels up to it, both 4 bytes little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![match self.kind {
            Kind::Domains => 0,
            Kind::Suffixes => 1,
        }];
        for slot in self.slots.iter().flatten() {
            let Some(Slot { verdict, scope, up }) = slot else {
                bytes.extend_from_slice(&[0; SLOT]);
                continue;
            };
            let what = if *verdict == Verdict::Exception { EXCEPTION } else { VALUE };
            bytes.push(what);
            bytes.push(u8::try_from(scope.index()).expect("one of four"));
            bytes.extend_from_slice(&verdict.result().to_le_bytes());
            bytes.extend_from_slice(&up.to_le_bytes());
        }
        bytes
    }

    /// Reads the bytes of [`to_bytes`](Self::to_bytes). `None` for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, bytes) = bytes.split_first()?;
        let kind = match kind {
            0 => Kind::Domains,
            1 => Kind::Suffixes,
            _ => return None,
        };
        let (slots, rest) = bytes.as_chunks::<SLOT>();
        let (slots, more) = slots.as_chunks::<3>();
        if !rest.is_empty() || !more.is_empty() || u32::try_from(slots.len()).is_err() {
            return None;
        }
        let slots =
            slots.iter().map(|[here, child, deeper]| Some([slot(here)?, slot(child)?, slot(deeper)?]));
        Some(Self { kind, slots: slots.collect::<Option<_>>()? })
    }
}

/// The bytes of an entry in [`Answers::to_bytes`].
const SLOT: usize = 10;
const VALUE: u8 = 1;
const EXCEPTION: u8 = 2;

/// Reads an entry. The outer `None` is for bytes that are none.
#[allow(clippy::option_option)] // "not valid" and "no entry" are two answers
fn slot(bytes: &[u8; SLOT]) -> Option<Option<Slot>> {
    let [what, scope, v0, v1, v2, v3, u0, u1, u2, u3] = *bytes;
    let (value, up) = (u32::from_le_bytes([v0, v1, v2, v3]), u32::from_le_bytes([u0, u1, u2, u3]));
    let verdict = match (what, value) {
        (0, _) => return (*bytes == [0; SLOT]).then_some(None),
        (VALUE, value) => Verdict::value(value)?,
        (EXCEPTION, 0) => Verdict::Exception,
        _ => return None,
    };
    Some(Some(Slot { verdict, scope: *Scope::ALL.get(usize::from(scope))?, up }))
}

/// A list as a table, which any engine compiles, and what the table's results stand for.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The names of the list. A result is the number of an answer.
    pub names: NameTable,
    /// The answers.
    pub answers: Answers,
}

impl Resolved {
    /// The winning entry for a name, by the table that is not compiled. O(components · log children).
    pub fn lookup(&self, name: &Name) -> Option<Answer> {
        self.answers.answer(name, self.names.lookup(name))
    }

    /// The public suffix of a name. `None` if the list is not one of public suffixes, and for the root.
    pub fn suffix<'n>(&self, name: &'n Name) -> Option<Suffix<'n>> {
        self.answers.suffix(name, self.names.lookup(name))
    }
}
