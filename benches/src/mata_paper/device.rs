//! What a GPU shows: figures 4 and 5 with section 3's model, 9 to 16, 17 and 18, 19 and 20.

use anyhow::Result;
use wirespeed_gpu::driver::Shape;

use super::model::{Bytes, Model};
use super::pipeline::{Pipeline, Timing};
use super::subject::{BATCH, Method, Placed, batch_of};
use crate::gpu::bench::Bench;
use crate::names::data::Trace;
use crate::report::Sheet;

/// Blocks, threads of a block and streams of figures 9 to 16; the paper doubles each in turn.
const BLOCKS: [u32; 5] = [16, 66, 132, 528, 2112];
const THREADS: [u32; 4] = [32, 128, 256, 1024];
const STREAMS: [usize; 5] = [1, 8, 32, 128, 512];
/// Streams of the figures that show nothing but them.
const ALL_STREAMS: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
/// Latencies that the paper asks for, in microseconds.
const BOUNDS: [f64; 4] = [50.0, 100.0, 200.0, 1000.0];
/// Points that are slower are not worth a plot, as in the paper.
const LATEST_US: f64 = 1000.0;

/// The subject of a figure.
#[derive(Clone, Copy)]
pub struct On<'a> {
    /// The table's name.
    pub table: &'a str,
    /// The names that are looked up.
    pub trace: &'a Trace,
    /// The tables on the device.
    pub placed: &'a Placed,
    /// Seconds of each measurement.
    pub seconds: f64,
}

impl On<'_> {
    fn row(&self, method: &str, cells: impl IntoIterator<Item = String>) -> Vec<String> {
        let of = [self.table.to_owned(), self.trace.name.clone(), method.to_owned()];
        of.into_iter().chain(cells).collect()
    }
}

/// Millions a second, or microseconds.
fn short(figure: f64) -> String {
    format!("{figure:.1}")
}

#[allow(clippy::cast_precision_loss)] // for rates
fn float(count: usize) -> f64 {
    count as f64
}

/// The columns of a point of figures 9 to 16.
const POINT: &[&str] =
    &["table", "load", "method", "blocks", "threads", "streams", "mnames_per_s", "latency_us", "p99_us"];

/// Figures 9 to 16: throughput and latency over blocks, threads and streams. The first sheet has every point
/// below a millisecond, the second those that none beats in both, the third the most within the paper's
/// bounds.
pub fn points(bench: &mut Bench, on: On<'_>, figure: u32) -> Result<[Sheet; 3]> {
    let title = |what: &str| format!("Figure {figure}: {what} ({} {})", on.table, on.trace.name);
    let mut all = Sheet { title: title("all points"), columns: POINT, rows: Vec::new() };
    let mut front = Sheet { title: title("throughput and latency"), columns: POINT, rows: Vec::new() };
    let mut within = Sheet {
        title: title("the most within a latency"),
        columns: &[
            "table",
            "load",
            "method",
            "p99_us_at_most",
            "mnames_per_s",
            "blocks",
            "threads",
            "streams",
        ],
        rows: Vec::new(),
    };
    for method in on.placed.methods() {
        let mut points = sweep(bench, on, &method)?;
        points.sort_by(|a, b| a.1.p50.total_cmp(&b.1.p50));
        let mut best = 0.0;
        for ((shape, streams), timing) in &points {
            let cells = [
                shape.blocks.to_string(),
                shape.threads.to_string(),
                streams.to_string(),
                short(timing.rate / 1e6),
                short(timing.p50),
                short(timing.p99),
            ];
            let row = on.row(method.name, cells);
            if timing.rate > best && timing.p50 <= LATEST_US {
                best = timing.rate;
                front.rows.push(row.clone());
            }
            all.rows.push(row);
        }
        for bound in BOUNDS {
            let good = points.iter().filter(|(_, timing)| timing.p99 <= bound);
            let Some(((shape, streams), timing)) = good.max_by(|a, b| a.1.rate.total_cmp(&b.1.rate)) else {
                continue;
            };
            let cells = [
                bound.to_string(),
                short(timing.rate / 1e6),
                shape.blocks.to_string(),
                shape.threads.to_string(),
                streams.to_string(),
            ];
            within.rows.push(on.row(method.name, cells));
        }
    }
    Ok([all, front, within])
}

/// A point's launch and streams.
type Point = ((Shape, usize), Timing);

