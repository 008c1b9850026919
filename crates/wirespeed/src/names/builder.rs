//! [`NameBuilder`]: a table's names, and how it is to be built.

use std::hash::Hash;
use std::ops::ControlFlow;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use wirespeed_fib::NextHop;
use wirespeed_gpu::runtime::Fleet;
use wirespeed_namelookup::read::{self, NameFib, ReadOptions, Source, read_entries, read_table};
use wirespeed_namelookup::{BuildOptions, Name};

use super::engine::choose;
use super::table::NameTable;
use super::{NameRib, device};
use crate::device::{Device, DeviceSettings};
use crate::engine::AUTO;
use crate::error::Error;
use crate::labels::{Labels, parse};
use crate::memory::half;

/// Collects names, and builds their table. Of several results of one name the last stays, wherever they come from. What goes wrong
/// on the way is told by [`build`](Self::build).
#[derive(Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct NameBuilder {
    names: NameRib,
    engine: String,
    memory_cap: Option<u64>,
    results: u32,
    seed: Option<u64>,
    aggregate: bool,
    device: DeviceSettings,
    error: Option<Error>,
}

impl NameBuilder {
    pub(super) fn new() -> Self {
        Self {
            names: NameRib::new(),
            engine: AUTO.to_owned(),
            memory_cap: None,
            results: 0,
            seed: None,
            aggregate: false,
            device: DeviceSettings::default(),
            error: None,
        }
    }

    /// Adds names with indexes of the caller's own table of results, such as a forwarder's faces.
    pub fn names<N: AsRef<Name>>(mut self, names: impl IntoIterator<Item = (N, NextHop)>) -> Self {
        for (name, next_hop) in names {
            self = self.with(name.as_ref(), Ok(next_hop));
        }
        self
    }

    /// Adds names with values, which get their indexes in `labels`.
    pub fn labelled_names<N: AsRef<Name>, T: Eq + Hash>(
        mut self,
        labels: &Labels<T>,
        names: impl IntoIterator<Item = (N, T)>,
    ) -> Self {
        for (name, value) in names {
            self = self.with(name.as_ref(), labels.intern(value).map_err(Error::from));
        }
        self
    }

    fn with(mut self, name: &Name, next_hop: Result<NextHop, Error>) -> Self {
        match next_hop {
            Ok(NextHop::NONE) => self.failed(Error::NameWithoutResult { name: name.to_string() }),
            Err(error) => self.failed(error),
            Ok(next_hop) => {
                self.names.insert(name, next_hop.0);
                self
            }
        }
    }

    /// Adds names that are there already, with their results.
    pub fn rib(mut self, names: NameRib) -> Self {
        if self.names.is_empty() {
            self.names = names;
        } else {
            each(&names, |name, result| {
                self.names.insert(name, result);
            });
        }
        self
    }

    /// Adds what was read, such as with other [`ReadOptions`] than [`file`](Self::file) takes. The texts of its results are parsed
    /// into labels.
    pub fn fib<T: FromStr<Err: ToString> + Eq + Hash>(self, fib: NameFib, labels: &Labels<T>) -> Self {
        match labelled(fib, labels) {
            Ok(names) => self.rib(names),
            Err(error) => self.failed(error),
        }
    }

    /// Adds the names of a file, a name and its result a line: `/com/parc 7`, `www.parc.com 192.0.2.1`, `parc.com/a/b core`, in any
    /// form of [`NameFormat`](read::NameFormat), which is recognised by content; plain or compressed with gzip, bzip2 or zstd. The
    /// texts of the results are parsed into labels: a `Labels<String>` takes any. In a file without a second column each name's result is
    /// the number of its line.
    ///
    /// A line that is wrong makes [`build`](Self::build) fail, with the file and the line.
    pub fn file<T: FromStr<Err: ToString> + Eq + Hash>(
        self,
        path: impl AsRef<Path>,
        labels: &Labels<T>,
    ) -> Self {
        match read_table(&Source::Path(path.as_ref().to_owned()), &ReadOptions::default()) {
            Ok((fib, _)) => self.fib(fib, labels),
            Err(error) => self.failed(error.into()),
        }
    }

    /// Adds the names of a file, all with one value: a list of domains or URLs to be blocked, say. What else a line has is not
    /// looked at; in all else as [`file`](Self::file).
    pub fn list<T: Eq + Hash>(mut self, path: impl AsRef<Path>, labels: &Labels<T>, value: T) -> Self {
        let next_hop = match labels.intern(value) {
            Ok(next_hop) => next_hop.0,
            Err(error) => return self.failed(error.into()),
        };
        let source = Source::Path(path.as_ref().to_owned());
        let read = read_entries(&source, &ReadOptions::default(), |name, _| {
            self.names.insert(name, next_hop);
            ControlFlow::Continue(())
        });
        match read {
            Ok(_) => self,
            Err(error) => self.failed(error.into()),
        }
    }

    /// Which engine: its name, an [`EngineName`](super::engine::EngineName), or `auto`, the best for the table, which is also what is
    /// taken where none is given.
    pub fn engine(mut self, engine: impl AsRef<str>) -> Self {
        self.engine = engine.as_ref().to_owned();
        self
    }

    /// Most bytes that the compiled table may take, both of its copies together; past it building fails. Names come on top, and a
    /// rebuild takes as much again while it lasts. Without it half of the machine's memory is the cap, or of what the control group of the
    /// process may take.
    pub fn memory_cap(mut self, bytes: u64) -> Self {
        self.memory_cap = Some(bytes);
        self
    }

