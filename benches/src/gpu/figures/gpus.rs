//! One GPU beside all of them.

use std::sync::Barrier;
use std::time::Duration;

use anyhow::Result;
use wirespeed_fib::Engine;
use wirespeed_gpu::runtime::{SlotSize, Way};

use super::{Best, Effort, Subject, for_gpu, giga};
use crate::gpu::trip::{Trip, fill, start, travel, upload};
use crate::report::{Sheet, median};

/// So often one GPU and all are measured, by turns.
const ROUNDS: usize = 7;

/// One GPU beside all of them, each with a replica and a thread of its own.
pub fn gpus<A: Best>(subject: &Subject<A>, count: usize, effort: &Effort) -> Result<Sheet> {
    let mut sheet = Sheet {
        title: format!("Several GPUs ({})", A::FAMILY),
        columns: &["table", "key_bytes", "batch", "gpus", "gkeys_per_s", "by_one"],
        rows: Vec::new(),
    };
    let (_, table) = A::Engine::build(&subject.rib, &for_gpu())?;
    let key = subject.narrow();
    let batch = 1 << 20;
    let all: Vec<_> = (0..count)
        .map(|number| {
            let gpu = start(number, key, &[SlotSize { slots: 6, keys: batch }])?;
            let handle = upload(&gpu, &table, key)?;
            anyhow::Ok((gpu, handle))
        })
        .collect::<Result<_>>()?;
    let trip = Trip {
        batch,
        in_flight: 6,
        way: Some(Way::Copies),
        time: Duration::from_secs_f64(4.0 * effort.seconds),
    };
    let together = |count: usize| -> Result<f64> {
        // All trips begin once all keys lie ready, so that no GPU is alone for a while.
        let ready = Barrier::new(count);
        std::thread::scope(|scope| {
            let threads: Vec<_> = all[..count]
                .iter()
                .map(|(gpu, handle)| {
                    let (table, keys, trip, ready) = (&table, subject.by_prefix(), &trip, &ready);
                    scope.spawn(move || {
                        let filled = fill(gpu, handle, table, keys, key, trip);
                        ready.wait();
                        anyhow::Ok(travel(handle, filled?, trip)?.0.rate)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum()
        })
    };
    let mut one = Vec::new();
    for count in 1..=count {
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            one.push(together(1)?);
            rates.push(together(count)?);
        }
        let rate = median(&rates);
        sheet.rows.push(vec![
            subject.name.clone(),
            key.count().to_string(),
            batch.to_string(),
            count.to_string(),
            giga(rate),
            format!("{:.3}", rate / median(&one)),
        ]);
    }
    Ok(sheet)
}
