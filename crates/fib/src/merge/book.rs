//! Records of sources, for keys of any kind that nest: prefixes of addresses, names.
//!
//! A [`Book`] has the fields of all sources, each text once. Each source adds its keys as [`Entry`]s with the
//! number of their record, and [`Merging::sweep`] gives each key the record of all.

use std::fmt::Display;

use rustc_hash::FxHashMap;

use crate::next_hop::{NextHop, NextHops, TooManyNextHops};
use crate::prefix::HostBits;
use crate::read::{NO_VALUE, label_fields, label_text, label_value};

/// The value of a field that tells whether a prefix is in a list.
pub const TRUE: &str = "true";

/// The reason why sources can't be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A text that is not `name=value`, several with commas between.
    #[error("{prefix}: no fields (name=value,…): {text:?}")]
    Fields {
        /// The first prefix or name of the text.
        prefix: String,
        /// The text of its next hop.
        text: String,
    },
    /// A route without a next hop, or with one that has no text.
    #[error("{prefix}: a route without a next hop has no record")]
    Hole {
        /// The prefix of the route, or the name.
        prefix: String,
    },
    /// A prefix with host bits.
    #[error(transparent)]
    HostBits(#[from] HostBits),
    /// There are more distinct names, values or records than numbers for them.
    #[error("more than {} distinct names, values or records", u32::MAX)]
    TooMany,
}

impl From<TooManyNextHops> for MergeError {
    fn from(TooManyNextHops: TooManyNextHops) -> Self {
        Self::TooMany
    }
}

/// A key that covers others. In its order a key comes before those that it covers, and these are together.
pub trait Nested: Ord {
    /// Whether the key is the other one, or one around it.
    fn covers(&self, other: &Self) -> bool;
}

/// The meaning of the texts of a source.
#[derive(Clone, Copy, Debug)]
pub enum Texts<'n> {
    /// Fields: `name=value`, several with commas between.
    Fields,
    /// Values of the field of this name.
    Values(&'n str),
    /// None: the field of this name is [`TRUE`].
    Members(&'n str),
}

impl<'n> Texts<'n> {
    /// Fields if all texts are, otherwise values.
    pub fn of_table<'t>(mut texts: impl Iterator<Item = &'t str>, name: &'n str) -> Self {
        match texts.all(|text| label_fields(text).is_some()) {
            true => Self::Fields,
            false => Self::Values(name),
        }
    }

    /// The fields of a text. `None` if it has none.
    fn fields(self, text: &str) -> Option<Fields> {
        match self {
            Self::Fields => label_fields(text),
            Self::Values(_) if text == NO_VALUE => Some(Vec::new()),
            Self::Values(name) => Some(vec![(name.to_owned(), label_value(text)?)]),
            Self::Members(name) => Some(vec![(name.to_owned(), TRUE.to_owned())]),
        }
    }
}

/// The fields of all sources so far.
#[derive(Clone, Debug, Default)]
pub struct Book {
    names: TextSet,
    values: TextSet,
    records: RecordSet,
    sources: u32,
}

/// The records of a merged table by next hop.
#[derive(Clone, Debug)]
pub struct Records {
    names: TextSet,
    values: TextSet,
    /// The fields of next hop 1, then of next hop 2, and so on.
    fields: Vec<Box<[Field]>>,
}

/// The fields of a label, in the order in which sources first named them.
#[derive(Clone, Copy, Debug)]
pub struct Record<'r> {
    records: &'r Records,
    fields: &'r [Field],
}

/// The numbers of a name and a value.
type Field = (u32, u32);

/// The fields of a text, each a name with a value.
type Fields = Vec<(String, String)>;

/// A key of a source, with the number of its record. Sorted by key, then by source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry<K> {
    /// The key.
    pub key: K,
    /// The number of the source.
    pub source: u32,
    /// The number of the record.
    pub record: u32,
}

/// A source that is added: a table whose results have texts.
#[expect(missing_debug_implementations, reason = "it lives for the adding of a source")]
pub struct AddedSource<'b, 't, T> {
    book: &'b mut Book,
    texts: Texts<'t>,
    text: T,
    source: u32,
    /// The records of results.
    known: FxHashMap<NextHop, u32>,
}

impl Book {
    /// The number of the next source.
    pub fn next_source(&mut self) -> Result<u32, MergeError> {
        let source = self.sources;
        self.sources = source.checked_add(1).ok_or(MergeError::TooMany)?;
        Ok(source)
    }

