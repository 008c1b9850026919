//! What small tables and many tables cost, and the rate of ASN and prefix of an address.
//!
//! `cargo run --release -p wirespeed --example many_tables -- [FILE OF IPV4 ROUTES]`
//!
//! Without a file it takes a full synthetic table. Small tables are routes from all over the table. VRFs that
//! are alike lack some routes of the table and have other next hops for some. Lookups run on one core in
//! batches of 1,024, the median of 9 rounds. All answers of a part of the keys are compared with the routes.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use wirespeed::fib::read::{ReadOptions, Source, read_fib};
use wirespeed::fib::synth::rng::Rng;
use wirespeed::fib::synth::{self, TableSpec};
use wirespeed::fib::trace::{TraceKind, keys};
use wirespeed::prelude::*;
use wirespeed::{Address, Family, Fib, Prefix, Rib};

const BATCH: usize = 1024;
const ROUNDS: usize = 9;
/// The updates of a call.
const CALL: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let fib = match std::env::args_os().nth(1) {
        None => synth::fib(Some(&TableSpec::full(Family::V4)), None)?,
        Some(file) => read_fib(&Source::Path(file.into()), &ReadOptions::default())?.0,
    };
    small(&fib.v4)?;
    thousand()?;
    for (lack, change) in [(1, 2), (5, 20)] {
        alike(&fib.v4, lack, change)?;
    }
    with_labels(fib)
}

/// Tables of few routes, with `auto` and with the engine of full tables.
fn small(rib: &Rib<V4>) -> Result<(), Box<dyn Error>> {
    println!("| routes | engine | KiB, live | built in µs | random, M/s | by prefix, M/s |");
    println!("|---|---|---|---|---|---|");
    for routes in [1, 3, 30, 100, 256, 1_000, 10_000] {
        let step = rib.len() / routes;
        let few: Rib<V4> = rib.iter().skip(step / 2).step_by(step).take(routes).collect();
        for engine in ["auto", "forest", "fold"] {
            let build = || Ipv4Table::builder().rib(few.clone()).engine(engine).build();
            let (table, took) = (build()?, median(|| timed(|| black_box(build()).map(drop))));
            let rate = |kind| -> Result<f64, Box<dyn Error>> {
                let (keys, reader, mut found) =
                    (keys(&few, kind, 1 << 20, 7)?, table.reader(), [NextHop::NONE; BATCH]);
                for &key in keys.iter().step_by(97) {
                    assert_eq!(reader.lookup(key), few.longest_match(key).map_or(NextHop::NONE, |(_, n)| n));
                }
                let pass = || {
                    keys.chunks(BATCH).for_each(|keys| reader.lookup_batch(keys, &mut found[..keys.len()]));
                };
                Ok(per_second(keys.len(), pass))
            };
            let (name, kib) = (table.engine(), table.memory_usage() as f64 / 1024.0);
            let (random, prefix) = (rate(TraceKind::Random)?, rate(TraceKind::Prefix)?);
            let label = if engine == "auto" { format!("auto: {name}") } else { name.to_string() };
            println!("| {routes} | {label} | {kib:.1} | {:.0} | {random:.0} | {prefix:.0} |", took * 1e6);
        }
    }
    Ok(())
}

/// A thousand VRFs of three random routes.
fn thousand() -> Result<(), Box<dyn Error>> {
    let (mut rng, began) = (Rng::new(1), Instant::now());
    let mut vrfs = Vrfs::builder();
    for vrf in 0..1_000 {
        let prefix = |len| IpNet::from(Prefix::<V4>::around(V4::from_u128_low(rng.bits128()), len));
        vrfs = vrfs.vrf(VrfId(vrf), [8, 16, 24].map(prefix).map(|net| (net, NextHop(1 + vrf % 99))));
    }
    let vrfs = vrfs.build()?;
    println!(
        "\n1,000 VRFs of three routes: {} KiB, built in {:.1?}",
        vrfs.memory_usage() >> 10,
        began.elapsed()
    );
    Ok(())
}

