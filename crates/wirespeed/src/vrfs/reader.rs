//! [`VrfReader`] and [`VrfGuard`]: lookups in any of the VRFs.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use wirespeed_fib::{Address, Lookup, NextHop, Prefix, V4, V6};
use wirespeed_forest::{FibId as VrfId, FibKeys, ForestTable, InFibs};

use super::entered::{Entered, FamilyReader};
use crate::error::Error;
use crate::key::BLOCK;
use crate::match_ids::MatchIds;
use crate::uses::TableUses;

/// Looks up in any VRF. Any number of threads share one reader, or clone it. Lookups never wait for the
/// writer. A reader stays valid after the [`Vrfs`](crate::Vrfs) are gone, and then keeps the last state.
#[derive(Clone)]
pub struct VrfReader {
    v4: FamilyReader<V4>,
    v6: FamilyReader<V6>,
    ids: Option<Arc<MatchIds>>,
    /// The labels of the tables are used as long as they are looked up in.
    _uses: [Arc<TableUses>; 2],
}

impl VrfReader {
    pub(super) fn new(
        v4: FamilyReader<V4>,
        v6: FamilyReader<V6>,
        ids: Option<Arc<MatchIds>>,
        uses: [Arc<TableUses>; 2],
    ) -> Self {
        Self { v4, v6, ids, _uses: uses }
    }

    /// A reader of tables that never change.
    pub(super) fn of_tables(v4: ForestTable<V4>, v6: ForestTable<V6>, ids: Option<Arc<MatchIds>>) -> Self {
        let (v4, v6) = (FamilyReader::Fixed(Arc::new(v4)), FamilyReader::Fixed(Arc::new(v6)));
        Self::new(v4, v6, ids, Default::default())
    }

    /// The next hop of the longest prefix in a VRF that contains the address. [`NextHop::NONE`] if no prefix
    /// does, or if there is no such VRF.
    #[must_use]
    pub fn lookup(&self, vrf: VrfId, address: IpAddr) -> NextHop {
        self.enter().lookup(vrf, address)
    }

    /// The longest prefix in a VRF that contains the address, with its next hop. `None` if no prefix does, or
    /// if there is no such VRF.
    ///
    /// Fails if the VRFs were built without [`prefix_lookups`](crate::VrfsBuilder::prefix_lookups).
    pub fn lookup_prefix(&self, vrf: VrfId, address: IpAddr) -> Result<Option<(IpNet, NextHop)>, Error> {
        self.enter().lookup_prefix(vrf, address)
    }

    /// Looks each address up in the VRF at its index, and writes the next hop to the same index of
    /// `next_hops`. Sees one state of each family.
    ///
    /// Panics when the slices differ in length.
    pub fn lookup_batch(&self, vrfs: &[VrfId], addresses: &[IpAddr], next_hops: &mut [NextHop]) {
        self.enter().lookup_batch(vrfs, addresses, next_hops);
    }

    /// Looks up like [`lookup_batch`](Self::lookup_batch), and also writes the length of each longest prefix
    /// to the same index of `lengths`. An address without a prefix gets [`NextHop::NONE`] and length 0.
    ///
    /// Fails if the VRFs were built without [`prefix_lookups`](crate::VrfsBuilder::prefix_lookups). Panics
    /// when the slices differ in length.
    pub fn lookup_prefixes(
        &self,
        vrfs: &[VrfId],
        addresses: &[IpAddr],
        next_hops: &mut [NextHop],
        lengths: &mut [u8],
    ) -> Result<(), Error> {
        self.enter().lookup_prefixes(vrfs, addresses, next_hops, lengths)
    }

    /// Enters one state of each family, for lookups that belong together. While a guard is held, the writer
    /// can make one more change and then waits: hold a guard for a few batches only.
    pub fn enter(&self) -> VrfGuard<'_> {
        VrfGuard { v4: self.v4.enter(), v6: self.v6.enter(), ids: self.ids.as_deref() }
    }
}

/// One state of all VRFs, until the guard is dropped.
#[must_use = "a state that is dropped at once protects nothing"]
pub struct VrfGuard<'a> {
    v4: Entered<'a, V4>,
    v6: Entered<'a, V6>,
    ids: Option<&'a MatchIds>,
}

