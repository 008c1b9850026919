//! Batches filled in place, of each domain: more keys than slots hold, a device that is lost, slots that are
//! kept, tables that are gone, memory that runs out, and numbers that change hands.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use wirespeed::classify::oracle::Oracle;
use wirespeed::classify::{OpenFlow13Tuple, RuleVerdict};
use wirespeed::engine::{Addresses, Domain, Keys, RuleTuple, Served};
use wirespeed::fib::synth::rng::Rng;
use wirespeed::gpu::runtime::GpuOptions;
use wirespeed::namelookup::oracle::Oracle as NameOracle;
use wirespeed::names::{NameDomain, Names};
use wirespeed::prelude::*;
use wirespeed::{Answers, Batch, Batches, Counts, Fleet, Prefix, Submitted, Table, Update};
use wirespeed_image::rounds::{is_long, leaves_to_ci};

use crate::batches::{check_answers, right};
use crate::common::{Warnings, addresses, on_host, rib};

/// The seed of all tables.
const SEED: u64 = 23;

/// A domain whose batches are tried.
trait Tried: Served {
    /// Keys in memory of their own.
    type Kept: Sync;

    fn keys(kept: &Self::Kept) -> Self::Keys<'_>;

    /// Adds the key at an index to a batch by itself. Returns whether there was room.
    fn push(batch: &mut Batch<Self>, kept: &Self::Kept, at: usize) -> bool;

    /// A table with so many keys at least.
    fn start(device: Device, fleet: &Fleet, count: usize) -> Started<Self>;
}

/// A table, keys, and what is right for them.
struct Started<D: Tried> {
    table: Box<dyn Owner>,
    batches: Batches<D>,
    kept: D::Kept,
    right: Vec<D::Answer>,
    /// The keys whose results [`Owner::change`] changes, by index.
    changing: Vec<bool>,
}

/// The owner of a table.
trait Owner {
    fn counts(&self) -> Counts;

    fn note(&self) -> Option<String>;

    /// Adds many entries that no key leads to.
    fn grow(&mut self);

    /// Changes the results of some keys, if there are such keys, to [`CHANGED`] and a number. Otherwise it
    /// changes an entry that no key leads to.
    fn change(&mut self, number: u32);
}

/// The first result of keys that change.
const CHANGED: u32 = 1_000;

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
    fn filled(&self, from: usize, to: usize) -> Batch<D> {
        let mut batch = self.batches.batch(to - from).unwrap();
        assert_eq!(batch.extend_from(D::keys(&self.kept).part(from..to)), to - from);
        batch
    }

    fn check(&self, answers: &Answers<D>, from: usize, what: &str) {
        check_answers(answers, &self.right[from..from + answers.len()], what);
    }
}

