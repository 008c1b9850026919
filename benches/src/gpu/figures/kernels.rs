//! Kernels of all engines on keys that are on the device.

use anyhow::{Context, Result};
use wirespeed_dir24::Dir24;
use wirespeed_fib::{BuildOptions, Engine, InFib, Lookup, V4, V6};
use wirespeed_fold::{FoldV4, FoldV6};
use wirespeed_gamt::{GamtS, GamtT};
use wirespeed_image::Table;
use wirespeed_image::device::OnDevice;
use wirespeed_rank::Rank;
use wirespeed_sail::{SailB, SailL, SailM, SailU};
use wirespeed_waldvogel::Waldvogel;

use super::{Effort, Subject, for_gpu};
use crate::gpu::bench::Bench;
use crate::gpu::{ceiling, kernels};
use crate::report::Sheet;

/// Kernels of all engines, beside DIR-24-8 with two-byte entries and a gather of as many bytes as a table's.
pub fn kernels_v4(bench: &mut Bench, subject: &Subject<V4>, effort: &Effort) -> Result<[Sheet; 2]> {
    let mut sheets = kernel_sheets();
    let wide = BuildOptions { results: 300, ..BuildOptions::default() };
    let plain = BuildOptions::default();
    let mut reference = Vec::new();
    let is_wide = subject.next_hops.len() > 254;
    let dir24 = if is_wide { &plain } else { &wide };
    kernel_rows::<V4, Dir24>(bench, subject, dir24, "dir24", effort, &mut reference, &mut sheets)?;
    let rows = (&mut reference, &mut sheets);
    kernel_rows::<V4, Dir24>(bench, subject, &plain, "dir24 narrow", effort, rows.0, rows.1)?;
    if !is_wide {
        kernel_rows::<V4, wirespeed_fold::FoldHot>(
            bench, subject, &plain, "fold-hot", effort, rows.0, rows.1,
        )?;
    }
    kernel_rows::<V4, FoldV4>(bench, subject, &plain, "fold", effort, rows.0, rows.1)?;
    kernel_rows::<V4, Rank>(bench, subject, &plain, "rank", effort, rows.0, rows.1)?;
    kernel_rows::<V4, SailL>(bench, subject, &plain, "sail-l", effort, rows.0, rows.1)?;
    kernel_rows::<V4, GamtT<V4>>(bench, subject, &plain, "gamt", effort, rows.0, rows.1)?;
    if !is_wide {
        kernel_rows::<V4, SailM>(bench, subject, &plain, "sail-m", effort, rows.0, rows.1)?;
        kernel_rows::<V4, SailB>(bench, subject, &plain, "sail-b", effort, rows.0, rows.1)?;
        kernel_rows::<V4, SailU>(bench, subject, &plain, "sail-u", effort, rows.0, rows.1)?;
        kernel_rows::<V4, GamtS<V4>>(bench, subject, &plain, "gamt-s", effort, rows.0, rows.1)?;
        kernel_rows::<V4, Waldvogel<V4>>(bench, subject, &plain, "waldvogel", effort, rows.0, rows.1)?;
    }
    Ok(sheets)
}

/// Kernels of all engines for IPv6, beside Waldvogel's search.
pub fn kernels_v6(bench: &mut Bench, subject: &Subject<V6>, effort: &Effort) -> Result<[Sheet; 2]> {
    let mut sheets = kernel_sheets();
    let plain = BuildOptions::default();
    let mut reference = Vec::new();
    let rows = (&mut reference, &mut sheets);
    kernel_rows::<V6, Waldvogel<V6>>(bench, subject, &plain, "waldvogel", effort, rows.0, rows.1)?;
    let on_gpu = for_gpu();
    kernel_rows::<V6, FoldV6>(bench, subject, &on_gpu, "fold", effort, rows.0, rows.1)?;
    kernel_rows::<V6, FoldV6>(bench, subject, &plain, "fold, strides for a CPU", effort, rows.0, rows.1)?;
    kernel_rows::<V6, GamtT<V6>>(bench, subject, &plain, "gamt", effort, rows.0, rows.1)?;
    if subject.next_hops.len() <= 254 {
        kernel_rows::<V6, GamtS<V6>>(bench, subject, &plain, "gamt-s", effort, rows.0, rows.1)?;
        kernel_rows::<V6, SailL>(bench, subject, &plain, "sail-l", effort, rows.0, rows.1)?;
        kernel_rows::<V6, SailM>(bench, subject, &plain, "sail-m", effort, rows.0, rows.1)?;
    }
    Ok(sheets)
}

fn kernel_sheets() -> [Sheet; 2] {
    [
        Sheet {
            title: "Kernels: keys and results on the device, G keys/s".into(),
            columns: &[
                "table",
                "trace",
                "engine",
                "kernel",
                "key_bytes",
                "result_bytes",
                "blocks",
                "threads",
                "kernel_gkeys_per_s",
                "by_first",
                "gather_gkeys_per_s",
                "share_of_gather",
                "table_bytes",
                "bytes_a_prefix",
            ],
            rows: Vec::new(),
        },
        Sheet {
            title: "Blocks and threads".into(),
            columns: &["table", "trace", "kernel", "blocks", "threads", "kernel_gkeys_per_s"],
            rows: Vec::new(),
        },
    ]
}

/// A table's programs; ratios are to the fastest of the first engine on the same trace.
#[allow(clippy::cast_precision_loss)] // for reading
fn kernel_rows<A: InFib, E: Engine<A, Table: OnDevice + Lookup<A>>>(
    bench: &mut Bench,
    subject: &Subject<A>,
    options: &BuildOptions,
    name: &str,
    effort: &Effort,
    reference: &mut Vec<(String, f64)>,
    [rates, shapes]: &mut [Sheet; 2],
) -> Result<()> {
    let (_, table) = E::build(&subject.rib, options).with_context(|| name.to_owned())?;
    let bytes = table.image().bytes();
    let bits = bytes.next_power_of_two().ilog2().clamp(16, 28);
    let gather = ceiling::gather(bench, subject.by_prefix().len(), bits, 1, effort.rounds)?;
    let measured =
        kernels::rates::<A, E>(bench, &table, &subject.traces(), &subject.widths(), effort.rounds)?;
    let is_first = reference.is_empty();
    for (trace, rate) in measured {
        let (shape, best) = rate.best();
        if is_first {
            match reference.iter_mut().find(|(of, _)| *of == trace) {
                Some(known) => known.1 = known.1.max(best),
                None => reference.push((trace.clone(), best)),
            }
        }
        let first = reference.iter().find(|(of, _)| *of == trace).map_or(0.0, |known| known.1);
        rates.rows.push(vec![
            subject.name.clone(),
            trace.clone(),
            name.replace(',', ""),
            rate.kernel.clone(),
            rate.key_bytes.to_string(),
            rate.result_bytes.to_string(),
            shape.blocks.to_string(),
            shape.threads.to_string(),
            format!("{:.1}", best / 1e9),
            format!("{:.3}", best / first),
            format!("{:.1}", gather / 1e9),
            format!("{:.3}", best / gather),
            bytes.to_string(),
            format!("{:.1}", bytes as f64 / subject.rib.len() as f64),
        ]);
        let all = rate.shapes.iter().map(|&(shape, each)| {
            let (blocks, threads) = (shape.blocks.to_string(), shape.threads.to_string());
            vec![
                subject.name.clone(),
                trace.clone(),
                rate.kernel.clone(),
                blocks,
                threads,
                format!("{:.1}", each / 1e9),
            ]
        });
        shapes.rows.extend(all);
    }
    Ok(())
}
