//! Sets of rules that make much work for few: wide ranges, of which each rule has tens of thousands of
//! patterns; many rules that fix the same bits, or no two the same; and one tuple that all rules match. For
//! the suite, and for `benches/hostile_speed.rs`.

use wirespeed_image::rounds;
use wirespeed_rng::Rng;
use wirespeed_table::Engine;
use wirespeed_table::conformance::table_step;

use super::history::Patched;
use super::probes::{around, random};
use super::sets::{Named, ports, widest};
use super::{Tally, check, check_all, check_counts};
use crate::error::RuleError;
use crate::expand::FieldRange;
use crate::generate::tuples;
use crate::oracle::Oracle;
use crate::pattern::Pattern;
use crate::rule::Rule;
use crate::rules::RuleSet;
use crate::tuple::{Field, Tuple};
use crate::update::RuleUpdate;

/// Holds an engine against sets of few rules that make much work: built whole, put in by patches in a few
/// calls, and taken out again.
pub fn wide_ranges<T: Tuple, E: Engine<T>>() {
    if !E::STANDING.is_recommended() && rounds::leaves_to_ci() {
        return;
    }
    let tally = Tally::<T, E>::new("wide_ranges");
    let mut all = hostile::<T>(if rounds::is_long() { 150 } else { 60 });
    // An engine may look through all patterns for each tuple. One that is not recommended is asked for few.
    let (step, is_asked_for_few) =
        (table_step::<_, E>(), !E::STANDING.is_recommended() && !rounds::is_long());
    // Three wide ranges are two hundred thousand patterns a rule, and two of addresses are half as many.
    all[0] = if is_asked_for_few {
        ("single wide ranges", random_ranges(20, 1))
    } else {
        ("three wide ranges", wide(3))
    };
    all[1] = ("random wide ranges", random_ranges(20, 2));
    for (what, rules) in all.into_iter().step_by(step) {
        if let Some((_, table)) = tally.build(&rules, what) {
            if is_asked_for_few {
                check(&table, &Oracle::of(&rules), &around(&rules, 20), what);
            } else {
                check_all(&table, &rules, &[], what);
            }
            check_counts::<T, E>(&table, &rules, what);
        }
        in_and_out(&tally, &rules, if is_asked_for_few { 60 / step.max(4) } else { 60 / step }, what);
    }
    tally.finish();
}

fn in_and_out<T: Tuple, E: Engine<T>>(tally: &Tally<T, E>, rules: &RuleSet<T>, most: usize, what: &str) {
    let Some(mut patched) = Patched::new(tally, RuleSet::new(), what) else { return };
    let sorted = rules.sorted();
    let come: Vec<_> =
        sorted.iter().map(|(number, rule)| RuleUpdate::Set(number.get(), (*rule).clone())).collect();
    let go: Vec<_> = sorted.iter().map(|(number, _)| RuleUpdate::Remove(number.get())).collect();
    let part = sorted.len().div_ceil(3);
    for updates in come.chunks(part).chain(go.chunks(part)) {
        if patched.apply(updates, what).is_none() {
            return;
        }
        let tuples: Vec<T> = around(rules, most).into_iter().chain(tuples(rules, most, 1.0, 3)).collect();
        check(&patched.table, &Oracle::of(&patched.model), &tuples, what);
        check_counts::<T, E>(&patched.table, &patched.model, what);
    }
}

/// All of them, with so many rules each, or as many as there can be.
pub fn hostile<T: Tuple>(count: u32) -> Named<T> {
    vec![
        ("three wide ranges", wide(count.min(100))),
        ("random wide ranges", random_ranges(count, 3)),
        ("ranges of ports alone", ports_alone(count)),
        ("ranges beside masks with holes", beside_holes(count)),
        ("as many masks as rules", random_masks(count)),
        ("prefixes of one pair of addresses", nested(count)),
        ("one tuple", one_tuple(count)),
    ]
}

/// Rules of three wide ranges each, an address and two ports; each rule has another address range and another
/// port to begin with.
pub fn wide<T: Tuple>(count: u32) -> RuleSet<T> {
    (0..count).map(wide_rule).collect()
}

/// One of these, such as `src=7.0.0.1-197.255.255.254 sport=1-65534 dport=8-65534` for number 7. Of 128 at
/// most.
pub fn wide_rule<T: Tuple>(number: u32) -> Rule<T> {
    let (field, [dport, sport]) = (widest::<T>(), ports::<T>());
    let (number, byte) = (u128::from(number % 128), field.width - 8);
    let address = (number << byte | 1, ((201 - number / 2) << byte) - 2);
    let ranges = [(field, address), (sport, (1, 65_534)), (dport, (number + 1, 65_534))];
    ranged(Pattern::all(), &ranges, 0).expect("fewer patterns than a rule may have")
}