impl VrfGuard<'_> {
    /// [`VrfReader::lookup`] in this state.
    #[must_use]
    pub fn lookup(&self, vrf: VrfId, address: IpAddr) -> NextHop {
        let found = self.find(vrf, address);
        self.ids.map_or(found, |ids| ids.pairs().pair(found).0)
    }

    /// [`VrfReader::lookup_prefix`] in this state.
    pub fn lookup_prefix(&self, vrf: VrfId, address: IpAddr) -> Result<Option<(IpNet, NextHop)>, Error> {
        let pairs = self.ids.ok_or(Error::NoPrefixLookups)?.pairs();
        let (next_hop, len) = pairs.pair(self.find(vrf, address));
        let prefix = match address {
            IpAddr::V4(address) => Prefix::around(V4::from(address), len.min(V4::BITS)).into(),
            IpAddr::V6(address) => Prefix::around(V6::from(address), len).into(),
        };
        Ok(next_hop.is_some().then_some((prefix, next_hop)))
    }

    /// [`VrfReader::lookup_batch`] in this state.
    pub fn lookup_batch(&self, vrfs: &[VrfId], addresses: &[IpAddr], next_hops: &mut [NextHop]) {
        self.look_up(vrfs, addresses, next_hops);
        if let Some(ids) = self.ids {
            ids.pairs().next_hops(next_hops);
        }
    }

    /// [`VrfReader::lookup_prefixes`] in this state.
    pub fn lookup_prefixes(
        &self,
        vrfs: &[VrfId],
        addresses: &[IpAddr],
        next_hops: &mut [NextHop],
        lengths: &mut [u8],
    ) -> Result<(), Error> {
        assert_eq!(addresses.len(), lengths.len(), "a length for each address");
        let pairs = self.ids.ok_or(Error::NoPrefixLookups)?.pairs();
        self.look_up(vrfs, addresses, next_hops);
        pairs.split(next_hops, lengths);
        Ok(())
    }

    fn find(&self, vrf: VrfId, address: IpAddr) -> NextHop {
        match address {
            IpAddr::V4(address) => self.v4.lookup_in(vrf, address.into()),
            IpAddr::V6(address) => self.v6.lookup_in(vrf, address.into()),
        }
    }

    /// Looks up block by block: each block is split by family. Results are as the tables give them.
    fn look_up(&self, vrfs: &[VrfId], addresses: &[IpAddr], found: &mut [NextHop]) {
        assert_eq!(addresses.len(), vrfs.len(), "a VRF for each address");
        assert_eq!(addresses.len(), found.len(), "a result for each address");
        let (mut v4, mut v6) = (Part::<V4>::new(), Part::<V6>::new());
        let blocks = vrfs.chunks(BLOCK).zip(addresses.chunks(BLOCK)).zip(found.chunks_mut(BLOCK));
        for ((vrfs, addresses), found) in blocks {
            // Local counters stay in registers.
            let (mut fours, mut sixes) = (0, 0);
            for (at, (&vrf, &address)) in (0u16..).zip(vrfs.iter().zip(addresses)) {
                match address {
                    IpAddr::V4(address) => fours = v4.put(fours, vrf, address.into(), at),
                    IpAddr::V6(address) => sixes = v6.put(sixes, vrf, address.into(), at),
                }
            }
            v4.answer(fours, &self.v4, found);
            v6.answer(sixes, &self.v6, found);
        }
    }
}

/// The keys of one family in a block, and their positions in the block.
struct Part<A> {
    vrfs: [VrfId; BLOCK],
    keys: [A; BLOCK],
    places: [u16; BLOCK],
    found: [NextHop; BLOCK],
}

impl<A: Address> Part<A> {
    fn new() -> Self {
        let (vrfs, keys) = ([VrfId(0); BLOCK], [A::MIN; BLOCK]);
        Self { vrfs, keys, places: [0; BLOCK], found: [NextHop::NONE; BLOCK] }
    }

    /// Puts a key after `len` others, and returns the new number.
    #[inline(always)]
    fn put(&mut self, len: usize, vrf: VrfId, key: A, place: u16) -> usize {
        (self.vrfs[len], self.keys[len], self.places[len]) = (vrf, key, place);
        len + 1
    }

    /// Looks up the first `len` keys, and writes the results to their positions.
    fn answer(&mut self, len: usize, table: &ForestTable<A>, found: &mut [NextHop]) {
        if len == 0 {
            return;
        }
        let keys = FibKeys::new(&self.vrfs[..len], &self.keys[..len]);
        Lookup::<InFibs<A>>::lookup_batch(table, keys, &mut self.found[..len]);
        for (&place, &next_hop) in self.places.iter().zip(&self.found[..len]) {
            found[usize::from(place)] = next_hop;
        }
    }
}

impl fmt::Debug for VrfReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VrfReader").finish_non_exhaustive()
    }
}

impl fmt::Debug for VrfGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VrfGuard").finish_non_exhaustive()
    }
}
