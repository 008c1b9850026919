//! Figures 4 and 5: what only a GPU shows.

use anyhow::Result;
use wirespeed_classify::OpenFlowTuple;
use wirespeed_classify::generate::Shape as SetShape;
use wirespeed_classify::kernel::result_bytes;
use wirespeed_gpu::classify::bytes_of;

use super::device::Rig;
use super::subject::{Subject, bloom, methods};
use super::{Figure, Scale, cell, float, gbps};
use crate::gpu::plot::Plot;
use crate::report::Sheet;

/// Rules and classes of figures 5(a) and 5(b), as in the paper.
const USUAL: SetShape = SetShape::even(1 << 10, 128);
/// The paper's rules of a full class.
pub const FULL: usize = 256;

/// Figure 4: bytes a second over the bus by the size of a transfer, into the device, out of it, and both at
/// once.
pub fn bus(rig: &mut Rig, scale: &Scale) -> Result<Vec<Figure>> {
    let mut sheet = Sheet {
        title: "Figure 4: the bus by size of transfers".into(),
        columns: &["direction", "under_way", "bytes", "gbit_per_s"],
        rows: Vec::new(),
    };
    // As many bytes as the largest batch has, and no fewer than the paper's few MB on a GPU.
    let most = 36 * scale.tuples;
    for bytes in (10..27).step_by(2).map(|log| 1usize << log).take_while(|&bytes| bytes <= most) {
        for in_flight in [1, scale.in_flight] {
            for (direction, into, out) in [("in", bytes, 0), ("out", 0, bytes), ("both", bytes, bytes)] {
                let rate = rig.bus(into, out, in_flight, scale.seconds)?;
                let rate = format!("{:.2}", rate * 8.0 * float(into.max(out)) / 1e9);
                sheet.rows.push(vec![direction.into(), in_flight.to_string(), bytes.to_string(), rate]);
            }
        }
    }
    let plot =
        Plot { x: "bytes", y: "gbit_per_s", curves: &["direction", "under_way"], log_x: true, ..Plot::NONE };
    Ok(vec![Figure { name: "figure-4".into(), sheet, plots: vec![plot] }])
}

/// Figures 5(a) and 5(b): times of kernels and of transfers, and throughput, by the size of a batch.
pub fn batches(rig: &mut Rig, scale: &Scale) -> Result<Vec<Figure>> {
    let subject = Subject::<OpenFlowTuple>::made(USUAL, scale.tuples)?;
    let methods = methods(&subject.rules);
    let mut times = Sheet {
        title: "Figure 5(a): kernels and transfers by batch, 12 fields, 1 K rules in 128 classes".into(),
        columns: &["what", "batch", "us"],
        rows: Vec::new(),
    };
    let mut rates = Sheet {
        title: "Figure 5(b): throughput by batch, 12 fields, 1 K rules in 128 classes".into(),
        columns: &[
            "method",
            "batch",
            "kernel_mtuples_per_s",
            "kernel_gbps",
            "trip_mtuples_per_s",
            "way",
            "p50_us",
            "p99_us",
            "bus_mtuples_per_s",
        ],
        rows: Vec::new(),
    };
    for batch in scale.batches() {
        let out = batch * result_bytes(u64::from(subject.rules.last_number()));
        let copies = rig.bus(bytes_of::<OpenFlowTuple>(batch), out, 1, scale.seconds)?;
        times.rows.push(vec!["transfers".into(), batch.to_string(), format!("{:.2}", 1e6 / copies)]);
    }
    for method in &methods {
        let uploaded = method.upload(&mut rig.bench)?;
        let handle = method.send(&rig.gpu, &subject.trace)?;
        for batch in scale.batches() {
            let known = subject.part(method.as_ref(), batch);
            if known.0.len() < batch {
                break;
            }
            let kernel = rig.kernel(&uploaded, known, scale.rounds)?;
            let whole = subject.part(method.as_ref(), scale.tuples);
            let trips = rig.trips(&handle, whole, batch, scale.in_flight, scale.seconds)?;
            let (name, batch_name) = (method.name(), batch.to_string());
            times.rows.push(vec![
                name.into(),
                batch_name.clone(),
                format!("{:.2}", 1e6 * float(batch) / kernel.rate),
            ]);
            rates.rows.push(vec![
                name.into(),
                batch_name,
                cell(Some(kernel.rate / 1e6)),
                cell(Some(gbps(kernel.rate))),
                cell(Some(trips.travelled.rate / 1e6)),
                trips.way.name().into(),
                cell(Some(trips.travelled.p50)),
                cell(Some(trips.travelled.p99)),
                cell(Some(trips.bus / 1e6)),
            ]);
        }
        rig.bench.forget(&uploaded)?;
    }
    let plot = |y| Plot { x: "batch", y, curves: &["method"], log_x: true, ..Plot::NONE };
    let of_times = Plot { x: "batch", y: "us", curves: &["what"], log_x: true, ..Plot::NONE };
    Ok(vec![
        Figure { name: "figure-5a".into(), sheet: times, plots: vec![of_times] },
        Figure {
            name: "figure-5b".into(),
            sheet: rates,
            plots: vec![plot("kernel_mtuples_per_s"), plot("trip_mtuples_per_s")],
        },
    ])
}

