//! The paper's structures for a list of domains on standard input, one a line: states and transitions by
//! stride, bytes beside those of a state transition table (section 6.1), seconds to build, lookups of one
//! core (section 6.2), updates (section 6.4).
//!
//! ```text
//! zstd -dc domains.txt.zst | cargo bench -p wirespeed-namelookup --bench structures [ENGINE…]
//! ```
//!
//! Names are looked up with two components appended, in random order, after their results were checked
//! against the table's own. Updates: one name in 100 is removed and inserted again, 10,000 an update.

use std::io::BufRead;
use std::time::Instant;

use wirespeed_image::Table;
use wirespeed_namelookup::aligned::{AlignedTable, Form};
use wirespeed_namelookup::ata::Ata;
use wirespeed_namelookup::fsm::{Fsm, Stride};
use wirespeed_namelookup::mata::{Mata, MataNw};
use wirespeed_namelookup::stt::Stt;
use wirespeed_namelookup::{
    BuildOptions, Engine, LiveNames, Lookup, NameBatch, NameBuf, NameDomain, NameTable, NameUpdate,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let mut domains = std::io::stdin().lock().lines().collect::<Result<Vec<_>, _>>()?;
    shuffle(&mut domains);
    let names: Vec<_> =
        domains.iter().filter_map(|domain| NameBuf::from_domain(domain.as_bytes()).ok()).collect();
    let table: NameTable = names.iter().zip((1..=250).cycle()).collect();
    println!("{} names, {} nodes", table.len(), table.node_count());
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    if is_wanted("fsm") {
        for stride in 1..=4 {
            let start = Instant::now();
            let fsm = Fsm::of(&table, Stride::new(stride).ok_or("a stride")?)?;
            let seconds = start.elapsed().as_secs_f64();
            println!(
                "d = {stride}: {:?}, STT {} bytes, {seconds:.2} s",
                fsm.census(),
                fsm.census().stt_bytes()
            );
        }
    }
    let mut trace = names;
    shuffle(&mut trace);
    if is_wanted(Stt::NAME) {
        measure::<Stt>(&table, &trace);
    }
    if is_wanted(Ata::<1>::NAME) {
        measure::<Ata<1>>(&table, &trace);
    }
    if is_wanted(Ata::<2>::NAME) {
        measure::<Ata<2>>(&table, &trace);
    }
    if is_wanted(Ata::<3>::NAME) {
        measure::<Ata<3>>(&table, &trace);
    }
    if is_wanted(Mata::NAME) {
        measure::<Mata>(&table, &trace);
    }
    if is_wanted(MataNw::NAME) {
        measure::<MataNw>(&table, &trace);
    }
    if is_wanted("load") {
        let (_, table) = Mata::build(&table, &BuildOptions::default())?;
        loads(&table);
    }
    Ok(())
}

fn loads<F: Form>(table: &AlignedTable<F>) {
    for array in table.arrays() {
        let load = f64::from(array.transitions) / f64::from(array.length);
        println!("  length {}: load {load:.3}{}", array.length, if array.halved { ", halved" } else { "" });
    }
}

fn measure<E: Engine<NameDomain>>(table: &NameTable, names: &[NameBuf]) {
    let start = Instant::now();
    let (engine, compiled) = match E::build(table, &BuildOptions::default()) {
        Ok(built) => built,
        Err(refused) => return println!("{}: {refused}", E::NAME),
    };
    let seconds = start.elapsed().as_secs_f64();
    let (bytes, per_name) = (compiled.image().bytes(), compiled.image().bytes() / table.len().max(1) as u64);
    println!(
        "{}: built in {seconds:.2} s, {bytes} bytes, {per_name} a name, engine {} bytes",
        E::NAME,
        engine.memory_usage()
    );
    println!("  {}", compiled.shape().unwrap_or_default());
    let batch: NameBatch = longer(&names[..names.len().min(1 << 20)]).iter().map(|name| &**name).collect();
    let mut results = vec![0; batch.len()];
    compiled.lookup_batch(batch.names(), &mut results);
    let right = batch.names().iter().zip(&results).all(|(name, &result)| table.lookup(name).result == result);
    assert!(right, "{}: a wrong result", E::NAME);
    let mut rates: Vec<f64> = (0..5)
        .map(|_| {
            let start = Instant::now();
            compiled.lookup_batch(batch.names(), &mut results);
            batch.len() as f64 / start.elapsed().as_secs_f64() / 1e6
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    let start = Instant::now();
    let found: u64 =
        batch.names().iter().take(1 << 18).map(|name| u64::from(compiled.lookup(name).result)).sum();
    let single = (1 << 18) as f64 / start.elapsed().as_secs_f64() / 1e6;
    println!("  lookups: batch {:.2} M/s, one by one {single:.2} M/s ({found})", rates[2]);
    drop((engine, compiled));
    updates::<E>(table.clone(), names);
}

fn updates<E: Engine<NameDomain>>(table: NameTable, names: &[NameBuf]) {
    let mut live = match LiveNames::<E>::new(table.into(), BuildOptions::default()) {
        Ok(live) => live,
        Err(refused) => return println!("{}: {refused}", E::NAME),
    };
    let some = &names[..names.len() / 100];
    let removes: Vec<_> = some.iter().map(|name| NameUpdate::Remove(name.clone())).collect();
    let inserts: Vec<_> = some.iter().map(|name| NameUpdate::Insert(name.clone(), 7)).collect();
    let fresh = |name: &NameBuf| {
        let mut new = name.as_bytes().to_vec();
        new.extend_from_slice(b"q7");
        NameUpdate::Insert(NameBuf::new(&new).expect("a name"), 9)
    };
    let new: Vec<_> = some.iter().map(fresh).collect();
    for (what, updates) in [("removes", &removes), ("inserts", &inserts), ("inserts of others", &new)] {
        let start = Instant::now();
        let mut writes = 0;
        for updates in updates.chunks(10_000) {
            writes += live.apply(updates).expect("it fits").writes;
        }
        let rate = updates.len() as f64 / start.elapsed().as_secs_f64() / 1e6;
        let (each, rebuilds) = (writes as f64 / updates.len() as f64, live.rebuilds());
        println!("  {what}: {rate:.2} M/s, {each:.1} writes each, {rebuilds} rebuilds");
    }
    let reader = live.reader();
    let batch: NameBatch = names[..names.len().min(1 << 18)].iter().map(|name| &**name).collect();
    let mut results = vec![0; batch.len()];
    reader.enter().lookup_batch(batch.names(), &mut results);
    let right = batch
        .names()
        .iter()
        .zip(&results)
        .all(|(name, &result)| live.model().names().lookup(name).result == result);
    assert!(right, "{}: a wrong result after updates", E::NAME);
}

/// Names with two components more, as section 5.4 has them.
fn longer(names: &[NameBuf]) -> Vec<NameBuf> {
    let more = |(at, name): (usize, &NameBuf)| {
        NameBuf::new(&[name.as_bytes(), format!("/path{}/page-{at}.html", at % 97).as_bytes()].concat())
    };
    names.iter().enumerate().map(more).map(|name| name.expect("a name")).collect()
}

fn shuffle<T>(items: &mut [T]) {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    for at in (1..items.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(at, usize::try_from((seed >> 33) % (at as u64 + 1)).expect("an index"));
    }
}
