//! Traces by name: a file, or a kind that is made.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;

use anyhow::Result;
use clap::builder::{OsStringValueParser, TypedValueParser};
use wirespeed_fib::read::{self, Source};
use wirespeed_fib::trace::{self, Format, KindError, TraceKind};
use wirespeed_fib::{Address, Rib};

use crate::memory::check_room;

/// Where the keys of a replay come from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Trace {
    /// Made.
    Made(TraceKind),
    /// Read.
    File(OsString),
}

/// `--trace FILE|KIND`: a kind where it is the name of one. A file of that name is `./random`.
pub(crate) fn parser() -> impl TypedValueParser<Value = Trace> {
    OsStringValueParser::new().try_map(|name| match name.to_str().map(str::parse) {
        Some(Ok(kind)) => Ok(Trace::Made(kind)),
        // Hardly a file.
        Some(Err(error)) if name.to_string_lossy().starts_with("zipf:") => Err::<_, KindError>(error),
        _ => Ok(Trace::File(name)),
    })
}

impl Trace {
    /// The keys, at least one: those of the file, or `count` that are made for the routes. Says what was passed over.
    pub(crate) fn keys<A: Address>(&self, rib: &Rib<A>, count: usize, seed: u64) -> Result<Vec<A>> {
        match self {
            Self::Made(kind) => made(*kind, rib, count, seed),
            Self::File(name) => read_file(name),
        }
    }
}

/// Keys of a kind, made for the routes.
pub(crate) fn made<A: Address>(kind: TraceKind, rib: &Rib<A>, count: usize, seed: u64) -> Result<Vec<A>> {
    check_room::<A>(count, "keys")?;
    Ok(trace::keys(rib, kind, count, seed)?)
}

fn read_file<A: Address>(name: &OsStr) -> Result<Vec<A>> {
    let source = Source::from_arg(name);
    let format = is_packed(name).then_some(Format::Packed);
    let trace = trace::from_reader::<A>(read::open(&source)?, &source.to_string(), format)?;
    if trace.other_family > 0 || trace.not_ip > 0 || trace.damage.is_some() {
        eprintln!("{source}: {trace}");
    }
    Ok(trace.keys)
}

/// Whether a file's name ends in `.bin`, compressed or not.
fn is_packed(name: &OsStr) -> bool {
    let path = Path::new(name);
    let is_compressed = path.extension().is_some_and(|end| end == "gz" || end == "bz2" || end == "zst");
    let inner = if is_compressed { path.file_stem().map(Path::new) } else { Some(path) };
    inner.and_then(Path::extension).is_some_and(|end| end == "bin")
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Made(kind) => kind.fmt(f),
            Self::File(name) => name.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_files_by_their_name() {
        for (name, packed) in
            [("a.bin", true), ("a.bin.zst", true), ("a.txt", false), ("bin", false), ("a.gz", false)]
        {
            assert_eq!(is_packed(OsStr::new(name)), packed, "{name}");
        }
    }
}