    /// The number of a record.
    pub fn record<'t>(
        &mut self,
        fields: impl IntoIterator<Item = (&'t str, &'t str)>,
    ) -> Result<u32, MergeError> {
        let mut record: Vec<Field> = Vec::new();
        for (name, value) in fields {
            let name = self.names.number(name)?;
            record.retain(|&(known, _)| known != name);
            if !value.is_empty() {
                record.push((name, self.values.number(value)?));
            }
        }
        record.sort_unstable();
        self.records.number(record)
    }

    /// Starts a source whose results have these texts.
    pub fn source<'b, 't, 'l, T: Fn(NextHop) -> Option<&'l str>>(
        &'b mut self,
        texts: Texts<'t>,
        text: T,
    ) -> Result<AddedSource<'b, 't, T>, MergeError> {
        let source = self.next_source()?;
        Ok(AddedSource { book: self, texts, text, source, known: FxHashMap::default() })
    }

    /// Ends the sources.
    pub fn merging(self) -> Merging {
        Merging {
            book: self,
            joins: FxHashMap::default(),
            fields: Vec::new(),
            of: FxHashMap::default(),
            empty: 0,
        }
    }

    /// The bytes held.
    pub fn memory_usage(&self) -> usize {
        self.records.memory_usage() + self.names.memory_usage() + self.values.memory_usage()
    }
}

impl<'l, T: Fn(NextHop) -> Option<&'l str>> AddedSource<'_, '_, T> {
    /// Adds keys of the source with their results.
    pub fn add<K: Display>(
        &mut self,
        entries: &mut Vec<Entry<K>>,
        keys: impl Iterator<Item = (K, NextHop)>,
    ) -> Result<(), MergeError> {
        entries.reserve(keys.size_hint().0);
        for (key, next_hop) in keys {
            let record = match self.known.get(&next_hop) {
                Some(&record) => record,
                None => {
                    let hole = || MergeError::Hole { prefix: key.to_string() };
                    let text = (self.text)(next_hop).ok_or_else(hole)?;
                    let none = || MergeError::Fields { prefix: key.to_string(), text: text.to_owned() };
                    let fields = self.texts.fields(text).ok_or_else(none)?;
                    let record = self.book.record(fields.iter().map(|(name, value)| (&**name, &**value)))?;
                    self.known.insert(next_hop, record);
                    record
                }
            };
            entries.push(Entry { key, source: self.source, record });
        }
        Ok(())
    }
}

/// Makes the records of all sources.
#[derive(Debug)]
pub struct Merging {
    book: Book,
    joins: FxHashMap<(u32, u32), u32>,
    /// The fields of next hop 1, then of next hop 2, and so on.
    fields: Vec<Box<[Field]>>,
    of: FxHashMap<u32, NextHop>,
    empty: u64,
}

impl Merging {
    /// Gives each key with what it tells itself, and what the keys around it tell. A key without any field is
    /// left out.
    pub fn sweep<K: Nested + Clone>(
        &mut self,
        mut entries: Vec<Entry<K>>,
        next_hops: &mut NextHops,
        mut give: impl FnMut(K, NextHop),
    ) -> Result<(), MergeError> {
        entries.sort_unstable();
        // The keys around the current one, with all their fields, innermost last.
        let mut around: Vec<(K, u32)> = Vec::new();
        for same in entries.chunk_by(|one, other| one.key == other.key) {
            let key = &same[0].key;
            while around.last().is_some_and(|(outer, _)| !outer.covers(key)) {
                around.pop();
            }
            let mut all = around.last().map(|&(_, record)| record);
            for entry in same.iter().rev() {
                all = Some(match all {
                    None => entry.record,
                    Some(less) => self.book.records.join(entry.record, less, &mut self.joins)?,
                });
            }
            let all = all.expect("a chunk has an entry");
            around.push((key.clone(), all));
            if let Some(next_hop) = self.hop(all, next_hops)? {
                give(key.clone(), next_hop);
            }
        }
        Ok(())
    }

    /// The records of next hops, and the number of keys without any field.
    pub fn finish(self) -> (Records, u64) {
        let Self { book: Book { names, values, .. }, fields, empty, .. } = self;
        (Records { names, values, fields }, empty)
    }

