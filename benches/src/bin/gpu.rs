//! The GPU side of the papers' figures, and the kernels beside their ceilings: see
//! [`wirespeed_benches::gpu`].

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use wirespeed_benches::data::{self, Source};
use wirespeed_benches::gpu::bench::Bench;
use wirespeed_benches::gpu::figures::{self, Best, Effort, Subject};
use wirespeed_benches::gpu::plot::Plot;
use wirespeed_benches::gpu::record::Record;
use wirespeed_benches::report::Sheet;
use wirespeed_fib::{Family, V4, V6};
use wirespeed_gpu::driver::devices;

/// Measures on the GPUs of this machine and writes record/GPU/DATE-….csv and .svg.
#[derive(Parser)]
struct Options {
    /// Figures to make; without any, all that one GPU can make
    #[arg(long, value_enum, value_delimiter = ',')]
    figures: Vec<Figure>,
    /// Only tables whose names have this in them
    #[arg(long, default_value = "ris-20260511")]
    tables: String,
    /// Keys of a trace
    #[arg(long, default_value_t = 1 << 26)]
    keys: usize,
    /// Launches of each measurement of a kernel
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Seconds of each trip
    #[arg(long, default_value_t = 0.2)]
    seconds: f64,
    /// The folder of records; nothing is written with --dry
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/record"))]
    out: PathBuf,
    /// Print, and write no record
    #[arg(long)]
    dry: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Figure {
    /// Kernels of all engines, and blocks × threads
    Kernels,
    /// Whole trips by batch size and way
    Batches,
    /// GAMT by levels
    Levels,
    /// Latency by streams, and the best within 50 and 100 µs
    Latency,
    /// Rates under updates
    Updates,
    /// CPU or GPU by batch
    Dispatch,
    /// One GPU and all
    Gpus,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let gpus = devices().context("a GPU is needed to measure one")?;
    let record = Record::new(&options.out, "", gpus.first(), options.dry);
    let effort = Effort { keys: options.keys, rounds: options.rounds, seconds: options.seconds };
    let usual = [
        Figure::Kernels,
        Figure::Batches,
        Figure::Levels,
        Figure::Latency,
        Figure::Updates,
        Figure::Dispatch,
    ];
    let figures = if options.figures.is_empty() { usual.to_vec() } else { options.figures.clone() };
    for source in data::sources()
        .into_iter()
        .filter(|source| source.name.contains(&options.tables) || source.path().is_none())
    {
        match source.family {
            Family::V4 => {
                let subject = Subject::<V4>::read(&source, effort.keys)?;
                if figures.contains(&Figure::Kernels) {
                    kernels(&record, &source, figures::kernels_v4(&mut Bench::open()?, &subject, &effort)?)?;
                }
                if figures.contains(&Figure::Levels) && !source.name.contains("asn") {
                    let sheet = figures::levels(&mut Bench::open()?, &subject, 4..=20, &effort)?;
                    levels(&record, &source, &sheet)?;
                }
                if !source.name.contains("asn") {
                    rest(&record, &source, &subject, &figures, &effort)?;
                }
            }
            Family::V6 => {
                let subject = Subject::<V6>::read(&source, effort.keys / 2)?;
                if figures.contains(&Figure::Kernels) {
                    kernels(&record, &source, figures::kernels_v6(&mut Bench::open()?, &subject, &effort)?)?;
                }
                if figures.contains(&Figure::Levels) && !source.name.contains("asn") {
                    let sheet = figures::levels(&mut Bench::open()?, &subject, (8..=30).step_by(2), &effort)?;
                    levels(&record, &source, &sheet)?;
                }
                if !source.name.contains("asn") {
                    rest(&record, &source, &subject, &figures, &effort)?;
                }
            }
        }
    }
    Ok(())
}

/// The figures that are alike for both families.
fn rest<A: Best>(
    record: &Record,
    source: &Source,
    subject: &Subject<A>,
    figures: &[Figure],
    effort: &Effort,
) -> Result<()> {
    let name = |figure: &str| format!("{}-{figure}", source.name);
    for figure in figures {
        match figure {
            Figure::Kernels | Figure::Levels => {}
            Figure::Batches => {
                let sheet = figures::batches(&mut Bench::open()?, subject, effort)?;
                let plot = Plot {
                    x: "batch",
                    y: "gkeys_per_s",
                    curves: &["way", "key_bytes"],
                    log_x: true,
                    ..Plot::NONE
                };
                record.show(&name("batches"), &sheet, &[plot])?;
            }
            Figure::Latency => {
                let sheet = figures::latency(subject, effort)?;
                let plot = Plot { x: "p99_us", y: "gkeys_per_s", curves: &["batch", "way"], ..Plot::NONE };
                record.show(&name("latency"), &sheet, &[plot])?;
            }
            Figure::Updates => {
                let sheet = figures::updates(source, subject, effort)?;
                let plot = Plot { x: "applied_per_s", y: "kept", curves: &["how"], ..Plot::NONE };
                record.show(&name("updates"), &sheet, &[plot])?;
            }
            Figure::Dispatch => {
                let sheet = figures::dispatch(subject)?;
                record.show(&name("dispatch"), &sheet, &[])?;
            }
            Figure::Gpus => {
                let sheet = figures::gpus(subject, devices()?.len(), effort)?;
                record.show(&name("gpus"), &sheet, &[])?;
            }
        }
    }
    Ok(())
}

fn kernels(record: &Record, source: &Source, [rates, shapes]: [Sheet; 2]) -> Result<()> {
    record.show(&format!("{}-kernels", source.name), &rates, &[])?;
    let plot = Plot {
        x: "threads",
        y: "kernel_gkeys_per_s",
        curves: &["kernel", "trace"],
        log_x: true,
        ..Plot::NONE
    };
    // On the screen there is no room for all of them.
    record.write(&format!("{}-threads", source.name), &shapes, &[plot])
}

fn levels(record: &Record, source: &Source, sheet: &Sheet) -> Result<()> {
    let plot = Plot { x: "levels", y: "kernel_gkeys_per_s", curves: &["trace"], ..Plot::NONE };
    record.show(&format!("{}-levels", source.name), sheet, &[plot])
}
