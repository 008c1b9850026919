//! [`Reader`] and [`Guard`]: looking up, on any number of threads.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use wirespeed_fib::{Address, Engine, NextHop, on_all_cores};

use crate::engine::{EngineName, Engines, Visitor, visit};
use crate::erased::{AnyReader, Held};
use crate::error::Error;
use crate::image_file::ImageFile;
use crate::key::Key;

/// Looks up in a table. Cheap to clone: each thread takes its own. Wait-free, whatever the writer does; it outlives the
/// writer, and goes on with the last state.
///
/// A lookup sees all updates that were applied before it began. A batch sees one state of the table.
pub struct Reader<A: Engines> {
    inner: Box<dyn AnyReader<A>>,
    engine: EngineName,
}

impl<A: Engines> Reader<A> {
    pub(crate) fn new(inner: Box<dyn AnyReader<A>>, engine: EngineName) -> Self {
        Self { inner, engine }
    }

    /// Opens an image file that was saved by [`Table::save`](crate::Table::save) or `lookupctl build`, for looking up alone:
    /// ready as soon as its bytes are read and checked, and in memory once.
    ///
    /// An error where it is damaged, of the other family, or of an engine that is not in this build.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = open_image::<A>(path.as_ref())?;
        visit(file.engine(), Fixed(file))?
    }

    /// The next hop of the longest prefix that contains the address, [`NextHop::NONE`] where there is none.
    #[inline]
    pub fn lookup(&self, address: impl Key<A>) -> NextHop {
        self.inner.lookup(address.address())
    }

    /// Looks up each address into the same place of `next_hops`, all in one state of the table. Much faster than one by
    /// one; batches of 1,000 and more get the most out of it.
    ///
    /// Panics when the slices differ in length.
    pub fn lookup_batch<K: Key<A>>(&self, addresses: &[K], next_hops: &mut [NextHop]) {
        self.enter().lookup_batch(addresses, next_hops);
    }

    /// [`lookup_batch`](Self::lookup_batch) on every core: parts of the batch on the threads of the `rayon` pool that the
    /// caller is in, all in one state of the table. Worth it from some ten thousand addresses on.
    ///
    /// Panics when the slices differ in length.
    pub fn par_lookup_batch<K: Key<A> + Sync>(&self, addresses: &[K], next_hops: &mut [NextHop]) {
        self.enter().par_lookup_batch(addresses, next_hops);
    }

    /// One state of the table, for lookups that belong together. While a guard lives the writer can make one more change and
    /// waits with the next: hold it for some batches, not for good.
    #[inline]
    pub fn enter(&self) -> Guard<'_, A> {
        Guard(self.inner.enter())
    }

    /// The engine that looks up.
    pub fn engine(&self) -> EngineName {
        self.engine
    }
}

/// One state of a table, for as long as it lives.
pub struct Guard<'a, A: Address>(Held<'a, A>);

impl<A: Address> Guard<'_, A> {
    /// As [`Reader::lookup`].
    #[inline]
    pub fn lookup(&self, address: impl Key<A>) -> NextHop {
        self.0.table().lookup(address.address())
    }

    /// As [`Reader::lookup_batch`].
    pub fn lookup_batch<K: Key<A>>(&self, addresses: &[K], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each address");
        K::each_block(addresses, next_hops, |addresses, next_hops| {
            self.lookup_addresses(addresses, next_hops);
        });
    }

    /// As [`Reader::par_lookup_batch`].
    pub fn par_lookup_batch<K: Key<A> + Sync>(&self, addresses: &[K], next_hops: &mut [NextHop]) {
        let table = self.0.table();
        on_all_cores(addresses, next_hops, |addresses, next_hops| {
            K::each_block(addresses, next_hops, |addresses, next_hops| {
                table.lookup_batch(addresses, next_hops);
            });
        });
    }

    /// [`lookup_batch`](Self::lookup_batch) of the engine's own keys.
    #[inline]
    pub(crate) fn lookup_addresses(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        self.0.table().lookup_batch(addresses, next_hops);
    }
}

impl<A: Engines> Clone for Reader<A> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone_box(), engine: self.engine }
    }
}

impl<A: Engines> fmt::Debug for Reader<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("family", &A::FAMILY)
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

impl<A: Address> fmt::Debug for Guard<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("family", &A::FAMILY).finish_non_exhaustive()
    }
}

/// Opens an image that must be of family `A`.
pub(crate) fn open_image<A: Engines>(path: &Path) -> Result<ImageFile, Error> {
    let file = ImageFile::open(path)?;
    match file.family() {
        family if family == A::FAMILY => Ok(file),
        found => Err(Error::ImageFamily { path: path.to_owned(), found, wanted: A::FAMILY }),
    }
}

/// Makes a reader of an image.
struct Fixed(ImageFile);

impl<A: Engines> Visitor<A> for Fixed {
    type Output = Result<Reader<A>, Error>;

    fn visit<E: Engine<A>>(self) -> Self::Output {
        let engine = self.0.engine();
        let table: E::Table = self.0.into_bare_table()?;
        Ok(Reader::new(Box::new(Arc::new(table)), engine))
    }
}
