//! The options that every `info` and every `build` takes.

use std::io::Write;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;

use super::{EngineReport, More};
use crate::engine::{self, Choice, Listed, Selection};
use crate::output::{self, Output, is_no_input};

/// The engines of a kind of tables that `info` builds, and what it tells of them.
#[derive(Debug, Args)]
pub(crate) struct InfoArguments<L: Listed> {
    /// Engine to build: a name, all (without those of papers), or every. An image has its own engine
    #[arg(long, value_name = "NAME", default_value = "all", value_parser = engine::selection::<L>())]
    pub(crate) engine: Selection,

    /// Show the sections of each engine's table, how full its arrays are, and its shape, too
    #[arg(long)]
    pub(crate) sections: bool,

    /// One JSON object for each table
    #[arg(long)]
    pub(crate) json: bool,

    #[arg(skip)]
    of: PhantomData<L>,
}

impl<L: Listed> InfoArguments<L> {
    /// Prints the report of an engine. Some builds take long, so each report is printed when it is done; only
    /// JSON is one object at the end.
    pub(crate) fn print(&self, report: &EngineReport<impl More>, output: &mut Output) -> Result<()> {
        if !self.json {
            report.print(self.sections, output)?;
            output.flush()?;
        }
        Ok(())
    }
}

/// The image file of a kind of tables that `build` writes.
#[derive(Debug, Args)]
pub(crate) struct ImageArguments<L: Listed> {
    /// Output file. An existing file is replaced completely or not at all
    #[arg(short, long, value_name = "IMG")]
    pub(crate) output: PathBuf,

    /// The engine
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = engine::choice::<L>())]
    pub(crate) engine: Choice,

    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[arg(skip)]
    of: PhantomData<L>,
}

impl<L: Listed> ImageArguments<L> {
    /// Refuses an image that would take the place of one of the files that are read, or has none of its own.
    pub(crate) fn check_output(&self, inputs: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<()> {
        if output::file(Some(&self.output)).is_none() {
            bail!("-o -: an image is opened as a file, and is not written to standard output: name a file");
        }
        is_no_input(Some(&self.output), inputs)
    }
}
