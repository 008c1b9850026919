//! Traces by name: a file, or a kind of generated trace.

use std::any::Any;
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Result, bail};
use clap::builder::{OsStringValueParser, TypedValueParser};
use wirespeed_fib::read::{self, Again, Input, Source};
use wirespeed_fib::trace::{self, Format, TraceError, TraceKind};
use wirespeed_fib::{Address, Family, Rib, V4, V6};

use crate::memory::check_room;
use crate::refuse::{Given, refuse};

/// The source of the keys of a replay: a file, or a kind `K` of generated trace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Trace<K = TraceKind> {
    /// A generated trace.
    Made(K),
    /// A trace file.
    File(OsString),
}

/// `--trace FILE|KIND` for addresses.
pub(crate) fn parser() -> impl TypedValueParser<Value = Trace> {
    parser_of("zipf:")
}

/// `--trace FILE|KIND`: the name of a kind means the kind. For a file of that name write `./random`. A name
/// that begins like a kind with a number is that kind, or wrong.
pub(crate) fn parser_of<K>(with_number: &'static str) -> impl TypedValueParser<Value = Trace<K>>
where
    K: FromStr<Err: Error + Send + Sync> + Clone + Send + Sync + 'static,
{
    OsStringValueParser::new().try_map(move |name| match name.to_str().map(str::parse) {
        Some(Ok(kind)) => Ok(Trace::Made(kind)),
        // A file of such a name is unlikely.
        Some(Err(error)) if name.to_string_lossy().starts_with(with_number) => Err(error),
        _ => Ok(Trace::File(name)),
    })
}

impl<K> Trace<K> {
    /// Refuses options for a trace that is made if it is a file.
    pub(crate) fn refuse_for_file(&self, options: &[Given<'_>]) -> Result<()> {
        match self {
            Self::Made(_) => Ok(()),
            Self::File(_) => refuse(options, "is for a trace that is made, and --trace names a file"),
        }
    }

    /// Whether it is made.
    pub(crate) const fn is_made(&self) -> bool {
        matches!(self, Self::Made(_))
    }

    /// The name of the trace file, if it is one.
    pub(crate) fn file(&self) -> Option<&OsStr> {
        match self {
            Self::Made(_) => None,
            Self::File(name) => Some(name),
        }
    }
}

impl Trace {
    /// The keys, at least one: those of the file, or `count` keys generated for the routes. Prints the
    /// addresses that were passed over.
    pub(crate) fn keys<A: Address>(&self, rib: &Rib<A>, count: usize, seed: u64) -> Result<Keys<A>> {
        match self {
            Self::Made(kind) => Ok(Keys { keys: made(*kind, rib, count, seed)?, other_family: 0 }),
            Self::File(name) => {
                let source = Source::from_arg(name);
                Ok(Keys::tell(&source, from_input(name, &source, read::open(&source)?)?))
            }
        }
    }

    /// The keys of a file for a table of both families. `None` for a generated trace. Fails for packed
    /// addresses, whose family is unknown.
    pub(crate) fn of_both_families(&self) -> Result<Option<AnyKeys>> {
        let Self::File(name) = self else { return Ok(None) };
        let source = Source::from_arg(name);
        let again = Again::new(&source)?;
        if is_packed(name) || format_of(&source, again.open()?)? == Format::Packed {
            bail!("{source}: packed addresses name no family: give --family 4 or --family 6");
        }
        let v4 = match from_input::<V4>(name, &source, again.open()?) {
            Err(TraceError::WrongFamily { .. }) => None,
            Ok(trace) if trace.other_family == 0 => {
                return Ok(Some(AnyKeys::V4(Keys::tell(&source, trace))));
            }
            read => {
                let mut trace = read?;
                trace.other_family = 0;
                Some(trace)
            }
        };
        again.last_time();
        let v6 = from_input::<V6>(name, &source, again.open()?)?;
        Ok(Some(match v4 {
            None => AnyKeys::V6(Keys::tell(&source, v6)),
            // What both lack is told once.
            Some(v4) => AnyKeys::Both(Keys::tell(&source, v4).keys, v6.keys),
        }))
    }
}

/// The keys of a trace.
#[derive(Debug)]
pub(crate) struct Keys<A> {
    pub(crate) keys: Vec<A>,
    /// The number of addresses of the other family, which were passed over.
    pub(crate) other_family: u64,
}

/// The keys of a trace, each family in the order of the trace.
#[derive(Debug)]
pub(crate) enum AnyKeys {
    V4(Keys<V4>),
    V6(Keys<V6>),
    Both(Vec<V4>, Vec<V6>),
}

impl AnyKeys {
    /// The first family that it has.
    pub(crate) fn family(&self) -> Family {
        match self {
            Self::V4(_) | Self::Both(..) => Family::V4,
            Self::V6(_) => Family::V6,
        }
    }

    /// The keys of a family. Those of the other family are passed over. `None` if it has no such keys.
    pub(crate) fn into_keys<A: Address>(self) -> Option<Keys<A>> {
        let keys: Box<dyn Any> = match (self, A::FAMILY) {
            (Self::V4(keys), _) => Box::new(keys),
            (Self::V6(keys), _) => Box::new(keys),
            (Self::Both(keys, others), Family::V4) => {
                Box::new(Keys { keys, other_family: others.len() as u64 })
            }
            (Self::Both(others, keys), Family::V6) => {
                Box::new(Keys { keys, other_family: others.len() as u64 })
            }
        };
        keys.downcast().ok().map(|keys| *keys)
    }
}

impl<A: Address> Keys<A> {
    /// Prints the records that were passed over.
    fn tell(source: &Source, trace: trace::Trace<A>) -> Self {
        if trace.other_family > 0 || trace.not_ip > 0 || trace.damage.is_some() {
            eprintln!("{source}: {trace}");
        }
        Self { keys: trace.keys, other_family: trace.other_family }
    }
}

/// Generates keys of a kind for the routes.
pub(crate) fn made<A: Address>(kind: TraceKind, rib: &Rib<A>, count: usize, seed: u64) -> Result<Vec<A>> {
    check_room::<A>(count, "keys")?;
    Ok(trace::keys(rib, kind, count, seed)?)
}

fn from_input<A: Address>(
    name: &OsStr,
    source: &Source,
    input: Input<'_>,
) -> Result<trace::Trace<A>, TraceError> {
    let format = is_packed(name).then_some(Format::Packed);
    trace::from_reader::<A>(input, &source.to_string(), format)
}

/// The format of a trace by its content.
fn format_of(source: &Source, input: Input<'_>) -> Result<Format, TraceError> {
    let mut head = Vec::with_capacity(64);
    let read = input.take(64).read_to_end(&mut head);
    read.map_err(|error| TraceError::Io { name: source.to_string(), cause: error })?;
    Ok(Format::of(&head))
}

/// Whether a file's name ends in `.bin`, compressed or not.
fn is_packed(name: &OsStr) -> bool {
    let path = Path::new(name);
    let is_compressed = path.extension().is_some_and(|end| end == "gz" || end == "bz2" || end == "zst");
    let inner = if is_compressed { path.file_stem().map(Path::new) } else { Some(path) };
    inner.and_then(Path::extension).is_some_and(|end| end == "bin")
}

impl<K: fmt::Display> fmt::Display for Trace<K> {
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
