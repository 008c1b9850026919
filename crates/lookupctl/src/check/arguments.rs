//! The options that every `verify` takes.

use std::ffi::{OsStr, OsString};
use std::marker::PhantomData;

use anyhow::Result;
use clap::Args;
use wirespeed::Fleet;
use wirespeed::engine::Served;

use crate::device::On;
use crate::engine::{self, Listed, Selection};
use crate::threads::{self, all_cores};

/// Which engines of a kind of tables are checked, and how.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments<L: Listed> {
    /// Engine to check: a name, all (without those of papers), or every
    #[arg(long, value_name = "NAME", default_value = "all", value_parser = engine::selection::<L>())]
    pub(crate) engine: Selection,

    /// Updates to apply to the live table, which is then checked again
    #[arg(long, value_name = "FILE")]
    updates: Option<OsString>,

    /// The device that looks up: the engines on this machine's cores, or their kernels on its GPUs
    #[arg(long, default_value = "cpu")]
    device: On,

    /// Threads; by default one a core
    #[arg(long, value_name = "N", value_parser = threads::parser())]
    threads: Option<usize>,

    /// One JSON object for each engine and state
    #[arg(long)]
    pub(crate) json: bool,

    #[arg(skip)]
    of: PhantomData<L>,
}

impl<L: Listed> CheckArguments<L> {
    /// The file of updates, if there is one.
    pub(crate) fn updates(&self) -> Option<&OsStr> {
        self.updates.as_deref()
    }

    /// Starts the GPUs if they are to look up; an error if none is usable.
    pub(crate) fn fleet<D: Served>(&self) -> Result<Option<Fleet>> {
        self.device.open(&D::gpu_options())
    }

    /// Threads that check.
    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(all_cores)
    }
}

/// A model after updates, if there are any.
pub(crate) fn updated<M: Clone, U>(
    model: &M,
    updates: &[U],
    apply: impl Fn(&mut M, &U) -> Result<()>,
) -> Result<Option<M>> {
    if updates.is_empty() {
        return Ok(None);
    }
    let mut after = model.clone();
    updates.iter().try_for_each(|update| apply(&mut after, update))?;
    Ok(Some(after))
}

/// Copies of a table that a cap on memory is for: a live one has two.
pub(crate) fn copies<U>(updates: &[U]) -> u64 {
    if updates.is_empty() { 1 } else { 2 }
}
