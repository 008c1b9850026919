//! [`Reader`] and [`Guard`]: looking up, on any number of threads.

use std::fmt;
use std::path::Path;

use wirespeed_fib::NextHop;
#[cfg(feature = "parallel")]
use wirespeed_fib::on_all_cores;

use crate::common::ReaderCore;
use crate::engine::{Addresses, EngineName, Entered};
use crate::error::Error;
use crate::gpu::ip::{Offload, Remote};
use crate::image_file::ImageFile;
use crate::key::Key;
use crate::pipeline::Pipeline;

/// Looks up in a table. Cheap to clone: each thread takes its own. Wait-free, whatever the writer does. A
/// reader outlives the writer, and goes on with the last state.
///
/// A lookup sees all updates that were applied before it began. A batch sees one state of the table.
#[derive(Clone)]
pub struct Reader<A: Addresses>(pub(crate) ReaderCore<A>);

impl<A: Addresses> Reader<A> {
    /// The table on GPUs.
    pub(crate) fn offload(&self) -> Option<&Offload<A>> {
        self.0.offload()
    }

    /// Opens an image file that [`Table::save`](crate::Table::save) or `lookupctl build` wrote, for lookups
    /// alone. It is ready as soon as its bytes are read and checked, and is in memory once.
    ///
    /// Fails where the file is damaged, of the other family, or of an engine that is not in this build.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = open_image::<A>(path.as_ref())?;
        Ok(Self(ReaderCore::open(file.engine(), file.into_bare()?, ())?))
    }

    /// The next hop of the longest prefix that contains the address, [`NextHop::NONE`] where there is none.
    #[inline]
    pub fn lookup(&self, address: impl Key<A>) -> NextHop {
        self.0.lookup(address.address())
    }

    /// Looks up each address, and writes its next hop to the same place of `next_hops`, all in one state of
    /// the table. Much faster than one by one; batches of 1,000 and more get the most out of it. Lookups run
    /// on the device that the table was built for ([`Builder::device`](crate::Builder::device)). A large
    /// batch goes to a GPU in parts, each of which sees one state.
    ///
    /// Panics when the slices differ in length.
    pub fn lookup_batch<K: Key<A>>(&self, addresses: &[K], next_hops: &mut [NextHop]) {
        self.look_up(addresses, next_hops, |next_hops| self.enter().lookup_batch(addresses, next_hops));
    }

    /// [`lookup_batch`](Self::lookup_batch) on every core, all in one state of the table: parts of the batch
    /// run on the threads of the caller's `rayon` pool. Worth it from some ten thousand addresses on. A batch
    /// that goes to a GPU goes there as with [`lookup_batch`](Self::lookup_batch).
    ///
    /// Panics when the slices differ in length.
    #[cfg(feature = "parallel")]
    pub fn par_lookup_batch<K: Key<A> + Sync>(&self, addresses: &[K], next_hops: &mut [NextHop]) {
        self.look_up(addresses, next_hops, |next_hops| self.enter().par_lookup_batch(addresses, next_hops));
    }

    /// Looks up on GPUs where there are some and they are to; else as the CPU does it.
    fn look_up<K: Key<A>>(
        &self,
        addresses: &[K],
        next_hops: &mut [NextHop],
        on_cpu: impl FnOnce(&mut [NextHop]),
    ) {
        let Some(offload) = self.offload() else { return on_cpu(next_hops) };
        assert_eq!(addresses.len(), next_hops.len(), "a result for each address");
        let on_gpu = |remote: &Remote<A>, next_hops: &mut [NextHop]| {
            K::all_at_once(addresses, |addresses| remote.lookup_batch(addresses, next_hops))
        };
        offload.answer(next_hops, on_gpu, on_cpu);
    }

    /// Several batches under way at once, on the device that the table was built for. This keeps a GPU busy.
    ///
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
    pub fn pipeline(&self) -> Pipeline<'_, A> {
        Pipeline::new(&self.0)
    }

    /// One state of the table, for lookups that belong together. They run on the CPU. While a guard lives the
    /// writer can make one more change, and waits with the next: hold a guard for some batches, not for good.
    /// A thread that holds a guard and makes both changes itself waits for ever.
    #[inline]
    pub fn enter(&self) -> Guard<'_, A> {
        Guard(self.0.enter())
    }

    /// The engine that looks up.
    pub fn engine(&self) -> EngineName {
        self.0.engine()
    }
}

/// One state of a table, for as long as it lives.
pub struct Guard<'a, A: Addresses>(Entered<'a, A>);

impl<A: Addresses> Guard<'_, A> {
    /// [`Reader::lookup`] in this state.
    #[inline]
    pub fn lookup(&self, address: impl Key<A>) -> NextHop {
        self.0.table.lookup(address.address())
    }

    /// [`Reader::lookup_batch`] in this state.
    pub fn lookup_batch<K: Key<A>>(&self, addresses: &[K], next_hops: &mut [NextHop]) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each address");
        K::each_block(addresses, next_hops, |addresses, next_hops| {
            self.lookup_addresses(addresses, next_hops);
        });
    }

    /// [`Reader::par_lookup_batch`] in this state.
    #[cfg(feature = "parallel")]
    pub fn par_lookup_batch<K: Key<A> + Sync>(&self, addresses: &[K], next_hops: &mut [NextHop]) {
        let table = &self.0.table;
        on_all_cores(addresses, next_hops, A::LEAST_PART, |addresses, next_hops| {
            K::each_block(addresses, next_hops, |addresses, next_hops| {
                table.lookup_batch(addresses, next_hops);
            });
        });
    }

    /// [`lookup_batch`](Self::lookup_batch) of the engine's own keys.
    #[inline]
    pub(crate) fn lookup_addresses(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        self.0.table.lookup_batch(addresses, next_hops);
    }
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

/// Opens an image that must be of family `A`.
pub(crate) fn open_image<A: Addresses>(path: &Path) -> Result<ImageFile, Error> {
    let file = ImageFile::open(path)?;
    match file.family() {
        family if family == A::FAMILY => Ok(file),
        found => Err(Error::ImageFamily { path: path.to_owned(), found, wanted: A::FAMILY }),
    }
}
