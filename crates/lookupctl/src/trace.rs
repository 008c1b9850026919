//! Traces by name: a file, or a kind of generated trace.

use std::any::Any;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;

use anyhow::Result;
use clap::builder::{OsStringValueParser, TypedValueParser};
use wirespeed_fib::read::{self, Again, Input, Source};
use wirespeed_fib::trace::{self, Format, KindError, TraceError, TraceKind};
use wirespeed_fib::{Address, Family, Rib, V4, V6};

use crate::memory::check_room;

/// The source of the keys of a replay.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Trace {
    /// A generated trace.
    Made(TraceKind),
    /// A trace file.
    File(OsString),
}

/// `--trace FILE|KIND`: the name of a kind means the kind. For a file of that name write `./random`.
pub(crate) fn parser() -> impl TypedValueParser<Value = Trace> {
    OsStringValueParser::new().try_map(|name| match name.to_str().map(str::parse) {
        Some(Ok(kind)) => Ok(Trace::Made(kind)),
        // A file of such a name is unlikely.
        Some(Err(error)) if name.to_string_lossy().starts_with("zipf:") => Err::<_, KindError>(error),
        _ => Ok(Trace::File(name)),
    })
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

    /// The keys of a file of unknown family: the IPv4 keys if there are any, otherwise the IPv6 keys. `None`
    /// for a generated trace.
    pub(crate) fn of_either_family(&self) -> Result<Option<EitherKeys>> {
        let Self::File(name) = self else { return Ok(None) };
        let source = Source::from_arg(name);
        let again = Again::new(&source)?;
        Ok(Some(match from_input::<V4>(name, &source, again.open()?) {
            Err(TraceError::WrongFamily { .. }) => {
                again.last_time();
                EitherKeys::V6(Keys::tell(&source, from_input(name, &source, again.open()?)?))
            }
            read => EitherKeys::V4(Keys::tell(&source, read?)),
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

/// Keys of one family.
#[derive(Debug)]
pub(crate) enum EitherKeys {
    V4(Keys<V4>),
    V6(Keys<V6>),
}

impl EitherKeys {
    pub(crate) fn family(&self) -> Family {
        match self {
            Self::V4(_) => Family::V4,
            Self::V6(_) => Family::V6,
        }
    }

    /// The keys if they have this family.
    pub(crate) fn into_keys<A: Address>(self) -> Option<Keys<A>> {
        let keys: Box<dyn Any> = match self {
            Self::V4(keys) => Box::new(keys),
            Self::V6(keys) => Box::new(keys),
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
