//! Traces of names by name: a file, or a load that is made of a table.

use std::ffi::{OsStr, OsString};
use std::fmt;

use anyhow::Result;
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use wirespeed::names::generate::{self, Load, Paths, TraceSpec, UnknownLoad};
use wirespeed::names::read::{read_paths, read_trace};
use wirespeed::names::{NameBatch, NameRib};

use super::source::ReadArguments;

/// Where the names of a replay come from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Trace {
    /// Made.
    Made(Load),
    /// Read.
    File(OsString),
}

/// `--trace FILE|LOAD`: a load where it is the name of one. A file of that name is `./heavy`.
pub(super) fn parser() -> impl TypedValueParser<Value = Trace> {
    OsStringValueParser::new().try_map(|name| match name.to_str().map(str::parse) {
        Some(Ok(load)) => Ok(Trace::Made(load)),
        // Hardly a file.
        Some(Err(error)) if name.to_string_lossy().starts_with("zipf:") => Err::<_, UnknownLoad>(error),
        _ => Ok(Trace::File(name)),
    })
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Made(load) => load.fmt(f),
            Self::File(name) => name.display().fmt(f),
        }
    }
}

/// What a made trace is like besides.
#[derive(Debug, Args)]
pub(super) struct MadeArguments {
    /// What comes after a table's name in a trace that is made: the paths of a file of URLs, made paths, or
    /// none
    #[arg(long, value_name = "FILE|made|none", default_value = "made")]
    paths: OsString,

    /// Share of the names of a made trace that match nothing, 0 to 1
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = parse_share)]
    misses: f64,

    /// Seed of all that is made
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1".to_owned())
}

impl MadeArguments {
    /// Where paths come from: a file, or a word.
    pub(super) fn paths(&self) -> &OsStr {
        &self.paths
    }

    /// So many names made for a table.
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
