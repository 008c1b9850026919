//! Figures 6(c), 7 and 8, and the sets of ClassBench: throughput by what a set is like, kernels, whole trips
//! and CPU side by side.

use anyhow::Result;
use wirespeed_classify::generate::Shape;
use wirespeed_classify::{Ipv4Tuple, OpenFlowTuple, Tuple};

use super::device::{Rig, Trips};
use super::micro::FULL;
use super::subject::{Method, Subject, methods};
use super::versus::on_cpu;
use super::{Figure, Scale, cell, gbps};
use crate::gpu::in_form::KernelRate;
use crate::gpu::plot::Plot;
use crate::report::Sheet;

/// The columns of [`rows`].
pub(super) const COLUMNS: &[&str] = &[
    "set",
    "kind",
    "fields",
    "rules",
    "entries",
    "classes",
    "full",
    "matching",
    "method",
    "table_bytes",
    "build_s",
    "kernel_mtuples_per_s",
    "kernel_gbps",
    "tuples",
    "shared",
    "blocks",
    "threads",
    "kernel_p_mtuples_per_s",
    "p",
    "trip_mtuples_per_s",
    "way",
    "trip_p50_us",
    "bus_mtuples_per_s",
    "by_bus",
    "core_mtuples_per_s",
    "cpu_mtuples_per_s",
    "cores",
];

/// What a GPU gives.
struct OnGpu {
    kernel: KernelRate,
    tuples: usize,
    /// The kernel's rate with the paper's batch.
    paper: KernelRate,
    trips: Trips,
}

/// Rows of a figure for every engine with one set.
pub(super) fn rows<T: Tuple>(
    mut rig: Option<&mut Rig>,
    subject: &Subject<T>,
    scale: &Scale,
    sheet: &mut Sheet,
) -> Result<()> {
    let Shape { classes, full, matching, .. } = subject.shape;
    for method in methods(&subject.rules) {
        let method = method.as_ref();
        let gpu = match rig.as_deref_mut() {
            Some(rig) => Some(on_gpu(rig, subject, method, scale)?),
            None => None,
        };
        let most = scale.cores.last().copied().unwrap_or(1);
        let core = on_cpu(subject, method, scale, (scale.batch, 1))?;
        let cpu = if most > 1 { on_cpu(subject, method, scale, (scale.batch, most))? } else { core };
        let gpu = gpu.as_ref();
        let of = |figure: fn(&OnGpu) -> f64| cell(gpu.map(figure));
        let word = |figure: fn(&OnGpu) -> String| gpu.map_or_else(String::new, figure);
        sheet.rows.push(vec![
            subject.name.clone(),
            subject.name.split('_').next().unwrap_or_default().to_owned(),
            T::FIELDS.len().to_string(),
            subject.rules.len().to_string(),
            subject.rules.entries_len().to_string(),
            classes.to_string(),
            full.to_string(),
            matching.to_string(),
            method.name().into(),
            method.bytes().to_string(),
            format!("{:.3}", method.seconds()),
            of(|gpu| gpu.kernel.rate / 1e6),
            of(|gpu| gbps(gpu.kernel.rate)),
            word(|gpu| gpu.tuples.to_string()),
            word(|gpu| gpu.kernel.shared.to_string()),
            word(|gpu| gpu.kernel.shape.blocks.to_string()),
            word(|gpu| gpu.kernel.shape.threads.to_string()),
            of(|gpu| gpu.paper.rate / 1e6),
            scale.batch.to_string(),
            of(|gpu| gpu.trips.travelled.rate / 1e6),
            word(|gpu| gpu.trips.way.name().into()),
            of(|gpu| gpu.trips.travelled.p50),
            of(|gpu| gpu.trips.bus / 1e6),
            of(|gpu| gpu.trips.travelled.rate / gpu.trips.bus),
            cell(Some(core / 1e6)),
            cell(Some(cpu / 1e6)),
            most.to_string(),
        ]);
    }
    Ok(())
}

/// What a GPU makes of it.
fn on_gpu<T: Tuple>(
    rig: &mut Rig,
    subject: &Subject<T>,
    method: &dyn Method<T>,
    scale: &Scale,
) -> Result<OnGpu> {
    let uploaded = method.upload(&mut rig.bench)?;
    let known = subject.part(method, scale.tuples);
    let kernel = rig.kernel(&uploaded, known, scale.rounds)?;
    let paper = rig.kernel(&uploaded, subject.part(method, scale.batch), scale.rounds)?;
    rig.bench.forget(&uploaded)?;
    let handle = method.send(&rig.gpu, known.0)?;
    let trips = rig.trips(&handle, known, scale.trip, scale.in_flight, scale.seconds)?;
    Ok(OnGpu { kernel, tuples: known.0.len(), paper, trips })
}

