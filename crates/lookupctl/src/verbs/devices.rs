//! `devices`: lists the GPUs, or says why none is usable and what to do.

use std::ffi::OsString;
use std::fmt;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use wirespeed::engine::Addresses;
use wirespeed::gpu::costs::Cost;
use wirespeed::gpu::dispatch::Place;
use wirespeed::gpu::driver::{Properties, devices};
use wirespeed::gpu::{GpuError, check};
use wirespeed_fib::{Family, Rib};

use crate::Outcome;
use crate::family::{self, number_of};
use crate::number::{Bytes, grouped};
use crate::output::Output;
use crate::source::{FamilyArgument, ReadArguments};

/// Lists the GPUs that lookups can run on, or says why there is none and what to do.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// A table: tells what batches of each size would take on the CPU and on a GPU, and where they would go
    #[arg(long, alias = "table", value_name = "FILE")]
    fib: Option<OsString>,

    #[command(flatten)]
    family: FamilyArgument,
    #[command(flatten)]
    read: ReadArguments,

    /// One JSON object for each GPU, or for the table
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl devices
  lookupctl devices --json
  lookupctl devices --fib fib.txt         which batches of lookups in this table a GPU would get

The exit status is 0 if a GPU is usable, or if the machine has no GPU or no driver; it is 1 if there are a driver and GPUs, and \
none is usable.";

/// A GPU and whether the kernels run on it.
#[derive(Serialize)]
struct Report {
    device: usize,
    usable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
    name: String,
    compute_capability: String,
    memory_bytes: u64,
    multiprocessors: u32,
    shared_memory_per_block: u32,
    l2_bytes: u64,
    pci_bus: String,
}

/// No GPU at all.
#[derive(Serialize)]
struct NoReport {
    usable: bool,
    why_not: String,
}

/// A batch size, in JSON.
#[derive(Serialize)]
struct CostReport {
    keys: usize,
    cpu_us: f64,
    gpu_us: f64,
    gpu_mlookups_per_s: f64,
    device: &'static str,
}

/// The choice for a table, in JSON.
#[derive(Serialize)]
struct ChoiceReport {
    family: u8,
    engine: &'static str,
    /// The reason why the CPU looks up everything, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_alone: Option<String>,
    batches: Vec<CostReport>,
    /// The keys of a batch that make the highest rate.
    suited_keys: usize,
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    match &options.fib {
        None if options.family.wanted().is_some() || options.read.is_given() => {
            bail!("--family and options of reading go with --fib")
        }
        None => list(options),
        Some(fib) => {
            let fib = options.read.load(fib)?;
            let mut output = Output::new();
            let report = match family::choose(options.family.wanted(), &fib) {
                Family::V4 => choice(fib.v4)?,
                Family::V6 => choice(fib.v6)?,
            };
            if options.json {
                output.json(&report)?;
            } else {
                output.line(&report)?;
            }
            output.finish()?;
            Ok(Outcome::Done)
        }
    }
}

/// The choice that `--device auto` would make for batches of lookups in a table.
fn choice<A: Addresses>(rib: Rib<A>) -> Result<ChoiceReport> {
    let table = wirespeed::Table::builder().rib(rib).device(wirespeed::Device::Auto).build()?;
    let us = |time: std::time::Duration| time.as_secs_f64() * 1e6;
    let report = |cost: Cost| CostReport {
        keys: cost.keys,
        cpu_us: us(cost.cpu),
        gpu_us: us(cost.gpu),
        gpu_mlookups_per_s: cost.gpu_rate / 1e6,
        device: if cost.place == Place::Cpu { "cpu" } else { "gpu" },
    };
    Ok(ChoiceReport {
        family: number_of(A::FAMILY),
        engine: table.engine().as_str(),
        cpu_alone: table.device_note(),
        batches: table.device_costs().into_iter().map(report).collect(),
        suited_keys: table.reader().batches().suited_keys(),
    })
}

impl fmt::Display for ChoiceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, engine, cpu_alone, batches, suited_keys } = self;
        if let Some(why) = cpu_alone {
            return write!(f, "IPv{family}, {engine}: lookups run on the CPU: {why}");
        }
        writeln!(f, "IPv{family}, {engine}: a batch alone, and many batches on the GPU")?;
        writeln!(f, "{:>10} {:>10} {:>10} {:>10}  goes to", "keys", "CPU us", "GPU us", "GPU M/s")?;
        for CostReport { keys, cpu_us, gpu_us, gpu_mlookups_per_s, device } in batches {
            writeln!(
                f,
                "{:>10} {cpu_us:>10.1} {gpu_us:>10.1} {gpu_mlookups_per_s:>10.0}  {device}",
                grouped(*keys)
            )?;
        }
        write!(f, "batches of {} keys make the highest rate", grouped(*suited_keys))
    }
}

/// Lists the GPUs.
fn list(options: &Options) -> Result<Outcome> {
    let mut output = Output::new();
    let mut is_well = false;
    match devices() {
        Ok(all) => {
            for (device, properties) in all.into_iter().enumerate() {
                let report = Report::of(device, properties, check(device));
                is_well |= report.usable;
                if options.json {
                    output.json(&report)?;
                } else {
                    output.line(&report)?;
                }
            }
        }
        Err(why) => {
            // A machine without a GPU is in order.
            is_well = matches!(why, GpuError::NoDriver | GpuError::NoDevice);
            match options.json {
                true => output.json(&NoReport { usable: false, why_not: why.to_string() })?,
                false => output.line(format_args!("no usable GPU: {why}\nlookups run on the CPU"))?,
            }
        }
    }
    output.finish()?;
    Ok(if is_well { Outcome::Done } else { Outcome::Differs })
}

impl Report {
    fn of(device: usize, properties: Properties, checked: Result<(), GpuError>) -> Self {
        let (major, minor) = properties.capability;
        Self {
            device,
            usable: checked.is_ok(),
            why_not: checked.err().map(|why| why.to_string()),
            name: properties.name,
            compute_capability: format!("{major}.{minor}"),
            memory_bytes: properties.memory,
            multiprocessors: properties.multiprocessors,
            shared_memory_per_block: properties.shared_per_block,
            l2_bytes: properties.l2,
            pci_bus: properties.bus,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}, {} of memory, {} multiprocessors, {} of L2, compute capability {}, at {}",
            self.device,
            self.name,
            Bytes(self.memory_bytes),
            self.multiprocessors,
            Bytes(self.l2_bytes),
            self.compute_capability,
            self.pci_bus
        )?;
        match &self.why_not {
            None => f.write_str("\n   usable"),
            Some(why) => write!(f, "\n   not usable: {why}"),
        }
    }
}
