//! Traces of names by name: a file, or a load that is generated from a table.

use std::ffi::{OsStr, OsString};

use anyhow::Result;
use clap::Args;
use clap::builder::TypedValueParser;
use wirespeed::names::generate::{self, Load, Paths, TraceSpec};
use wirespeed::names::read::{read_paths, read_trace};
use wirespeed::names::{NameBatch, NameRib};

use super::source::ReadArguments;
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
    /// Paths after the table's names in a generated trace: the paths of a file of URLs, made paths, or none
    #[arg(long, value_name = "FILE|made|none", default_value = "made")]
    paths: OsString,

    /// Share of the names in a generated trace that match nothing, 0 to 1
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = parse_share)]
    misses: f64,

    /// Seed of all generated data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1".to_owned())
}

impl MadeArguments {
    /// The source of paths: a file, or a word.
    pub(super) fn paths(&self) -> &OsStr {
        &self.paths
    }

    /// Generates names for a table.
    pub(super) fn made(
        &self,
        load: Load,
        names: &NameRib,
        count: usize,
        read: &ReadArguments,
    ) -> Result<NameBatch> {
        let paths = match self.paths.to_str() {
            Some("none") => Paths::None,
            Some("made") => Paths::made(),
            _ => Paths::from(read.names(&self.paths, read_paths)?),
        };
        let spec = TraceSpec { load, misses: self.misses, seed: self.seed };
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
