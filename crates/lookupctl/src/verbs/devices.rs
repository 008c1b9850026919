//! `devices`: lists the GPUs, or says why none is usable and what to do.

use std::fmt;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use wirespeed::gpu::driver::{Properties, devices};
use wirespeed::gpu::{GpuError, check};

use crate::Outcome;
use crate::number::Bytes;
use crate::output::Output;

/// Lists the GPUs that lookups can run on, or says why there is none and what to do.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// One JSON object for each GPU
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl devices
  lookupctl devices --json

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

pub(crate) fn run(options: &Options) -> Result<Outcome> {
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
