//! How fast quilts are on one core, on ClassBench sets: lookups in the order of the trace, shuffled, and of a
//! live table in the same order, held against the truth; bytes a rule, compiled, live, and live after the
//! updates; building, and updates of a live table: deletions, insertions, and rules that become what others
//! were; and the insertion of the second half of the rules into a live table of the first.
//!
//! `WIRESPEED_DATA=DIR cargo bench -p wirespeed-classify --bench quilt_speed -- [SET…] [shapes] [updates] [levels]`:
//! `updates` measures these alone, in more passes, and with the actions of rules, which take what the
//! façade's updates do; `levels` lookups alone, with each vector level of this CPU in turns.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use wirespeed_classify::quilt::Quilt;
use wirespeed_classify::read::{ReadOptions, read_rules_from, read_trace_from};
use wirespeed_classify::{
    Actions, BuildOptions, Companion, Engine, Ipv4Tuple, LiveRules, Lookup, RuleSet, RuleUpdate,
};
use wirespeed_image::Table;
use wirespeed_rng::Rng;
use wirespeed_table::conformance::compare_levels;

/// Tuples a call.
const BATCH: usize = 1024;
/// Updates a call.
const UPDATES: usize = 4096;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(data) = std::env::var_os("WIRESPEED_DATA") else {
        eprintln!("skipped: WIRESPEED_DATA is not set");
        return Ok(());
    };
    let is_word = |arg: &str| ["shapes", "updates", "levels"].contains(&arg);
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|arg| arg != "--bench" && !is_word(arg)).collect();
    let has = |word: &str| std::env::args().any(|arg| arg == word);
    println!(
        "{:10} {:>6} {:>6} {:>8} {:>8} {:>8} {:>6} {:>6} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "set",
        "rules",
        "layers",
        "trace",
        "shuffled",
        "live",
        "B/rule",
        "B live",
        "after",
        "build",
        "out",
        "in",
        "others",
        "second"
    );
    for size in ["1k", "10k", "100k"] {
        for kind in ["acl1", "acl3", "fw1", "fw2", "ipc1"] {
            let name = format!("{kind}_{size}");
            if wanted.is_empty() || wanted.iter().any(|wanted| name.contains(wanted.as_str())) {
                measure(&PathBuf::from(&data).join("rules"), &name, has("shapes"), has("updates"))?;
            }
        }
    }
    Ok(())
}

fn measure(
    data: &Path,
    name: &str,
    shapes: bool,
    updates_alone: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let open = |kind: &str| -> std::io::Result<Vec<u8>> {
        zstd::decode_all(std::fs::File::open(data.join(format!("{name}.{kind}.zst")))?)
    };
    let options = ReadOptions::default();
    let (file, _) = read_rules_from::<Ipv4Tuple>(&open("rules")?[..], name, &options)?;
    let (mut trace, _) = read_trace_from::<Ipv4Tuple>(&open("trace")?[..], name, &options)?;
    let truth = open("truth-u32le")?;
    let mut truth: Vec<u32> =
        truth.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]).wrapping_add(1)).collect();
    let build = BuildOptions { seed: Some(1), ..BuildOptions::default() };
    if updates_alone {
        let plain = updates::<()>(&file.rules, &trace, &build, 60)?.0;
        println!(
            "{name:10} {plain:.2?}; with actions {:.2?}",
            updates::<Actions>(&file.rules, &trace, &build, 60)?.0
        );
        return Ok(());
    }
    let start = Instant::now();
    let (_, table) = Quilt::build(&file.rules, &build)?;
    let built = start.elapsed();
    if std::env::args().any(|arg| arg == "levels") {
        compare_levels::<Ipv4Tuple>(name, &table, &trace, &truth);
        return Ok(());
    }
    let of_table = |tuples: &[Ipv4Tuple], found: &mut [u32]| table.lookup_batch(tuples, found);
    let in_order = rate(of_table, &trace, &truth);
    let mut rng = Rng::new(5);
    let mut both: Vec<_> = trace.iter().copied().zip(truth.iter().copied()).collect();
    rng.shuffle(&mut both);
    (trace, truth) = both.into_iter().unzip();
    let shuffled = rate(of_table, &trace, &truth);
    let live = LiveRules::<Ipv4Tuple, Quilt<Ipv4Tuple>>::new(file.rules.clone(), build.clone())?;
    let reader = live.reader();
    let of_live = |tuples: &[Ipv4Tuple], found: &mut [u32]| reader.enter().lookup_batch(tuples, found);
    let looked = rate(of_live, &trace, &truth);
    let of_rule = |bytes: u64| bytes / file.rules.len() as u64;
    let [bytes, of_live] = [table.image().bytes(), live.memory_usage()].map(of_rule);
    drop((reader, live));
    let ([out, back, others], after) = updates::<()>(&file.rules, &trace, &build, 9)?;
    let second = second_half(&file.rules, &build)?;
    println!(
        "{name:10} {:6} {:6} {in_order:8.1} {shuffled:8.1} {looked:8.1} {bytes:6} {of_live:6} {:6} {:8.0} {out:8.2} {back:8.2} {others:8.2} {second:8.2}",
        file.rules.len(),
        table.layers(),
        of_rule(after),
        built.as_secs_f64() * 1e3
    );
    if shapes {
        println!("  {}; {}", table.shape().unwrap_or_default(), steps(&table, &trace));
    }
    Ok(())
}