/// Twelve VRFs that are alike, beside twelve tables.
fn alike(rib: &Rib<V4>, lack: u64, change: u64) -> Result<(), Box<dyn Error>> {
    let mut rng = Rng::new(2);
    let hops: Vec<NextHop> = rib.iter().map(|(_, next_hop)| next_hop).step_by(997).collect();
    let other = |(prefix, next_hop): (Prefix<V4>, NextHop), rng: &mut Rng| {
        let draw = rng.below(100);
        let changed = if draw < lack + change { hops[rng.index(hops.len())] } else { next_hop };
        (draw >= lack).then_some((prefix, changed))
    };
    let mut ribs: Vec<Rib<V4>> =
        (0..12).map(|_| rib.iter().filter_map(|route| other(route, &mut rng)).collect()).collect();
    let ids = (0..12).map(VrfId);
    let nets = |rib: &Rib<V4>| rib.iter().map(|(prefix, n)| (IpNet::from(prefix), n)).collect::<Vec<_>>();
    let all = ids.zip(&ribs).fold(Vrfs::builder(), |vrfs, (id, rib)| vrfs.vrf(id, nets(rib)));
    let began = Instant::now();
    let mut vrfs = all.build()?;
    let built = began.elapsed();
    let tables = ribs.iter().map(|rib| Ok(Ipv4Table::builder().rib(rib.clone()).build()?.memory_usage()));
    let tables: u64 = tables.collect::<Result<Vec<_>, wirespeed::Error>>()?.iter().sum();
    let (reader, keys) = (vrfs.reader(), keys(rib, TraceKind::Prefix, 1 << 21, 7)?);
    let addresses: Vec<IpAddr> = keys.iter().map(|key| key.to_ip()).collect();
    let mixed: Vec<VrfId> = addresses.iter().map(|_| VrfId(rng.below(12).to_le_bytes()[0].into())).collect();
    for at in (0..keys.len()).step_by(97) {
        let right = ribs[mixed[at].0 as usize].longest_match(keys[at]).map_or(NextHop::NONE, |(_, n)| n);
        assert_eq!(reader.lookup(mixed[at], addresses[at]), right);
    }
    let mut found = [NextHop::NONE; BATCH];
    let rate = per_second(keys.len(), || {
        for (ids, keys) in mixed.chunks(BATCH).zip(addresses.chunks(BATCH)) {
            reader.lookup_batch(ids, keys, &mut found[..keys.len()]);
        }
    });
    let bytes = vrfs.memory_usage();
    let share = bytes as f64 / tables as f64;
    println!(
        "12 VRFs that lack {lack} % and change {change} % of {} routes: {} MiB, {share:.2} of twelve tables, built in \
         {built:.1?}, {rate:.1} M lookups/s by prefix in mixed VRFs",
        rib.len(),
        bytes >> 20
    );
    let prefixes: Vec<Prefix<V4>> = rib.iter().map(|(prefix, _)| prefix).collect();
    let mut draw = || {
        let (vrf, prefix) = (rng.index(ribs.len()), prefixes[rng.index(prefixes.len())]);
        let next_hop = hops[rng.index(hops.len())];
        ribs[vrf].insert(prefix, next_hop);
        VrfUpdate::announce(VrfId(vrf.to_le_bytes()[0].into()), IpNet::from(prefix), next_hop)
    };
    let calls: Vec<Vec<VrfUpdate>> =
        (0..ROUNDS * 20).map(|_| (0..CALL).map(|_| draw()).collect()).collect::<Result<_, _>>()?;
    let (mut rounds, mut rebuilt) = (calls.chunks(20), 0);
    let took = median(|| {
        let calls = rounds.next().unwrap_or_default();
        timed(|| {
            for call in calls {
                let applied = vrfs.apply(call.iter().cloned()).expect("a route of a VRF that is there");
                rebuilt += u32::from(applied.rebuilt);
            }
        })
    });
    for at in (0..keys.len()).step_by(97) {
        let right = ribs[mixed[at].0 as usize].longest_match(keys[at]).map_or(NextHop::NONE, |(_, n)| n);
        assert_eq!(reader.lookup(mixed[at], addresses[at]), right);
    }
    println!(
        "    {:.0} K updates/s in calls of {CALL}, {rebuilt} rebuilds; then {} MiB",
        (20 * CALL) as f64 / took / 1e3,
        vrfs.memory_usage() >> 20
    );
    Ok(())
}

/// The label (such as the ASN) and the prefix of an address, resolved.
fn with_labels(fib: Fib) -> Result<(), Box<dyn Error>> {
    let (rib, labels) = (fib.v4.clone(), Labels::<String>::new());
    let table = Ipv4Table::builder().prefix_lookups().fib(fib, &labels).build()?;
    for (traffic, kind) in [("random", TraceKind::Random), ("by prefix", TraceKind::Prefix)] {
        let (keys, reader) = (keys(&rib, kind, 1 << 21, 7)?, table.reader());
        let (mut found, mut lens) = ([NextHop::NONE; BATCH], [0; BATCH]);
        let rate = per_second(keys.len(), || {
            for keys in keys.chunks(BATCH) {
                let known = labels.enter();
                let (found, lens) = (&mut found[..keys.len()], &mut lens[..keys.len()]);
                reader.lookup_prefixes(keys, found, lens).expect("the table gives prefixes");
                for ((&key, &found), &len) in keys.iter().zip(&*found).zip(&*lens) {
                    black_box((Prefix::around(key, len), known.get(found)));
                }
            }
        });
        println!("label and prefix of an address, {traffic}: {rate:.1} M/s ({} labels)", labels.len());
    }
    Ok(())
}

/// Keys a second in M, the median of the rounds.
fn per_second(keys: usize, mut pass: impl FnMut()) -> f64 {
    pass();
    keys as f64 / median(|| timed(&mut pass)) / 1e6
}

fn timed<R>(run: impl FnOnce() -> R) -> Duration {
    let began = Instant::now();
    run();
    began.elapsed()
}

fn median(mut run: impl FnMut() -> Duration) -> f64 {
    let mut took: Vec<_> = (0..ROUNDS).map(|_| run()).collect();
    took.sort_unstable();
    took[ROUNDS / 2].as_secs_f64()
}
