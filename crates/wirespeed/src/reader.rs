//! [`Reader`] and [`Guard`]: lookups on any number of threads.

use std::fmt;
use std::path::Path;

#[cfg(feature = "parallel")]
use wirespeed_fib::on_all_cores;
use wirespeed_fib::{NextHop, Prefix};

use crate::common::ReaderCore;
use crate::engine::{Addresses, AnyTable, Entered};
use crate::error::Error;
use crate::gpu::ip::{Offload, Remote};
use crate::image_file::ImageFile;
use crate::key::Key;
use crate::match_ids::MatchIds;
use crate::methods::reader_methods;

/// Looks up in a table. Any number of threads share one reader, or clone it, which costs a reference count.
/// Lookups never wait for the writer. A reader stays valid after the writer is gone, and then keeps the last
/// state.
///
/// A lookup sees all updates that were applied before it began. A batch sees one state of the table.
#[derive(Clone)]
pub struct Reader<A: Addresses> {
    core: ReaderCore<A>,
}

impl<A: Addresses> Reader<A> {
    pub(crate) fn new(core: ReaderCore<A>) -> Self {
        Self { core }
    }

    /// The table on GPUs.
    pub(crate) fn offload(&self) -> Option<&Offload<A>> {
        self.core.offload()
    }

    /// Opens an image file that [`Table::save`](crate::Table::save) or `lookupctl build` wrote, for lookups
    /// only. The reader is ready as soon as the file is read and checked. Memory holds one copy of the table.
    ///
    /// Fails if the file is damaged, of the other family, or of an engine that is not in this build.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::of_image(open_image::<A>(path.as_ref())?)
    }

    pub(crate) fn of_image(file: ImageFile) -> Result<Self, Error> {
        let (engine, ids) = (file.engine(), file.match_ids()?);
        Ok(Self::new(ReaderCore::open(engine, file.into_sections()?, ())?.with_ids(ids)))
    }

    /// The next hop of the longest prefix that contains the address, or [`NextHop::NONE`].
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: impl Key<A>) -> NextHop {
        let found = self.core.lookup(address.address());
        self.core.ids().map_or(found, |ids| ids.pairs().pair(found).0)
    }

    /// The longest prefix that contains the address, with its next hop. `None` if no prefix does.
    ///
    /// Fails if the table was built without [`prefix_lookups`](crate::Builder::prefix_lookups).
    ///
    /// ```
    /// use wirespeed::prelude::*;
    ///
    /// let routes = [("10.0.0.0/8".parse::<Ipv4Net>()?, NextHop(1))];
    /// let reader = Ipv4Table::builder().routes(routes).prefix_lookups().build()?.reader();
    /// assert_eq!(
    ///     reader.lookup_prefix(Ipv4Addr::new(10, 1, 2, 3))?,
    ///     Some(("10.0.0.0/8".parse()?, NextHop(1)))
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lookup_prefix(&self, address: impl Key<A>) -> Result<Option<(Prefix<A>, NextHop)>, Error> {
        let address = address.address();
        let found = self.core.lookup(address);
        Ok(of_pair(address, self.core.pairs()?.pair(found)))
    }

    /// Looks addresses up like [`lookup_batch`](Self::lookup_batch), and also writes the length of each
    /// longest prefix to the same index of `lengths`. The prefix is the address cut to that length. An
    /// address without a prefix gets [`NextHop::NONE`] and length 0.
    ///
    /// Fails if the table was built without [`prefix_lookups`](crate::Builder::prefix_lookups). Panics when
    /// the slices differ in length.
    pub fn lookup_prefixes<K: Key<A>>(
        &self,
        addresses: &[K],
        next_hops: &mut [NextHop],
        lengths: &mut [u8],
    ) -> Result<(), Error> {
        assert_eq!(addresses.len(), lengths.len(), "a length for each address");
        self.check_prefix_lookups()?;
        let Some(offload) = self.offload() else {
            return self.enter().lookup_prefixes(addresses, next_hops, lengths);
        };
        self.look_up(offload, addresses, next_hops, |found| self.enter().open().look_up(addresses, found));
        // A number has the same pair in every later state.
        self.core.pairs()?.split(next_hops, lengths);
        Ok(())
    }

    pub(crate) fn check_prefix_lookups(&self) -> Result<(), Error> {
        self.core.pairs().map(drop)
    }

    /// Whether [`lookup_prefix`](Self::lookup_prefix) works: whether the table was built with
    /// [`prefix_lookups`](crate::Builder::prefix_lookups).
    #[must_use]
    pub fn has_prefix_lookups(&self) -> bool {
        self.core.ids().is_some()
    }

    /// Looks up addresses, and writes each next hop to the same index of `next_hops`. Sees one state of the
    /// table. Much faster than single lookups; batches of 1,000 and more are fastest. Lookups run on the
    /// device that the table was built for ([`Builder::device`](crate::Builder::device)). A large batch goes
    /// to a GPU in parts, and each part sees one state.
    ///
    /// Panics when the slices differ in length.
    pub fn lookup_batch<K: Key<A>>(&self, addresses: &[K], next_hops: &mut [NextHop]) {
        let Some(offload) = self.offload() else {
            return self.enter().lookup_batch(addresses, next_hops);
        };
        self.look_up(offload, addresses, next_hops, |found| self.enter().open().look_up(addresses, found));
        self.take_apart(next_hops);
    }

    /// Looks up like [`lookup_batch`](Self::lookup_batch), on all cores: the threads of the caller's `rayon`
    /// pool share the batch, in one state of the table. Useful from about 10,000 addresses on. A batch for a
    /// GPU goes there as with [`lookup_batch`](Self::lookup_batch).
    ///
    /// Panics when the slices differ in length.
    #[cfg(feature = "parallel")]
    pub fn par_lookup_batch<K: Key<A> + Sync>(&self, addresses: &[K], next_hops: &mut [NextHop]) {
        let Some(offload) = self.offload() else {
            return self.enter().par_lookup_batch(addresses, next_hops);
        };
        self.look_up(offload, addresses, next_hops, |found| {
            self.enter().open().par_look_up(addresses, found);
        });
        self.take_apart(next_hops);
    }

    /// Looks up on GPUs if the policy picks them; otherwise by `on_cpu`. Results are as engines give them.
    fn look_up<K: Key<A>>(
        &self,
        offload: &Offload<A>,
        addresses: &[K],
        next_hops: &mut [NextHop],
        on_cpu: impl FnOnce(&mut [NextHop]),
    ) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each address");
        let on_gpu = |remote: &Remote<A>, next_hops: &mut [NextHop]| {
            K::all_at_once(addresses, |addresses| remote.lookup_batch(addresses, next_hops))
        };
        offload.answer(next_hops, on_gpu, on_cpu);
    }

    /// Makes next hops of an engine's results.
    fn take_apart(&self, found: &mut [NextHop]) {
        if let Some(ids) = self.core.ids() {
            ids.pairs().next_hops(found);
        }
    }

    reader_methods! {
        A, "addresses", "crate::Table",
        /// ```
        /// use wirespeed::prelude::*;
        ///
        /// let routes = [("10.0.0.0/8".parse::<Ipv4Net>()?, NextHop(1))];
        /// let reader = Ipv4Table::builder().routes(routes).device(Device::Auto).build()?.reader();
        /// let trace: Vec<V4> = (0..100_000).map(|n| V4(0x0a00_0000 + n)).collect();
        ///
        /// let (mut found, mut sum) = (vec![NextHop::NONE; 10_000], 0);
        /// let mut pipeline = reader.pipeline();
        /// let mut batches = trace.chunks(found.len());
        /// loop {
        ///     while pipeline.under_way() < 4 && let Some(batch) = batches.next() {
        ///         pipeline.submit(batch);
        ///     }
        ///     let Some(addresses) = pipeline.next(&mut found) else { break };
        ///     sum += found[..addresses.len()].iter().map(|next_hop| next_hop.0).sum::<u32>();
        /// }
        /// assert_eq!(sum, 100_000);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
    }

    /// Enters one state of the table, for lookups that belong together. They run on the CPU. While a guard is
    /// held, the writer can make one more change and then waits: hold a guard for a few batches only. A
    /// thread that holds a guard and makes two changes itself waits for ever.
    #[inline]
    pub fn enter(&self) -> Guard<'_, A> {
        Guard { state: self.core.enter(), ids: self.core.ids() }
    }
}