/// Writes a test for each domain.
macro_rules! of_all {
    ($($(#[$doc:meta])* $test:ident)+) => {$(
        $(#[$doc])*
        mod $test {
            use super::*;

            #[test]
            fn of_ipv4() {
                super::$test::<V4>();
            }

            #[test]
            fn of_ipv6() {
                super::$test::<V6>();
            }

            #[test]
            fn of_names() {
                super::$test::<NameDomain>();
            }

            #[test]
            fn of_rules() {
                super::$test::<Ipv4Tuple>();
            }

            #[test]
            fn of_openflow13() {
                super::$test::<OpenFlow13Tuple>();
            }
        }
    )+};
}

of_all! {
    more_keys_than_a_slot_holds_go_to_a_gpu_in_parts
    a_gpu_that_is_lost_costs_no_answer
    slots_that_are_kept_stop_nobody
    answers_outlive_their_table
    memory_that_runs_out_costs_no_answer
    /// Random calls of several threads beside updates: each batch has the answers of a state that was there.
    any_order_of_calls_gives_right_answers
}

/// The largest slot of the device has 8,192 keys. A batch that could have more, and has few, goes as others
/// do.
fn more_keys_than_a_slot_holds_go_to_a_gpu_in_parts<D: Tried>() {
    let Some((fleet, _)) = on_host(D::gpu_options()) else { return };
    let all = D::start(Device::Gpu, &fleet, 20_000);
    let warnings = Arc::new(AtomicUsize::new(0));
    tracing::subscriber::with_default(Warnings(Arc::clone(&warnings)), || {
        for room in [8_193, 1 << 30, usize::MAX] {
            let mut few = all.batches.batch(room).unwrap();
            assert_eq!(few.extend_from(D::keys(&all.kept).part(0..100)), 100);
            assert_eq!((few.capacity(), few.len(), few.is_full()), (room, 100, false));
            let answers = few.submit().wait();
            assert!(answers.is_from_gpu(), "room for {room}");
            all.check(&answers, 0, "few of many");
        }
        // The second one has its parts sent when the first has given its slots back.
        let (one, other) = (all.filled(0, 20_000).submit(), all.filled(1, 9_000).submit());
        for (sent, from) in [(one, 0), (other, 1)] {
            let answers = sent.wait();
            assert!(answers.is_from_gpu());
            all.check(&answers, from, "in parts");
        }
    });
    let counts = all.table.counts();
    assert_eq!((counts.cpu, warnings.load(Ordering::Relaxed)), (0, 0), "{counts:?}");
    drop(all.filled(0, 20_000).submit());
    all.check(&all.filled(5, 15_000).submit().wait(), 5, "after a batch that was dropped");
}

fn a_gpu_that_is_lost_costs_no_answer<D: Tried>() {
    let Some((fleet, switch)) = on_host(D::gpu_options()) else { return };
    let all = D::start(Device::Gpu, &fleet, 10_000);
    let held = all.filled(0, 500).submit().wait();
    let (under_way, parts, filled) =
        (all.filled(500, 900).submit(), all.filled(0, 9_000).submit(), all.filled(900, 1_000));
    switch.store(true, Ordering::Relaxed);
    all.check(&under_way.wait(), 500, "under way");
    all.check(&parts.wait(), 0, "parts under way");
    all.check(&filled.submit().wait(), 900, "filled before");
    assert!(held.is_from_gpu());
    all.check(&held, 0, "from before");
    all.check(&all.filled(3, 1_000).submit().wait(), 3, "after");
    let counts = all.table.counts();
    assert_eq!(counts.cpu, counts.why_cpu.failed, "{counts:?}");
    assert!(counts.cpu > 0 && all.table.note().is_some());
}

fn slots_that_are_kept_stop_nobody<D: Tried>() {
    let Some((fleet, _)) = on_host(D::gpu_options()) else { return };
    let mut all = D::start(Device::Gpu, &fleet, 10_000);
    all.batches = all.batches.clone().at_once(100);
    let kept: Vec<_> = (0..20).map(|at| all.filled(at, at + 1).submit().wait()).collect();
    assert_eq!(kept.iter().filter(|answers| answers.is_from_gpu()).count(), 6, "there are six slots");
    kept.iter().enumerate().for_each(|(at, answers)| all.check(answers, at, "kept"));
    for to in [50, 1_000, 10_000] {
        let answers = all.filled(7, to).submit().wait();
        assert!(!answers.is_from_gpu());
        all.check(&answers, 7, "beside kept answers");
    }
    let counts = all.table.counts();
    assert!(counts.cpu > 10_000 && counts.cpu == counts.why_cpu.no_slot, "{counts:?}");
    drop(kept);
    for to in [50, 1_000, 10_000] {
        let answers = all.filled(7, to).submit().wait();
        assert!(answers.is_from_gpu());
        all.check(&answers, 7, "after them");
    }
    assert_eq!(all.table.counts().cpu, counts.cpu);
}

fn answers_outlive_their_table<D: Tried>() {
    let Some((fleet, _)) = on_host(D::gpu_options()) else { return };
    for device in [Device::Gpu, Device::Auto, Device::Cpu] {
        let mut all = D::start(device, &fleet, 10_000);
        let held = all.filled(0, 100).submit().wait();
        let (under_way, parts, filled) =
            (all.filled(100, 900).submit(), all.filled(0, 9_000).submit(), all.filled(900, 1_000));
        all.table = Box::new(Gone);
        all.check(&under_way.wait(), 100, "under way");
        all.check(&parts.wait(), 0, "parts under way");
        all.check(&filled.submit().wait(), 900, "filled before");
        all.check(&held, 0, "from before");
        all.check(&all.filled(3, 1_000).submit().wait(), 3, "after");
    }
}

/// No table, once it is dropped.
struct Gone;

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

/// A batch on its way, with the indices of its keys.
enum Step<D: Tried> {
    Filling(Batch<D>, Vec<usize>),
    UnderWay(Submitted<D>, Vec<usize>),
    Held(Answers<D>, Vec<D::Answer>),
}

fn any_order_of_calls_gives_right_answers<D: Tried>() {
    if leaves_to_ci() {
        return;
    }
    let Some((fleet, _)) = on_host(D::gpu_options()) else { return };
    // With a GPU the CPU answers, too, where no slot is free.
    for device in [Device::Gpu, Device::Auto, Device::Cpu].into_iter().take(if is_long() { 3 } else { 1 }) {
        let mut all = D::start(device, &fleet, 0);
        let (changes, is_over) = (60, AtomicBool::new(false));
        let (kept, right, changing) = (&all.kept, &all.right, &all.changing);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (batches, is_over) = (all.batches.clone().at_once(5), &is_over);
                let calls = Calls { kept, right, changing, changes };
                scope.spawn(move || {
                    let (mut rng, mut steps, mut rounds) = (Rng::new(thread), VecDeque::new(), 0);
                    while !is_over.load(Ordering::Relaxed) || rounds < 300 {
                        rounds += 1;
                        let step = steps.pop_front();
                        calls.next(&batches, &mut rng, step, &mut steps);
                    }
                    drop(steps);
                    assert_eq!(batches.out(), 0);
                });
            }
            for number in 0..=changes {
                all.table.change(number);
                std::thread::sleep(Duration::from_millis(2));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let answers = all.filled(0, 700).submit().wait();
        for (at, found) in answers.iter().enumerate() {
            match all.changing[at] {
                true => assert_eq!(bytemuck::cast::<_, u32>(found), CHANGED + changes, "{device:?}"),
                false => assert_eq!(found, all.right[at], "{device:?}"),
            }
        }
    }
}

/// The keys that threads draw from, and the answers that are right.
struct Calls<'a, D: Tried> {
    kept: &'a D::Kept,
    right: &'a [D::Answer],
    changing: &'a [bool],
    changes: u32,
}

impl<D: Tried> Calls<'_, D> {
    /// A random call: of a batch that is there, or of a new one.
    fn next(
        &self,
        batches: &Batches<D>,
        rng: &mut Rng,
        step: Option<Step<D>>,
        steps: &mut VecDeque<Step<D>>,
    ) {
        match (rng.index(8), step) {
            (0 | 1, step) => {
                steps.extend(step);
                // The largest slot has 8,192 keys.
                let most = if rng.index(10) == 0 { 20_000 } else { 3_000 };
                match batches.batch(1 + rng.index(most)) {
                    Some(batch) => steps.push_back(Step::Filling(batch, Vec::new())),
                    None => assert_eq!(batches.out(), 5),
                }
            }
            (2, step) => drop(step),
            (_, Some(Step::Filling(mut batch, mut at))) => {
                let from = rng.index(self.right.len());
                let to = match rng.index(2) {
                    0 => (from..self.right.len().min(from + 40))
                        .find(|&at| !D::push(&mut batch, self.kept, at))
                        .unwrap_or(self.right.len().min(from + 40)),
                    _ => from + batch.extend_from(D::keys(self.kept).part(from..self.right.len())),
                };
                at.extend(from..to);
                assert_eq!(batch.len(), at.len());
                steps.push_back(match from == to || rng.index(2) == 0 {
                    true => Step::UnderWay(batch.submit(), at),
                    false => Step::Filling(batch, at),
                });
            }
            (_, Some(Step::UnderWay(batch, at))) => {
                let answers = batch.wait();
                assert_eq!(answers.len(), at.len());
                for (found, at) in answers.iter().zip(at) {
                    let number: u32 = bytemuck::cast(found);
                    let is_changed =
                        self.changing[at] && (CHANGED..=CHANGED + self.changes).contains(&number);
                    assert!(found == self.right[at] || is_changed, "{number} for key {at}");
                }
                let found = answers.iter().collect();
                steps.push_back(Step::Held(answers, found));
            }
            (_, Some(Step::Held(answers, found))) => {
                assert!(answers.iter().eq(found.iter().copied()), "it does not change");
                steps.push_back(match rng.index(2) {
                    0 => Step::Filling(answers.into_batch(700), Vec::new()),
                    _ => Step::Held(answers, found),
                });
            }
            (_, None) => {}
        }
    }
}