    /// The next hop of a record. `None` if it has no field.
    fn hop(&mut self, record: u32, next_hops: &mut NextHops) -> Result<Option<NextHop>, MergeError> {
        if let Some(&known) = self.of.get(&record) {
            return Ok(Some(known));
        }
        let Book { names, values, records, .. } = &self.book;
        let fields = &records.records[record as usize];
        if fields.is_empty() {
            self.empty += 1;
            return Ok(None);
        }
        let text = |&(name, value): &Field| (names.text(name).to_owned(), values.text(value).to_owned());
        let next_hop = next_hops.intern(&label_text(false, &fields.iter().map(text).collect::<Vec<_>>()))?;
        self.fields.push(fields.clone());
        self.of.insert(record, next_hop);
        Ok(Some(next_hop))
    }
}

impl Records {
    /// The record of a next hop of the merged table. `None` for any other.
    pub fn get(&self, next_hop: NextHop) -> Option<Record<'_>> {
        let at = usize::try_from(next_hop.0).ok()?.checked_sub(1)?;
        Some(Record { records: self, fields: self.fields.get(at)? })
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The names of all fields, in the order in which sources first named them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.texts.iter().map(|name| &**name)
    }
}

impl<'r> Record<'r> {
    /// The value of a field. `None` if the record has none of that name.
    pub fn value(self, name: &str) -> Option<&'r str> {
        self.fields().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Every field with its value.
    pub fn fields(self) -> impl Iterator<Item = (&'r str, &'r str)> {
        let Records { names, values, .. } = self.records;
        self.fields.iter().map(|&(name, value)| (names.text(name), values.text(value)))
    }
}

/// Keeps the last of equal keys of a source, whose entries start here.
pub fn keep_last<K: Ord>(entries: &mut Vec<Entry<K>>, start: usize) {
    // The sort is stable: the last of equal keys comes first once the order is turned.
    let mut own = entries.split_off(start);
    own.reverse();
    own.sort_by(|one, other| one.key.cmp(&other.key));
    own.dedup_by(|later, first| later.key == first.key);
    entries.append(&mut own);
}

/// Texts by number.
#[derive(Clone, Debug, Default)]
struct TextSet {
    texts: Vec<Box<str>>,
    numbers: FxHashMap<Box<str>, u32>,
}

impl TextSet {
    fn number(&mut self, text: &str) -> Result<u32, MergeError> {
        if let Some(&number) = self.numbers.get(text) {
            return Ok(number);
        }
        let number = u32::try_from(self.texts.len()).map_err(|_| MergeError::TooMany)?;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        Ok(number)
    }

    fn text(&self, number: u32) -> &str {
        &self.texts[number as usize]
    }

    fn memory_usage(&self) -> usize {
        let bytes: usize = self.texts.iter().map(|text| text.len()).sum();
        2 * bytes + self.texts.capacity() * size_of::<Box<str>>() + self.numbers.capacity() * 25
    }
}

/// Records by number, each once.
#[derive(Clone, Debug, Default)]
struct RecordSet {
    records: Vec<Box<[Field]>>,
    numbers: FxHashMap<Box<[Field]>, u32>,
}

impl RecordSet {
    /// The number of a record whose fields are sorted by name.
    fn number(&mut self, record: Vec<Field>) -> Result<u32, MergeError> {
        if let Some(&number) = self.numbers.get(&record[..]) {
            return Ok(number);
        }
        let number = u32::try_from(self.records.len()).map_err(|_| MergeError::TooMany)?;
        let record = record.into_boxed_slice();
        self.records.push(record.clone());
        self.numbers.insert(record, number);
        Ok(number)
    }

    /// The record with all fields of `first`, and those of `second` that it lacks.
    fn join(
        &mut self,
        first: u32,
        second: u32,
        joins: &mut FxHashMap<(u32, u32), u32>,
    ) -> Result<u32, MergeError> {
        if let Some(&joined) = joins.get(&(first, second)) {
            return Ok(joined);
        }
        let (one, other) = (&self.records[first as usize], &self.records[second as usize]);
        let lacks = |name: u32| one.iter().all(|&(known, _)| known != name);
        let mut record: Vec<Field> = one.to_vec();
        record.extend(other.iter().filter(|&&(name, _)| lacks(name)));
        record.sort_unstable();
        let joined = self.number(record)?;
        joins.insert((first, second), joined);
        Ok(joined)
    }

    fn memory_usage(&self) -> usize {
        let fields: usize = self.records.iter().map(|record| record.len()).sum();
        2 * fields * size_of::<Field>() + (self.records.capacity() + self.numbers.capacity()) * 25
    }
}
