//! The answers of a table for the keys of a column.

use std::fmt::Write as _;

use wirespeed::engine::Addresses as Family;
use wirespeed::names::Match;
use wirespeed::names::lists::{Answer, Verdict};
use wirespeed::prelude::IpNet;
use wirespeed::{IpReader, Key, Reader};
use wirespeed_commands::enrich::{Lookup, Part};
use wirespeed_commands::rules::Judged;
use wirespeed_fib::NextHop;

use super::keys::{Addresses, Keys, Placed};

#[derive(Default)]
pub(super) struct Answers {
    /// The index of each record's answer. None if nothing matches; of a list, also for an exception.
    pub(super) indexes: Vec<NextHop>,
    /// The lengths of the prefixes of addresses that matched, if they are asked for.
    lengths: Vec<u8>,
    /// The answers for names, at the places of keys.
    matches: Vec<Match>,
    /// The answers for domains, at the places of keys.
    listed: Vec<Option<Answer>>,
    /// The answers for flows, at the places of keys.
    judged: Vec<Judged>,
    /// The answers for IPv6, before they go to their records.
    v6: (Vec<NextHop>, Vec<u8>),
}

impl Answers {
    /// Looks keys up in a table of their kind. `prefix` says that prefixes are asked for.
    pub(super) fn look_up(&mut self, keys: &Keys, lookup: &Lookup, prefix: bool) {
        let Self { indexes, matches, listed, judged, .. } = self;
        match (keys, lookup) {
            (Keys::Addresses(addresses), Lookup::Addresses(table)) => {
                self.addresses(addresses, &table.reader, prefix);
            }
            (Keys::Names(names), Lookup::Names(reader)) => {
                matches.resize(names.keys.len(), Match::NONE);
                reader.match_batch(&names.keys, matches);
                to_records(names, |place| matches[place].result, indexes);
            }
            (Keys::Names(names), Lookup::Domains(list)) => {
                listed.resize(names.keys.len(), None);
                list.lookup_batch(&names.keys, listed);
                let index = |place: usize| match listed[place] {
                    Some(Answer { verdict: Verdict::Exception, .. }) | None => 0,
                    Some(answer) => answer.verdict.result(),
                };
                to_records(names, index, indexes);
            }
            (Keys::Flows(flows), Lookup::Rules(rules)) => {
                rules.judge(&flows.keys, judged);
                to_records(flows, |place| judged[place].number, indexes);
            }
            _ => unreachable!("the plan pairs keys with tables of their kind"),
        }
    }

    fn addresses(&mut self, keys: &Addresses, reader: &IpReader, prefix: bool) {
        let Self { indexes, lengths, v6: (of_v6, lengths_of_v6), .. } = self;
        if keys.v6.len() + keys.none.len() < keys.v4.len() {
            in_family(reader.v4(), &keys.v4, prefix, indexes, lengths);
        } else {
            indexes.resize(keys.v4.len(), NextHop::NONE);
            lengths.resize(keys.v4.len(), 0);
        }
        if !keys.v6.is_empty() {
            in_family(reader.v6(), &keys.v6, prefix, of_v6, lengths_of_v6);
            for (place, &record) in keys.of_v6.iter().enumerate() {
                indexes[record] = of_v6[place];
                lengths[record] = lengths_of_v6[place];
            }
        }
        for &record in &keys.none {
            indexes[record] = NextHop::NONE;
        }
    }

    /// Writes a part of a record's answer that is no value. Returns whether it has one.
    pub(super) fn write(
        &self,
        part: Part,
        record: usize,
        keys: &Keys,
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
    fn because(&self, record: usize, keys: &Keys, into: &mut String) -> bool {
        let Keys::Flows(flows) = keys else { return false };
        let because = flows.place(record).and_then(|place| self.judged[place].because.as_deref());
        because.inspect(|because| into.push_str(because)).is_some()
    }

    /// Writes the prefix that matched a record's key.
    fn prefix(&self, record: usize, keys: &Keys, lookup: &Lookup, into: &mut String) -> bool {
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
fn in_family<A: Family, K: Key<A>>(
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

/// Gives each record the answer of its key.
fn to_records<K>(keys: &Placed<K>, index: impl Fn(usize) -> u32, indexes: &mut Vec<NextHop>) {
    indexes.clear();
    indexes.extend(keys.places.iter().map(|place| NextHop(place.map_or(0, |place| index(place as usize)))));
}

/// Writes the public suffix or the registrable domain of a record's domain.
fn suffix(part: Part, record: usize, keys: &Keys, lookup: &Lookup, into: &mut String) -> bool {
    let (Keys::Names(names), Lookup::Domains(list)) = (keys, lookup) else { return false };
    let found = names.place(record).and_then(|place| list.suffix(names.keys.names().name(place)));
    let name = found.and_then(|found| match part {
        Part::Suffix => Some(found.suffix),
        _ => found.registrable,
    });
    name.inspect(|name| name.append_domain(into)).is_some()
}