/// A table that outgrows a cap on a GPU's memory goes out of use there.
fn memory_that_runs_out_costs_no_answer<D: Tried>() {
    let Some((fleet, _)) = on_host(D::gpu_options()) else { return };
    let all = D::start(Device::Gpu, &fleet, 0);
    let used = fleet.gpus()[0].usage();
    // Tables of one set of rules differ a little, because their seeds are random.
    let cap = used.device() + used.tables / 8;
    drop((all, fleet));
    let options = GpuOptions { memory_cap: Some(cap), ..D::gpu_options() };
    let Some((fleet, _)) = on_host(options) else { return };
    let mut all = D::start(Device::Gpu, &fleet, 1_000);
    let held = all.filled(0, 100).submit().wait();
    let (under_way, filled) = (all.filled(100, 900).submit(), all.filled(900, 1_000));
    all.table.grow();
    assert!(all.table.note().is_some(), "there is no memory for a second copy");
    all.check(&under_way.wait(), 100, "under way");
    all.check(&filled.submit().wait(), 900, "filled before");
    assert!(held.is_from_gpu());
    all.check(&held, 0, "from before");
    let answers = all.filled(3, 1_000).submit().wait();
    assert!(!answers.is_from_gpu());
    all.check(&answers, 3, "after");
}