/// What a lookup of some reads, on average.
fn steps(table: &impl Lookup<Ipv4Tuple>, trace: &[Ipv4Tuple]) -> String {
    let (mut slots, mut buckets, mut groups, mut matches, mut lookups) = (0, 0, 0, 0, 0);
    for tuple in trace.iter().take(5_000) {
        lookups += 1;
        for step in table.explain(tuple) {
            let words = step.meaning.split_once("bucket of ").and_then(|(_, rest)| rest.split_once(' '));
            let of = words.and_then(|(groups, _)| groups.parse::<usize>().ok());
            slots += usize::from(step.section == "slots");
            matches += usize::from(step.section == "ranks");
            buckets += usize::from(of.is_some());
            groups += of.unwrap_or(0);
        }
    }
    let of = |count: usize| count as f64 / f64::from(lookups);
    format!(
        "{:.2} slots, {:.2} buckets, {:.2} groups, {:.2} matches a lookup",
        of(slots),
        of(buckets),
        of(groups),
        of(matches)
    )
}

/// Millions of lookups a second: the best of several passes.
fn rate(look_up: impl Fn(&[Ipv4Tuple], &mut [u32]), trace: &[Ipv4Tuple], truth: &[u32]) -> f64 {
    let mut found = vec![0; trace.len()];
    look_up(trace, &mut found);
    assert!(found == truth, "wrong answers");
    let passes = (2_000_000 / trace.len()).max(1);
    let mut best = Duration::MAX;
    for _ in 0..7 {
        let start = Instant::now();
        for _ in 0..passes {
            for (tuples, found) in trace.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
                look_up(black_box(tuples), found);
            }
        }
        best = best.min(start.elapsed());
    }
    assert!(found == truth, "wrong answers");
    (passes * trace.len()) as f64 / best.as_secs_f64() / 1e6
}

/// Millions of insertions a second that double a live table, with all that makes room for them: the best of
/// several passes.
fn second_half(
    rules: &RuleSet<Ipv4Tuple>,
    options: &BuildOptions,
) -> Result<f64, Box<dyn std::error::Error>> {
    let sorted = rules.sorted();
    let (mut first, mut second): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
    for (at, (_, rule)) in sorted.into_iter().enumerate() {
        let half = if at % 2 == 0 { &mut first } else { &mut second };
        half.push(rule.clone());
    }
    let second: Vec<_> = second.into_iter().map(RuleUpdate::Insert).collect();
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let mut live =
            LiveRules::<Ipv4Tuple, Quilt<Ipv4Tuple>>::new(first.iter().cloned().collect(), options.clone())?;
        let start = Instant::now();
        for updates in second.chunks(UPDATES / 4) {
            live.apply(updates)?;
        }
        best = best.min(start.elapsed());
    }
    Ok(second.len() as f64 / best.as_secs_f64() / 1e6)
}

/// Millions of updates a second of a live table: the best of several passes each of rules that go, that come
/// back, and that become what others were and themselves again. In any order, different rules in each call.
/// With what readers get to see beside the table. And the bytes of the live table in the end.
fn updates<B: Companion<Ipv4Tuple, Wanted = ()>>(
    rules: &RuleSet<Ipv4Tuple>,
    trace: &[Ipv4Tuple],
    options: &BuildOptions,
    passes: usize,
) -> Result<([f64; 3], u64), Box<dyn std::error::Error>> {
    let mut live = LiveRules::<Ipv4Tuple, Quilt<Ipv4Tuple>, B>::with(rules.clone(), options.clone(), ())?;
    let mut rng = Rng::new(6);
    let mut numbers: Vec<u32> = rules.iter().map(|(number, _)| number.get()).collect();
    numbers.sort_unstable();
    rng.shuffle(&mut numbers);
    numbers.truncate(rules.len() / 2);
    let put =
        |(&number, &of): (&u32, &u32)| RuleUpdate::Set(number, rules.rule(of).expect("it was there").clone());
    let others = numbers.iter().skip(1).chain(&numbers[..1]);
    let out: Vec<_> = numbers.iter().map(|&number| RuleUpdate::Remove(number)).collect();
    let back: Vec<_> = numbers.iter().zip(&numbers).map(put).collect();
    let others: Vec<_> = numbers.iter().zip(others).map(put).collect();
    let (mut count, mut best) = (0, [0.0f64; 3]);
    for _ in 0..passes {
        for (updates, kind) in [(&out, 0), (&back, 1), (&others, 2), (&back, 2)] {
            let start = Instant::now();
            for updates in updates.chunks(UPDATES) {
                live.apply(updates)?;
            }
            best[kind] = best[kind].max(updates.len() as f64 / start.elapsed().as_secs_f64() / 1e6);
            count += updates.len();
        }
    }
    let (mut found, mut right) = (vec![0; trace.len()], vec![0; trace.len()]);
    live.reader().enter().lookup_batch(trace, &mut found);
    Quilt::<Ipv4Tuple>::build(rules, options)?.1.lookup_batch(trace, &mut right);
    assert!(found == right, "wrong answers after {count} updates, {} rebuilds", live.rebuilds());
    Ok((best, live.memory_usage()))
}
