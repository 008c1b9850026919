//! Rates while the table changes.

use std::time::Duration;

use anyhow::{Context, Result};
use wirespeed_fib::{Engine, LiveTable};
use wirespeed_gpu::ip::KeyBytes;
use wirespeed_gpu::runtime::{SlotSize, Way};

use super::{Best, Effort, Subject, for_gpu, giga};
use crate::data::Source;
use crate::gpu::trip::{Filled, Trip, fill, start, upload};
use crate::gpu::updates::{Following, under};
use crate::report::Sheet;

/// Rates under updates, on the table's real day of them.
pub fn updates<A: Best>(source: &Source, subject: &Subject<A>, effort: &Effort) -> Result<Sheet> {
    let mut sheet = Sheet {
        title: format!("Rates under updates ({})", A::FAMILY),
        columns: &[
            "table",
            "engine",
            "how",
            "asked_per_s",
            "applied_per_s",
            "gkeys_per_s",
            "without_gkeys_per_s",
            "kept",
            "p99_us",
        ],
        rows: Vec::new(),
    };
    let mut next_hops = subject.next_hops.clone();
    let day = source.updates(&subject.rib, &mut next_hops)?;
    if day.is_empty() {
        return Ok(sheet);
    }
    let key = KeyBytes::whole(A::FAMILY);
    let mut run = |how: &str, rates: &[f64], one_by_one: bool| -> Result<()> {
        let mut live = LiveTable::<A, A::Engine>::new(subject.rib.clone(), for_gpu())?;
        let gpu = start(0, key, &[SlotSize { slots: 6, keys: 1 << 20 }])?;
        let table = live.reader().enter().clone();
        let handle = upload(&gpu, &table, key)?;
        live.follow(|_| Ok::<_, std::convert::Infallible>(Following { handle: handle.clone(), one_by_one }))?;
        let trip = Trip {
            batch: 1 << 20,
            in_flight: 6,
            way: Some(Way::Copies),
            time: Duration::from_secs_f64(effort.seconds),
        };
        let mut filled: Option<Filled> = Some(fill(&gpu, &handle, &table, subject.by_prefix(), key, &trip)?);
        for &rate in rates {
            let mut runs = Vec::new();
            for _ in 0..3 {
                let (run, back) =
                    under(&mut live, &day, &handle, filled.take().context("filled")?, &trip, rate)?;
                filled = Some(back);
                runs.push(run);
            }
            runs.sort_by(|a, b| a.kept().total_cmp(&b.kept()));
            // What is kept differs by less than a percent: the middle one of three.
            let under = runs[1];
            sheet.rows.push(vec![
                subject.name.clone(),
                A::Engine::NAME.into(),
                how.to_owned(),
                format!("{rate:.0}"),
                format!("{:.0}", under.updates),
                giga(under.with.rate),
                giga(under.without),
                format!("{:.4}", under.kept()),
                format!("{:.1}", under.with.p99),
            ]);
        }
        Ok(())
    };
    run("patches", &[70e3, 250e3, 500e3, 1e6, 2e6], false)?;
    run("one by one", &[70e3, 250e3], true)?;
    Ok(sheet)
}
