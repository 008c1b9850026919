//! [`NameBuilder`]: collects the names and settings of a table.

use std::hash::Hash;
use std::ops::ControlFlow;
use std::path::Path;
use std::str::FromStr;

use wirespeed_fib::NextHop;
use wirespeed_namelookup::read::{self, NameFib, ReadOptions, Source, read_entries, read_table};
use wirespeed_namelookup::{Name, NameDomain, NameModel};

use super::NameRib;
use super::table::NameTable;
use crate::error::Error;
use crate::labels::{Labels, parse};
use crate::memory::Cap;
use crate::settings::{Draft, settings_methods};
use crate::uses::Claims;

/// Collects names, and builds their table. If a name is added several times, from any source, the last result
/// stays. [`build`](Self::build) reports the first error of all calls.
#[derive(Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct NameBuilder {
    names: NameRib,
    draft: Draft,
    aggregate: bool,
}

impl NameBuilder {
    pub(super) fn new() -> Self {
        Self { names: NameRib::new(), draft: Draft::default(), aggregate: false }
    }

    /// Adds names with indexes of the caller's own table of results, for example a forwarder's faces.
    pub fn names<N: AsRef<Name>>(mut self, names: impl IntoIterator<Item = (N, NextHop)>) -> Self {
        for (name, next_hop) in names {
            self = self.with(name.as_ref(), Ok(next_hop));
        }
        self
    }

