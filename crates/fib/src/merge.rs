//! Several sources as one table whose labels are records, with inheritance.
//!
//! ```text
//! source 1   10.0.0.0/8    country=DE                   10.0.0.0/8    country=DE,asn=1,private=true
//! source 2   10.0.0.0/8    country=FR,asn=1       ──►   10.1.0.0/16   country=DE,asn=2,private=true
//!            10.1.0.0/16   asn=2                        10.2.0.0/16   country=US,asn=1,private=true
//!            10.2.0.0/16   country=US
//! source 3   10.0.0.0/8    (a list)
//! ```
//!
//! A record is a set of fields, each a name with a value. At every prefix of any source:
//!
//! - A field has the value of the longest prefix that tells it, of all sources, among this prefix and those
//!   that cover it. So a longer prefix of a late source hides a shorter one of an early source.
//! - Of several sources that tell a field at one prefix, the first counts.
//! - A field that no such prefix tells is missing.
//!
//! So a lookup of an address finds one record with all that any source knows about it. A list of prefixes
//! without values is a field that is `true` for its members.
//!
//! The prefixes of all sources are sorted, and one pass with a stack of the prefixes around the current one
//! makes the records. Equal records are stored once, and each pair of a record and the record around it is
//! joined once. O(n log n) for n prefixes of all sources. Until [`Merge::build`] ends, a prefix of a source
//! takes 16 bytes (IPv4) or 48 bytes (IPv6) beside the finished table.
//!
//! ```
//! use wirespeed_fib::merge::Merge;
//! use wirespeed_fib::read::{ReadOptions, read_fib_from};
//!
//! let read = |text: &str| read_fib_from(text.as_bytes(), "text", &ReadOptions::default()).map(|(fib, _)| fib);
//! let mut merge = Merge::new();
//! merge.add_fields(&read("10.0.0.0/8 country=DE\n10.2.0.0/16 country=US\n")?)?;
//! merge.add_values(&read("10.0.0.0/8 64500\n10.1.0.0/16 64501\n")?, "asn")?;
//! merge.add_members(&read("10.1.0.0/16\n")?, "blocked")?;
//! let merged = merge.build()?;
//! let (prefix, label) = merged.fib.v4.longest_match("10.1.2.3".parse()?).expect("a match");
//! assert_eq!(prefix.to_string(), "10.1.0.0/16");
//! assert_eq!(merged.fib.next_hops.text(label), Some("country=DE,asn=64501,blocked=true"));
//! let record = merged.records.get(label).expect("a record");
//! assert_eq!((record.value("country"), record.value("colour")), (Some("DE"), None));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod source;

use ipnet::IpNet;
use rustc_hash::FxHashMap;

use crate::address::{Address, V4, V6};
use crate::fib::Fib;
use crate::next_hop::{NextHop, TooManyNextHops};
use crate::prefix::{HostBits, Prefix};
use crate::read::{NO_VALUE, label_fields, label_text, label_value};
use crate::rib::Rib;

pub use source::{BadSource, MergeSource, SourceError, field_types, read_sources};

/// The value of a field that tells whether a prefix is in a list.
pub const TRUE: &str = "true";

/// The sources so far, the first one added first.
#[derive(Clone, Debug, Default)]
pub struct Merge {
    names: Texts,
    values: Texts,
    records: RecordSet,
    v4: Vec<Entry<V4>>,
    v6: Vec<Entry<V6>>,
    sources: u32,
}

/// The table of all sources.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The routes. Texts of next hops are records as `name=value,name=value`, as CSV of several columns has
    /// them.
    pub fib: Fib,
    /// The records that next hops stand for.
    pub records: Records,
    /// The number of prefixes without any field, which have no route.
    pub empty: u64,
}

/// The records of a merged table by next hop.
#[derive(Clone, Debug)]
pub struct Records {
    names: Texts,
    values: Texts,
    /// The fields of next hop 1, then of next hop 2, and so on.
    fields: Vec<Box<[Field]>>,
}

/// The fields of a label, in the order in which sources first named them.
#[derive(Clone, Copy, Debug)]
pub struct Record<'r> {
    records: &'r Records,
    fields: &'r [Field],
}

