//! Rate and latency by batch and batches under way.

use std::time::Duration;

use anyhow::{Context, Result};
use wirespeed_fib::Engine;
use wirespeed_gpu::ip::KeyBytes;
use wirespeed_gpu::runtime::{SlotSize, Way};

use super::{Best, Effort, Subject, for_gpu, giga};
use crate::gpu::bench::Bench;
use crate::gpu::trip::{Travelled, Trip, fill, start, travel, upload};
use crate::report::Sheet;

/// Rate and latency by batch and batches under way; the highest rates within bounds on the 99th percentile
/// are rows of their own, held again for longer.
pub fn latency<A: Best>(subject: &Subject<A>, effort: &Effort) -> Result<Sheet> {
    let mut sheet = Sheet {
        title: format!("Latency by batch and streams ({})", A::FAMILY),
        columns: &[
            "table",
            "key_bytes",
            "what",
            "batch",
            "in_flight",
            "way",
            "gkeys_per_s",
            "p50_us",
            "p99_us",
            "max_us",
        ],
        rows: Vec::new(),
    };
    let (_, table) = A::Engine::build(&subject.rib, &for_gpu())?;
    let key = subject.narrow();
    let sizes =
        [1 << 8, 1 << 13, 1 << 14, 3 << 13, 1 << 15, 3 << 14, 1 << 16, 3 << 15, 1 << 17, 3 << 16, 1 << 18];
    let slots = [SlotSize { slots: 8, keys: 1 << 18 }];
    let gpu = start(0, key, &slots)?;
    let handle = upload(&gpu, &table, key)?;
    let floor = floor::<A>(&table, subject, key, 256)?;
    let row = |what: &str, us: f64| {
        let none = || "-".to_owned();
        let (table, key, us) = (subject.name.clone(), key.count().to_string(), format!("{us:.1}"));
        vec![
            table,
            key,
            what.to_owned(),
            "256".into(),
            "1".into(),
            "mapped".into(),
            none(),
            us,
            none(),
            none(),
        ]
    };
    sheet.rows.push(row("a launch of nothing", floor.0));
    sheet.rows.push(row("a launch without the runtime", floor.1));
    let time = Duration::from_secs_f64(effort.seconds / 2.0);
    let mut best = [(50.0, None::<(f64, Trip)>), (100.0, None)];
    let measure = |what: &str, trip: &Trip, sheet: &mut Sheet| -> Result<Travelled> {
        let filled = fill(&gpu, &handle, &table, subject.by_prefix(), key, trip)?;
        let (travelled, _) = travel(&handle, filled, trip)?;
        sheet.rows.push(vec![
            subject.name.clone(),
            key.count().to_string(),
            what.to_owned(),
            trip.batch.to_string(),
            trip.in_flight.to_string(),
            trip.way.map_or("auto", Way::name).into(),
            giga(travelled.rate),
            format!("{:.1}", travelled.p50),
            format!("{:.1}", travelled.p99),
            format!("{:.1}", travelled.max),
        ]);
        Ok(travelled)
    };
    for batch in sizes {
        for in_flight in [1, 2, 3, 4, 6, 8] {
            for way in Way::ALL {
                let trip = Trip { batch, in_flight, way: Some(way), time };
                let travelled = measure("sweep", &trip, &mut sheet)?;
                for (bound, best) in &mut best {
                    // With some room, so that the longer run holds it too.
                    let is_within = travelled.p99 <= *bound * 0.9;
                    if is_within && best.is_none_or(|(rate, _)| travelled.rate > rate) {
                        *best = Some((travelled.rate, trip));
                    }
                }
            }
        }
    }
    for (bound, best) in best {
        if let Some((_, trip)) = best {
            let trip = Trip { time: Duration::from_secs_f64(4.0 * effort.seconds), ..trip };
            measure(&format!("best within {bound} us"), &trip, &mut sheet)?;
        }
    }
    Ok(sheet)
}

/// Microseconds of a launch of nothing, and of one of so many keys in pinned memory, with nothing between
/// here and the driver.
fn floor<A: Best>(
    table: &<A::Engine as Engine<A>>::Table,
    subject: &Subject<A>,
    key: KeyBytes,
    count: usize,
) -> Result<(f64, f64)> {
    let mut bench = Bench::open()?;
    let uploaded = bench.upload(table)?;
    let program = uploaded.programs.last().context("a table has a program")?;
    let nothing = bench.lone::<A>(program, &[], key.count(), 32, 200)?;
    let mut least = f64::INFINITY;
    for threads in [32, 64, 128, 256] {
        least = least.min(bench.lone(program, &subject.by_prefix()[..count], key.count(), threads, 200)?);
    }
    bench.forget(&uploaded)?;
    Ok((nothing, least))
}
