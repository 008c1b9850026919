//! Traces of names by name: a file, or a load that is generated from a table.

use std::ffi::{OsStr, OsString};

use anyhow::Result;
use clap::Args;
use clap::builder::TypedValueParser;
use wirespeed::names::generate::{self, Load, Paths, TraceSpec};
use wirespeed::names::read::{read_paths, read_trace};
use wirespeed::names::{NameBatch, NameRib};

use super::source::ReadArguments;
use crate::refuse::Given;
use crate::trace;

/// The source of the names of a replay.
pub(super) type Trace = trace::Trace<Load>;

/// `--trace FILE|LOAD`.
pub(super) fn parser() -> impl TypedValueParser<Value = Trace> {
    trace::parser_of("zipf:")
}

/// Options of a generated trace.
#[derive(Debug, Args)]
pub(super) struct MadeArguments {
    /// Paths after the table's names in a generated trace: the paths of a file of URLs, made paths (the
    /// default), or none
    #[arg(long, value_name = "FILE|made|none")]
    paths: Option<OsString>,

    /// Share of the names in a generated trace that match nothing, 0 to 1. The default is 0
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    misses: Option<f64>,

    /// Seed of all generated data. The default is 1
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1".to_owned())
}

impl MadeArguments {
    /// The source of paths: a file, or a word.
    pub(super) fn paths(&self) -> Option<&OsStr> {
        self.paths.as_deref()
    }

    /// The seed of all generated data.
    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// Whether a seed is given.
    pub(super) const fn has_seed(&self) -> bool {
        self.seed.is_some()
    }

    /// The options for a generated trace alone.
    pub(super) const fn given(&self) -> [Given<'static>; 2] {
        [("paths", self.paths.is_some()), ("misses", self.misses.is_some())]
    }

    /// Generates names for a table.
    pub(super) fn made(
        &self,
        load: Load,
        names: &NameRib,
        count: usize,
        read: &ReadArguments,
    ) -> Result<NameBatch> {
        let paths = match &self.paths {
            Some(word) if word == "none" => Paths::None,
            Some(file) if file != "made" => Paths::from(read.names(file, read_paths)?),
            _ => Paths::made(),
        };
        let spec = TraceSpec { load, misses: self.misses.unwrap_or_default(), seed: self.seed() };
        Ok(generate::trace(names, paths, &spec, count)?)
    }

    /// The names of a trace.
    pub(super) fn trace(
        &self,
        trace: &Trace,
        names: &NameRib,
        count: usize,
        read: &ReadArguments,
    ) -> Result<NameBatch> {
        match trace {
            Trace::Made(load) => self.made(*load, names, count, read),
            Trace::File(name) => read.names(name, read_trace),
        }
    }
}
