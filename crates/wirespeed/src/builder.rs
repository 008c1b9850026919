//! [`Builder`]: a table's routes, and how it is to be built.

use std::hash::Hash;
use std::path::Path;
use std::str::FromStr;

use wirespeed_fib::read::{ReadOptions, Source, read_fib};
use wirespeed_fib::{Fib, NextHop, Prefix, Rib};

use crate::engine::{AUTO, Engines, choose};
use crate::error::Error;
use crate::labels::Labels;
use crate::table::Table;

/// Collects routes, and builds their table. Of several routes of one prefix the last stays, wherever they come from. What goes
/// wrong on the way is told by [`build`](Self::build).
#[derive(Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct Builder<A> {
    rib: Rib<A>,
    settings: Settings,
    error: Option<Error>,
}

/// How a table is to be built.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) engine: String,
    pub(crate) memory_cap: Option<u64>,
    pub(crate) next_hops: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { engine: AUTO.to_owned(), memory_cap: None, next_hops: 0 }
    }
}

impl<A: Engines> Builder<A> {
    pub(crate) fn new() -> Self {
        Self { rib: Rib::new(), settings: Settings::default(), error: None }
    }

    /// Adds routes to indexes of the caller's own table of next hops.
    pub fn routes<P: Into<Prefix<A>>>(mut self, routes: impl IntoIterator<Item = (P, NextHop)>) -> Self {
        self.rib.extend(routes.into_iter().map(|(prefix, next_hop)| (prefix.into(), next_hop)));
        self
    }

    /// Adds routes to values, which get their indexes in `labels`.
    pub fn labelled_routes<P: Into<Prefix<A>>, T: Eq + Hash>(
        mut self,
        labels: &Labels<T>,
        routes: impl IntoIterator<Item = (P, T)>,
    ) -> Self {
        for (prefix, value) in routes {
            match labels.intern(value) {
                Ok(next_hop) => self.rib.insert(prefix.into(), next_hop),
                Err(error) => return self.failed(error.into()),
            };
        }
        self
    }

    /// Adds routes that are there already, with their indexes.
    pub fn rib(mut self, rib: Rib<A>) -> Self {
        if self.rib.is_empty() {
            self.rib = rib;
        } else {
            self.rib.extend(rib.iter());
        }
        self
    }

    /// Adds the routes of this family from what was read, such as with other
    /// [`ReadOptions`] than [`file`](Self::file) takes. The texts of its next hops are parsed into labels.
    pub fn fib<T: FromStr<Err: ToString> + Eq + Hash>(self, fib: Fib, labels: &Labels<T>) -> Self {
        match labelled(fib, labels) {
            Ok(fib) => self.rib(A::into_rib(fib).0),
            Err(error) => self.failed(error),
        }
    }

    /// Adds the routes of this family from a file: plain text (`prefix next-hop`), MRT, `bgpdump -m`, pfx2as, `ip route`, `ip -j
    /// route` and FRR's JSON, recognised by content, plain or compressed with gzip, bzip2 or zstd. The texts of its
    /// next hops are parsed into labels: a `Labels<String>` takes any.
    ///
    /// A line that is wrong makes [`build`](Self::build) fail, with the file and the line.
    pub fn file<T: FromStr<Err: ToString> + Eq + Hash>(
        self,
        path: impl AsRef<Path>,
        labels: &Labels<T>,
    ) -> Self {
        let path = path.as_ref();
        match read_file(path) {
            Ok(fib) if A::rib(&fib).is_empty() => {
                self.failed(Error::NoRoutesOfFamily { path: path.to_owned(), wanted: A::FAMILY })
            }
            Ok(fib) => self.fib(fib, labels),
            Err(error) => self.failed(error),
        }
    }

    /// Which engine: its name, an [`EngineName`](crate::engine::EngineName), or `auto`, the best for the table, which is
    /// also what is taken where none is given.
    pub fn engine(mut self, engine: impl AsRef<str>) -> Self {
        self.settings.engine = engine.as_ref().to_owned();
        self
    }

    /// Most bytes that the compiled table may take, both of its copies together; past it building fails. Routes come on
    /// top, and a rebuild takes as much again while it lasts.
    pub fn memory_cap(mut self, bytes: u64) -> Self {
        self.settings.memory_cap = Some(bytes);
        self
    }

    /// The largest index to make room for, where updates will bring more next hops than the routes have now. Without it
    /// the table grows when they come, by being built anew.
    pub fn next_hops(mut self, largest: u32) -> Self {
        self.settings.next_hops = largest;
        self
    }

    /// Builds the table.
    ///
    /// An error where a source could not be read, no engine has that name, or the table is more than the engine or the cap
    /// allows.
    pub fn build(self) -> Result<Table<A>, Error> {
        let Self { rib, settings, error } = self;
        if let Some(error) = error {
            return Err(error);
        }
        let engine = choose(&settings.engine, &rib)?;
        Table::build(rib, engine, settings.next_hops, settings.memory_cap)
    }

    pub(crate) fn with_settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Keeps the first error.
    pub(crate) fn failed(mut self, error: Error) -> Self {
        self.error.get_or_insert(error);
        self
    }
}

/// Reads a file of routes of either family.
pub(crate) fn read_file(path: &Path) -> Result<Fib, Error> {
    Ok(read_fib(&Source::Path(path.to_owned()), &ReadOptions::default())?.0)
}

/// The routes with the indexes that their next hops have as labels.
pub(crate) fn labelled<T: FromStr<Err: ToString> + Eq + Hash>(
    mut fib: Fib,
    labels: &Labels<T>,
) -> Result<Fib, Error> {
    let mut label = vec![NextHop::NONE];
    for (_, text) in fib.next_hops.iter() {
        label.push(labels.intern(parse(text)?)?);
    }
    if label.iter().zip(0..).all(|(label, index)| label.0 == index) {
        return Ok(fib);
    }
    let relabel = |next_hop: NextHop| label.get(next_hop.0 as usize).copied().unwrap_or_default();
    fib.v4 = fib.v4.iter().map(|(prefix, next_hop)| (prefix, relabel(next_hop))).collect();
    fib.v6 = fib.v6.iter().map(|(prefix, next_hop)| (prefix, relabel(next_hop))).collect();
    Ok(fib)
}

/// The label that a text stands for.
pub(crate) fn parse<T: FromStr<Err: ToString>>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|error: T::Err| Error::Label { text: text.to_owned(), reason: error.to_string() })
}
