//! [`NameReader`] and [`NameGuard`]: lookups of names on any number of threads.

use std::fmt;
use std::path::Path;

use wirespeed_fib::NextHop;
use wirespeed_namelookup::{Match, Name, NameDomain, Names};

use super::image_file::NameImageFile;
use crate::common::ReaderCore;
use crate::engine::Entered;
use crate::error::Error;
use crate::methods::reader_methods;

/// Looks up in a table of names. Any number of threads share one reader, or clone it, which costs a reference
/// count. Lookups never wait for the writer. A reader stays valid after the writer is gone, and then keeps
/// the last state.
///
/// A lookup sees all updates that were applied before it began. A batch sees one state of the table.
#[derive(Clone)]
pub struct NameReader {
    core: ReaderCore<NameDomain>,
    is_aggregated: bool,
}

impl NameReader {
    pub(super) fn new(core: ReaderCore<NameDomain>, is_aggregated: bool) -> Self {
        Self { core, is_aggregated }
    }

    /// Opens an image file that [`NameTable::save`](super::NameTable::save) or `lookupctl names build` wrote,
    /// for lookups only. The reader is ready as soon as the file is read and checked. Memory holds one copy
    /// of the table.
    ///
    /// Fails if the file is damaged, does not hold names, holds a list of domains
    /// ([`NameList::open`](super::NameList::open)), or is of an engine that is not in this build.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = NameImageFile::open(path.as_ref())?.without_list()?;
        Self::of_file(file)
    }

    pub(crate) fn core(&self) -> &ReaderCore<NameDomain> {
        &self.core
    }

    /// Opens a file whose results the caller understands.
    pub(super) fn of_file(file: NameImageFile) -> Result<Self, Error> {
        let (engine, is_aggregated) = (file.engine(), file.is_aggregated());
        Ok(Self::new(ReaderCore::open(engine, file.into_bare()?, ())?, is_aggregated))
    }

    /// The result of the longest prefix of the name in the table, or [`NextHop::NONE`].
    #[inline]
    #[must_use]
    pub fn lookup(&self, name: impl AsRef<Name>) -> NextHop {
        self.core.lookup(name.as_ref()).next_hop()
    }

    /// The longest prefix of the name in the table, with its result. In an [aggregated](Self::is_aggregated)
    /// table it is the longest of the names that were kept.
    ///
    /// ```
    /// use wirespeed::prelude::*;
    ///
    /// let reader = NameTable::builder().names([(NameBuf::new("/com/parc")?, NextHop(1))]).build()?.reader();
    /// let name = Name::new("/com/parc/www")?;
    /// assert_eq!(reader.longest_match(name), Some((Name::new("/com/parc")?, NextHop(1))));
    /// assert_eq!(reader.longest_match(Name::new("/com/parcel")?), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn longest_match<'n>(&self, name: &'n Name) -> Option<(&'n Name, NextHop)> {
        let found = self.core.lookup(name);
        Some((found.prefix(name)?, found.next_hop()))
    }

    /// Looks up names, and writes each result to the same index of `next_hops`. Sees one state of the table.
    /// Much faster than single lookups; batches of a few hundred and more are fastest. Lookups run on the
    /// device that the table was built for ([`NameBuilder::device`](super::NameBuilder::device)). A large
    /// batch goes to a GPU in parts, and each part sees one state.
    ///
    /// Panics when the lengths differ.
    pub fn lookup_batch<'b>(&self, names: impl Into<Names<'b>>, next_hops: &mut [NextHop]) {
        self.core.lookup_batch(names.into(), next_hops);
    }

    /// Looks up names, and writes each result and the length of the match to the same index of `matches`. See
    /// [`longest_match`](Self::longest_match).
    ///
    /// Panics when the lengths differ.
    pub fn match_batch<'b>(&self, names: impl Into<Names<'b>>, matches: &mut [Match]) {
        let on_cpu = |names: Names<'_>, matches: &mut [Match]| self.enter().match_batch(names, matches);
        match self.core.offload() {
            None => on_cpu(names.into(), matches),
            Some(offload) => offload.lookup_batch(names.into(), matches, on_cpu),
        }
    }

    /// Looks up like [`lookup_batch`](Self::lookup_batch), on all cores: the threads of the caller's `rayon`
    /// pool share the batch, in one state of the table. Useful from about 1,000 names on. A batch for a GPU
    /// goes there as with [`lookup_batch`](Self::lookup_batch).
    ///
    /// Panics when the lengths differ.
    #[cfg(feature = "parallel")]
    pub fn par_lookup_batch<'b>(&self, names: impl Into<Names<'b>>, next_hops: &mut [NextHop]) {
        self.core.par_lookup_batch(names.into(), next_hops);
    }

    reader_methods! {
        NameDomain, "names", "crate::NameTable",
        /// ```
        /// use wirespeed::prelude::*;
        ///
        /// let reader = NameTable::builder()
        ///     .names([(NameBuf::new("/com/parc")?, NextHop(1))])
        ///     .device(Device::Auto)
        ///     .build()?
        ///     .reader();
        /// let requests: NameBatch = (0..10_000).map(|_| Name::new("/com/parc/www").unwrap()).collect();
        ///
        /// let (mut found, mut sum) = (vec![NextHop::NONE; 1_000], 0);
        /// let mut pipeline = reader.pipeline();
        /// let mut batches = (0..10).map(|at| requests.names().part(at * 1_000..(at + 1) * 1_000));
        /// loop {
        ///     while pipeline.under_way() < 4 && let Some(batch) = batches.next() {
        ///         pipeline.submit(batch);
        ///     }
        ///     let Some(names) = pipeline.next(&mut found) else { break };
        ///     sum += found[..names.len()].iter().map(|next_hop| next_hop.0).sum::<u32>();
        /// }
        /// assert_eq!(sum, 10_000);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
    }

    /// Enters one state of the table, for lookups that belong together. They run on the CPU. While a guard is
    /// held, the writer can make one more change and then waits: hold a guard for a few batches only. A
    /// thread that holds a guard and makes two changes itself waits for ever.
    #[inline]
    pub fn enter(&self) -> NameGuard<'_> {
        NameGuard(self.core.enter())
    }

    /// Whether only the names that results need are compiled
    /// ([`NameBuilder::aggregate`](super::NameBuilder::aggregate)).
    #[must_use]
    pub fn is_aggregated(&self) -> bool {
        self.is_aggregated
    }
}