/// The reason why sources can't be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A text that is not `name=value`, several with commas between.
    #[error("{prefix}: no fields (name=value,…): {text:?}")]
    Fields {
        /// The first prefix of the text.
        prefix: IpNet,
        /// The text of its next hop.
        text: String,
    },
    /// A route without a next hop, or with one that has no text.
    #[error("{prefix}: a route without a next hop has no record")]
    Hole {
        /// The prefix of the route.
        prefix: IpNet,
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

/// The numbers of a name and a value.
type Field = (u32, u32);

/// The fields of a text, each a name with a value.
type Fields = Vec<(String, String)>;

/// Gives the next hop of a record; none to a record without fields.
type Hop<'h> = dyn FnMut(u32, &RecordSet) -> Result<Option<NextHop>, MergeError> + 'h;

/// A prefix of a source, with the number of its record. Sorted by prefix, then by source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry<A: Address> {
    prefix: Prefix<A>,
    source: u32,
    record: u32,
}

impl Merge {
    /// No source yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a source whose prefixes have fields. An empty value is a missing field. Of equal prefixes, and of
    /// equal names at one prefix, the last counts.
    pub fn add<'t, F>(&mut self, routes: impl IntoIterator<Item = (IpNet, F)>) -> Result<(), MergeError>
    where
        F: IntoIterator<Item = (&'t str, &'t str)>,
    {
        let source = self.next_source()?;
        let starts = (self.v4.len(), self.v6.len());
        for (prefix, fields) in routes {
            let record = self.record(fields)?;
            match prefix {
                IpNet::V4(prefix) => self.v4.push(Entry { prefix: prefix.try_into()?, source, record }),
                IpNet::V6(prefix) => self.v6.push(Entry { prefix: prefix.try_into()?, source, record }),
            }
        }
        keep_last(&mut self.v4, starts.0);
        keep_last(&mut self.v6, starts.1);
        Ok(())
    }

    /// Adds a table whose texts are fields: `name=value`, several with commas between.
    pub fn add_fields(&mut self, fib: &Fib) -> Result<(), MergeError> {
        self.add_texts(fib, &mut |text| label_fields(text))
    }

    /// Adds a table whose texts are values of one field.
    pub fn add_values(&mut self, fib: &Fib, name: &str) -> Result<(), MergeError> {
        self.add_texts(fib, &mut |text| match text {
            NO_VALUE => Some(Vec::new()),
            text => Some(vec![(name.to_owned(), label_value(text)?)]),
        })
    }

    /// Adds a table of texts of either kind: fields if all texts are, otherwise values of one field.
    pub fn add_table(&mut self, fib: &Fib, name: &str) -> Result<(), MergeError> {
        match fib.next_hops.iter().all(|(_, text)| label_fields(text).is_some()) {
            true => self.add_fields(fib),
            false => self.add_values(fib, name),
        }
    }

    /// Adds a list of prefixes as a field that is [`TRUE`] for its members. Texts of the table don't matter.
    pub fn add_members(&mut self, fib: &Fib, name: &str) -> Result<(), MergeError> {
        self.add_texts(fib, &mut |_| Some(vec![(name.to_owned(), TRUE.to_owned())]))
    }

    /// The number of prefixes of all sources, equal ones counted for each source.
    pub fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Whether no source has a prefix.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that prefixes and records take now.
    pub fn memory_usage(&self) -> usize {
        let entries =
            self.v4.capacity() * size_of::<Entry<V4>>() + self.v6.capacity() * size_of::<Entry<V6>>();
        entries + self.records.memory_usage() + self.names.memory_usage() + self.values.memory_usage()
    }

    /// Makes the table of all sources.
    pub fn build(self) -> Result<Merged, MergeError> {
        let Self { names, values, mut records, v4, v6, .. } = self;
        let mut fib = Fib::default();
        let mut joins = FxHashMap::default();
        let mut labels = Labels { fields: Vec::new(), of: FxHashMap::default(), empty: 0 };
        let mut text = LabelText { names: &names, values: &values };
        let Fib { v4: of_v4, v6: of_v6, next_hops } = &mut fib;
        let mut hop = |record: u32, records: &RecordSet| labels.hop(record, records, &mut text, next_hops);
        sweep(v4, &mut records, &mut joins, of_v4, &mut hop)?;
        sweep(v6, &mut records, &mut joins, of_v6, &mut hop)?;
        let Labels { fields, empty, .. } = labels;
        Ok(Merged { fib, records: Records { names, values, fields }, empty })
    }

    fn next_source(&mut self) -> Result<u32, MergeError> {
        let source = self.sources;
        self.sources = source.checked_add(1).ok_or(MergeError::TooMany)?;
        Ok(source)
    }

    /// The number of a record.
    fn record<'t>(
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