/// One state of a table, until the guard is dropped.
#[must_use = "a state that is dropped at once protects nothing"]
pub struct Guard<'a, A: Addresses> {
    state: Entered<'a, A>,
    ids: Option<&'a MatchIds>,
}

impl<A: Addresses> Guard<'_, A> {
    /// [`Reader::lookup`] in this state.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: impl Key<A>) -> NextHop {
        let found = self.state.table.lookup(address.address());
        self.ids.map_or(found, |ids| ids.pairs().pair(found).0)
    }

    /// [`Reader::lookup_prefix`] in this state.
    #[inline]
    pub fn lookup_prefix(&self, address: impl Key<A>) -> Result<Option<(Prefix<A>, NextHop)>, Error> {
        let address = address.address();
        let pairs = self.ids.ok_or(Error::NoPrefixLookups)?.pairs();
        Ok(of_pair(address, pairs.pair(self.state.table.lookup(address))))
    }

    /// [`Reader::lookup_batch`] in this state.
    pub fn lookup_batch<K: Key<A>>(&self, addresses: &[K], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each address");
        self.open().next_hops(addresses, next_hops);
    }

    /// [`Reader::lookup_prefixes`] in this state.
    pub fn lookup_prefixes<K: Key<A>>(
        &self,
        addresses: &[K],
        next_hops: &mut [NextHop],
        lengths: &mut [u8],
    ) -> Result<(), Error> {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each address");
        assert_eq!(addresses.len(), lengths.len(), "a length for each address");
        let pairs = self.ids.ok_or(Error::NoPrefixLookups)?.pairs();
        let results = next_hops.chunks_mut(APART).zip(lengths.chunks_mut(APART));
        for (addresses, (next_hops, lengths)) in addresses.chunks(APART).zip(results) {
            self.open().look_up(addresses, next_hops);
            pairs.split(next_hops, lengths);
        }
        Ok(())
    }

    /// [`Reader::par_lookup_batch`] in this state.
    #[cfg(feature = "parallel")]
    pub fn par_lookup_batch<K: Key<A> + Sync>(&self, addresses: &[K], next_hops: &mut [NextHop]) {
        let state = self.open();
        on_all_cores(addresses, next_hops, A::LEAST_PART, |addresses, next_hops| {
            state.next_hops(addresses, next_hops);
        });
    }

    pub(crate) fn check_prefix_lookups(&self) -> Result<(), Error> {
        self.ids.map(drop).ok_or(Error::NoPrefixLookups)
    }

    /// The state as all threads may look it up while the guard is held.
    fn open(&self) -> Open<'_, A> {
        Open { table: &self.state.table, ids: self.ids }
    }
}

