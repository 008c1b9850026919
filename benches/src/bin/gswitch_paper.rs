//! The GSwitch paper's figures, made anew: see [`wirespeed_benches::gswitch_paper`].

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use wirespeed_benches::gpu::Device;
use wirespeed_benches::gpu::record::Record;
use wirespeed_benches::gswitch_paper::device::Rig;
use wirespeed_benches::gswitch_paper::{self as paper, Scale, classes, large, micro, sets, versus};
use wirespeed_benches::machine::Machine;

/// Makes the GSwitch paper's figures anew and writes MACHINE/DATE-gswitch-paper-….csv and .svg.
#[derive(Parser)]
struct Options {
    /// Figures to make, in this order
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["3", "classbench", "6", "8", "7", "5", "4"])]
    figures: Vec<Figure>,
    /// The most rules of a set; larger ones are left out
    #[arg(long, default_value_t = 1 << 18)]
    rules: usize,
    /// Rules of each large set
    #[arg(long, value_delimiter = ',', default_values_t = [1 << 19])]
    large: Vec<usize>,
    /// Tuples on the device when a kernel is timed
    #[arg(long, default_value_t = 1 << 20)]
    tuples: usize,
    /// Tuples of a batch of whole trips
    #[arg(long, default_value_t = 1 << 16)]
    trip: usize,
    /// Batches under way
    #[arg(long, default_value_t = 8)]
    in_flight: usize,
    /// Seconds of each trip, and of each measurement on CPUs
    #[arg(long, default_value_t = 0.02)]
    seconds: f64,
    /// Launches that a rate is the median of
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Small sets and short traces: to see that all of it runs
    #[arg(long)]
    quick: bool,
    /// The device that stands for the GPU
    #[arg(long, value_enum, default_value_t)]
    device: Device,
    /// The folder of records; nothing is written with --dry
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/record"))]
    out: PathBuf,
    /// Print, and write no record
    #[arg(long)]
    dry: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Figure {
    /// Rules of a class in real sets
    #[value(name = "3")]
    Classes,
    /// The bus; on a GPU
    #[value(name = "4")]
    Bus,
    /// Batches, blocks and filters; on a GPU
    #[value(name = "5")]
    Micro,
    /// GPU against CPU by cores and by batch; by rules
    #[value(name = "6")]
    Versus,
    /// Classes, full classes and classes that match
    #[value(name = "7")]
    Shapes,
    /// Fields
    #[value(name = "8")]
    Fields,
    /// The sets of ClassBench
    #[value(name = "classbench")]
    Real,
    /// Sets of as many rules as --large says; not in the paper
    Large,
}

impl Figure {
    /// Whether it is nothing without a GPU.
    const fn needs_gpu(self) -> bool {
        matches!(self, Self::Bus | Self::Micro)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Classes => "figure 3",
            Self::Bus => "figure 4",
            Self::Micro => "figure 5",
            Self::Versus => "figure 6",
            Self::Shapes => "figure 7",
            Self::Fields => "figure 8",
            Self::Real => "sets of ClassBench",
            Self::Large => "large sets",
        }
    }
}

/// The paper's batch where it is no figure's subject.
const P: usize = 1 << 13;
/// Tuples that a trace has at the least, the fewest that the paper sends at once.
const LEAST: usize = 256;

impl Options {
    fn scale(&self) -> Result<Scale> {
        ensure!(self.tuples >= LEAST && self.trip >= LEAST, "traces and batches have {LEAST} tuples or more");
        ensure!(self.rules >= 1_024, "sets have 1,024 rules or more");
        ensure!(
            self.rounds > 0 && self.in_flight > 0 && self.seconds > 0.0,
            "nothing is measured in no time"
        );
        let here = Machine::here().cores;
        let cores =
            [1, 2, 4, 8, 16, 32, 64].into_iter().filter(|&cores| cores < here).chain([here]).collect();
        let tuples = if self.quick { 1 << 10 } else { self.tuples };
        Ok(Scale {
            rules: if self.quick { 2_048 } else { self.rules },
            large: if self.quick { vec![1_024] } else { self.large.clone() },
            tuples,
            batch: P.min(tuples),
            trip: self.trip.min(tuples),
            in_flight: if self.quick { 2 } else { self.in_flight },
            seconds: if self.quick { 0.002 } else { self.seconds },
            rounds: if self.quick { 1 } else { self.rounds },
            cores,
        })
    }
}

fn main() -> Result<()> {
    let options = Options::parse();
    let scale = options.scale()?;
    let rig = Rig::open(options.device, &scale).map_err(|why| eprintln!("no GPU: {why:#}")).ok();
    if rig.is_none() && options.device == Device::Host {
        anyhow::bail!("the host build of the kernels was asked for, and does not start");
    }
    let gpu = rig.as_ref().map(|rig| rig.bench.properties());
    let record = Record::new(&options.out, "gswitch-paper", gpu, options.dry);
    let mut run = Run { rig, record, scale, began: Instant::now(), failed: Vec::new() };
    for &figure in &options.figures {
        run.make(figure);
    }
    ensure!(run.failed.is_empty(), "failed: {}", run.failed.join(", "));
    Ok(())
}

/// A run: the GPU where there is one, how much is measured, and where figures go.
struct Run {
    rig: Option<Rig>,
    record: Record,
    scale: Scale,
    began: Instant,
    failed: Vec<&'static str>,
}

impl Run {
    /// Makes a figure; where that fails says so and goes on to the next.
    fn make(&mut self, figure: Figure) {
        let name = figure.name();
        if self.rig.is_none() {
            if figure.needs_gpu() {
                return eprintln!("skipped: {name}: no GPU");
            }
            if figure != Figure::Classes {
                eprintln!("skipped: the GPU's side of {name}: no GPU");
            }
        }
        if let Err(why) = self.parts(figure) {
            eprintln!("{name}: {why:#}");
            self.failed.push(name);
        }
        eprintln!("{:6.1} s: {name}", self.began.elapsed().as_secs_f64());
    }

    /// The parts of a figure, each shown as soon as it is measured.
    fn parts(&mut self, figure: Figure) -> Result<()> {
        type OfGpu = fn(&mut Rig, &Scale) -> Result<Vec<paper::Figure>>;
        type OfSets = fn(Option<&mut Rig>, &Scale) -> Result<paper::Figure>;
        let (rig, scale) = (&mut self.rig, &self.scale);
        let of_gpu: &[OfGpu] = match figure {
            Figure::Bus => &[micro::bus],
            Figure::Micro => &[micro::batches, micro::blocks, micro::filters],
            _ => &[],
        };
        let of_sets: &[OfSets] = match figure {
            Figure::Versus => &[sets::by_rules],
            Figure::Shapes => &[sets::by_classes, sets::by_full, sets::by_matching],
            Figure::Fields => &[sets::by_fields],
            Figure::Real => &[sets::real],
            Figure::Large => &[large::figure],
            _ => &[],
        };
        let show = |figures: Vec<paper::Figure>| {
            figures.iter().try_for_each(|figure| self.record.show(&figure.name, &figure.sheet, &figure.plots))
        };
        if figure == Figure::Classes {
            show(classes::figure(scale)?)?;
        }
        for part in of_gpu {
            if let Some(rig) = rig.as_mut() {
                show(part(rig, scale)?)?;
            }
        }
        for part in of_sets {
            show(vec![part(rig.as_mut(), scale)?])?;
        }
        if figure == Figure::Versus {
            show(versus::figures(rig.as_mut(), scale)?)?;
        }
        Ok(())
    }
}
