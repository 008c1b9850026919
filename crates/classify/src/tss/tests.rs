//! What the suite does not see: how filters and bounds do.

use wirespeed_image::{PatchBuilder, Table};
use wirespeed_rng::Rng;

use super::hash::SUBTABLES;
use super::layout::{SLOTS, value_elements};
use super::{Tss, TssTable};
use crate::bloom::{BloomSearch, BloomSearchTable};
use crate::tuple_search::TupleForm;
use crate::{BuildOptions, Engine, Ipv4Tuple, Lookup, OpenFlowTuple, Pattern, Rule, RuleSet, Tuple};

fn random<T: Tuple>(rng: &mut Rng) -> T {
    let words: Vec<u32> = (0..T::WORDS).map(|_| u32::try_from(rng.bits() >> 32).expect("32 bits")).collect();
    T::from_words(&words)
}

/// So many rules over some masks, and tuples of which every other one matches.
fn some<T: Tuple>(rng: &mut Rng, rules: usize, classes: usize) -> (RuleSet<T>, Vec<T>) {
    let masks: Vec<T> = (0..classes).map(|_| random::<T>(rng).or(&random(rng))).collect();
    let (mut set, mut tuples) = (RuleSet::new(), Vec::new());
    for at in 0..rules {
        let tuple = random(rng);
        let priority = u32::try_from(rng.below(100)).expect("small");
        set.insert(Rule::new(Pattern::new(tuple, masks[at % classes]), priority, 0)).expect("a number");
        tuples.extend([tuple, random(rng)]);
    }
    (set, tuples)
}

fn options() -> BuildOptions {
    BuildOptions { seed: Some(5), ..BuildOptions::default() }
}

/// How many of so many tuples get past the filters of the classes, none of which they match.
fn false_positives<T: Tuple>(table: &BloomSearchTable<T>, tuples: &[T]) -> f64 {
    let view = table.view();
    let mut passed = 0u32;
    for &number in view.order {
        let class = view.class(number);
        for tuple in tuples {
            let masked: Vec<u32> =
                tuple.words().iter().zip(class.mask(T::WORDS)).map(|(word, mask)| word & mask).collect();
            let bits = view.keys.hash(number, &masked).bits(class.log());
            passed += u32::from(bits.into_iter().all(|bit| view.has_bit(class.first_bits(), bit)));
        }
    }
    let asked = u32::try_from(tuples.len() * view.order.len()).expect("millions");
    f64::from(passed) / f64::from(asked)
}

/// The target: within 1.5 times the formula, for values at random and for those that count up.
#[test]
fn false_positives_are_those_of_the_formula() {
    let mut rng = Rng::new(2);
    for (rules, classes) in [(400, 400), (2_000, 20), (15_000, 60), (50_000, 1)] {
        let (set, _) = some::<OpenFlowTuple>(&mut rng, rules, classes);
        let (_, table) = BloomSearch::<OpenFlowTuple>::build(&set, &options()).expect("a table");
        let tuples: Vec<_> = (0..1_000_000 / classes).map(|_| random(&mut rng)).collect();
        let (measured, expected) =
            (false_positives(&table, &tuples), table.expected_false_positives().expect("there are filters"));
        assert!(
            measured < 1.5 * expected && expected < 1.5 * measured,
            "{rules} rules in {classes} classes: {measured} of the tuples, {expected} by the formula"
        );
    }
    let exact = |n: u128| Ipv4Tuple::default().with(&Ipv4Tuple::DST, n);
    let set: RuleSet<_> = (0..20_000).map(|n| Rule::new(Pattern::exact(exact(n)), 1, 0)).collect();
    let (_, table) = BloomSearch::<Ipv4Tuple>::build(&set, &options()).expect("a table");
    let tuples: Vec<_> = (20_000..1_000_000).map(exact).collect();
    let (measured, expected) =
        (false_positives(&table, &tuples), table.expected_false_positives().expect("there is a filter"));
    assert!(measured < 1.5 * expected, "counted: {measured} of the tuples, {expected} by the formula");
}

/// After any number of updates filters have the bits of the entries that there are, and no others.
#[test]
fn bits_go_with_their_entries() {
    let mut rng = Rng::new(3);
    let (pool, _) = some::<Ipv4Tuple>(&mut rng, 4_000, 7);
    let mut set = RuleSet::new();
    let (mut engine, mut table) = BloomSearch::<Ipv4Tuple>::build(&set, &options()).expect("a table");
    set.track();
    for _ in 0..400 {
        for _ in 0..100 {
            let number = u32::try_from(1 + rng.index(pool.len())).expect("small");
            let rule = pool.rule(number).expect("numbered").clone();
            match rng.chance(0.6) {
                true => set.set(number, rule).map(drop).expect("a number"),
                false => drop(set.remove(number)),
            }
        }
        let changed = set.take_changed();
        match engine.update(&table, &set, &changed) {
            Ok(patch) => table.apply(&patch).expect("it fits"),
            Err(_) => (engine, table) = BloomSearch::build(&set, &options()).expect("a table"),
        }
        let bits = table.loads()[SUBTABLES].taken;
        let view = table.view();
        let mut right = vec![0u32; view.filters.len()];
        for (_, rule) in set.iter() {
            let pattern = rule.pattern(0);
            let is_its = |number: &&u32| view.class(**number).mask(4) == pattern.mask().words();
            let number = *view.order.iter().find(is_its).expect("its class is there");
            let class = view.class(number);
            for bit in view.keys.hash(number, pattern.value().words()).bits(class.log()) {
                right[(class.first_bits() + bit / 32) as usize] |= 1 << (bit % 32);
            }
        }
        assert_eq!(right, view.filters);
        assert_eq!(bits, right.iter().map(|word| u64::from(word.count_ones())).sum::<u64>());
    }
}

/// A search stops early: classes that can't better what was found are not looked at.
#[test]
fn a_search_stops_where_nothing_better_is_left() {
    let mut rng = Rng::new(4);
    let (set, _) = some::<Ipv4Tuple>(&mut rng, 50, 50);
    let mut set: RuleSet<_> = set.sorted().into_iter().map(|(_, rule)| rule.clone()).collect();
    set.insert(Rule::new(Pattern::all(), 1_000, 0)).expect("a number");
    let (_, table): (_, TssTable<Ipv4Tuple, TupleForm>) = Tss::build(&set, &options()).expect("a table");
    let steps = table.explain(&random(&mut rng));
    assert_eq!(steps.len(), 2, "{steps:?}");
    assert!(steps[1].meaning.starts_with("result 51"));
}

/// Kernels compare words, CPUs elements of two: what an odd last word doesn't fill must be nothing, or they
/// would find different rules.
#[test]
fn nothing_lies_beside_an_odd_last_word() {
    let set: RuleSet<OpenFlowTuple> = [Rule::new(Pattern::all(), 1, 0)].into_iter().collect();
    let (_, table) = BloomSearch::<OpenFlowTuple>::build(&set, &options()).expect("a table");
    let last = value_elements(OpenFlowTuple::WORDS) - 1;
    for (value, is_taken) in [(7, true), (7 << 32, false)] {
        let mut patch = PatchBuilder::new();
        patch.set(SLOTS, last as u64, value);
        let patch = patch.finish(None);
        assert_eq!(table.check(&patch).is_ok(), is_taken, "{value:#x}");
        let mut image = table.image().clone();
        image.apply(&patch).expect("the element is there");
        assert_eq!(BloomSearchTable::<OpenFlowTuple>::from_image(image).is_ok(), is_taken, "{value:#x}");
    }
}