/// Figure 5(c), above: Bloom search by classes and by blocks of a multiprocessor, classes full.
pub fn blocks(rig: &mut Rig, scale: &Scale) -> Result<Vec<Figure>> {
    /// The paper's B, and one.
    const BLOCKS: [u32; 4] = [1, 2, 4, 8];
    let mut sheet = Sheet {
        title: "Figure 5(c): Bloom search by classes and blocks, 12 fields, 256 rules a class".into(),
        columns: &["blocks", "rules", "classes", "shared", "threads", "mtuples_per_s", "gbps"],
        rows: Vec::new(),
    };
    for classes in full_classes(scale, 8) {
        let subject = Subject::<OpenFlowTuple>::made(SetShape::even(FULL * classes, classes), scale.tuples)?;
        let method = bloom(&subject.rules, 0)?;
        let uploaded = method.upload(&mut rig.bench)?;
        for blocks in BLOCKS {
            let known = subject.part(method.as_ref(), scale.tuples);
            let Some(kernel) = rig.kernel_of_blocks(&uploaded, known, scale.rounds, blocks)? else {
                continue;
            };
            sheet.rows.push(vec![
                blocks.to_string(),
                subject.rules.len().to_string(),
                classes.to_string(),
                kernel.shared.to_string(),
                kernel.shape.threads.to_string(),
                cell(Some(kernel.rate / 1e6)),
                cell(Some(gbps(kernel.rate))),
            ]);
        }
        rig.bench.forget(&uploaded)?;
    }
    let plot = Plot { x: "classes", y: "mtuples_per_s", curves: &["blocks"], log_x: true, ..Plot::NONE };
    Ok(vec![Figure { name: "figure-5c-blocks".into(), sheet, plots: vec![plot] }])
}

/// Figure 5(c), below: Bloom search by classes and by bytes of a filter.
pub fn filters(rig: &mut Rig, scale: &Scale) -> Result<Vec<Figure>> {
    /// Hundredths of head room, which doubles filters, and doubles them again.
    const ROOMS: [u32; 3] = [0, 100, 300];
    let mut sheet = Sheet {
        title: "Figure 5(c): Bloom search by classes and filter, 12 fields, 256 rules a class".into(),
        columns: &[
            "filter_bytes_a_class",
            "rules",
            "classes",
            "table_bytes",
            "shared",
            "mtuples_per_s",
            "gbps",
        ],
        rows: Vec::new(),
    };
    for classes in full_classes(scale, 8) {
        let subject = Subject::<OpenFlowTuple>::made(SetShape::even(FULL * classes, classes), scale.tuples)?;
        for room in ROOMS {
            let method = bloom(&subject.rules, room)?;
            let uploaded = method.upload(&mut rig.bench)?;
            let known = subject.part(method.as_ref(), scale.tuples);
            let kernel = rig.kernel(&uploaded, known, scale.rounds)?;
            rig.bench.forget(&uploaded)?;
            // 32 bits a rule are a power of two of a full class, which each room doubles: the paper's 1, 2
            // and 4 KB.
            let bytes = FULL * 32 / 8 * (100 + room as usize) / 100;
            sheet.rows.push(vec![
                bytes.to_string(),
                subject.rules.len().to_string(),
                classes.to_string(),
                method.bytes().to_string(),
                kernel.shared.to_string(),
                cell(Some(kernel.rate / 1e6)),
                cell(Some(gbps(kernel.rate))),
            ]);
        }
    }
    let plot = Plot {
        x: "classes",
        y: "mtuples_per_s",
        curves: &["filter_bytes_a_class"],
        log_x: true,
        ..Plot::NONE
    };
    Ok(vec![Figure { name: "figure-5c-filters".into(), sheet, plots: vec![plot] }])
}

/// Numbers of full classes from one on, doubled each time, to the most rules of a set and the paper's 512.
fn full_classes(scale: &Scale, least: usize) -> impl Iterator<Item = usize> + use<> {
    let most = (scale.rules / FULL).min(512);
    std::iter::successors(Some(least.min(most.max(1))), |&classes| Some(2 * classes))
        .take_while(move |&classes| classes <= most)
}
