//! How fast ACTA is on names of a list:
//! `acta_speed DOMAINS [URLS] [--copies N] [--names N] [--results N] [--only build|lookup|levels|update|live]
//! [--rounds N]`.
//!
//! The table is the domains reversed, the result of each its line number, then one of 62; the queries are
//! random names of it, each with the path of a random URL behind it. One thread looks up; answers are
//! compared with the names' own. With `--copies` each domain is there so many times, under first components
//! of its own; `--names` takes so many of all at random. Updates are as many names out and in again,
//! `--rounds` times, and then made names that were never there in, and as many of the table's out. Live is
//! the time to make a live table, the bytes that it holds, then and after a tenth more names, and lookups in
//! it.

use std::time::Instant;

use wirespeed_fib::read::{Line, Source, open};
use wirespeed_fib::synth::rng::Rng;
use wirespeed_image::Table;
use wirespeed_namelookup::generate::{Churn, ChurnSpec};
use wirespeed_namelookup::{
    Acta, BuildOptions, Engine, LiveNames, Lookup, Match, NameBatch, NameBuf, NameDomain, NameTable,
    NameUpdate, Names,
};
use wirespeed_table::conformance::{compare_levels, levels_head};

const QUERIES: usize = 4_000_000;
const CALL: usize = 4096;
const UPDATES: usize = 400_000;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let mut args: Vec<_> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let mut option = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.drain(at..(at + 2).min(args.len())).nth(1)
    };
    let copies: u32 = option("--copies").map_or(Ok(1), |n| n.parse())?;
    let drawn: Option<usize> = option("--names").map(|n| n.parse()).transpose()?;
    let most: Option<u32> = option("--results").map(|n| n.parse()).transpose()?;
    let only = option("--only");
    let rounds: usize = option("--rounds").map_or(Ok(3), |n| n.parse())?;
    let wants = |what: &str| only.as_deref().is_none_or(|only| only == what);
    let domains = lines(&args[0])?;
    let paths = args.get(1).map_or(Ok(vec![]), |urls| lines(urls))?;
    let path = |url: &Vec<u8>| url.iter().position(|&b| b == b'/').map(|at| url[at..].to_vec());
    let paths: Vec<_> = paths.iter().filter_map(path).collect();
    let mut names: Vec<NameBuf> = Vec::new();
    for copy in 0..copies {
        names.extend(
            domains
                .iter()
                .filter_map(|domain| NameBuf::from_domain(&[domain.as_slice(), &suffix(copy)].concat()).ok()),
        );
    }
    if let Some(drawn) = drawn {
        let mut rng = Rng::new(5);
        for at in 0..drawn.min(names.len()) {
            let other = at + rng.index(names.len() - at);
            names.swap(at, other);
        }
        names.truncate(drawn);
    }
    for results in [u32::MAX, 62].into_iter().filter(|results| most.is_none_or(|most| most == *results)) {
        println!("results up to {}", results.min(u32::try_from(names.len())?));
        let result = |at: usize| u32::try_from(at).map(|at| at % results + 1);
        let start = Instant::now();
        let mut table = NameTable::new();
        for (at, name) in names.iter().enumerate() {
            table.insert(name, result(at)?);
        }
        println!(
            "  model      {:6.2} s, {} names, {} nodes",
            start.elapsed().as_secs_f64(),
            table.len(),
            table.node_count()
        );
        let options = BuildOptions { seed: Some(1), ..BuildOptions::default() };
        let start = Instant::now();
        let (engine, compiled) = Acta::build(&table, &options)?;
        let bytes = compiled.image().bytes();
        println!(
            "  build      {:6.2} s, {:.2} bytes a name, {} MB; engine {} MB; {}",
            start.elapsed().as_secs_f64(),
            bytes as f64 / table.len() as f64,
            bytes / 1_000_000,
            engine.memory_usage() / 1_000_000,
            compiled.shape().unwrap_or_default()
        );
        drop(engine);
        if wants("live") {
            live(&table, &names, &paths)?;
        }
        if wants("lookup") {
            lookups(&table, &compiled, queries(&names, &paths).names());
        }
        if wants("levels") {
            levels(&table, &compiled, queries(&names, &paths).names());
        }
        if wants("update") {
            updates(table, &names, rounds, result)?;
        }
    }
    Ok(())
}

