//! Updates of live rules: after each call every engine answers as a scan of the rules that the model has.

#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use wirespeed_classify::bloom::BloomSearch;
use wirespeed_classify::linear::Linear;
use wirespeed_classify::oracle::Oracle;
use wirespeed_classify::quilt::Quilt;
use wirespeed_classify::tuple::FieldMatch;
use wirespeed_classify::tuple_search::TupleSearch;
use wirespeed_classify::{
    BuildOptions, Engine, FieldRange, Ipv4Tuple, LiveRules, Lookup, OpenFlowTuple, Pattern, Rule, RuleSet,
    RuleUpdate, Tuple,
};

/// Updates of one input, at most: a scan is asked after each call.
const MOST: usize = 48;

// A byte for the tuple and the engine, then updates of 8 bytes each: what to do (2 bits), whether the call
// ends here (1 bit), a priority (2 bits); a number; and what the rule looks like.
fuzz_target!(|input: &[u8]| {
    let Some((&which, rest)) = input.split_first() else { return };
    match which % 8 {
        0 => live::<Ipv4Tuple, Linear<_>>(rest),
        1 => live::<Ipv4Tuple, TupleSearch<_>>(rest),
        2 => live::<Ipv4Tuple, BloomSearch<_>>(rest),
        3 => live::<Ipv4Tuple, Quilt<_>>(rest),
        4 => live::<OpenFlowTuple, Linear<_>>(rest),
        5 => live::<OpenFlowTuple, TupleSearch<_>>(rest),
        6 => live::<OpenFlowTuple, BloomSearch<_>>(rest),
        _ => live::<OpenFlowTuple, Quilt<_>>(rest),
    }
});

fn live<T: Tuple, E: Engine<T>>(input: &[u8]) {
    let options = BuildOptions { seed: Some(1), ..BuildOptions::default() };
    let mut live = LiveRules::<T, E>::new(RuleSet::new(), options).expect("an empty table");
    let reader = live.reader();
    let (mut model, mut last) = (BTreeMap::<u32, Rule<T>>::new(), 0);
    let mut call = Vec::new();
    let (updates, _) = input.as_chunks::<8>();
    for (at, update) in updates.iter().take(MOST).enumerate() {
        let [what, number, shape @ ..] = *update;
        let rule = rule::<T>(shape).with_priority(u32::from(what >> 3 & 3));
        // A few numbers, so that updates meet.
        let number = 1 + u32::from(number % 24);
        call.push(match what & 3 {
            0 => RuleUpdate::Insert(rule),
            1 => RuleUpdate::Remove(number),
            _ => RuleUpdate::Set(number, rule),
        });
        if what & 4 == 0 && at + 1 < updates.len().min(MOST) {
            continue;
        }
        live.apply(&call).expect("a small set is held");
        for update in call.drain(..) {
            match update {
                RuleUpdate::Insert(rule) => {
                    last += 1;
                    model.insert(last, rule);
                }
                RuleUpdate::Set(number, rule) => {
                    last = last.max(number);
                    model.insert(number, rule);
                }
                RuleUpdate::Remove(number) => drop(model.remove(&number)),
            }
        }
        let right = Oracle(model.iter().map(|(&number, rule)| (number, rule.clone())).collect());
        let table = reader.enter();
        let tuples: Vec<T> = model.values().flat_map(around).chain([T::default(), T::USED]).collect();
        let mut numbers = vec![u32::MAX; tuples.len()];
        table.lookup_batch(&tuples, &mut numbers);
        for (tuple, number) in tuples.iter().zip(numbers) {
            assert_eq!(number, right.lookup(tuple), "{} in a batch: {tuple}", E::NAME);
            assert_eq!(table.lookup(tuple), number, "{} alone: {tuple}", E::NAME);
        }
    }
    assert_eq!(live.model().len(), model.len());
}

/// A rule of few values and many masks: addresses under prefixes or masks with holes, ports alone or in
/// ranges, a protocol or none.
fn rule<T: Tuple>(shape: [u8; 6]) -> Rule<T> {
    let [src, dst, lengths, ports, span, proto] = shape;
    let field = |name| *T::field_of(name).expect("all tuples have these fields");
    let mut pattern = Pattern::all();
    for (name, value, how) in [("src", src, lengths & 15), ("dst", dst, lengths >> 4)] {
        let field = field(name);
        let mask = match how {
            0 => 0,
            1 => u128::from(0xf00f_00ff_u32),
            length => field.prefix(2 * u16::from(length)),
        };
        pattern = pattern.with(&field, u128::from(u32::from(value) * 0x0101_0101), mask & field.all());
    }
    if proto & 3 != 0 {
        let field = field("proto");
        pattern = pattern.with(&field, [6, 17, 1][usize::from(proto >> 2) % 3], field.all());
    }
    let mut ranges = Vec::new();
    if ports != 0 {
        let (from, name) = (u128::from(ports) << 2, if proto & 128 == 0 { "sport" } else { "dport" });
        ranges.push(FieldRange::new(field(name), from, from + u128::from(span)).expect("ports"));
    }
    Rule::with_ranges(pattern, ranges, 0, 0).expect("few patterns")
}

/// A tuple of a rule, and those beside it by a bit or at the ends of its ranges.
fn around<T: Tuple>(rule: &Rule<T>) -> Vec<T> {
    let base = T::FIELDS.iter().fold(T::default(), |tuple, field| match rule.field(field) {
        FieldMatch::Masked { value, .. } | FieldMatch::Range(value, _) => tuple.with(field, value),
    });
    let mut tuples = vec![base];
    for field in T::FIELDS {
        match rule.field(field) {
            FieldMatch::Masked { mask: 0, .. } => tuples.push(base.with(field, field.all())),
            FieldMatch::Masked { value, mask } => {
                tuples.push(base.with(field, value ^ mask & mask.wrapping_neg()));
                tuples.push(base.with(field, value | field.all() & !mask));
            }
            FieldMatch::Range(from, to) => {
                let beside = [from.wrapping_sub(1) & field.all(), to, (to + 1) & field.all()];
                tuples.extend(beside.map(|port| base.with(field, port)));
            }
        }
    }
    tuples
}