fn ranged<T: Tuple>(
    pattern: Pattern<T>,
    ranges: &[(Field, (u128, u128))],
    priority: u32,
) -> Result<Rule<T>, RuleError> {
    let ranges = ranges.iter().map(|&(field, (from, to))| FieldRange::new(field, from, to));
    Rule::with_ranges(pattern, ranges.collect::<Result<Vec<_>, _>>()?, priority, 1)
}

/// Rules with ranges of up to so many fields, whose ends are anything or near each other.
pub fn random_ranges<T: Tuple>(count: u32, most: usize) -> RuleSet<T> {
    let mut rng = Rng::new(51);
    let mut rules = RuleSet::new();
    let base: T = random(&mut rng);
    while rules.len() < count as usize {
        let mut ranges = Vec::new();
        for _ in 0..1 + rng.index(most) {
            let field = T::FIELDS[rng.index(T::FIELDS.len())];
            let one = if rng.chance(0.5) { base } else { random(&mut rng) }.field(&field);
            let bits = rng.below(u64::from(field.width)) + 1;
            let other = one ^ random::<T>(&mut rng).field(&field) >> (u64::from(field.width) - bits);
            ranges.push((field, (one.min(other), one.max(other))));
        }
        let masks = [T::default(), T::default().with(&widest::<T>(), widest::<T>().prefix(4))];
        let pattern = Pattern::new(base, masks[rng.index(2)]);
        let priority = u32::try_from(rng.below(5)).expect("small");
        // Some would make more patterns than a rule may have.
        if let Ok(rule) = ranged(pattern, &ranges, priority) {
            rules.insert(rule).expect("a number");
        }
    }
    rules
}

/// Rules that want two ports in ranges, and nothing else.
pub fn ports_alone<T: Tuple>(count: u32) -> RuleSet<T> {
    let [dport, sport] = ports::<T>();
    let rule = |n: u32| {
        let (low, high) = (u128::from(n % 30_000), u128::from(n / 30_000));
        ranged(Pattern::all(), &[(dport, (1 + low, 65_534)), (sport, (1, 65_534 - high))], n % 7)
    };
    (0..count).map(|n| rule(n).expect("900 patterns at most")).collect()
}

/// Rules with a mask that is no prefix, and ranges.
pub fn beside_holes<T: Tuple>(count: u32) -> RuleSet<T> {
    let mut rng = Rng::new(52);
    let [dport, sport] = ports::<T>();
    let field = widest::<T>();
    let rule = |n: u32| {
        let holes = T::default().with(&field, field.all() / 255 * 13);
        let pattern = Pattern::new(random(&mut rng), holes);
        let ports = [(dport, (1 + u128::from(n % 9), 65_534)), (sport, (1, 65_000 + u128::from(n % 500)))];
        ranged(pattern, &ports[..if n.is_multiple_of(3) { 1 } else { 2 }], n % 5)
            .expect("900 patterns at most")
    };
    (0..count).map(rule).collect()
}

/// Rules under masks at random, each under another.
pub fn random_masks<T: Tuple>(count: u32) -> RuleSet<T> {
    let mut rng = Rng::new(53);
    let base: T = random(&mut rng);
    let mut rule = |n: u32| {
        let mask = random::<T>(&mut rng).and(&random(&mut rng));
        Rule::new(Pattern::new(base, mask), n % 1_000, 0)
    };
    (0..count).map(&mut rule).collect()
}

/// Prefixes of all lengths of two fields, of one value: a tuple matches all of them.
pub fn nested<T: Tuple>(count: u32) -> RuleSet<T> {
    let base: T = random(&mut Rng::new(54));
    let field = widest::<T>();
    let other =
        *T::FIELDS.iter().rev().max_by_key(|other| (**other != field, other.width)).expect("two fields");
    let lengths = (0..=field.width).flat_map(|one| (0..=other.width).map(move |two| (one, two)));
    let rule = |(one, two): (u16, u16)| {
        let mask = T::default().with(&field, field.prefix(one)).with(&other, other.prefix(two));
        Rule::new(Pattern::new(base, mask), u32::from(one * 7 + two * 11) % 50, 0)
    };
    lengths.map(rule).take(count as usize).collect()
}

/// Rules of one pattern, the first of which is the best.
pub fn one_tuple<T: Tuple>(count: u32) -> RuleSet<T> {
    let pattern = Pattern::exact(random(&mut Rng::new(55)));
    (0..count).map(|n| Rule::new(pattern, count - n, 0)).collect()
}
