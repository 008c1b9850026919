//! The MATA paper's figures, made anew: see [`wirespeed_benches::mata_paper`].

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use wirespeed_benches::gpu::bench::Bench;
use wirespeed_benches::gpu::plot::Plot;
use wirespeed_benches::gpu::record::Record;
use wirespeed_benches::mata_paper::device::{self, On};
use wirespeed_benches::mata_paper::subject::{Placed, Subject};
use wirespeed_benches::mata_paper::{growth, memory};
use wirespeed_benches::names::data::{self, Trace};
use wirespeed_namelookup::generate::Paths;

/// Makes the MATA paper's figures anew and writes MACHINE/DATE-mata-paper-….csv and .svg.
#[derive(Parser)]
struct Options {
    /// Figures to make
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["memory", "streams", "subsets", "tables", "bus", "kernels", "growth"])]
    figures: Vec<Figure>,
    /// Names of the large table; the small one has no more
    #[arg(long, default_value_t = data::TEN_MILLION)]
    names: usize,
    /// Names of the subsets that a state transition table fits
    #[arg(long, default_value_t = 100_000)]
    subset: usize,
    /// Seconds of each trip that is measured
    #[arg(long, default_value_t = 0.003)]
    seconds: f64,
    /// The folder of records; nothing is written with --dry
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/record"))]
    out: PathBuf,
    /// Print, and write no record
    #[arg(long)]
    dry: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Figure {
    /// Section 6.1, and one thread of a CPU
    Memory,
    /// Figures 4 and 5, and section 3's model; on a GPU
    Streams,
    /// Figures 9 to 12; on a GPU
    Subsets,
    /// Figures 13 to 16; on a GPU
    Tables,
    /// Figures 17 and 18; on a GPU
    Bus,
    /// Figures 19 and 20; on a GPU
    Kernels,
    /// Figures 21 to 24; without a GPU those of memory and updates, and lookups on a CPU
    Growth,
}

impl Figure {
    /// Whether it is nothing without a GPU.
    const fn needs_gpu(self) -> bool {
        !matches!(self, Self::Memory | Self::Growth)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Memory => "section 6.1",
            Self::Streams => "figures 4 and 5",
            Self::Subsets => "figures 9 to 12",
            Self::Tables => "figures 13 to 16",
            Self::Bus => "figures 17 and 18",
            Self::Kernels => "figures 19 and 20",
            Self::Growth => "figures 21 to 24",
        }
    }
}

/// The fewest names of a table that is measured on.
const LEAST: usize = 1_000;

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.subset >= LEAST && options.names >= LEAST, "tables have {LEAST} names or more");
    let bench = Bench::open().map_err(|why| eprintln!("no GPU: {why}")).ok();
    let mut figures = options.figures.clone();
    if bench.is_none() {
        for figure in figures.iter().filter(|figure| figure.needs_gpu()) {
            eprintln!("skipped: {}: no GPU", figure.name());
        }
        figures.retain(|figure| !figure.needs_gpu());
    }
    let began = Instant::now();
    let paths = data::paths()?;
    let compiles = figures.iter().any(|figure| !matches!(figure, Figure::Growth | Figure::Subsets));
    let draw = |table| {
        let subject = Subject::new(table, &paths)?;
        if compiles { subject.compile(false) } else { Ok(subject) }
    };
    let (small, large) =
        rayon::join(|| draw(data::small(options.names)?), || draw(data::large(options.names)?));
    let (small, large) = (small?, large?);
    for subject in [&small, &large] {
        eprintln!(
            "{}: {} names, {} next hops, addresses made in place of DNS; traces of {:.1} and {:.1} bytes a name",
            subject.table.name,
            subject.table.names.len(),
            subject.table.next_hops,
            subject.traces[0].bytes_a_name(),
            subject.traces[1].bytes_a_name(),
        );
    }
    let gpu = bench.as_ref().map(Bench::properties);
    let record = Record::new(&options.out, "mata-paper", gpu, options.dry);
    let mut run = Run { bench, record, options: &options, figures, paths, began, failed: Vec::new() };
    run.say(if compiles { "tables, traces and engines" } else { "tables and traces" });
    let of_tables = [Figure::Streams, Figure::Tables, Figure::Bus, Figure::Kernels];
    run.attempt(&[Figure::Memory], "section 6.1", |run| run.memory(&small, &large));
    run.attempt(&[Figure::Growth], "figures 21 to 24", |run| run.growth(&small, &large));
    run.attempt(&[Figure::Subsets], "figures 9 to 12", |run| run.subsets(&small, &large));
    run.attempt(&of_tables, "the 3M table", |run| run.whole(&small, [13, 14, 17, 19], true));
    run.attempt(&of_tables[1..], "the 10M table", |run| run.whole(&large, [15, 16, 18, 20], false));
    ensure!(run.failed.is_empty(), "failed: {}", run.failed.join(", "));
    Ok(())
}

/// A run: the GPU, if there is one, the figures that are wanted, and their destination.
struct Run<'o> {
    bench: Option<Bench>,
    record: Record,
    options: &'o Options,
    figures: Vec<Figure>,
    paths: Paths,
    began: Instant,
    failed: Vec<&'static str>,
}

