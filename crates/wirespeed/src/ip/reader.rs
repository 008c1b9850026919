//! [`IpReader`] and [`IpGuard`]: lookups of addresses of both families.
//!
//! A batch is split by family, each part is looked up, and the results go back to the keys' positions. A CPU
//! takes blocks that fit the first-level cache; a GPU takes the keys of a family all at once.

use std::net::IpAddr;

use ipnet::IpNet;
use wirespeed_fib::{NextHop, V4, V6};

use crate::engine::Addresses;
use crate::error::Error;
use crate::key::BLOCK;
use crate::reader::{Guard, Reader};

/// Looks up addresses of either family; see [`Reader`].
#[derive(Clone, Debug)]
pub struct IpReader {
    v4: Reader<V4>,
    v6: Reader<V6>,
    mapped_as_v4: bool,
}

impl IpReader {
    /// Joins two readers, for example of two images.
    #[must_use]
    pub fn new(v4: Reader<V4>, v6: Reader<V6>) -> Self {
        Self { v4, v6, mapped_as_v4: false }
    }

    /// The reader of the IPv4 table. For keys that are known to be IPv4 it is faster than [`IpAddr`]s.
    #[must_use]
    pub fn v4(&self) -> &Reader<V4> {
        &self.v4
    }

    /// The reader of the IPv6 table.
    #[must_use]
    pub fn v6(&self) -> &Reader<V6> {
        &self.v6
    }

    /// Looks up IPv4-mapped addresses (`::ffff:192.0.2.1`, as a dual-stack socket gives them) as IPv4
    /// addresses, or as the IPv6 addresses that they are, which is the default. The choice is made where a
    /// batch is split by family, so it takes no pass of its own.
    #[must_use]
    pub fn mapped_as_v4(self, mapped_as_v4: bool) -> Self {
        Self { mapped_as_v4, ..self }
    }

    /// The next hop of the longest prefix that contains the address, or [`NextHop::NONE`].
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: IpAddr) -> NextHop {
        match in_family(address, self.mapped_as_v4) {
            IpAddr::V4(address) => self.v4.lookup(address),
            IpAddr::V6(address) => self.v6.lookup(address),
        }
    }

    /// The longest prefix that contains the address, with its next hop. `None` if no prefix does.
    ///
    /// Fails if the table was built without [`prefix_lookups`](crate::IpBuilder::prefix_lookups).
    pub fn lookup_prefix(&self, address: IpAddr) -> Result<Option<(IpNet, NextHop)>, Error> {
        Ok(match in_family(address, self.mapped_as_v4) {
            IpAddr::V4(address) => self.v4.lookup_prefix(address)?.map(to_net),
            IpAddr::V6(address) => self.v6.lookup_prefix(address)?.map(to_net),
        })
    }

    /// Looks up addresses of both families, and writes each next hop to the same index of `next_hops`. Sees
    /// one state of each family's table.
    ///
    /// Panics when the slices differ in length.
    pub fn lookup_batch(&self, addresses: &[IpAddr], next_hops: &mut [NextHop]) {
        let looked_up = self.look_up(addresses, Results { next_hops, lengths: None });
        looked_up.expect("lookups of next hops don't fail");
    }

    /// Looks up like [`lookup_batch`](Self::lookup_batch), and also writes the length of each longest prefix
    /// to the same index of `lengths`. An address without a prefix gets [`NextHop::NONE`] and length 0.
    ///
    /// Fails if the table was built without [`prefix_lookups`](crate::IpBuilder::prefix_lookups). Panics when
    /// the slices differ in length.
    pub fn lookup_prefixes(
        &self,
        addresses: &[IpAddr],
        next_hops: &mut [NextHop],
        lengths: &mut [u8],
    ) -> Result<(), Error> {
        self.v4.check_prefix_lookups()?;
        self.v6.check_prefix_lookups()?;
        self.look_up(addresses, Results { next_hops, lengths: Some(lengths) })
    }

    fn look_up(&self, addresses: &[IpAddr], mut results: Results<'_>) -> Result<(), Error> {
        if self.v4.offload().is_none() && self.v6.offload().is_none() {
            return self.enter().look_up(addresses, results);
        }
        results.check(addresses);
        let (mut v4, mut v6) = (OfFamily::default(), OfFamily::default());
        for (place, &address) in addresses.iter().enumerate() {
            match in_family(address, self.mapped_as_v4) {
                IpAddr::V4(address) => v4.push(address.into(), place),
                IpAddr::V6(address) => v6.push(address.into(), place),
            }
        }
        v4.answer(&self.v4, &mut results)?;
        v6.answer(&self.v6, &mut results)
    }

    /// Enters one state of each family's table, for lookups that belong together: [`Reader::enter`].
    pub fn enter(&self) -> IpGuard<'_> {
        IpGuard { v4: self.v4.enter(), v6: self.v6.enter(), mapped_as_v4: self.mapped_as_v4 }
    }
}