fn suffix(copy: u32) -> Vec<u8> {
    if copy == 0 { vec![] } else { format!(".x{copy}").into_bytes() }
}

fn lines(path: &str) -> Result<Vec<Vec<u8>>, Error> {
    let mut input = open(&Source::from_arg(path))?;
    let mut lines = Vec::new();
    while let Some(line) = input.next_line()? {
        if let Line::Whole(line) = line {
            lines.push(line.to_vec());
        }
    }
    Ok(lines)
}

fn lookups(table: &NameTable, compiled: &<Acta as Engine<NameDomain>>::Table, all: Names<'_>) {
    let mut results = vec![0; all.len()];
    let mut rates = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        for from in (0..all.len()).step_by(CALL) {
            let to = (from + CALL).min(all.len());
            compiled.lookup_batch(all.part(from..to), &mut results[from..to]);
        }
        rates.push(all.len() as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    rates.sort_by(f64::total_cmp);
    for at in (0..all.len()).step_by(31) {
        assert_eq!(results[at], table.lookup(all.name(at)).result);
    }
    let mut matches = vec![Match::NONE; all.len()];
    let start = Instant::now();
    compiled.match_batch(all, &mut matches);
    let matching = all.len() as f64 / start.elapsed().as_secs_f64() / 1e6;
    let bytes = all.bytes().len() as f64 / all.len() as f64;
    println!(
        "  lookup     {:6.2} M/s (of {rates:.1?}), with lengths {matching:.2}; {bytes:.1} bytes a query",
        rates[rates.len() / 2]
    );
}

/// Rates with each vector level of this CPU, in turns.
fn levels(table: &NameTable, compiled: &<Acta as Engine<NameDomain>>::Table, all: Names<'_>) {
    let right: Vec<_> = (0..all.len()).map(|at| table.lookup(all.name(at)).result).collect();
    levels_head();
    compare_levels::<NameDomain>("names with paths", compiled, all, &right);
}

/// Random names, each with a random path behind it.
fn queries(names: &[NameBuf], paths: &[Vec<u8>]) -> NameBatch {
    let mut rng = Rng::new(7);
    let mut queries = NameBatch::new();
    let mut bytes = Vec::new();
    for _ in 0..QUERIES {
        bytes.clear();
        bytes.extend_from_slice(names[rng.index(names.len())].as_bytes());
        if !paths.is_empty() {
            bytes.extend_from_slice(&paths[rng.index(paths.len())]);
        }
        if let Ok(name) = NameBuf::new(&bytes) {
            queries.push(&name).expect("under 4 GiB");
        }
    }
    queries
}

/// Makes a live table, and says how long it took, what it holds, and how fast it is looked up in.
fn live(table: &NameTable, names: &[NameBuf], paths: &[Vec<u8>]) -> Result<(), Error> {
    let spec = ChurnSpec {
        insertions: 1.0,
        removals: 0.0,
        changes: 0.0,
        returns: 0.0,
        results: 62,
        ..ChurnSpec::default()
    };
    let more: Vec<_> = Churn::new(table, &spec)?.take(table.len() / 10).map(|timed| timed.update).collect();
    let options = BuildOptions { seed: Some(1), ..BuildOptions::default() };
    // The model of a user who reads a list: filled with as much memory as it needs.
    let mut model = NameTable::new();
    model.reserve(names.len());
    let start = Instant::now();
    for name in names {
        model.insert(name, table.result(name));
    }
    let filled = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let mut live = LiveNames::<Acta>::new(model.into(), options)?;
    let built = start.elapsed().as_secs_f64();
    let a_name = |live: &LiveNames<Acta>| {
        let (model, len) = (live.model().names().memory_usage() as f64, live.model().names().len() as f64);
        (
            live.memory_usage() as f64 / len,
            2.0 * live.reader().enter().image().bytes() as f64 / len,
            model / len,
        )
    };
    let (all, copies, model) = a_name(&live);
    println!(
        "  live       {built:6.2} s after {filled:.2} s of filling; {all:.1} bytes a name: copies {copies:.1}, model {model:.1}"
    );
    let queries = queries(names, paths);
    let mut results = vec![0; queries.names().len()];
    let mut rates = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        for from in (0..results.len()).step_by(CALL) {
            let to = (from + CALL).min(results.len());
            live.reader().enter().lookup_batch(queries.names().part(from..to), &mut results[from..to]);
        }
        rates.push(results.len() as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    rates.sort_by(f64::total_cmp);
    for at in (0..results.len()).step_by(31) {
        assert_eq!(results[at], table.lookup(queries.names().name(at)).result);
    }
    println!("  looked up  {:6.2} M/s (of {rates:.1?})", rates[rates.len() / 2]);
    let rate = timed(&mut live, "a tenth", &more, 0)?;
    let (all, copies, model) = a_name(&live);
    println!("  a tenth    {rate:6.2} M/s; {all:.1} bytes a name: copies {copies:.1}, model {model:.1}");
    Ok(())
}

fn updates(
    table: NameTable,
    names: &[NameBuf],
    rounds: usize,
    result: impl Fn(usize) -> Result<u32, std::num::TryFromIntError>,
) -> Result<(), Error> {
    let mut rng = Rng::new(9);
    let mut numbers: Vec<_> = (0..names.len()).collect();
    for at in 0..UPDATES.min(names.len()) {
        let other = at + rng.index(numbers.len() - at);
        numbers.swap(at, other);
    }
    numbers.truncate(UPDATES);
    let removals: Vec<_> = numbers.iter().map(|&at| NameUpdate::Remove(names[at].clone())).collect();
    let mut insertions = Vec::new();
    for &at in &numbers {
        insertions.push(NameUpdate::Insert(names[at].clone(), result(at)?));
    }
    // Drawn before anything is timed; each part is valid after those before it.
    let only = |insertions, removals| ChurnSpec {
        insertions,
        removals,
        changes: 0.0,
        returns: 0.0,
        results: 62,
        ..ChurnSpec::default()
    };
    let mut churn = Churn::new(&table, &only(1.0, 0.0))?;
    let mut draw = |spec: ChurnSpec| {
        churn.turn_to(&spec);
        churn.by_ref().take(removals.len()).map(|timed| timed.update).collect::<Vec<_>>()
    };
    let fresh: Vec<_> = (0..rounds).map(|_| (draw(only(1.0, 0.0)), draw(only(0.0, 1.0)))).collect();

    let mut live =
        LiveNames::<Acta>::new(table.into(), BuildOptions { seed: Some(1), ..BuildOptions::default() })?;
    let back: Vec<_> = (0..rounds).map(|_| (&removals, &insertions)).collect();
    let made: Vec<_> = fresh.iter().map(|(new, others)| (new, others)).collect();
    for (whats, parts) in [(["deletions", "insertions"], back), (["new names", "others out"], made)] {
        let mut rates = [Vec::new(), Vec::new()];
        for (round, (first, second)) in parts.into_iter().enumerate() {
            for ((what, updates), rates) in whats.into_iter().zip([first, second]).zip(&mut rates) {
                rates.push(timed(&mut live, what, updates, round)?);
            }
        }
        for (what, mut rates) in whats.into_iter().zip(rates) {
            rates.sort_by(f64::total_cmp);
            println!(
                "  {what:10} {:6.2} M/s (median of {rounds})",
                rates.get(rounds / 2).unwrap_or(&f64::NAN)
            );
        }
    }
    Ok(())
}

/// Applies updates; millions a second.
fn timed(live: &mut LiveNames<Acta>, what: &str, updates: &[NameUpdate], round: usize) -> Result<f64, Error> {
    let start = Instant::now();
    let (mut changes, mut writes) = (0, 0);
    for updates in updates.chunks(CALL) {
        let applied = live.apply(updates)?;
        changes += applied.changes;
        writes += applied.writes;
    }
    let rate = changes as f64 / start.elapsed().as_secs_f64() / 1e6;
    println!(
        "  {what:10} {rate:6.2} M/s, {:.2} writes each, {} rebuilds (round {round})",
        writes as f64 / changes as f64,
        live.rebuilds()
    );
    Ok(rate)
}