/// A figure of made sets, and its pictures: kernels and trips where there is a GPU, else a core.
fn made<T: Tuple>(
    mut rig: Option<&mut Rig>,
    scale: &Scale,
    (name, title, x): (&str, &str, &'static str),
    shapes: impl IntoIterator<Item = Shape>,
) -> Result<Figure> {
    let mut sheet = Sheet { title: title.into(), columns: COLUMNS, rows: Vec::new() };
    for shape in shapes.into_iter().filter(|shape| shape.rules <= scale.rules) {
        let subject = Subject::<T>::made(shape, scale.tuples)?;
        rows(rig.as_deref_mut(), &subject, scale, &mut sheet)?;
    }
    Ok(Figure { name: name.into(), sheet, plots: plots(rig.is_some(), x) })
}

/// Rates by some column: kernels and trips where there is a GPU, and a core.
pub(super) fn plots(on_gpu: bool, x: &'static str) -> Vec<Plot> {
    let ys: &[&'static str] = match on_gpu {
        true => &["kernel_mtuples_per_s", "trip_mtuples_per_s", "core_mtuples_per_s"],
        false => &["core_mtuples_per_s"],
    };
    ys.iter().map(|&y| Plot { x, y, curves: &["method"], log_x: true, ..Plot::NONE }).collect()
}

/// So many numbers, each twice the one before.
fn doubled(first: usize, count: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(first), |&number| Some(2 * number)).take(count)
}

/// Figure 6(c): by rules, 256 in each class.
pub fn by_rules(rig: Option<&mut Rig>, scale: &Scale) -> Result<Figure> {
    let shapes = doubled(1, 11).map(|classes| Shape::even(FULL * classes, classes));
    let title = "Figure 6(c): by rules, 12 fields, 256 rules a class";
    made::<OpenFlowTuple>(rig, scale, ("figure-6c", title, "rules"), shapes)
}

/// Figure 7(a): by classes, 32 K rules.
pub fn by_classes(rig: Option<&mut Rig>, scale: &Scale) -> Result<Figure> {
    let rules = scale.rules.min(1 << 15);
    let shapes =
        doubled(128, 4).filter(|&classes| classes <= rules).map(|classes| Shape::even(rules, classes));
    let title = format!("Figure 7(a): by classes, 12 fields, {rules} rules");
    made::<OpenFlowTuple>(rig, scale, ("figure-7a", &title, "classes"), shapes)
}

/// Rules and classes of figures 7(b), 7(c) and 8.
const USUAL: Shape = Shape::even(1 << 10, 128);

/// Figure 7(b): by full classes.
pub fn by_full(rig: Option<&mut Rig>, scale: &Scale) -> Result<Figure> {
    let shapes = doubled(4, 6).map(|full| Shape { full, ..USUAL });
    let title = "Figure 7(b): by full classes, 12 fields, 1 K rules in 128 classes";
    made::<OpenFlowTuple>(rig, scale, ("figure-7b", title, "full"), shapes)
}

/// Figure 7(c): by classes that match a tuple.
pub fn by_matching(rig: Option<&mut Rig>, scale: &Scale) -> Result<Figure> {
    let shapes = doubled(1, 8).map(|matching| Shape { matching, ..USUAL });
    let title = "Figure 7(c): by classes that match, 12 fields, 1 K rules in 128 classes";
    made::<OpenFlowTuple>(rig, scale, ("figure-7c", title, "matching"), shapes)
}

/// Figure 8: 5 fields and 12.
pub fn by_fields(mut rig: Option<&mut Rig>, scale: &Scale) -> Result<Figure> {
    let title = "Figure 8: by fields, 1 K rules in 128 classes";
    let mut figure = made::<Ipv4Tuple>(rig.as_deref_mut(), scale, ("figure-8", title, "fields"), [USUAL])?;
    let more = made::<OpenFlowTuple>(rig, scale, ("figure-8", title, "fields"), [USUAL])?;
    figure.sheet.rows.extend(more.sheet.rows);
    Ok(figure)
}

/// The sets of ClassBench, shuffled.
pub fn real(mut rig: Option<&mut Rig>, scale: &Scale) -> Result<Figure> {
    let title = "Sets of ClassBench, 5 fields, shuffled";
    let mut sheet = Sheet { title: title.into(), columns: COLUMNS, rows: Vec::new() };
    for (size, most) in [("1k", 1_000), ("10k", 10_000), ("100k", 100_000)] {
        for kind in ["acl1", "fw1", "ipc1"] {
            if most <= scale.rules.max(1_000) {
                let subject = Subject::classbench(&format!("{kind}_{size}"), scale.tuples)?;
                rows(rig.as_deref_mut(), &subject, scale, &mut sheet)?;
            }
        }
    }
    let plots = plots(rig.is_some(), "rules").into_iter();
    let plots = plots.map(|plot| Plot { curves: &["method", "kind"], ..plot }).collect();
    Ok(Figure { name: "classbench".into(), sheet, plots })
}
