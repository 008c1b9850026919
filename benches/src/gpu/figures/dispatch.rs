//! Batches that go to the CPU or the GPU by load.

use std::time::Instant;

use anyhow::Result;
use wirespeed_fib::{Engine, Lookup, NextHop};
use wirespeed_gpu::dispatch::{Meter, Policy, Use};
use wirespeed_gpu::ip::{KeyBytes, Offload, Remote};
use wirespeed_gpu::offload::RemoteTable;
use wirespeed_gpu::runtime::{Fleet, SlotSize};

use super::{Best, Subject, for_gpu};
use crate::gpu::trip::start;
use crate::report::{Sheet, median};

/// Batches that go to the CPU or the GPU by load: where they went, and what deciding costs.
#[allow(clippy::cast_precision_loss)] // for reading
pub fn dispatch<A: Best>(subject: &Subject<A>) -> Result<Sheet> {
    let mut sheet = Sheet {
        title: format!("CPU or GPU by batch ({})", A::FAMILY),
        columns: &["table", "batch", "cpu_us", "gpu_us", "goes_to", "decision_ns", "by_load_us"],
        rows: Vec::new(),
    };
    let (_, table) = A::Engine::build(&subject.rib, &for_gpu())?;
    let key = KeyBytes::whole(A::FAMILY);
    let slots = [SlotSize { slots: 8, keys: 1 << 16 }, SlotSize { slots: 6, keys: 1 << 20 }];
    let fleet = Fleet::new(vec![start(0, key, &slots)?])?;
    let remote = Remote::<A>::upload(&fleet, &table, (subject.reach(), &[]))?;
    let keys = subject.by_prefix();
    let mut found = vec![NextHop::NONE; 1 << 20];
    let began = Instant::now();
    table.lookup_batch(&keys[..1 << 16], &mut found[..1 << 16]);
    let meter = Meter::measured(1, 1 << 16, began.elapsed());
    let offload = Offload::new(remote, Use::ByLoad(Policy::default()), meter);
    for batch in [1 << 6, 1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20] {
        let timed = |look_up: &mut dyn FnMut(&[A])| {
            let times: Vec<f64> = keys
                .chunks(batch)
                .take(40)
                .map(|keys| {
                    let began = Instant::now();
                    look_up(keys);
                    began.elapsed().as_secs_f64() * 1e6
                })
                .collect();
            median(&times)
        };
        let out = &mut found[..batch];
        let cpu = timed(&mut |keys| table.lookup_batch(keys, &mut out[..keys.len()]));
        let gpu = timed(&mut |keys| {
            offload.remote().lookup_batch(keys, &mut out[..keys.len()]).expect("the GPU answers");
        });
        let by_load = timed(&mut |keys| {
            offload.lookup_batch(keys, &mut out[..keys.len()], |keys, out| table.lookup_batch(keys, out));
        });
        let began = Instant::now();
        for _ in 0..10_000 {
            std::hint::black_box(offload.place(std::hint::black_box(batch)));
        }
        let decision = began.elapsed().as_secs_f64() / 10_000.0 * 1e9;
        sheet.rows.push(vec![
            subject.name.clone(),
            batch.to_string(),
            format!("{cpu:.1}"),
            format!("{gpu:.1}"),
            format!("{:?}", offload.place(batch)).to_lowercase(),
            format!("{decision:.0}"),
            format!("{by_load:.1}"),
        ]);
    }
    Ok(sheet)
}