    fn add_texts(
        &mut self,
        fib: &Fib,
        fields: &mut dyn FnMut(&str) -> Option<Fields>,
    ) -> Result<(), MergeError> {
        let source = self.next_source()?;
        let mut known: FxHashMap<NextHop, u32> = FxHashMap::default();
        let mut record = |merge: &mut Self, prefix: IpNet, next_hop: NextHop| {
            if let Some(&record) = known.get(&next_hop) {
                return Ok(record);
            }
            let text = fib.next_hops.text(next_hop).ok_or(MergeError::Hole { prefix })?;
            let fields = fields(text).ok_or_else(|| MergeError::Fields { prefix, text: text.to_owned() })?;
            let record = merge.record(fields.iter().map(|(name, value)| (&**name, &**value)))?;
            known.insert(next_hop, record);
            Ok::<_, MergeError>(record)
        };
        self.v4.reserve(fib.v4.len());
        for (prefix, next_hop) in fib.v4.iter() {
            let record = record(self, prefix.into(), next_hop)?;
            self.v4.push(Entry { prefix, source, record });
        }
        self.v6.reserve(fib.v6.len());
        for (prefix, next_hop) in fib.v6.iter() {
            let record = record(self, prefix.into(), next_hop)?;
            self.v6.push(Entry { prefix, source, record });
        }
        Ok(())
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

/// Keeps the last of equal prefixes of a source, whose entries start here.
fn keep_last<A: Address>(entries: &mut Vec<Entry<A>>, start: usize) {
    // The sort is stable: the last of equal prefixes comes first once the order is turned.
    entries[start..].reverse();
    entries[start..].sort_by_key(|entry| entry.prefix);
    let mut kept = start;
    for at in start..entries.len() {
        if kept == start || entries[kept - 1].prefix != entries[at].prefix {
            entries[kept] = entries[at];
            kept += 1;
        }
    }
    entries.truncate(kept);
}

/// Makes the routes of a family: each prefix with what it tells itself, and what the prefixes around it tell.
fn sweep<A: Address>(
    mut entries: Vec<Entry<A>>,
    records: &mut RecordSet,
    joins: &mut FxHashMap<(u32, u32), u32>,
    rib: &mut Rib<A>,
    hop: &mut Hop<'_>,
) -> Result<(), MergeError> {
    entries.sort_unstable();
    // The prefixes around the current one, with all their fields, innermost last.
    let mut around: Vec<(Prefix<A>, u32)> = Vec::new();
    for same in entries.chunk_by(|one, other| one.prefix == other.prefix) {
        let prefix = same[0].prefix;
        while around.last().is_some_and(|(outer, _)| !outer.covers(prefix)) {
            around.pop();
        }
        let mut all = around.last().map(|&(_, record)| record);
        for entry in same.iter().rev() {
            all = Some(match all {
                None => entry.record,
                Some(less) => records.join(entry.record, less, joins)?,
            });
        }
        let all = all.expect("a chunk has an entry");
        around.push((prefix, all));
        if let Some(next_hop) = hop(all, records)? {
            rib.insert(prefix, next_hop);
        }
    }
    Ok(())
}

/// Texts by number.
#[derive(Clone, Debug, Default)]
struct Texts {
    texts: Vec<Box<str>>,
    numbers: FxHashMap<Box<str>, u32>,
}

impl Texts {
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

/// The next hops of records.
struct Labels {
    fields: Vec<Box<[Field]>>,
    of: FxHashMap<u32, NextHop>,
    empty: u64,
}

impl Labels {
    /// The next hop of a record. `None` if it has no field.
    fn hop(
        &mut self,
        record: u32,
        records: &RecordSet,
        text: &mut LabelText<'_>,
        next_hops: &mut crate::next_hop::NextHops,
    ) -> Result<Option<NextHop>, MergeError> {
        if let Some(&known) = self.of.get(&record) {
            return Ok(Some(known));
        }
        let fields = &records.records[record as usize];
        if fields.is_empty() {
            self.empty += 1;
            return Ok(None);
        }
        let next_hop = next_hops.intern(&text.of(fields))?;
        self.fields.push(fields.clone());
        self.of.insert(record, next_hop);
        Ok(Some(next_hop))
    }
}

/// Records as the text of a next hop.
struct LabelText<'t> {
    names: &'t Texts,
    values: &'t Texts,
}

impl LabelText<'_> {
    fn of(&self, fields: &[Field]) -> String {
        let text =
            |&(name, value): &Field| (self.names.text(name).to_owned(), self.values.text(value).to_owned());
        label_text(false, &fields.iter().map(text).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests;