/// All launches by all numbers of streams of a method; where one stream takes a batch ten times as long as
/// the fastest launch does, the launch is left out with more streams.
fn sweep(bench: &mut Bench, on: On<'_>, method: &Method<'_>) -> Result<Vec<Point>> {
    let names = batch_of(on.trace, BATCH);
    let (program, ..) = method.best(bench, names, &on.trace.expected)?;
    let mut points: Vec<Point> = Vec::new();
    for streams in STREAMS {
        let slow = slow(&points);
        let pipeline = Pipeline::new(bench, method.layout, names, streams)?;
        for (blocks, threads) in
            BLOCKS.into_iter().flat_map(|blocks| THREADS.map(|threads| (blocks, threads)))
        {
            let shape = Shape::row(blocks, threads, program.shared);
            if slow.contains(&shape) || !method.fits(bench, program, threads)? {
                continue;
            }
            pipeline.check(bench, (program, shape), &on.trace.expected[..pipeline.count])?;
            let timing = pipeline.run(bench, Some((program, shape)), on.seconds)?;
            points.push(((shape, streams), timing));
        }
        pipeline.forget(bench)?;
    }
    Ok(points)
}

/// Launches with which one stream took ten times as long as with the fastest.
fn slow(points: &[Point]) -> Vec<Shape> {
    let of_one = || points.iter().filter(|((_, streams), _)| *streams == 1);
    let fastest = of_one().map(|(_, timing)| timing.batch_seconds).fold(f64::INFINITY, f64::min);
    of_one()
        .filter(|(_, timing)| timing.batch_seconds > 10.0 * fastest)
        .map(|((shape, _), _)| *shape)
        .collect()
}

/// Figure 4: throughput and latency of batches of 16 MB and 1 MB by threads, without a pipeline.
pub fn whole_batches(bench: &mut Bench, on: On<'_>) -> Result<Sheet> {
    let mut sheet = Sheet {
        title: format!("Figure 4: without a pipeline ({} {})", on.table, on.trace.name),
        columns: &["table", "load", "method", "batch_mb", "all_threads", "mnames_per_s", "latency_us"],
        rows: Vec::new(),
    };
    for method in on.placed.methods() {
        for bytes in [BATCH, BATCH / 16] {
            let names = batch_of(on.trace, bytes);
            let (program, ..) = method.best(bench, names, &on.trace.expected)?;
            let pipeline = Pipeline::new(bench, method.layout, names, 1)?;
            for blocks in (3..=11).map(|exponent| 1 << exponent) {
                let shape = Shape::row(blocks, 128, program.shared);
                let timing = pipeline.run(bench, Some((program, shape)), on.seconds)?;
                let cells = [
                    (bytes >> 20).to_string(),
                    (blocks * shape.threads).to_string(),
                    short(timing.rate / 1e6),
                    short(timing.p50),
                ];
                sheet.rows.push(on.row(method.name, cells));
            }
            pipeline.forget(bench)?;
        }
    }
    Ok(sheet)
}

/// Figure 5: a batch of 16 MB by streams, beside formulas 1 and 2; and the machine that these were fitted to.
pub fn streams(bench: &mut Bench, on: On<'_>) -> Result<[Sheet; 2]> {
    let mut curves = Sheet {
        title: format!("Figure 5: 16 MB by streams ({} {})", on.table, on.trace.name),
        columns: &[
            "table",
            "load",
            "method",
            "streams",
            "mnames_per_s",
            "latency_us",
            "p99_us",
            "formula_1_mnames_per_s",
            "formula_2_us",
        ],
        rows: Vec::new(),
    };
    let mut fitted = Sheet {
        title: format!("Section 3: formulas 1 and 2 fitted ({} {})", on.table, on.trace.name),
        columns: &[
            "table",
            "load",
            "method",
            "batch_bytes",
            "result_bytes",
            "t_start_us",
            "s_pcie_gb_per_s",
            "s_kernel_gb_per_s",
            "predicted_streams",
            "measured_streams",
            "predicted_mnames_per_s",
            "measured_mnames_per_s",
        ],
        rows: Vec::new(),
    };
    for method in on.placed.methods() {
        let names = batch_of(on.trace, BATCH);
        let (program, shape, rate) = method.best(bench, names, &on.trace.expected)?;
        let whole = Pipeline::new(bench, method.layout, names, 1)?;
        let results = float(names.len() * program.result_bytes);
        let bytes = Bytes { batch: float(whole.bytes), results };
        // Large parts, so that starting them is little of their time.
        let apart = Pipeline::new(bench, method.layout, names, 4)?;
        let bus = (bytes.batch + results) / apart.run(bench, None, on.seconds)?.batch_seconds;
        apart.forget(bench)?;
        whole.forget(bench)?;
        let mut measured = Vec::new();
        for streams in ALL_STREAMS {
            let pipeline = Pipeline::new(bench, method.layout, names, streams)?;
            measured.push((streams, pipeline.run(bench, Some((program, shape)), on.seconds)?));
            pipeline.forget(bench)?;
        }
        let times: Vec<_> =
            measured.iter().map(|(streams, timing)| (float(*streams), timing.batch_seconds)).collect();
        let kernel = rate * bytes.batch / float(names.len());
        let model = Model::fit(bytes, bus, kernel, &times);
        let million = float(names.len()) / 1e6;
        for (streams, timing) in &measured {
            let by = float(*streams);
            let cells = [
                streams.to_string(),
                short(timing.rate / 1e6),
                short(timing.p50),
                short(timing.p99),
                short(million / model.batch_seconds(bytes, by)),
                short(model.latency(bytes, by) * 1e6),
            ];
            curves.rows.push(on.row(method.name, cells));
        }
        let best = measured.iter().max_by(|a, b| a.1.rate.total_cmp(&b.1.rate));
        let (best, timing) = best.copied().unwrap_or_default();
        let cells = [
            format!("{:.0}", bytes.batch),
            format!("{results:.0}"),
            format!("{:.2}", model.start * 1e6),
            short(bus / 1e9),
            short(kernel / 1e9),
            short(model.best(bytes)),
            best.to_string(),
            short(million / model.batch_seconds(bytes, model.best(bytes))),
            short(timing.rate / 1e6),
        ];
        fitted.rows.push(on.row(method.name, cells));
    }
    Ok([curves, fitted])
}