/// One state of a table of names, until the guard is dropped.
#[must_use = "a state that is dropped at once protects nothing"]
pub struct NameGuard<'a>(Entered<'a, NameDomain>);

impl NameGuard<'_> {
    /// [`NameReader::lookup`] in this state.
    #[inline]
    #[must_use]
    pub fn lookup(&self, name: impl AsRef<Name>) -> NextHop {
        self.0.table.lookup(name.as_ref()).next_hop()
    }

    /// [`NameReader::longest_match`] in this state.
    #[must_use]
    pub fn longest_match<'n>(&self, name: &'n Name) -> Option<(&'n Name, NextHop)> {
        let found = self.0.table.lookup(name);
        Some((found.prefix(name)?, found.next_hop()))
    }

    /// [`NameReader::lookup_batch`] in this state.
    pub fn lookup_batch<'b>(&self, names: impl Into<Names<'b>>, next_hops: &mut [NextHop]) {
        let names = names.into();
        assert_eq!(names.len(), next_hops.len(), "a result for each name");
        self.0.table.lookup_batch(names, bytemuck::cast_slice_mut(next_hops));
    }

    /// [`NameReader::match_batch`] in this state.
    pub fn match_batch<'b>(&self, names: impl Into<Names<'b>>, matches: &mut [Match]) {
        let names = names.into();
        assert_eq!(names.len(), matches.len(), "a match for each name");
        self.0.table.match_batch(names, matches);
    }

    /// [`NameReader::par_lookup_batch`] in this state.
    #[cfg(feature = "parallel")]
    pub fn par_lookup_batch<'b>(&self, names: impl Into<Names<'b>>, next_hops: &mut [NextHop]) {
        self.0.table.par_lookup_batch(names.into(), bytemuck::cast_slice_mut(next_hops));
    }
}

impl fmt::Debug for NameReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NameReader").field("engine", &self.engine()).finish_non_exhaustive()
    }
}

impl fmt::Debug for NameGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NameGuard").finish_non_exhaustive()
    }
}