/// A state that is held by a guard elsewhere.
struct Open<'g, A: Addresses> {
    table: &'g dyn AnyTable<A>,
    ids: Option<&'g MatchIds>,
}

/// The number of results that are taken apart at a time: few enough for the first-level cache.
const APART: usize = 1024;

impl<A: Addresses> Open<'_, A> {
    fn next_hops<K: Key<A>>(&self, addresses: &[K], next_hops: &mut [NextHop]) {
        let Some(ids) = self.ids else { return self.look_up(addresses, next_hops) };
        for (addresses, next_hops) in addresses.chunks(APART).zip(next_hops.chunks_mut(APART)) {
            self.look_up(addresses, next_hops);
            ids.pairs().next_hops(next_hops);
        }
    }

    /// Looks up with the engine. Results are as the engine gives them.
    fn look_up<K: Key<A>>(&self, addresses: &[K], found: &mut [NextHop]) {
        K::each_block(addresses, found, |addresses, found| self.table.lookup_batch(addresses, found));
    }

    /// [`look_up`](Self::look_up) on all cores.
    #[cfg(feature = "parallel")]
    fn par_look_up<K: Key<A> + Sync>(&self, addresses: &[K], found: &mut [NextHop]) {
        on_all_cores(addresses, found, A::LEAST_PART, |addresses, found| self.look_up(addresses, found));
    }
}

/// The route of an address's next hop and prefix length.
#[inline]
fn of_pair<A: Addresses>(address: A, (next_hop, len): (NextHop, u8)) -> Option<(Prefix<A>, NextHop)> {
    next_hop.is_some().then(|| (Prefix::around(address, len), next_hop))
}

impl<A: Addresses> fmt::Debug for Reader<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("family", &A::FAMILY)
            .field("engine", &self.engine())
            .finish_non_exhaustive()
    }
}

impl<A: Addresses> fmt::Debug for Guard<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("family", &A::FAMILY).finish_non_exhaustive()
    }
}

/// Opens the table of family `A` in an image. Fails if there is none.
pub(crate) fn open_image<A: Addresses>(path: &Path) -> Result<ImageFile, Error> {
    ImageFile::open_family(path, A::FAMILY)
}
