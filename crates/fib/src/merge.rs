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

pub mod book;
mod source;

use crate::address::{Address, V4, V6};
use crate::fib::Fib;
use crate::prefix::Prefix;
use book::{Book, Entry, Nested, Texts, keep_last};
use ipnet::IpNet;

pub use book::{MergeError, Record, Records, TRUE};
pub use source::{BadSource, MergeSource, SourceError, field_types, read_sources};

/// The sources so far, the first one added first.
#[derive(Clone, Debug, Default)]
pub struct Merge {
    book: Book,
    v4: Vec<Entry<Prefix<V4>>>,
    v6: Vec<Entry<Prefix<V6>>>,
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
        let source = self.book.next_source()?;
        let starts = (self.v4.len(), self.v6.len());
        for (prefix, fields) in routes {
            let record = self.book.record(fields)?;
            match prefix {
                IpNet::V4(prefix) => self.v4.push(Entry { key: prefix.try_into()?, source, record }),
                IpNet::V6(prefix) => self.v6.push(Entry { key: prefix.try_into()?, source, record }),
            }
        }
        keep_last(&mut self.v4, starts.0);
        keep_last(&mut self.v6, starts.1);
        Ok(())
    }

    /// Adds a table whose texts are fields: `name=value`, several with commas between.
    pub fn add_fields(&mut self, fib: &Fib) -> Result<(), MergeError> {
        self.add_texts(fib, Texts::Fields)
    }

    /// Adds a table whose texts are values of one field.
    pub fn add_values(&mut self, fib: &Fib, name: &str) -> Result<(), MergeError> {
        self.add_texts(fib, Texts::Values(name))
    }

    /// Adds a table of texts of either kind: fields if all texts are, otherwise values of one field.
    pub fn add_table(&mut self, fib: &Fib, name: &str) -> Result<(), MergeError> {
        let texts = Texts::of_table(fib.next_hops.iter().map(|(_, text)| text), name);
        self.add_texts(fib, texts)
    }

    /// Adds a list of prefixes as a field that is [`TRUE`] for its members. Texts of the table don't matter.
    pub fn add_members(&mut self, fib: &Fib, name: &str) -> Result<(), MergeError> {
        self.add_texts(fib, Texts::Members(name))
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
        let v4 = self.v4.capacity() * size_of::<Entry<Prefix<V4>>>();
        v4 + self.v6.capacity() * size_of::<Entry<Prefix<V6>>>() + self.book.memory_usage()
    }

    /// Makes the table of all sources.
    pub fn build(self) -> Result<Merged, MergeError> {
        let Self { book, v4, v6 } = self;
        let mut fib = Fib::default();
        let Fib { v4: of_v4, v6: of_v6, next_hops } = &mut fib;
        let mut merging = book.merging();
        merging.sweep(v4, next_hops, |prefix, next_hop| _ = of_v4.insert(prefix, next_hop))?;
        merging.sweep(v6, next_hops, |prefix, next_hop| _ = of_v6.insert(prefix, next_hop))?;
        let (records, empty) = merging.finish();
        Ok(Merged { fib, records, empty })
    }

    fn add_texts(&mut self, fib: &Fib, texts: Texts<'_>) -> Result<(), MergeError> {
        let mut source = self.book.source(texts, |next_hop| fib.next_hops.text(next_hop))?;
        source.add(&mut self.v4, fib.v4.iter())?;
        source.add(&mut self.v6, fib.v6.iter())
    }
}

impl<A: Address> Nested for Prefix<A> {
    fn covers(&self, other: &Self) -> bool {
        Self::covers(*self, *other)
    }
}

#[cfg(test)]
mod tests;
