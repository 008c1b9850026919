//! `devices`: lists the GPUs, or says why none is usable and what to do.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use wirespeed::classify::RuleSet;
use wirespeed::content::Content;
use wirespeed::engine::{Addresses, EngineName, RuleTuple, Served};
use wirespeed::gpu::costs::Cost;
use wirespeed::gpu::dispatch::Place;
use wirespeed::gpu::driver::{Properties, devices};
use wirespeed::gpu::{GpuError, check};
use wirespeed::names::NameTable;
use wirespeed::{Batches, Classifier, Device, Table};
use wirespeed_fib::{Family, Rib};

use crate::Outcome;
use crate::family::{self, number_of};
use crate::number::{Bytes, counted, grouped};
use crate::output::Output;
use crate::source::{FamilyArgument, ReadArguments};
use crate::verbs::classify::{self, OfRules};
use crate::verbs::names;

/// Lists the GPUs that lookups can run on, or says why there is none and what to do.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// A table of addresses or names, a list of domains, or rules, by content: tells what batches of each
    /// size would take on the CPU and on a GPU, and where they would go
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
  lookupctl devices --table rules.txt     the same for rules

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
    /// The time of a core that packs the keys and takes the results.
    feed_us: f64,
    gpu_us: f64,
    gpu_mlookups_per_s: f64,
    device: &'static str,
}

/// The choice for a table, in JSON.
#[derive(Serialize)]
struct ChoiceReport {
    /// The kind of keys: addresses, names or rules.
    keys: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    family: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tuple: Option<&'static str>,
    engine: &'static str,
    /// The reason why the CPU looks up everything, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_alone: Option<String>,
    batches: Vec<CostReport>,
    /// The keys of a batch that make the highest rate.
    suited_keys: usize,
    /// The device that such batches go to while it is not busy.
    suited_device: &'static str,
    /// The batches that a thread should have in flight.
    in_flight: usize,
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    match &options.fib {
        None if options.family.wanted().is_some() || options.read.is_given() => {
            bail!("--family and options of reading go with --fib")
        }
        None => list(options),
        Some(fib) => {
            of_table(options, fib)?;
            Ok(Outcome::Done)
        }
    }
}

/// Tells the choice for the table of a file.
fn of_table(options: &Options, from: &OsStr) -> Result<()> {
    let is_of_addresses = options.family.wanted().is_some() || options.read.is_for_addresses();
    let content = if is_of_addresses { None } else { Content::of_file(Path::new(from)).ok() };
    let lenient = options.read.is_lenient();
    match content {
        Some(Content::Names(_) | Content::List(_)) => {
            let names = names::read_by_content(from, lenient)?;
            let table = NameTable::builder().rib(names).device(Device::Auto).build()?;
            let kind = Kind { keys: "names", family: None, tuple: None };
            let (engine, note, costs) = (table.engine(), table.device_note(), table.device_costs());
            options.tell(&report(kind, engine, note, costs, &table.reader().batches()))
        }
        Some(Content::Rules(_)) => classify::read_by_content(from, lenient, options),
        // What is no table at all is told by the reader of tables.
        _ => {
            let fib = options.read.load(from)?;
            match family::choose(options.family.wanted(), &fib) {
                Family::V4 => of_addresses(options, fib.v4),
                Family::V6 => of_addresses(options, fib.v6),
            }
        }
    }
}

fn of_addresses<A: Addresses>(options: &Options, rib: Rib<A>) -> Result<()> {
    let table = Table::builder().rib(rib).device(Device::Auto).build()?;
    let kind = Kind { keys: "addresses", family: Some(number_of(A::FAMILY)), tuple: None };
    let (engine, note, costs) = (table.engine(), table.device_note(), table.device_costs());
    options.tell(&report(kind, engine, note, costs, &table.reader().batches()))
}

impl OfRules for &Options {
    fn call<T: RuleTuple>(self, rules: RuleSet<T>) -> Result<()> {
        let rules = Classifier::builder().rule_set(rules).device(Device::Auto).build()?;
        let kind = Kind { keys: "rules", family: None, tuple: Some(T::NAME) };
        let (engine, note, costs) = (rules.engine(), rules.device_note(), rules.device_costs());
        self.tell(&report(kind, engine, note, costs, &rules.reader().batches()))
    }
}

impl Options {
    fn tell(&self, report: &ChoiceReport) -> Result<()> {
        let mut output = Output::new();
        if self.json {
            output.json(report)?;
        } else {
            output.line(report)?;
        }
        output.finish()
    }
}

/// What a table is looked up by.
struct Kind {
    keys: &'static str,
    family: Option<u8>,
    tuple: Option<&'static str>,
}

/// The choice that `--device auto` would make for batches of lookups in a table.
fn report<D: Served>(
    Kind { keys, family, tuple }: Kind,
    engine: EngineName,
    cpu_alone: Option<String>,
    costs: Vec<Cost>,
    batches: &Batches<D>,
) -> ChoiceReport {
    let us = |time: std::time::Duration| time.as_secs_f64() * 1e6;
    let cost = |cost: Cost| CostReport {
        keys: cost.keys,
        cpu_us: us(cost.cpu),
        feed_us: us(cost.feed),
        gpu_us: us(cost.gpu),
        gpu_mlookups_per_s: cost.gpu_rate / 1e6,
        device: name_of(cost.place),
    };
    let suited = batches.suited();
    ChoiceReport {
        keys,
        family,
        tuple,
        engine: engine.as_str(),
        cpu_alone,
        batches: costs.into_iter().map(cost).collect(),
        suited_keys: batches.suited_keys(),
        suited_device: name_of(suited.map_or(Place::Cpu, |suited| suited.place)),
        in_flight: suited.map_or(1, |suited| suited.batches),
    }
}

const fn name_of(place: Place) -> &'static str {
    match place {
        Place::Cpu => "cpu",
        Place::Gpu => "gpu",
    }
}

impl fmt::Display for ChoiceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.family, self.tuple) {
            (Some(family), _) => write!(f, "IPv{family}, ")?,
            (None, Some(tuple)) => write!(f, "{}, {tuple} tuples, ", self.keys)?,
            (None, None) => write!(f, "{}, ", self.keys)?,
        }
        let engine = self.engine;
        if let Some(why) = &self.cpu_alone {
            return write!(f, "{engine}: lookups run on the CPU: {why}");
        }
        writeln!(f, "{engine}: a batch alone, and many batches on the GPU")?;
        let columns = ["keys", "CPU us", "feed us", "GPU us", "GPU M/s"];
        columns.iter().try_for_each(|column| write!(f, "{column:>10} "))?;
        writeln!(f, " goes to")?;
        for CostReport { keys, cpu_us, feed_us, gpu_us, gpu_mlookups_per_s, device } in &self.batches {
            write!(f, "{:>10} {cpu_us:>10.1} {feed_us:>10.1} {gpu_us:>10.1} ", grouped(*keys))?;
            writeln!(f, "{gpu_mlookups_per_s:>10.0}  {device}")?;
        }
        writeln!(
            f,
            "feed: what a core takes to pack the keys and to read the results, before the GPU's time"
        )?;
        let (keys, device) = (grouped(self.suited_keys), self.suited_device);
        let batches = counted(self.in_flight, "batch");
        write!(
            f,
            "batches of {keys} keys on the {device} make the highest rate, {batches} in flight a thread"
        )
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
