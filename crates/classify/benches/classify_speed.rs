//! How fast engines classify: lookups in trace order and shuffled, one core, in batches; building, and live
//! updates.
//!
//! ```text
//! cargo bench -p wirespeed-classify --features conformance --bench classify_speed -- acl1_1k fw1_1k
//! ```
//!
//! Sets are those of ClassBench in `WIRESPEED_DATA` by name, or `of:N:C`, an OpenFlow set of N rules in C
//! classes. Answers are checked before a rate is printed. An update is one rule taken out and put back, 64 a
//! call.

use std::time::Instant;

use wirespeed_classify::bloom::BloomSearch;
use wirespeed_classify::conformance::real::{RealSet, classbench_set};
use wirespeed_classify::generate::{Shape, Synthetic};
use wirespeed_classify::linear::Linear;
use wirespeed_classify::oracle::{Expected, Right};
use wirespeed_classify::quilt::Quilt;
use wirespeed_classify::tuple_search::TupleSearch;
use wirespeed_classify::{
    BuildOptions, Engine, LiveRules, Lookup, OpenFlowTuple, RuleSet, RuleUpdate, Tuple,
};
use wirespeed_image::Table;
use wirespeed_rng::Rng;

/// Seconds that each rate is taken over.
const SECONDS: f64 = 1.0;
/// Tuples of a batch.
const BATCH: usize = 8_192;

fn main() {
    for name in std::env::args().skip(1).filter(|arg| arg != "--bench") {
        if let Some((rules, classes)) = name.strip_prefix("of:").and_then(|shape| shape.split_once(':')) {
            let number = |text: &str| text.parse().expect("a number");
            let made = Synthetic::<OpenFlowTuple>::new(Shape::even(number(rules), number(classes)), 1)
                .expect("a shape");
            let trace = made.trace(1 << 16, 2);
            let expected = Expected::of(&made.rules);
            let right: Vec<u32> = trace.iter().map(|tuple| expected.right(tuple)).collect();
            measure::<_, Linear<OpenFlowTuple>>(&name, &made.rules, &trace, &right);
            measure::<_, TupleSearch<OpenFlowTuple>>(&name, &made.rules, &trace, &right);
            measure::<_, BloomSearch<OpenFlowTuple>>(&name, &made.rules, &trace, &right);
            measure::<_, Quilt<OpenFlowTuple>>(&name, &made.rules, &trace, &right);
        } else if let Some(RealSet { rules, trace, right }) = classbench_set(&name) {
            measure::<_, Linear<_>>(&name, &rules, &trace, &right);
            measure::<_, TupleSearch<_>>(&name, &rules, &trace, &right);
            measure::<_, BloomSearch<_>>(&name, &rules, &trace, &right);
            measure::<_, Quilt<_>>(&name, &rules, &trace, &right);
        }
    }
}

#[allow(clippy::cast_precision_loss)] // rates
fn measure<T: Tuple, E: Engine<T>>(name: &str, rules: &RuleSet<T>, trace: &[T], right: &[u32]) {
    // `ENGINES=tuple,bloom` leaves the others out.
    if std::env::var("ENGINES").is_ok_and(|names| names.split(',').all(|name| name != E::NAME)) {
        return;
    }
    let start = Instant::now();
    let (_, table) = E::build(rules, &BuildOptions::default()).expect("a table");
    let build = start.elapsed();
    let mut found = vec![0; trace.len()];
    table.lookup_batch(trace, &mut found);
    assert!(found == right, "{name}: a wrong answer");
    let in_order = rate(&table, trace);
    let mut shuffled = trace.to_vec();
    Rng::new(1).shuffle(&mut shuffled);
    let shuffled = rate(&table, &shuffled);
    let (entries, mib) = (rules.entries_len(), table.image().bytes() as f64 / (1 << 20) as f64);
    print!(
        "{} {name}: {} rules, {entries} patterns, {mib:.2} MiB, built in {build:.1?}, ",
        E::NAME,
        rules.len()
    );
    println!(
        "{in_order:.2} M/s in trace order, {shuffled:.2} M/s shuffled, {:.3} M updates/s",
        updates::<T, E>(rules)
    );
}

/// Million lookups a second.
#[allow(clippy::cast_precision_loss)]
fn rate<T: Tuple>(table: &impl Lookup<T>, trace: &[T]) -> f64 {
    let mut found = vec![0; BATCH];
    let (start, mut done) = (Instant::now(), 0);
    loop {
        for batch in trace.chunks(BATCH) {
            table.lookup_batch(batch, &mut found[..batch.len()]);
            done += batch.len();
            let elapsed = start.elapsed().as_secs_f64();
            if elapsed > SECONDS {
                return done as f64 / elapsed / 1e6;
            }
        }
    }
}

/// Million updates a second, of a live table.
#[allow(clippy::cast_precision_loss)]
fn updates<T: Tuple, E: Engine<T>>(rules: &RuleSet<T>) -> f64 {
    let mut live = LiveRules::<T, E>::new(rules.clone(), BuildOptions::default()).expect("a table");
    let numbers: Vec<u32> = rules.iter().map(|(number, _)| number.get()).collect();
    let (start, mut done) = (Instant::now(), 0);
    loop {
        for numbers in numbers.chunks(64) {
            let removes: Vec<_> = numbers.iter().map(|&number| RuleUpdate::Remove(number)).collect();
            let back =
                |&number: &u32| RuleUpdate::Set(number, rules.rule(number).expect("it is one").clone());
            let backs: Vec<_> = numbers.iter().map(back).collect();
            done +=
                live.apply(&removes).expect("removed").changes + live.apply(&backs).expect("back").changes;
        }
        let elapsed = start.elapsed().as_secs_f64();
        if elapsed > SECONDS {
            return done as f64 / elapsed / 1e6;
        }
    }
}