/// A number is another rule's by the time its answers are read. Actions are those of the packets all the
/// same.
#[test]
fn numbers_that_change_hands_have_the_actions_of_their_packets() {
    let in_place = |mut classifier: Classifier<Ipv4Tuple>, is_on_gpu: bool| {
        classifier.apply(&crate::classify::places(0)).unwrap();
        let batches = classifier.reader().batches();
        let tuples: [Ipv4Tuple; 3] = ["dport=1", "dport=2", "dport=3"].map(|tuple| tuple.parse().unwrap());
        let fill = || {
            let mut batch = batches.batch(3).unwrap();
            assert_eq!(batch.extend_from(&tuples), 3);
            batch
        };
        let actions = |answers: &mut Answers<Ipv4Tuple>| {
            let matches = answers.matches();
            let state = matches.state();
            assert!(matches.iter().zip(&tuples).all(|(found, tuple)| found == state.find(tuple)));
            assert_eq!(matches.verdict(0), RuleVerdict::Certain(matches.get(0)));
            matches.iter().map(|found| found.map(|found| found.action.0)).collect::<Vec<_>>()
        };
        let right = [Some(1), Some(2), None];
        let (mut read, mut held, sent) = (fill().submit().wait(), fill().submit().wait(), fill().submit());
        assert_eq!(read.is_from_gpu(), is_on_gpu);
        assert_eq!(actions(&mut read), right);
        // A rule more changes nothing about these.
        classifier.insert("dport=4 action=4".parse().unwrap()).unwrap();
        assert_eq!(actions(&mut read), right);
        assert_eq!(read.is_from_gpu(), is_on_gpu, "nothing was looked up again");
        classifier.apply(&crate::classify::places(1)).unwrap();
        assert_eq!((held.get(0), held.get(1)), (1, 2), "numbers stay");
        for answers in [&mut read, &mut held, &mut sent.wait()] {
            assert_eq!(actions(answers), right);
            check_answers(answers, &[2, 1, 0], "the numbers of the state of the actions");
            assert_eq!(actions(answers), right);
        }
        // A rule that is gone.
        let mut answers = fill().submit().wait();
        classifier.remove(RuleNumber::new(2).unwrap()).unwrap();
        assert_eq!(actions(&mut answers), [None, Some(2), None]);
        assert_eq!(fill().submit().wait().is_from_gpu(), is_on_gpu);
    };
    in_place(Classifier::builder().build().unwrap(), false);
    let Some((fleet, _)) = on_host(Ipv4Tuple::gpu_options()) else { return };
    in_place(Classifier::builder().device(Device::Gpu).fleet(fleet).build().unwrap(), true);
}

/// Labels that are entered before a batch is submitted resolve its answers after their routes are gone.
#[test]
fn labels_resolve_answers_of_batches_that_began_after_they_were_entered() {
    let labels = Labels::new();
    let net = |n: u8| Ipv4Net::new([192, 0, n, 0].into(), 24).unwrap();
    let routes = (0..4).map(|n| (net(n), format!("path {n}")));
    let mut table = Ipv4Table::builder().labelled_routes(&labels, routes).build().unwrap();
    let batches = table.reader().batches();
    let mut batch = batches.batch(4).unwrap();
    assert_eq!(batch.extend((0..4).map(|n| V4(0xc000_0001 | n << 8))), 4);
    let known = labels.enter();
    let answers = batch.submit().wait();
    for n in 0..4 {
        table.remove(net(n)).unwrap();
        table.insert(net(n), labels.intern(format!("other {n}")).unwrap()).unwrap();
    }
    for (n, next_hop) in answers.iter().enumerate() {
        assert_eq!(known.get(next_hop), Some(&format!("path {n}")));
    }
}