    /// The largest index to make room for, where updates will bring larger ones than the names have now. Without it the table grows
    /// when they come, by being built anew.
    pub fn next_hops(mut self, largest: u32) -> Self {
        self.results = largest;
        self
    }

    /// What engines that hash draw their seed from, for tables that are to be equal byte for byte. Whoever can choose names must not
    /// know it; without it, it is random for each process.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Whether to compile only the names that lookups need for their results: a name goes where the nearest one above it has the same
    /// result (MATA paper, section 2.1). The table is smaller for it; updates take names back in that are needed again.
    ///
    /// Results are the same. What tells *which* name matched, [`longest_match`](super::NameReader::longest_match) and
    /// [`match_batch`](super::NameReader::match_batch), knows the names that were left only.
    ///
    /// ```
    /// use wirespeed::prelude::*;
    ///
    /// let names = [(NameBuf::new("/com")?, NextHop(1)), (NameBuf::new("/com/parc")?, NextHop(1))];
    /// let mut table = NameTable::builder().names(names).aggregate(true).build()?;
    /// let (reader, name) = (table.reader(), Name::new("/com/parc/www")?);
    /// assert_eq!(reader.longest_match(name), Some((Name::new("/com")?, NextHop(1))));
    /// table.remove(Name::new("/com")?)?;
    /// assert_eq!(reader.longest_match(name), Some((Name::new("/com/parc")?, NextHop(1))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn aggregate(mut self, aggregate: bool) -> Self {
        self.aggregate = aggregate;
        self
    }

    /// Where batches are looked up: on the CPU, where this isn't called; on this machine's GPUs; or on either by load. Batches of
    /// [`NameReader`](super::NameReader)s and [`NamePipeline`](super::NamePipeline)s go there; single lookups and those through a
    /// [`NameGuard`](super::NameGuard) stay on the CPU. Updates reach both, and a GPU that fails costs no answer: the CPU gives it.
    ///
    /// A batch of up to 16,384 names, or what a slot of the GPUs holds where that is less, sees one state of the table there too; a
    /// larger one goes in parts, each of which does.
    ///
    /// ```
    /// use wirespeed::prelude::*;
    ///
    /// let names = [(NameBuf::new("/com/parc")?, NextHop(1))];
    /// let table = NameTable::builder().names(names).device(Device::Auto).build()?;
    /// if let Some(why) = table.device_note() {
    ///     println!("on the CPU: {why}");
    /// }
    /// let batch: NameBatch = [Name::new("/com/parc/www")?, Name::new("/org")?].into_iter().collect();
    /// let mut found = [NextHop::NONE; 2];
    /// table.reader().lookup_batch(&batch, &mut found);
    /// assert_eq!(found, [NextHop(1), NextHop::NONE]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn device(mut self, device: Device) -> Self {
        self.device.device = device;
        self
    }

    /// How long a batch may take, for [`Device::Auto`]; see [`Builder::latency_bound`](crate::Builder::latency_bound).
    pub fn latency_bound(mut self, bound: Duration) -> Self {
        self.device.latency_bound = Some(bound);
        self
    }

    /// The GPUs, where they are up already, as for another table ([`NameTable::fleet`]), or are to be started with other options. Without
    /// them all GPUs are started with [`device::options`], for this table alone. Slots that were made for addresses hold
    /// fewer names, and no lengths: what asks for these is looked up on the CPU there.
    pub fn fleet(mut self, fleet: Fleet) -> Self {
        self.device.fleet = Some(fleet);
        self
    }

    /// Builds the table.
    ///
    /// An error where a source could not be read, no engine has that name, the table is more than the engine or the cap allows, or
    /// only GPUs will do and none is usable.
    pub fn build(self) -> Result<NameTable, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut device = self.device;
        device.open(&device::options())?;
        let engine = choose(&self.engine, &self.names)?;
        // There are two copies of a live table, and an engine's cap is for one.
        let memory_cap = self.memory_cap.or_else(half);
        let options = BuildOptions {
            memory_cap: memory_cap.map(|cap| cap / 2),
            results: self.results,
            seed: self.seed,
            aggregate: self.aggregate,
            ..BuildOptions::default()
        };
        NameTable::build(self.names, engine, options, memory_cap, device)
    }

    /// Keeps the first error.
    fn failed(mut self, error: Error) -> Self {
        self.error.get_or_insert(error);
        self
    }
}

/// The names with the indexes that their results have as labels.
fn labelled<T: FromStr<Err: ToString> + Eq + Hash>(
    fib: NameFib,
    labels: &Labels<T>,
) -> Result<NameRib, Error> {
    let mut label = vec![0];
    for (_, text) in fib.labels.iter() {
        label.push(match text {
            read::Label::Word(word) => labels.intern(parse(word)?)?.0,
            line @ read::Label::Line(_) => labels.intern(parse(&line.to_string())?)?.0,
        });
    }
    if label.iter().zip(0..).all(|(&label, index)| label == index) {
        return Ok(fib.names);
    }
    let mut names = NameRib::new();
    each(&fib.names, |name, result| {
        let next_hop = label.get(result as usize).copied().unwrap_or_default();
        names.insert(name, next_hop);
    });
    Ok(names)
}

/// Gives every entry with its result.
fn each(names: &NameRib, mut give: impl FnMut(&Name, u32)) {
    names.iter().for_each(|(name, result)| give(&name, result));
}
