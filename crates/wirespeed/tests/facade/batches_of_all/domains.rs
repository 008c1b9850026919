//! The domains whose batches are tried: their keys, tables with what is right, and the tables' owners.

use wirespeed::classify::OpenFlow13Tuple;
use wirespeed::classify::oracle::Oracle;
use wirespeed::engine::{Addresses, Domain, Keys, RuleTuple, Served};
use wirespeed::namelookup::oracle::Oracle as NameOracle;
use wirespeed::names::{NameDomain, Names};
use wirespeed::prelude::*;
use wirespeed::{Answers, Batch, Batches, Counts, Fleet, Prefix, Table, Update};

use crate::batches::{check_answers, right};
use crate::common::{addresses, rib};

/// The seed of all tables.
const SEED: u64 = 23;

/// A domain whose batches are tried.
pub(super) trait Tried: Served {
    /// Keys in memory of their own.
    type Kept: Sync;

    fn keys(kept: &Self::Kept) -> Self::Keys<'_>;

    /// Adds the key at an index to a batch by itself. Returns whether there was room.
    fn push(batch: &mut Batch<Self>, kept: &Self::Kept, at: usize) -> bool;

    /// A table with so many keys at least.
    fn start(device: Device, fleet: &Fleet, count: usize) -> Started<Self>;
}

/// A table, keys, and what is right for them.
pub(super) struct Started<D: Tried> {
    pub(super) table: Box<dyn Owner>,
    pub(super) batches: Batches<D>,
    pub(super) kept: D::Kept,
    pub(super) right: Vec<D::Answer>,
    /// The keys whose results [`Owner::change`] changes, by index.
    pub(super) changing: Vec<bool>,
}

/// The owner of a table.
pub(super) trait Owner {
    fn counts(&self) -> Counts;

    fn note(&self) -> Option<String>;

    /// Adds many entries that no key leads to.
    fn grow(&mut self);

    /// Changes the results of some keys, if there are such keys, to [`CHANGED`] and a number. Otherwise it
    /// changes an entry that no key leads to.
    fn change(&mut self, number: u32);
}

/// The first result of keys that change.
pub(super) const CHANGED: u32 = 1_000;

/// The prefix whose next hop changes.
fn changing<A: Addresses>() -> Prefix<A> {
    Prefix::around(A::from_u128_low(0b11 << (A::BITS - 2)), 2)
}

impl<A: Addresses> Owner for Table<A> {
    fn counts(&self) -> Counts {
        self.lookups().unwrap()
    }

    fn note(&self) -> Option<String> {
        self.device_note()
    }

    fn grow(&mut self) {
        let rib = rib::<A>(SEED);
        let mut keys = addresses(&rib);
        keys.sort_unstable();
        let has_key = |prefix: Prefix<A>| {
            let at = keys.partition_point(|&key| key < prefix.address());
            keys.get(at).is_some_and(|&key| prefix.contains(key))
        };
        // Parts of the prefixes.
        let parts = rib.iter().filter(|(prefix, _)| prefix.len() <= A::BITS - 6).flat_map(|(prefix, _)| {
            let part = move |n: u32| {
                let first = prefix.address().to_u128() | u128::from(n) << (A::BITS - prefix.len() - 6);
                (Prefix::around(A::from_u128_low(first), prefix.len() + 6), NextHop(1 + n))
            };
            (1..63).map(part)
        });
        let updates: Vec<_> = parts
            .filter(|&(part, _)| !has_key(part))
            .map(|(part, next_hop)| Update::announce(part, next_hop))
            .collect();
        self.apply(&updates).unwrap();
    }

    fn change(&mut self, number: u32) {
        self.apply(&[Update::announce(changing(), NextHop(CHANGED + number))]).unwrap();
    }
}

impl Owner for NameTable {
    fn counts(&self) -> Counts {
        self.lookups().unwrap()
    }

    fn note(&self) -> Option<String> {
        self.device_note()
    }

    fn grow(&mut self) {
        let name = |n| NameBuf::new(&format!("/grown/{n}")).unwrap();
        let updates: Vec<_> = (0..5_000).map(|n| NameUpdate::insert(name(n), NextHop(1))).collect();
        self.apply(&updates).unwrap();
    }

    fn change(&mut self, number: u32) {
        let name = NameBuf::new("/changing/name").unwrap();
        self.apply(&[NameUpdate::insert(name, NextHop(CHANGED + number))]).unwrap();
    }
}

impl<T: RuleTuple> Owner for Classifier<T> {
    fn counts(&self) -> Counts {
        self.lookups().unwrap()
    }

    fn note(&self) -> Option<String> {
        self.device_note()
    }

    /// An older rule of no less priority matches all packets.
    fn grow(&mut self) {
        let rule = |n| RuleUpdate::Insert(format!("dport={n} sport={}", n % 200).parse().unwrap());
        let updates: Vec<_> = (1..1_000).map(rule).collect();
        self.apply(&updates).unwrap();
    }

