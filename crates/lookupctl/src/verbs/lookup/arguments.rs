//! The options that every `lookup` takes, and [`Printer`], which prints the answers.

use std::io::Write;
use std::marker::PhantomData;

use anyhow::Result;
use clap::Args;
use wirespeed::Fleet;
use wirespeed::gpu::runtime::GpuOptions;

use crate::Outcome;
use crate::device::On;
use crate::engine::{self, Choice, Listed};
use crate::output::Output;

/// What looks up in a kind of tables, and what is told of each answer.
#[derive(Debug, Args)]
pub(in crate::verbs) struct LookupArguments<L: Listed> {
    /// The engine that looks up
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = engine::choice::<L>())]
    pub(in crate::verbs) engine: Choice,

    /// Device that looks up: the engine on this machine's cores, or its kernel on GPUs
    #[arg(long, default_value = "cpu")]
    pub(in crate::verbs) device: On,

    /// Show each element that a lookup reads
    #[arg(long)]
    explain: bool,

    /// One JSON object for each answer
    #[arg(long)]
    json: bool,

    #[arg(skip)]
    of: PhantomData<L>,
}

impl<L: Listed> LookupArguments<L> {
    /// Starts the GPUs if they are to look up; an error if none is usable.
    pub(in crate::verbs) fn fleet(&self, options: &GpuOptions) -> Result<Option<Fleet>> {
        self.device.open_for_lookup(options, self.explain)
    }

    /// A printer, before the first answer.
    pub(in crate::verbs) fn printer(&self) -> Printer {
        let (explain, json) = (self.explain, self.json);
        Printer { output: Output::new(), explain, json, outcome: Outcome::Done }
    }
}

/// Prints answers on stdout.
pub(in crate::verbs) struct Printer {
    pub(in crate::verbs) output: Output,
    pub(in crate::verbs) explain: bool,
    pub(in crate::verbs) json: bool,
    /// What the answers came to.
    pub(in crate::verbs) outcome: Outcome,
}

impl Printer {
    /// Says that an answer is wrong, after the answers so far.
    pub(in crate::verbs) fn wrong(&mut self, what: &str) -> Result<()> {
        self.output.flush()?;
        eprintln!("lookupctl: {what}");
        Ok(())
    }

    /// Ends the output.
    pub(in crate::verbs) fn finish(self) -> Result<Outcome> {
        self.output.finish()?;
        Ok(self.outcome)
    }
}