impl Run<'_> {
    fn wants(&self, figure: Figure) -> bool {
        self.figures.contains(&figure)
    }

    fn say(&self, what: &str) {
        eprintln!("{:6.1} s: {what}", self.began.elapsed().as_secs_f64());
    }

    /// Makes figures where any of them is wanted; where that fails says so and goes on to the next.
    fn attempt(&mut self, of: &[Figure], what: &'static str, make: impl FnOnce(&mut Self) -> Result<()>) {
        if !of.iter().any(|&figure| self.wants(figure)) {
            return;
        }
        match make(self) {
            Ok(()) => self.say(what),
            Err(why) => {
                eprintln!("{what}: {why:#}");
                self.failed.push(what);
            }
        }
    }

    fn memory(&self, small: &Subject, large: &Subject) -> Result<()> {
        self.record.show("section-6-1", &memory::sizes(&[small, large])?, &[])
    }

    fn growth(&mut self, small: &Subject, large: &Subject) -> Result<()> {
        let tables = [&small.table, &large.table];
        for (number, sheet) in
            growth::figures(self.bench.as_mut(), &tables, &self.paths, self.options.seconds)?
        {
            // Of throughput the whole trip where there is a GPU, else a CPU's; of the others the first
            // column.
            let columns: &[&str] = match (number, self.bench.is_some()) {
                (21, false) => &["cpu_mnames_per_s"],
                (21, true) => &["trip_mnames_per_s", "kernel_mnames_per_s"],
                (22, _) => &["bytes"],
                (23, true) => &["latency_us"],
                (23, false) => continue,
                _ => &["insertions_per_s", "deletions_per_s"],
            };
            let plot = |&y| Plot { x: "names", y, curves: &["table", "method"], ..Plot::NONE };
            let plots: Vec<Plot> = columns.iter().map(plot).collect();
            self.record.show(&format!("figure-{number}"), &sheet, &plots)?;
        }
        Ok(())
    }

    /// Figures 9 to 12: parts of both tables that a state transition table fits.
    fn subsets(&mut self, small: &Subject, large: &Subject) -> Result<()> {
        let Some(bench) = self.bench.as_mut() else {
            return Ok(());
        };
        for (subject, figures) in [(small, [9, 10]), (large, [11, 12])] {
            let subset = data::subset(&subject.table, self.options.subset);
            let subject = Subject::new(subset, &self.paths)?.compile(true)?;
            let Some(compiled) = &subject.compiled else { continue };
            let placed = Placed::new(bench, compiled)?;
            for (trace, figure) in subject.traces.iter().zip(figures) {
                let on = on(&subject, trace, &placed, self.options);
                points(bench, &self.record, on, figure)?;
            }
            placed.forget(bench)?;
        }
        Ok(())
    }

    /// The figures of a whole table: throughput and latency by both loads, beside the bus, and kernels.
    fn whole(
        &mut self,
        subject: &Subject,
        [average, heavy, bus, kernels]: [u32; 4],
        with_streams: bool,
    ) -> Result<()> {
        let wants = |figure| self.figures.contains(&figure);
        let Some(bench) = self.bench.as_mut() else { return Ok(()) };
        let Some(compiled) = &subject.compiled else { return Ok(()) };
        let placed = Placed::new(bench, compiled)?;
        let (record, options) = (&self.record, self.options);
        let of = |trace| on(subject, trace, &placed, options);
        let usual = of(&subject.traces[0]);
        let by_streams = |y| Plot { x: "streams", y, curves: &["method"], log_x: true, ..Plot::NONE };
        if wants(Figure::Streams) && with_streams {
            let sheet = device::whole_batches(bench, usual)?;
            let plot =
                |y| Plot { x: "all_threads", y, curves: &["method", "batch_mb"], log_x: true, ..Plot::NONE };
            record.show("figure-4", &sheet, &[plot("mnames_per_s"), plot("latency_us")])?;
            let [curves, fitted] = device::streams(bench, usual)?;
            record.show("figure-5", &curves, &[by_streams("mnames_per_s"), by_streams("latency_us")])?;
            record.show("section-3", &fitted, &[])?;
        }
        if wants(Figure::Kernels) {
            for trace in &subject.traces {
                let sheet = device::kernels(bench, of(trace), kernels)?;
                record.show(
                    &format!("figure-{kernels}-{}", trace.name),
                    &sheet,
                    &[by_streams("mnames_per_s")],
                )?;
            }
        }
        if wants(Figure::Bus) {
            let sheet = device::bus(bench, usual, bus)?;
            record.show(&format!("figure-{bus}"), &sheet, &[by_streams("mnames_per_s")])?;
        }
        if wants(Figure::Tables) {
            for (trace, figure) in subject.traces.iter().zip([average, heavy]) {
                points(bench, record, of(trace), figure)?;
            }
        }
        placed.forget(bench)
    }
}

fn on<'a>(subject: &'a Subject, trace: &'a Trace, placed: &'a Placed, options: &Options) -> On<'a> {
    On { table: &subject.table.name, trace, placed, seconds: options.seconds }
}

/// One of figures 9 to 16.
fn points(bench: &mut Bench, record: &Record, on: On<'_>, figure: u32) -> Result<()> {
    let [all, front, within] = device::points(bench, on, figure)?;
    let plot = Plot { x: "latency_us", y: "mnames_per_s", curves: &["method"], ..Plot::NONE };
    // All of them are too many for the screen.
    record.write(&format!("figure-{figure}-points"), &all, &[])?;
    record.write(&format!("figure-{figure}"), &front, &[plot])?;
    record.show(&format!("figure-{figure}-within"), &within, &[])
}