    fn change(&mut self, number: u32) {
        self.apply(&[RuleUpdate::Insert(format!("dport={number}").parse().unwrap())]).unwrap();
    }
}

/// A count of keys that is at least so large: the keys again and again.
fn again<K: Clone>(keys: &[K], count: usize) -> Vec<K> {
    keys.iter().cloned().cycle().take(count.max(keys.len())).collect()
}

/// A table, keys, what is right for them, and which of them change.
type Made<T, K, R> = (T, Vec<K>, Vec<R>, Vec<bool>);

fn of_addresses<A: Addresses>(device: Device, fleet: &Fleet, count: usize) -> Made<Table<A>, A, NextHop> {
    let rib = rib::<A>(SEED);
    let keys = addresses(&rib);
    let next_hops: Vec<_> = keys.iter().map(|&key| right(&rib, key)).collect();
    let at = changing::<A>();
    let is_changing = |key: &A| {
        at.contains(*key) && rib.longest_match(*key).is_none_or(|(longest, _)| longest.len() <= at.len())
    };
    let changing: Vec<_> = keys.iter().map(is_changing).collect();
    assert!(changing.contains(&true) && changing.contains(&false));
    let table = Table::builder().rib(rib).device(device).fleet(fleet.clone()).build().unwrap();
    (table, again(&keys, count), again(&next_hops, count), again(&changing, count))
}

fn of_tuples<T: RuleTuple>(device: Device, fleet: &Fleet, count: usize) -> Made<Classifier<T>, T, u32> {
    let rules = crate::classify::rules::<T>(SEED);
    let (oracle, tuples) = (Oracle::of(&rules), crate::classify::tuples(&rules));
    let numbers: Vec<_> = tuples.iter().map(|tuple| oracle.lookup(tuple)).collect();
    let builder = Classifier::builder().rule_set(rules).device(device);
    let (tuples, numbers) = (again(&tuples, count), again(&numbers, count));
    let changing = vec![false; tuples.len()];
    (builder.fleet(fleet.clone()).build().unwrap(), tuples, numbers, changing)
}

macro_rules! tried {
    ($($keys:ty, $start:ident, $key:expr;)+) => {$(
        impl Tried for $keys {
            type Kept = Vec<Self>;

            fn keys(kept: &Vec<Self>) -> &[Self] {
                kept
            }

            fn push(batch: &mut Batch<Self>, kept: &Vec<Self>, at: usize) -> bool {
                let key: fn(&Self) -> <Self as Domain>::Key<'_> = $key;
                batch.push(key(&kept[at])).is_ok()
            }

            fn start(device: Device, fleet: &Fleet, count: usize) -> Started<Self> {
                let (table, kept, right, changing) = $start::<Self>(device, fleet, count);
                Started { batches: table.reader().batches(), table: Box::new(table), kept, right, changing }
            }
        }
    )+};
}

tried! {
    V4, of_addresses, |&key| key;
    V6, of_addresses, |&key| key;
    Ipv4Tuple, of_tuples, |key| key;
    OpenFlow13Tuple, of_tuples, |key| key;
}

impl Tried for NameDomain {
    type Kept = NameBatch;

    fn keys(kept: &NameBatch) -> Names<'_> {
        kept.names()
    }

    fn push(batch: &mut Batch<Self>, kept: &NameBatch, at: usize) -> bool {
        batch.push(kept.names().name(at)).is_ok()
    }

    fn start(device: Device, fleet: &Fleet, count: usize) -> Started<Self> {
        let rib = crate::names::names(SEED);
        let (oracle, keys) = (rib.iter().collect::<NameOracle>(), crate::names::keys(&rib));
        let next_hops: Vec<_> = keys.names().iter().map(|name| oracle.lookup(name).next_hop()).collect();
        let table = NameTable::builder().rib(rib).device(device).fleet(fleet.clone()).build().unwrap();
        let all: Vec<&Name> = keys.names().iter().collect();
        let kept = again(&all, count).into_iter().collect();
        let right = again(&next_hops, count);
        let changing = vec![false; right.len()];
        Started { batches: table.reader().batches(), table: Box::new(table), kept, right, changing }
    }
}

impl<D: Tried> Started<D> {
    /// A batch of the keys from one index to another.
    pub(super) fn filled(&self, from: usize, to: usize) -> Batch<D> {
        let mut batch = self.batches.batch(to - from).unwrap();
        assert_eq!(batch.extend_from(D::keys(&self.kept).part(from..to)), to - from);
        batch
    }

    pub(super) fn check(&self, answers: &Answers<D>, from: usize, what: &str) {
        check_answers(answers, &self.right[from..from + answers.len()], what);
    }
}

/// No table, once it is dropped.
pub(super) struct Gone;

impl Owner for Gone {
    fn counts(&self) -> Counts {
        Counts::default()
    }

    fn note(&self) -> Option<String> {
        None
    }

    fn grow(&mut self) {}

    fn change(&mut self, _: u32) {}
}
