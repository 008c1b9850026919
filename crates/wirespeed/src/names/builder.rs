//! [`NameBuilder`]: a table's names, and how it is to be built.

use std::hash::Hash;
use std::ops::ControlFlow;
use std::path::Path;
use std::str::FromStr;

use wirespeed_fib::NextHop;
use wirespeed_namelookup::read::{self, NameFib, ReadOptions, Source, read_entries, read_table};
use wirespeed_namelookup::{Name, NameDomain, NameModel};

use super::NameRib;
use super::table::NameTable;
use crate::device::Device;
use crate::error::Error;
use crate::gpu::runtime::Fleet;
use crate::labels::{Labels, parse};
use crate::memory::Cap;
use crate::settings::{Settings, settings_methods};

/// Collects names, and builds their table. Of several results of one name the last stays, wherever they come
/// from. [`build`](Self::build) tells what went wrong on the way.
#[derive(Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct NameBuilder {
    names: NameRib,
    settings: Settings,
    aggregate: bool,
    error: Option<Error>,
}

impl NameBuilder {
    pub(super) fn new() -> Self {
        Self { names: NameRib::new(), settings: Settings::default(), aggregate: false, error: None }
    }

    /// Adds names with indexes of the caller's own table of results, for example a forwarder's faces.
    pub fn names<N: AsRef<Name>>(mut self, names: impl IntoIterator<Item = (N, NextHop)>) -> Self {
        for (name, next_hop) in names {
            self = self.with(name.as_ref(), Ok(next_hop));
        }
        self
    }

    /// Adds names with values. These get their indexes in `labels`.
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

    /// Adds names of a [`NameRib`], with their results.
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

    /// Adds what was read, for example with other [`ReadOptions`] than [`file`](Self::file) takes. The texts
    /// of its results are parsed into labels.
    pub fn fib<T: FromStr<Err: ToString> + Eq + Hash>(self, fib: NameFib, labels: &Labels<T>) -> Self {
        match labelled(fib, labels) {
            Ok(names) => self.rib(names),
            Err(error) => self.failed(error),
        }
    }

    /// Adds the names of a file, a name and its result a line: `/com/parc 7`, `www.parc.com 192.0.2.1`,
    /// `parc.com/a/b core`. The form ([`NameFormat`](read::NameFormat)) is recognised by content, plain or
    /// compressed with gzip, bzip2 or zstd. The texts of the results are parsed into labels: a
    /// `Labels<String>` takes any. In a file without a second column each name's result is the number of its
    /// line.
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

    /// Adds the names of a file, all with one value, for example a list of domains or URLs to be blocked.
    /// What else a line has is not looked at. All else is as with [`file`](Self::file).
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

    settings_methods!();

    /// Limits the bytes that the compiled table may take, both of its copies together. A table that needs
    /// more is not built. Names come on top, and a rebuild takes as much again while it lasts. The default is
    /// half of the machine's memory, or half of what the control group of the process may take.
    pub fn memory_cap(mut self, bytes: u64) -> Self {
        self.settings.memory_cap = Some(bytes);
        self
    }

    /// Makes room for results up to this index, where updates will bring larger ones than the names have now.
    /// Without it the table grows when they come, by being built anew.
    pub fn next_hops(mut self, largest: u32) -> Self {
        self.settings.results = largest;
        self
    }

    /// Sets whether to compile only the names that lookups need for their results: a name goes where the
    /// nearest one above it has the same result (MATA paper, section 2.1). The table is smaller then. Updates
    /// take names back in that are needed again.
    ///
    /// Results stay the same. [`longest_match`](super::NameReader::longest_match) and
    /// [`match_batch`](super::NameReader::match_batch) tell *which* name matched: they know only the names
    /// that were left.
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

    /// Sets where batches are looked up: on the CPU, which is the default; on this machine's GPUs; or on
    /// either by load. This is for batches of [`NameReader`](super::NameReader)s and
    /// [`NamePipeline`](super::NamePipeline)s. Single lookups and those through a
    /// [`NameGuard`](super::NameGuard) stay on the CPU. Updates reach both. A GPU that fails costs no answer:
    /// the CPU gives it.
    ///
    /// A batch on GPUs sees one state of the table where it has 16,384 names at most, or fewer where their
    /// slots hold fewer. A larger batch goes in parts, each of which sees one state.
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
        self.settings.device.device = device;
        self
    }

    /// Gives the GPUs, where they are up already, for example for another table ([`NameTable::fleet`]), or
    /// need other options. The default is to start all GPUs with
    /// [`Served::gpu_options`](crate::engine::Served::gpu_options), for this table alone.
    /// Slots that were made for addresses hold fewer names, and no lengths: what asks for lengths is looked
    /// up on the CPU there.
    pub fn fleet(mut self, fleet: Fleet) -> Self {
        self.settings.device.fleet = Some(fleet);
        self
    }

    /// Builds the table.
    ///
    /// Fails where a source could not be read, no engine has that name, the table is more than the engine or
    /// the cap allows, or only GPUs will do and none is usable.
    pub fn build(self) -> Result<NameTable, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let (names, mut settings) = (self.names, self.settings);
        let (engine, options) = settings.resolve::<NameDomain>(&names, Cap::Named)?;
        NameTable::build(NameModel::new(names, self.aggregate), engine, options, settings.device)
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