/// One state of each family's table, until the guard is dropped.
#[derive(Debug)]
#[must_use = "a state that is dropped at once protects nothing"]
pub struct IpGuard<'a> {
    v4: Guard<'a, V4>,
    v6: Guard<'a, V6>,
    mapped_as_v4: bool,
}

impl IpGuard<'_> {
    /// [`IpReader::lookup`] in this state.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: IpAddr) -> NextHop {
        match in_family(address, self.mapped_as_v4) {
            IpAddr::V4(address) => self.v4.lookup(address),
            IpAddr::V6(address) => self.v6.lookup(address),
        }
    }

    /// [`IpReader::lookup_prefix`] in this state.
    pub fn lookup_prefix(&self, address: IpAddr) -> Result<Option<(IpNet, NextHop)>, Error> {
        Ok(match in_family(address, self.mapped_as_v4) {
            IpAddr::V4(address) => self.v4.lookup_prefix(address)?.map(to_net),
            IpAddr::V6(address) => self.v6.lookup_prefix(address)?.map(to_net),
        })
    }

    /// [`IpReader::lookup_batch`] in this state.
    pub fn lookup_batch(&self, addresses: &[IpAddr], next_hops: &mut [NextHop]) {
        let looked_up = self.look_up(addresses, Results { next_hops, lengths: None });
        looked_up.expect("lookups of next hops don't fail");
    }

    /// [`IpReader::lookup_prefixes`] in this state.
    pub fn lookup_prefixes(
        &self,
        addresses: &[IpAddr],
        next_hops: &mut [NextHop],
        lengths: &mut [u8],
    ) -> Result<(), Error> {
        self.v4.check_prefix_lookups()?;
        self.v6.check_prefix_lookups()?;
        self.look_up(addresses, Results { next_hops, lengths: Some(lengths) })
    }

    fn look_up(&self, addresses: &[IpAddr], mut results: Results<'_>) -> Result<(), Error> {
        results.check(addresses);
        let (mut v4, mut v6) = (Part::new(), Part::new());
        for (block, addresses) in addresses.chunks(BLOCK).enumerate() {
            // Counters are local variables: a counter behind a reference is loaded and stored again for each
            // key.
            let (mut fours, mut sixes) = (0, 0);
            for (at, &address) in (0u16..).zip(addresses) {
                match in_family(address, self.mapped_as_v4) {
                    IpAddr::V4(address) => {
                        v4.keys[fours] = address.into();
                        v4.places[fours] = at;
                        fours += 1;
                    }
                    IpAddr::V6(address) => {
                        v6.keys[sixes] = address.into();
                        v6.places[sixes] = at;
                        sixes += 1;
                    }
                }
            }
            let mut results = results.block(block, addresses.len());
            v4.answer(fours, &self.v4, &mut results)?;
            v6.answer(sixes, &self.v6, &mut results)?;
        }
        Ok(())
    }
}

