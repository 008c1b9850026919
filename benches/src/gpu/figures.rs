//! The figures of the GPU record: each a sheet, and for most a plot.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use wirespeed_dir24::Dir24;
use wirespeed_fib::trace::{TraceKind, keys};
use wirespeed_fib::{
    Address, BuildOptions, Engine, InFib, LiveTable, Lpm, NextHop, NextHops, Rib, Strides, V4, V6,
};
use wirespeed_fold::{FoldV4, FoldV6};
use wirespeed_gamt::{GamtS, GamtT};
use wirespeed_gpu::ip::{KeyBytes, Meter, Offload, Policy, Remote, Use};
use wirespeed_gpu::program::OnDevice;
use wirespeed_gpu::runtime::{Fleet, SlotSize, Way};
use wirespeed_image::Table;
use wirespeed_rank::Rank;
use wirespeed_sail::{SailB, SailL, SailM, SailU};
use wirespeed_waldvogel::Waldvogel;

use super::bench::Bench;
use super::trip::{Filled, Trip, fill, start, travel, upload};
use super::updates::{Following, under};
use super::{ceiling, kernels};
use crate::data::Source;
use crate::report::{Sheet, median};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Keys of a trace that kernels look up.
    pub keys: usize,
    /// Launches of each measurement.
    pub rounds: usize,
    /// Seconds of each trip.
    pub seconds: f64,
}

/// A family's routes, its keys, and what is measured on them.
pub struct Subject<A: Address> {
    name: String,
    rib: Rib<A>,
    next_hops: NextHops,
    /// Random, and by prefix.
    traces: Vec<(String, Vec<A>)>,
}

impl<A: InFib> Subject<A> {
    /// Reads a table and draws its traces.
    pub fn read(source: &Source, count: usize) -> Result<Self> {
        let (rib, next_hops) = source.rib::<A>()?;
        let draw = |kind: TraceKind| Ok((kind.to_string(), keys(&rib, kind, count, 1)?));
        let traces = [TraceKind::Random, TraceKind::Prefix].map(draw).into_iter().collect::<Result<_>>()?;
        Ok(Self { name: source.name.clone(), rib, next_hops, traces })
    }

    fn reach(&self) -> u8 {
        self.rib
            .by_length()
            .iter()
            .rposition(|&count| count > 0)
            .and_then(|len| u8::try_from(len).ok())
            .unwrap_or(0)
    }

    /// The kinds of keys that hold all that lookups depend on, the widest first.
    fn widths(&self) -> Vec<usize> {
        let holds = |bytes: &usize| 8 * bytes >= usize::from(self.reach());
        KeyBytes::kinds(A::FAMILY).iter().map(|kind| kind.count()).filter(holds).collect()
    }

    fn by_prefix(&self) -> &[A] {
        &self.traces[1].1
    }

    fn traces(&self) -> Vec<(&str, &[A])> {
        self.traces.iter().map(|(name, keys)| (name.as_str(), &keys[..])).collect()
    }
}

#[allow(clippy::cast_precision_loss)] // for reading
fn giga(rate: f64) -> String {
    format!("{:.3}", rate / 1e9)
}

/// How tables are built that lookups on a GPU run in.
fn for_gpu() -> BuildOptions {
    BuildOptions { strides: Strides::FastestOnGpu, ..BuildOptions::default() }
}

/// Kernels of all engines, beside DIR-24-8 with two-byte entries and a gather of as many bytes as a table's.
pub fn kernels_v4(bench: &mut Bench, subject: &Subject<V4>, effort: &Effort) -> Result<[Sheet; 2]> {
    let mut sheets = kernel_sheets();
    let wide = BuildOptions { next_hops: 300, ..BuildOptions::default() };
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

/// The same for IPv6, beside Waldvogel's search.
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
fn kernel_rows<A: InFib, E: Engine<A, Table: OnDevice + Lpm<A>>>(
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

/// GAMT by its number of levels: the paper's figures 11 and 15 on a GPU.
#[allow(clippy::cast_precision_loss)] // for reading
pub fn levels<A: InFib>(
    bench: &mut Bench,
    subject: &Subject<A>,
    sweep: impl Iterator<Item = u8>,
    effort: &Effort,
) -> Result<Sheet> {
    let mut sheet = Sheet {
        title: format!("GAMT on a GPU by levels ({})", A::FAMILY),
        columns: &["table", "trace", "levels", "kernel_gkeys_per_s", "table_bytes", "bytes_a_prefix"],
        rows: Vec::new(),
    };
    let key = [*subject.widths().last().unwrap_or(&4)];
    for levels in sweep {
        let strides = Strides::Levels { levels, transaction: 32 };
        let options = BuildOptions { strides, ..BuildOptions::default() };
        let (_, table) = GamtT::<A>::build(&subject.rib, &options)?;
        let bytes = table.image().bytes();
        let rates = kernels::rates::<A, GamtT<A>>(bench, &table, &subject.traces(), &key, effort.rounds)?;
        sheet.rows.extend(rates.into_iter().map(|(trace, rate)| {
            vec![
                subject.name.clone(),
                trace,
                levels.to_string(),
                format!("{:.1}", rate.best().1 / 1e9),
                bytes.to_string(),
                format!("{:.1}", bytes as f64 / subject.rib.len() as f64),
            ]
        }));
    }
    Ok(sheet)
}

/// A table to travel with: what is fastest on a GPU for the family.
pub trait Best: InFib {
    /// The engine.
    type Engine: Engine<Self, Table: OnDevice + Lpm<Self>>;
}

impl Best for V4 {
    type Engine = wirespeed_fold::FoldHot;
}

impl Best for V6 {
    type Engine = FoldV6;
}

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

/// The narrowest keys that hold all that lookups depend on.
fn narrow<A: InFib>(subject: &Subject<A>) -> KeyBytes {
    KeyBytes::for_bits(A::FAMILY, subject.reach())
}

/// Rate and latency by batch and batches under way; the highest rates within bounds on the 99th percentile are rows of their own,
/// held again for longer.
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
    let key = narrow(subject);
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
    let measure = |what: &str, trip: &Trip, sheet: &mut Sheet| -> Result<super::trip::Travelled> {
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

/// Microseconds of a launch of nothing, and of one of so many keys in pinned memory, with nothing between here and the driver.
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

/// One GPU beside all of them, each with a replica and a thread of its own.
pub fn gpus<A: Best>(subject: &Subject<A>, count: usize, effort: &Effort) -> Result<Sheet> {
    let mut sheet = Sheet {
        title: format!("Several GPUs ({})", A::FAMILY),
        columns: &["table", "key_bytes", "batch", "gpus", "gkeys_per_s", "by_one"],
        rows: Vec::new(),
    };
    let (_, table) = A::Engine::build(&subject.rib, &for_gpu())?;
    let key = narrow(subject);
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
        std::thread::scope(|scope| {
            let threads: Vec<_> = all[..count]
                .iter()
                .map(|(gpu, handle)| {
                    let (table, keys, trip) = (&table, subject.by_prefix(), &trip);
                    scope.spawn(move || {
                        let filled = fill(gpu, handle, table, keys, key, trip)?;
                        anyhow::Ok(travel(handle, filled, trip)?.0.rate)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum()
        })
    };
    let mut one = Vec::new();
    for count in 1..=count {
        let mut rates = Vec::new();
        for _ in 0..3 {
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
    let remote = Remote::upload(&fleet, &table, subject.reach())?;
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
