//! [`Reader`] and [`Guard`]: lookups on any number of threads.

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

/// Looks up in a table. Cheap to clone: each thread takes its own reader. Lookups never wait for the writer.
/// A reader stays valid after the writer is gone, and then keeps the last state.
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
    /// only. The reader is ready as soon as the file is read and checked. Memory holds one copy of the table.
    ///
    /// Fails if the file is damaged, of the other family, or of an engine that is not in this build.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = open_image::<A>(path.as_ref())?;
        Ok(Self(ReaderCore::open(file.engine(), file.into_bare()?, ())?))
    }

    /// The next hop of the longest prefix that contains the address, or [`NextHop::NONE`].
    #[inline]
    pub fn lookup(&self, address: impl Key<A>) -> NextHop {
        self.0.lookup(address.address())
    }

    /// Looks up addresses, and writes each next hop to the same index of `next_hops`. Sees one state of the
    /// table. Much faster than single lookups; batches of 1,000 and more are fastest. Lookups run on the
    /// device that the table was built for ([`Builder::device`](crate::Builder::device)). A large batch goes
    /// to a GPU in parts, and each part sees one state.
    ///
    /// Panics when the slices differ in length.
    pub fn lookup_batch<K: Key<A>>(&self, addresses: &[K], next_hops: &mut [NextHop]) {
        self.look_up(addresses, next_hops, |next_hops| self.enter().lookup_batch(addresses, next_hops));
    }

    /// Looks up like [`lookup_batch`](Self::lookup_batch), on all cores: the threads of the caller's `rayon`
    /// pool share the batch, in one state of the table. Useful from about 10,000 addresses on. A batch for a
    /// GPU goes there as with [`lookup_batch`](Self::lookup_batch).
    ///
    /// Panics when the slices differ in length.
    #[cfg(feature = "parallel")]
    pub fn par_lookup_batch<K: Key<A> + Sync>(&self, addresses: &[K], next_hops: &mut [NextHop]) {
        self.look_up(addresses, next_hops, |next_hops| self.enter().par_lookup_batch(addresses, next_hops));
    }

    /// Looks up on GPUs if the table is on some and the policy picks them; otherwise by `on_cpu`.
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

    /// Makes a pipeline: several batches under way at once, on the device that the table was built for. This
    /// keeps a GPU busy.
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

    /// Enters one state of the table, for lookups that belong together. They run on the CPU. While a guard is
    /// held, the writer can make one more change and then waits: hold a guard for a few batches only. A
    /// thread that holds a guard and makes two changes itself waits for ever.
    #[inline]
    pub fn enter(&self) -> Guard<'_, A> {
        Guard(self.0.enter())
    }

    /// The engine that looks up.
    pub fn engine(&self) -> EngineName {
        self.0.engine()
    }
}

/// One state of a table, until the guard is dropped.
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

    /// Looks up the engine's own keys like [`lookup_batch`](Self::lookup_batch).
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

/// Opens an image of family `A`. Fails if the image is of the other family.
pub(crate) fn open_image<A: Addresses>(path: &Path) -> Result<ImageFile, Error> {
    let file = ImageFile::open(path)?;
    match file.family() {
        family if family == A::FAMILY => Ok(file),
        found => Err(Error::ImageFamily { path: path.to_owned(), found, wanted: A::FAMILY }),
    }
}
