//! Whole trips by batch size and way.

use std::time::Duration;

use anyhow::{Context, Result};
use wirespeed_fib::Engine;
use wirespeed_gpu::ip::KeyBytes;
use wirespeed_gpu::runtime::{SlotSize, Way};

use super::{Best, Effort, Subject, for_gpu, giga};
use crate::gpu::bench::Bench;
use crate::gpu::ceiling;
use crate::gpu::trip::{Trip, fill, start, travel, upload};
use crate::report::{Sheet, median};

/// Whole trips by batch size and way, beside the same bytes over the bus with no kernel between.
pub fn batches<A: Best>(bench: &mut Bench, subject: &Subject<A>, effort: &Effort) -> Result<Sheet> {
    const IN_FLIGHT: usize = 6;
    let mut sheet = Sheet {
        title: format!("Whole trips by batch ({})", A::FAMILY),
        columns: &[
            "table",
            "engine",
            "key_bytes",
            "batch",
            "way",
            "in_flight",
            "gkeys_per_s",
            "bus_gkeys_per_s",
            "share_of_bus",
            "p50_us",
            "p99_us",
            "lone_us",
        ],
        rows: Vec::new(),
    };
    let (_, table) = A::Engine::build(&subject.rib, &for_gpu())?;
    for bytes in [subject.widths()[0], *subject.widths().last().unwrap_or(&4)] {
        let key = KeyBytes::of(A::FAMILY, bytes);
        for batch in [1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22] {
            let gpu = start(0, key, &[SlotSize { slots: IN_FLIGHT, keys: batch }])?;
            let handle = upload(&gpu, &table, key)?;
            let out = handle.result_bytes();
            for way in Way::ALL {
                let time = Duration::from_secs_f64(effort.seconds);
                let trip = Trip { batch, in_flight: 1, way: Some(way), time: time / 4 };
                let filled = fill(&gpu, &handle, &table, subject.by_prefix(), key, &trip)?;
                let (lone, filled) = travel(&handle, filled, &trip)?;
                drop(filled);
                let trip = Trip { in_flight: IN_FLIGHT, time, ..trip };
                let filled = fill(&gpu, &handle, &table, subject.by_prefix(), key, &trip)?;
                // The bus and the trip in turns, as both drift.
                let (mut ours, mut bus, mut filled) = (Vec::new(), Vec::new(), Some(filled));
                let mut last = lone;
                for _ in 0..3 {
                    let (travelled, back) = travel(&handle, filled.take().context("filled")?, &trip)?;
                    (last, filled) = (travelled, Some(back));
                    ours.push(last.rate);
                    bus.push(ceiling::bus(bench, bytes, out, batch, IN_FLIGHT, effort.seconds)?);
                }
                let (ours, bus) = (median(&ours), median(&bus));
                sheet.rows.push(vec![
                    subject.name.clone(),
                    A::Engine::NAME.into(),
                    bytes.to_string(),
                    batch.to_string(),
                    way.name().into(),
                    IN_FLIGHT.to_string(),
                    giga(ours),
                    giga(bus),
                    format!("{:.3}", ours / bus),
                    format!("{:.1}", last.p50),
                    format!("{:.1}", last.p99),
                    format!("{:.1}", lone.p50),
                ]);
            }
        }
    }
    Ok(sheet)
}