/// Figures 17 and 18: whole trips beside the same bytes over the bus without a kernel, by streams.
pub fn bus(bench: &mut Bench, on: On<'_>, figure: u32) -> Result<Sheet> {
    let mut sheet = Sheet {
        title: format!("Figure {figure}: whole trips beside the bus ({} {})", on.table, on.trace.name),
        columns: &["table", "load", "method", "streams", "mnames_per_s", "bytes_a_name", "share_of_bus"],
        rows: Vec::new(),
    };
    for method in on.placed.methods() {
        let names = batch_of(on.trace, BATCH);
        let (program, shape, _) = method.best(bench, names, &on.trace.expected)?;
        let (mut trips, mut bare) = (Vec::new(), Vec::new());
        for streams in ALL_STREAMS {
            let pipeline = Pipeline::new(bench, method.layout, names, streams)?;
            let trip = pipeline.run(bench, Some((program, shape)), on.seconds)?;
            let copies = pipeline.run(bench, None, on.seconds)?;
            let each = format!("{:.1}", float(pipeline.bytes) / float(pipeline.count));
            let row = |of: &Timing, share: f64| {
                [streams.to_string(), short(of.rate / 1e6), each.clone(), format!("{share:.3}")]
            };
            trips.push(on.row(method.name, row(&trip, trip.rate / copies.rate)));
            bare.push(on.row(&format!("PCIe for {}", method.name), row(&copies, 1.0)));
            pipeline.forget(bench)?;
        }
        sheet.rows.extend(trips.into_iter().chain(bare));
    }
    Ok(sheet)
}

/// Figures 19 and 20: kernels alone, names and results on the device, by streams: a launch has a stream's
/// part of 16 MB.
pub fn kernels(bench: &mut Bench, on: On<'_>, figure: u32) -> Result<Sheet> {
    let mut sheet = Sheet {
        title: format!("Figure {figure}: kernels ({} {})", on.table, on.trace.name),
        columns: &[
            "table",
            "load",
            "method",
            "streams",
            "names",
            "mnames_per_s",
            "blocks",
            "threads",
            "shared",
        ],
        rows: Vec::new(),
    };
    let all = on.trace.names.names();
    let whole = batch_of(on.trace, BATCH).len();
    for method in on.placed.methods() {
        // All names of the trace at once, and then as many as a stream has of a batch.
        let parts = std::iter::once((0, all.len()))
            .chain(ALL_STREAMS.map(|streams| (streams, whole.div_ceil(streams))));
        for (streams, count) in parts {
            let rates = method.kernels(bench, all.part(0..count), &on.trace.expected)?;
            let Some(best) = rates.first() else { continue };
            let cells = [
                if streams == 0 { "all".to_owned() } else { streams.to_string() },
                count.to_string(),
                short(best.rate / 1e6),
                best.shape.blocks.to_string(),
                best.shape.threads.to_string(),
                best.shared.to_string(),
            ];
            sheet.rows.push(on.row(method.name, cells));
        }
    }
    Ok(sheet)
}
