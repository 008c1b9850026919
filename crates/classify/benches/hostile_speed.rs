//! How engines stand rules chosen to do harm: building or the refusal, memory of a live table, lookups on one
//! core, and single updates.
//!
//! `cargo bench -p wirespeed-classify --bench hostile_speed -- [RULES] [ENGINE…]`: 2,000 rules of each kind
//! unless said (of three wide ranges there are 100), and `quilt` alone. Lookups are of tuples that rules
//! match, in any order, and of any tuples, 1,024 a call; answers are held against a scan of the rules.

use std::hint::black_box;
use std::time::{Duration, Instant};

use wirespeed_classify::bloom::BloomSearch;
use wirespeed_classify::conformance::wide;
use wirespeed_classify::generate::tuples;
use wirespeed_classify::linear::Linear;
use wirespeed_classify::oracle::Oracle;
use wirespeed_classify::quilt::Quilt;
use wirespeed_classify::tuple_search::TupleSearch;
use wirespeed_classify::{
    BuildError, BuildOptions, Engine, Ipv4Tuple, Ipv6Tuple, LiveRules, Lookup, OpenFlowTuple, RuleSet,
    RuleUpdate, Tuple,
};

/// Tuples a call.
const BATCH: usize = 1024;
/// Tuples in all.
const TUPLES: usize = 16 * BATCH;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let count = args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(2_000);
    let wants = |name: &str| args.iter().any(|arg| arg == name);
    println!(
        "{:8} {:7} {:34} {:>7} {:>9} {:>8} {:>8} {:>8} {:>9}",
        "tuple", "engine", "set", "rules", "build ms", "live MB", "M/s", "any M/s", "update µs"
    );
    of::<Ipv4Tuple>(count, &wants)?;
    of::<Ipv6Tuple>(count, &wants)?;
    of::<OpenFlowTuple>(count, &wants)
}

fn of<T: Tuple>(count: u32, wants: &dyn Fn(&str) -> bool) -> Result<(), Box<dyn std::error::Error>> {
    let is_any = ["bloom", "tuple", "linear"].into_iter().any(wants);
    for (what, rules) in wide::hostile::<T>(count) {
        if wants("quilt") || !is_any {
            measure::<T, Quilt<T>>(what, &rules)?;
        }
        if wants("bloom") {
            measure::<T, BloomSearch<T>>(what, &rules)?;
        }
        if wants("tuple") {
            measure::<T, TupleSearch<T>>(what, &rules)?;
        }
        if wants("linear") {
            measure::<T, Linear<T>>(what, &rules)?;
        }
    }
    Ok(())
}

fn measure<T: Tuple, E: Engine<T>>(what: &str, rules: &RuleSet<T>) -> Result<(), Box<dyn std::error::Error>> {
    let options = BuildOptions { seed: Some(1), ..BuildOptions::default() };
    let start = Instant::now();
    let live = LiveRules::<T, E>::new(rules.clone(), options);
    let built = start.elapsed().as_secs_f64() * 1e3;
    print!("{:8} {:7} {what:34} {:7} {built:9.1} ", T::NAME, E::NAME, rules.len());
    let mut live = match live {
        Ok(live) => live,
        Err(error @ BuildError::Limit { .. }) => {
            println!("{error}");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let trace = tuples(rules, TUPLES, 1.0, 7);
    let of = |trace: &[T]| rate(&*live.reader().enter(), rules, trace);
    let (rate, any) = (of(&trace), of(&tuples(&RuleSet::new(), TUPLES, 1.0, 8)));
    let megabytes = live.memory_usage() as f64 / 1e6;
    let shape = live.reader().enter().shape().unwrap_or_default();
    let update = update(&mut live)?;
    println!("{megabytes:8.1} {rate:8.2} {any:8.2} {:9.1}  {shape}", update.as_secs_f64() * 1e6);
    Ok(())
}

/// Millions of lookups a second: the best of several passes.
fn rate<T: Tuple>(table: &impl Lookup<T>, rules: &RuleSet<T>, trace: &[T]) -> f64 {
    let oracle = Oracle::of(rules);
    let mut found = vec![0; trace.len()];
    table.lookup_batch(trace, &mut found);
    for at in (0..trace.len()).step_by(101) {
        assert_eq!(found[at], oracle.lookup(&trace[at]), "{}", trace[at]);
    }
    let mut best = Duration::MAX;
    let until = Instant::now() + Duration::from_millis(600);
    while Instant::now() < until {
        let start = Instant::now();
        for (tuples, found) in trace.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            table.lookup_batch(black_box(tuples), found);
        }
        best = best.min(start.elapsed());
    }
    trace.len() as f64 / best.as_secs_f64() / 1e6
}

/// The longest that a rule took to go or to come back, a call each, of some.
fn update<T: Tuple, E: Engine<T>>(
    live: &mut LiveRules<T, E>,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let some: Vec<_> =
        live.model().sorted().into_iter().take(100).map(|(n, rule)| (n, rule.clone())).collect();
    let mut longest = Duration::ZERO;
    for (number, rule) in some {
        for update in [RuleUpdate::Remove(number.get()), RuleUpdate::Set(number.get(), rule)] {
            let start = Instant::now();
            live.apply([&update])?;
            longest = longest.max(start.elapsed());
        }
    }
    Ok(longest)
}
