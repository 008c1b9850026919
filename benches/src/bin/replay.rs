//! `lookupctl replay` on the CPU, on the GPUs and on both: see [`wirespeed_benches::replay`].

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use wirespeed_benches::gpu::record::Record;
use wirespeed_benches::machine::Machine;
use wirespeed_benches::replay::{Replayer, Subject, Sweep, What};
use wirespeed_gpu::driver::devices;

/// Runs `lookupctl replay` on each device and writes record/GPU/DATE-TABLE-replay….csv and .svg.
#[derive(Parser)]
struct Options {
    /// The kinds of tables that are looked up in
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["v4", "v6", "names", "rules"])]
    of: Vec<What>,
    /// Figures to make
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["defaults", "batches", "threads", "bound"])]
    figures: Vec<Figure>,
    /// Runs that a rate is the median of
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Runs with a bound on latency
    #[arg(long, default_value_t = 10)]
    bounds: usize,
    /// The bound on the latency of 99 of 100 batches
    #[arg(long, value_name = "TIME", default_value = "100us")]
    bound: String,
    /// Seconds of each run, beside reading and choosing
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// The program; by default the one beside this
    #[arg(long, value_name = "FILE")]
    lookupctl: Option<PathBuf>,
    /// The folder of records; nothing is written with --dry
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/record"))]
    out: PathBuf,
    /// Print, and write no record
    #[arg(long)]
    dry: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Figure {
    /// The device alone is said
    Defaults,
    /// Each batch size
    Batches,
    /// Each number of threads
    Threads,
    /// Each batch size with each number of batches in flight
    ByHand,
    /// The highest rate within a bound on latency
    Bound,
}

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.rounds > 0 && options.bounds > 0, "nothing is measured in no runs");
    let replayer = Replayer::new(options.lookupctl.as_deref(), options.seconds)?;
    let gpus = devices().unwrap_or_default();
    let devices: &[&str] = if gpus.is_empty() {
        eprintln!("no GPU: the CPU alone");
        &["cpu"]
    } else {
        &["cpu", "gpu", "auto"]
    };
    let record = Record::new(&options.out, "", gpus.first(), options.dry);
    for &what in &options.of {
        let subject = Subject::of(what);
        for &figure in &options.figures {
            let (sweep, rounds) = match figure {
                Figure::Defaults => (Sweep::as_it_is(), options.rounds),
                Figure::Batches => (Sweep::batches(), options.rounds),
                Figure::Threads => (Sweep::threads(Machine::here().cores), options.rounds),
                Figure::ByHand => (Sweep::by_hand(), options.rounds),
                Figure::Bound => (Sweep::bound(&options.bound), options.bounds),
            };
            let sheet = sweep.measure(&replayer, &subject, devices, rounds)?;
            record.show(&format!("{}-{}", subject.name, sweep.name), &sheet, sweep.plots())?;
        }
    }
    Ok(())
}
