//! [`Found`]: what a table says of the keys of records.

use std::fmt::Write as _;
use std::net::IpAddr;

use wirespeed::engine;
use wirespeed::names::lists::{Answer, Verdict};
use wirespeed::names::{Match, NameBatch};
use wirespeed::prelude::IpNet;
use wirespeed::{IpReader, Key, Reader};
use wirespeed_fib::NextHop;

use super::columns::Part;
use super::table::Lookup;
use crate::rules::{Flow, Judged};

/// The keys of records.
#[derive(Debug)]
pub enum Keys<A> {
    /// Addresses, as a program reads them.
    Addresses(A),
    /// Names and domains.
    Names(Placed<NameBatch>),
    /// 5-tuples.
    Flows(Placed<Vec<Flow>>),
}

/// The addresses of records.
pub trait Addresses {
    /// Looks each record's address up. `indexes` and `lengths` get a place for each record: the index of the
    /// answer, which is none for a record without an address, and the length of the prefix if `prefix` asks
    /// for it.
    fn look_up(&self, reader: &IpReader, prefix: bool, indexes: &mut Vec<NextHop>, lengths: &mut Vec<u8>);

    /// The address of a record that has one. An IPv4-mapped address is one of IPv4.
    fn of(&self, record: usize) -> IpAddr;
}

/// The keys of those records that have one.
#[derive(Debug, Default)]
pub struct Placed<K> {
    /// The keys.
    pub keys: K,
    /// The place of each record's key.
    pub places: Vec<Option<u32>>,
}

impl<K> Placed<K> {
    /// The place of a record's key.
    pub fn place(&self, record: usize) -> Option<usize> {
        self.places[record].map(|place| place as usize)
    }

    /// Gives each record the index of its key's answer.
    fn to_records(&self, index: impl Fn(usize) -> u32, indexes: &mut Vec<NextHop>) {
        indexes.clear();
        let places = self.places.iter();
        indexes.extend(places.map(|place| NextHop(place.map_or(0, |place| index(place as usize)))));
    }
}

/// The answers of a table. Their memory is used again for the next keys.
#[derive(Debug, Default)]
pub struct Found {
    /// The index of each record's answer. None if nothing matches; of a list, also for an exception.
    pub indexes: Vec<NextHop>,
    /// The lengths of the prefixes of addresses that matched, if they are asked for.
    lengths: Vec<u8>,
    /// The answers for names, at the places of keys.
    matches: Vec<Match>,
    /// The answers for domains, at the places of keys.
    listed: Vec<Option<Answer>>,
    /// The answers for flows, at the places of keys.
    judged: Vec<Judged>,
}

impl Found {
    /// Looks keys up in a table of their kind. `prefix` says that prefixes are asked for.
    pub fn look_up<A: Addresses>(&mut self, keys: &Keys<A>, lookup: &Lookup, prefix: bool) {
        let Self { indexes, lengths, matches, listed, judged } = self;
        match (keys, lookup) {
            (Keys::Addresses(addresses), Lookup::Addresses(table)) => {
                addresses.look_up(&table.reader, prefix, indexes, lengths);
            }
            (Keys::Names(names), Lookup::Names(reader)) => {
                matches.resize(names.keys.len(), Match::NONE);
                reader.match_batch(&names.keys, matches);
                names.to_records(|place| matches[place].result, indexes);
            }
            (Keys::Names(names), Lookup::Domains(list)) => {
                listed.resize(names.keys.len(), None);
                list.lookup_batch(&names.keys, listed);
                let index = |place: usize| match listed[place] {
                    Some(Answer { verdict: Verdict::Exception, .. }) | None => 0,
                    Some(answer) => answer.verdict.result(),
                };
                names.to_records(index, indexes);
            }
            (Keys::Flows(flows), Lookup::Rules(rules)) => {
                rules.judge(&flows.keys, judged);
                flows.to_records(|place| judged[place].number, indexes);
            }
            _ => unreachable!("the plan pairs keys with tables of their kind"),
        }
    }

    /// Writes a part of a record's answer that is no value. Returns whether it has one.
    pub fn write<A: Addresses>(
        &self,
        part: Part,
        record: usize,
        keys: &Keys<A>,
        lookup: &Lookup,
        into: &mut String,
    ) -> bool {
        let index = self.indexes[record].0;
        match part {
            Part::Because => self.because(record, keys, into),
            Part::Suffix | Part::Registrable => suffix(part, record, keys, lookup, into),
            _ if index == 0 => false,
            Part::Prefix => self.prefix(record, keys, lookup, into),
            // An index without a text is shown as a number.
            Part::Field(_) | Part::Rule => write!(into, "{index}").is_ok(),
        }
    }

    /// Writes the reasons why the answer for a record's flow is uncertain.
    fn because<A>(&self, record: usize, keys: &Keys<A>, into: &mut String) -> bool {
        let Keys::Flows(flows) = keys else { return false };
        let because = flows.place(record).and_then(|place| self.judged[place].because.as_deref());
        because.inspect(|because| into.push_str(because)).is_some()
    }

    /// Writes the prefix that matched a record's key.
    fn prefix<A: Addresses>(
        &self,
        record: usize,
        keys: &Keys<A>,
        lookup: &Lookup,
        into: &mut String,
    ) -> bool {
        match keys {
            Keys::Addresses(addresses) => {
                let net = IpNet::new(addresses.of(record), self.lengths[record]).map(|net| net.trunc());
                net.is_ok_and(|net| write!(into, "{net}").is_ok())
            }
            Keys::Names(names) => {
                let Some(place) = names.place(record) else { return false };
                let name = names.keys.names().name(place);
                if matches!(lookup, Lookup::Domains(_)) {
                    self.listed[place].is_some_and(|answer| write!(into, "{}", answer.entry(name)).is_ok())
                } else {
                    let prefix = self.matches[place].prefix(name);
                    prefix.is_some_and(|prefix| write!(into, "{prefix}").is_ok())
                }
            }
            Keys::Flows(_) => false,
        }
    }
}

/// Looks addresses of a family up, all or none with their prefixes.
pub fn in_family<A: engine::Addresses, K: Key<A>>(
    reader: &Reader<A>,
    keys: &[K],
    prefix: bool,
    indexes: &mut Vec<NextHop>,
    lengths: &mut Vec<u8>,
) {
    indexes.resize(keys.len(), NextHop::NONE);
    lengths.resize(keys.len(), 0);
    if prefix {
        let found = reader.lookup_prefixes(keys, indexes, lengths);
        found.expect("the tables are built for lookups of prefixes if these are asked for");
    } else {
        reader.lookup_batch(keys, indexes);
    }
}

/// Writes the public suffix or the registrable domain of a record's domain.
fn suffix<A>(part: Part, record: usize, keys: &Keys<A>, lookup: &Lookup, into: &mut String) -> bool {
    let (Keys::Names(names), Lookup::Domains(list)) = (keys, lookup) else { return false };
    let found = names.place(record).and_then(|place| list.suffix(names.keys.names().name(place)));
    let name = found.and_then(|found| match part {
        Part::Suffix => Some(found.suffix),
        _ => found.registrable,
    });
    name.inspect(|name| name.append_domain(into)).is_some()
}
