//! Figures 6(a) and 6(b): a GPU against a CPU, on 128 K OpenFlow rules in 512 classes.

use anyhow::Result;
use wirespeed_classify::OpenFlowTuple;
use wirespeed_classify::generate::Shape;

use super::device::Rig;
use super::micro::FULL;
use super::subject::{Method, Subject, methods};
use super::{Figure, Scale, cell, cpu, gbps};
use crate::gpu::plot::Plot;
use crate::report::Sheet;

type Tuple = OpenFlowTuple;

/// Figures 6(a) and 6(b). Without a GPU the CPU's halves.
pub fn figures(mut rig: Option<&mut Rig>, scale: &Scale) -> Result<Vec<Figure>> {
    let classes = (scale.rules / FULL).clamp(1, 512);
    let shape = Shape::even(FULL * classes, classes);
    let subject = Subject::<Tuple>::made(shape, scale.tuples)?;
    let of = format!("12 fields, {} rules in {classes} classes", shape.rules);
    let (mut by_cores, mut by_batch) = (by_cores_sheet(&of), by_batch_sheet(&of));
    for method in methods(&subject.rules) {
        let rates = on_gpu(rig.as_deref_mut(), &subject, method.as_ref(), scale)?;
        let usual = rates.iter().find(|rates| rates.batch == scale.batch);
        for &cores in &scale.cores {
            let cpu = on_cpu(&subject, method.as_ref(), scale, (scale.batch, cores))?;
            let speedup = |gpu: fn(&OnGpu) -> f64| cell(usual.map(|usual| gpu(usual) / cpu));
            by_cores.rows.push(vec![
                method.name().into(),
                cores.to_string(),
                cell(Some(cpu / 1e6)),
                cell(Some(gbps(cpu))),
                cell(usual.map(|usual| usual.kernel / 1e6)),
                cell(usual.map(|usual| usual.trip / 1e6)),
                speedup(|gpu| gpu.kernel),
                speedup(|gpu| gpu.trip),
            ]);
        }
        let most = scale.cores.last().copied().unwrap_or(1);
        for batch in batches(scale) {
            let cpu = on_cpu(&subject, method.as_ref(), scale, (batch, most))?;
            by_batch.rows.push(row(method.as_ref(), "cpu", batch, cpu));
            for rates in rates.iter().filter(|rates| rates.batch == batch) {
                by_batch.rows.push(row(method.as_ref(), "kernel", batch, rates.kernel));
                by_batch.rows.push(row(method.as_ref(), "trip", batch, rates.trip));
            }
        }
    }
    let on_y = |y| Plot { x: "cores", y, curves: &["method"], ..Plot::NONE };
    let mut plots = vec![on_y("cpu_mtuples_per_s")];
    if rig.is_some() {
        plots = vec![on_y("kernel_by_cpu"), on_y("trip_by_cpu"), on_y("cpu_mtuples_per_s")];
    }
    let by_size =
        Plot { x: "batch", y: "mtuples_per_s", curves: &["method", "where"], log_x: true, ..Plot::NONE };
    Ok(vec![
        Figure { name: "figure-6a".into(), sheet: by_cores, plots },
        Figure { name: "figure-6b".into(), sheet: by_batch, plots: vec![by_size] },
    ])
}

fn by_cores_sheet(of: &str) -> Sheet {
    Sheet {
        title: format!("Figure 6(a): GPU by CPU, by cores, {of}"),
        columns: &[
            "method",
            "cores",
            "cpu_mtuples_per_s",
            "cpu_gbps",
            "kernel_mtuples_per_s",
            "trip_mtuples_per_s",
            "kernel_by_cpu",
            "trip_by_cpu",
        ],
        rows: Vec::new(),
    }
}

fn by_batch_sheet(of: &str) -> Sheet {
    Sheet {
        title: format!("Figure 6(b): GPU and CPU by batch, {of}"),
        columns: &["method", "where", "batch", "mtuples_per_s", "gbps"],
        rows: Vec::new(),
    }
}

fn row(method: &dyn Method<Tuple>, place: &str, batch: usize, rate: f64) -> Vec<String> {
    vec![
        method.name().into(),
        place.into(),
        batch.to_string(),
        cell(Some(rate / 1e6)),
        cell(Some(gbps(rate))),
    ]
}

/// The paper's batches of 256 to 16 K, and its usual one.
fn batches(scale: &Scale) -> Vec<usize> {
    let mut batches: Vec<usize> = scale.batches().into_iter().filter(|&batch| batch <= 1 << 14).collect();
    batches.push(scale.batch);
    batches.sort_unstable();
    batches.dedup();
    batches
}

/// Tuples a second of a GPU with batches of some size.
struct OnGpu {
    batch: usize,
    kernel: f64,
    trip: f64,
}

/// Rates of an engine by batch; none without a GPU.
fn on_gpu(
    rig: Option<&mut Rig>,
    subject: &Subject<Tuple>,
    method: &dyn Method<Tuple>,
    scale: &Scale,
) -> Result<Vec<OnGpu>> {
    let mut rates = Vec::new();
    let Some(rig) = rig else { return Ok(rates) };
    // Launches are tuned with no more tuples than a scan has time for.
    let (sample, _) = subject.part(method, scale.tuples);
    let (uploaded, handle) = (method.upload(&mut rig.bench)?, method.send(&rig.gpu, sample)?);
    for batch in batches(scale) {
        let known = (&subject.trace[..batch], &subject.right[..batch]);
        let kernel = rig.kernel(&uploaded, known, scale.rounds)?.rate;
        let whole = (&subject.trace[..], &subject.right[..]);
        let trip = rig.trips(&handle, whole, batch, scale.in_flight, scale.seconds)?.travelled.rate;
        rates.push(OnGpu { batch, kernel, trip });
    }
    rig.bench.forget(&uploaded)?;
    Ok(rates)
}

/// Tuples a second of so many cores with batches of so many tuples.
pub fn on_cpu<T: wirespeed_classify::Tuple>(
    subject: &Subject<T>,
    method: &dyn Method<T>,
    scale: &Scale,
    (batch, cores): (usize, usize),
) -> Result<f64> {
    /// More than caches hold; all of a trace would take a slow engine seconds to be held against what is
    /// right.
    const TUPLES: usize = 1 << 17;
    let known = subject.part(method, scale.tuples.min(TUPLES));
    // A scan takes the same for each tuple of a batch, and a long one of many rules takes long.
    let batch = if method.is_scan() { batch.min(1 << 8) } else { batch };
    cpu::rate(method.table(), known, batch, cores, scale.seconds)
}