    /// Adds names with values of the caller's type. Each value gets an index in `labels`.
    pub fn labelled_names<N: AsRef<Name>, T: Eq + Hash>(
        mut self,
        labels: &Labels<T>,
        names: impl IntoIterator<Item = (N, T)>,
    ) -> Self {
        self.draft.claims.attach(labels.counts());
        for (name, value) in names {
            let next_hop = labels.intern_for(&mut self.draft.claims, value).map_err(Error::from);
            self = self.with(name.as_ref(), next_hop);
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

    /// Adds names that were read, for example with other [`ReadOptions`] than [`file`](Self::file) uses. The
    /// texts of results are parsed into labels.
    pub fn fib<T: FromStr<Err: ToString> + Eq + Hash>(mut self, fib: NameFib, labels: &Labels<T>) -> Self {
        let labelled = labelled(fib, labels, &mut self.draft.claims);
        self.labelled(labelled)
    }

    /// Adds names with labels.
    fn labelled(self, names: Result<NameRib, Error>) -> Self {
        match names {
            Ok(names) => self.rib(names),
            Err(error) => self.failed(error),
        }
    }

    /// Adds the names of a file with a name and its result on each line: `/com/parc 7`,
    /// `www.parc.com 192.0.2.1`, `parc.com/a/b core`. The form ([`NameFormat`](read::NameFormat)) is
    /// recognised by content, plain or compressed with gzip, bzip2 or zstd. The texts of results are parsed
    /// into labels: a `Labels<String>` takes any. Without a second column the result of a name is its line
    /// number. CSV and TSV whose first line names the columns are read, too
    /// ([`NameColumns`](read::NameColumns)): several values are a record, `category=ads,risk=3`.
    ///
    /// A line that is wrong makes [`build`](Self::build) fail, with the file and the line.
    pub fn file<T: FromStr<Err: ToString> + Eq + Hash>(
        mut self,
        path: impl AsRef<Path>,
        labels: &Labels<T>,
    ) -> Self {
        let path = path.as_ref();
        match read_table(&Source::Path(path.to_owned()), &ReadOptions::default()) {
            Ok((fib, _)) => {
                let labelled = labelled(fib, labels, &mut self.draft.claims);
                self.labelled(labelled.map_err(|error| error.in_file(path)))
            }
            Err(error) => self.failed(error.into()),
        }
    }

    /// Adds the names of a file, all with one value, for example a list of domains or URLs to block. Other
    /// columns are ignored. Otherwise like [`file`](Self::file).
    pub fn list<T: Eq + Hash>(mut self, path: impl AsRef<Path>, labels: &Labels<T>, value: T) -> Self {
        self.draft.claims.attach(labels.counts());
        let next_hop = match labels.intern_for(&mut self.draft.claims, value) {
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

    settings_methods! {
        /// Limits the bytes that both copies of the compiled table may take together. A table that needs more
        /// is not built. The names are not counted. A rebuild temporarily takes the same amount again. The
        /// default is half of the machine's memory, or half of the limit of the process's control group.
        memory_cap;

        /// Leaves head room for results up to this index, if updates will bring larger ones than the names
        /// have now. Without it a larger result makes the engine rebuild the table.
        next_hops;

        /// Sets the device that looks batches up: the CPU (the default), this machine's GPUs, or either by
        /// load. This applies to batches of [`NameReader`](super::NameReader)s and
        /// [`NamePipeline`](super::NamePipeline)s. Single lookups and lookups through a
        /// [`NameGuard`](super::NameGuard) stay on the CPU. Updates reach both. If a GPU fails, the CPU
        /// answers.
        ///
        /// A batch on GPUs sees one state of the table if it has at most 16,384 names, or fewer if the GPUs'
        /// slots hold fewer. A larger batch goes in parts, and each part sees one state.
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
        device;

        /// Gives the GPUs for the table, if they are started already, for example for another table
        /// ([`NameTable::fleet`]), or need other options. The default is to start all GPUs with
        /// [`Served::gpu_options`](crate::engine::Served::gpu_options), for this table only. Slots that were
        /// made for addresses hold fewer names and no match lengths: calls that need lengths run on the CPU
        /// there.
        fleet;
    }

    /// Sets whether to compile only the names that lookups need for their results. A name is left out if the
    /// nearest name above it has the same result (MATA paper, section 2.1). This makes the table smaller.
    /// Updates compile names again when results need them.
    ///
    /// Results stay the same. [`longest_match`](super::NameReader::longest_match) and
    /// [`match_batch`](super::NameReader::match_batch) report *which* name matched: they know only the
    /// compiled names.
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

    /// Builds the table.
    ///
    /// Fails if a source could not be read, no engine has the name, the table exceeds a limit of the engine
    /// or the cap, or if [`Device::Gpu`](crate::Device::Gpu) was asked for and no GPU is usable.
    pub fn build(self) -> Result<NameTable, Error> {
        let (names, aggregate, (mut settings, claims)) = (self.names, self.aggregate, self.draft.finish()?);
        let (choice, options) = settings.resolve::<NameDomain>(&names, Cap::Named)?;
        NameTable::build(NameModel::new(names, aggregate), choice, options, settings.device, claims)
    }

    /// The builder itself, if no names were added; an error for a list of this file otherwise.
    pub(super) fn alone(self, file: &str) -> Result<Self, Error> {
        match self.names.is_empty() {
            true => Ok(self),
            false => Err(Error::ImageOf { path: file.into(), found: "a list of domains", wanted: "names" }),
        }
    }

    /// The names that were added, with the claims on their labels.
    pub(super) fn into_names(self) -> Result<(NameRib, Claims), Error> {
        Ok((self.names, self.draft.finish()?.1))
    }
}

/// Replaces the results by the indexes that `labels` give to their texts.
fn labelled<T: FromStr<Err: ToString> + Eq + Hash>(
    fib: NameFib,
    labels: &Labels<T>,
    claims: &mut Claims,
) -> Result<NameRib, Error> {
    claims.attach(labels.counts());
    let mut label = vec![NextHop::NONE];
    for (_, text) in fib.labels.iter() {
        let value = match text {
            read::Label::Word(word) => parse(word)?,
            line @ read::Label::Line(_) => parse(&line.to_string())?,
        };
        label.push(labels.intern_for(claims, value)?);
    }
    relabel(fib.names, &label)
}

/// Replaces each result of the names by the label at its place. Fails if a result has none.
pub(super) fn relabel(names: NameRib, label: &[NextHop]) -> Result<NameRib, Error> {
    if label.iter().zip(0..).all(|(label, index)| label.0 == index)
        && (names.results() as usize) < label.len()
    {
        return Ok(names);
    }
    let mut relabelled = NameRib::new();
    for (name, result) in names.iter() {
        match label.get(result as usize) {
            Some(next_hop) if next_hop.is_some() => relabelled.insert(&name, next_hop.0),
            _ => return Err(Error::NameWithoutResult { name: name.to_string() }),
        };
    }
    Ok(relabelled)
}

/// Calls `give` with every name and its result.
fn each(names: &NameRib, mut give: impl FnMut(&Name, u32)) {
    names.iter().for_each(|(name, result)| give(&name, result));
}
