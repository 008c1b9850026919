//! [`DeviceTable`]: the copy of a table on one GPU.

use std::fmt;

use wirespeed_fib::NextHop;

use super::keys::DeviceKeys;
use crate::common::ReaderCore;
use crate::engine::{Addresses, Served};
use crate::error::Error;
use crate::gpu::driver::Stream;
use crate::gpu::offload::RemoteTable;
use crate::gpu::runtime::{DeviceMemory, Enqueued, Gpu, TableHandle};

/// The most bytes of a result, of any table in any state. Names with lengths have 8 bytes.
pub const MOST_RESULT_BYTES: usize = size_of::<u32>();

/// The copy of a table on one GPU, for lookups of keys that are in the GPU's memory: of addresses
/// ([`Reader::on_device`](crate::Reader::on_device)), names
/// ([`NameReader::on_device`](crate::NameReader::on_device)) or rules
/// ([`RuleReader::on_device`](crate::RuleReader::on_device)). Clones are the same copy. The [module](super)
/// says how keys and results lie, and has all rules for lifetime and streams.
///
/// It sees all later updates of the table. It stays valid after the table and its readers are gone, and then
/// has the last state.
pub struct DeviceTable<D: Served> {
    core: ReaderCore<D>,
    device: usize,
}

impl<D: Served> DeviceTable<D> {
    pub(crate) fn new(core: &ReaderCore<D>, device: usize) -> Result<Self, Error> {
        let table = Self { core: core.clone(), device };
        table.replica()?;
        Ok(table)
    }

    /// Puts a lookup of `keys` into a stream, and returns. The results are in the order of the keys, one for
    /// each, from the start of the memory on. Without keys nothing is put into the stream.
    ///
    /// Fails, and puts nothing into the stream, if
    /// - the memory is too small for the results in this state of the table,
    /// - the keys have become too narrow for the table ([`key_bytes`](Self::key_bytes)),
    /// - keys or results are not aligned as the [module](super#keys) says,
    /// - the GPU is lost, or the copy is out of use because an update did not reach it.
    ///
    /// Keys that are looked up here are not part of [`Table::lookups`](crate::Table::lookups).
    ///
    /// # Safety
    /// From the call until the stream has done the lookup:
    /// - All parts of `keys` are valid for reading, for as many keys as stated, and in the layout that the
    ///   constructor says. Parts of names and tuples are valid up to the next multiple of 16 bytes, and so
    ///   are the last 32 tuples, all of them. The places of names are in ascending order and end within the
    ///   text.
    /// - `results` is valid for writing, for as many bytes as stated.
    /// - Nobody writes to the keys, and nobody reads or writes the results, except in the order of `stream`:
    ///   in the stream itself, in a stream that waits for an event of it, or on the host after waiting for
    ///   it.
    /// - Keys and results are memory of this GPU ([`bus`](Self::bus)), or memory that its primary context has
    ///   access to.
    /// - `stream` is a stream of the primary context of this GPU that is not recording a graph, and not
    ///   handle 2 (the default stream of a thread). It is not destroyed before the call returns.
    #[allow(unsafe_code)] // as its contract says
    pub unsafe fn lookup_on(
        &self,
        stream: Stream,
        keys: DeviceKeys<D>,
        results: DeviceMemory,
    ) -> Result<Enqueued, Error> {
        let (gpu, replica) = self.replica()?;
        // SAFETY: the caller promises what `Gpu::lookup_on` asks for: its contract is this one.
        Ok(unsafe { gpu.lookup_on(replica, stream, keys.keys(), results) }?)
    }

    /// Bytes of a result in the last state. An update can make it more, up to [`MOST_RESULT_BYTES`].
    #[must_use]
    pub fn result_bytes(&self) -> usize {
        self.handle().map_or(MOST_RESULT_BYTES, TableHandle::result_bytes)
    }

    /// The version of the last state: later updates have larger ones.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.handle().map_or(0, TableHandle::version)
    }

    /// The index of the GPU in the [`Fleet`](crate::Fleet) of the table.
    #[must_use]
    pub const fn device(&self) -> usize {
        self.device
    }

    /// The address of the GPU on the PCI bus, such as `0000:3b:00.0`. It tells the GPU among those of other
    /// libraries, which may number GPUs in another way.
    #[must_use]
    pub fn bus(&self) -> &str {
        let gpus = self.core.offload().map(|offload| offload.remote().copies().fleet().gpus());
        gpus.and_then(|gpus| gpus.get(self.device)).map_or("", |gpu| &gpu.properties().bus)
    }

    fn handle(&self) -> Option<&TableHandle> {
        self.core.offload()?.remote().copies().table().replicas().get(self.device)
    }

    fn replica(&self) -> Result<(&Gpu, &TableHandle), Error> {
        let offload = self.core.offload().ok_or(Error::NotOnGpu)?;
        Ok(offload.remote().copies().replica(self.device)?)
    }
}

impl<A: Addresses> DeviceTable<A> {
    /// The fewest bytes of an address that lookups need now: 3 or 4 for IPv4 ([`DeviceKeys::first_24`],
    /// [`DeviceKeys::whole`]), 6, 8 or 16 for IPv6 ([`DeviceKeys::first_48`], [`DeviceKeys::first_64`],
    /// [`DeviceKeys::whole`]). A longer prefix makes it more, and it never gets less. It stays if the table's
    /// [longest prefix](crate::Builder::longest_prefix) is stated.
    #[must_use]
    pub fn key_bytes(&self) -> usize {
        self.core.offload().map_or(size_of::<A>(), |offload| offload.remote().key_bytes().count())
    }

    /// Whether results are numbers of pairs, because the table was built for [prefix
    /// lookups](crate::Builder::prefix_lookups).
    #[must_use]
    pub fn has_prefix_lookups(&self) -> bool {
        self.core.ids().is_some()
    }

    /// Makes next hops of results ([`Enqueued::unpack`]): of one lookup, or the results from 0 on by which a
    /// program counted. They are results already in tables without [prefix
    /// lookups](crate::Builder::prefix_lookups).
    ///
    /// Panics when the lengths differ.
    pub fn next_hops(&self, results: &[u32], next_hops: &mut [NextHop]) {
        bytemuck::cast_slice_mut(next_hops).copy_from_slice(results);
        if let Some(ids) = self.core.ids() {
            ids.pairs().next_hops(next_hops);
        }
    }

    /// Makes next hops and lengths of prefixes of results, like [`next_hops`](Self::next_hops). No match is
    /// [`NextHop::NONE`] and length 0.
    ///
    /// Fails if the table was built without [`prefix_lookups`](crate::Builder::prefix_lookups). Panics when
    /// the lengths differ.
    pub fn prefixes(
        &self,
        results: &[u32],
        next_hops: &mut [NextHop],
        lengths: &mut [u8],
    ) -> Result<(), Error> {
        assert_eq!(results.len(), lengths.len(), "a length for each result");
        let pairs = self.core.pairs()?;
        bytemuck::cast_slice_mut(next_hops).copy_from_slice(results);
        pairs.split(next_hops, lengths);
        Ok(())
    }
}

impl<D: Served> Clone for DeviceTable<D> {
    fn clone(&self) -> Self {
        Self { core: self.core.clone(), device: self.device }
    }
}

impl<D: Served> fmt::Debug for DeviceTable<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("DeviceTable");
        debug.field("device", &self.device).field("bus", &self.bus()).finish_non_exhaustive()
    }
}