/// The address in the family that it is looked up in.
#[inline]
fn in_family(address: IpAddr, mapped_as_v4: bool) -> IpAddr {
    if mapped_as_v4 { address.to_canonical() } else { address }
}

fn to_net((prefix, next_hop): (impl Into<IpNet>, NextHop)) -> (IpNet, NextHop) {
    (prefix.into(), next_hop)
}

/// The results of a batch: next hops, and the lengths of prefixes if they are asked for.
struct Results<'r> {
    next_hops: &'r mut [NextHop],
    lengths: Option<&'r mut [u8]>,
}

impl Results<'_> {
    fn check(&self, addresses: &[IpAddr]) {
        assert_eq!(addresses.len(), self.next_hops.len(), "a result for each address");
        if let Some(lengths) = &self.lengths {
            assert_eq!(addresses.len(), lengths.len(), "a length for each address");
        }
    }

    /// The results of a block, which has `len` keys.
    fn block(&mut self, block: usize, len: usize) -> Results<'_> {
        let block = block * BLOCK..block * BLOCK + len;
        Results {
            next_hops: &mut self.next_hops[block.clone()],
            lengths: self.lengths.as_deref_mut().map(|lengths| &mut lengths[block]),
        }
    }
}

/// The keys of one family in a whole batch, as a GPU needs them, and their positions in the batch.
struct OfFamily<A> {
    keys: Vec<A>,
    places: Vec<usize>,
}

impl<A> Default for OfFamily<A> {
    fn default() -> Self {
        Self { keys: Vec::new(), places: Vec::new() }
    }
}

impl<A: Addresses> OfFamily<A> {
    fn push(&mut self, key: A, place: usize) {
        self.keys.push(key);
        self.places.push(place);
    }

    /// Looks the keys up, and writes the results to their positions.
    fn answer(&self, reader: &Reader<A>, results: &mut Results<'_>) -> Result<(), Error> {
        let mut found = vec![NextHop::NONE; self.keys.len()];
        if let Some(lengths) = results.lengths.as_deref_mut() {
            let mut of_keys = vec![0; self.keys.len()];
            reader.lookup_prefixes(&self.keys, &mut found, &mut of_keys)?;
            for (&place, length) in self.places.iter().zip(of_keys) {
                lengths[place] = length;
            }
        } else {
            reader.lookup_batch(&self.keys, &mut found);
        }
        for (&place, &next_hop) in self.places.iter().zip(&found) {
            results.next_hops[place] = next_hop;
        }
        Ok(())
    }
}

/// The keys of one family in a block, and their positions in the block.
struct Part<A> {
    keys: [A; BLOCK],
    places: [u16; BLOCK],
    next_hops: [NextHop; BLOCK],
    lengths: [u8; BLOCK],
}

impl<A: Addresses> Part<A> {
    fn new() -> Self {
        Self {
            keys: [A::MIN; BLOCK],
            places: [0; BLOCK],
            next_hops: [NextHop::NONE; BLOCK],
            lengths: [0; BLOCK],
        }
    }

    /// Looks up the first `len` keys, and writes the results to their positions.
    fn answer(&mut self, len: usize, table: &Guard<'_, A>, results: &mut Results<'_>) -> Result<(), Error> {
        if len == 0 {
            return Ok(());
        }
        let (keys, places) = (&self.keys[..len], &self.places[..len]);
        let (found, of_keys) = (&mut self.next_hops[..len], &mut self.lengths[..len]);
        if let Some(lengths) = results.lengths.as_deref_mut() {
            table.lookup_prefixes(keys, found, of_keys)?;
            for (&place, &length) in places.iter().zip(&*of_keys) {
                lengths[usize::from(place)] = length;
            }
        } else {
            table.lookup_batch(keys, found);
        }
        for (&place, &next_hop) in places.iter().zip(&*found) {
            results.next_hops[usize::from(place)] = next_hop;
        }
        Ok(())
    }
}
