//! Results of names by an IP FIB: each domain's address gives a next hop (MATA paper, 5.3).
//!
//! ```text
//! /com/parc/www ──Resolver──► 13.1.64.95 ──longest prefix match in the FIB──► next hop 7 ──► /com/parc/www 7
//! ```

use std::fmt;
use std::net::IpAddr;

use wirespeed_fib::synth::rng::Rng;
use wirespeed_fib::{Address, Fib, NextHop, Prefix, Rib, V4, V6};

use super::GenerateError;
use super::entries::each_entry;
use super::table::domain_hash;
use crate::name::Name;
use crate::read::{Labels, NameFib};
use crate::table::NameTable;

/// A source of addresses for names. Displays its kind, so that a stand-in is not mistaken for DNS.
#[derive(Clone, Debug)]
pub struct Resolver(Kind);

#[derive(Clone, Debug)]
enum Kind {
    File { names: Box<NameTable>, addresses: Vec<Option<IpAddr>> },
    StandIn { v4: Vec<Prefix<V4>>, v6: Vec<Prefix<V6>>, seed: u64 },
}

impl Resolver {
    /// A file of names with their addresses, `www.parc.com 13.1.64.95`, as read by
    /// [`read_table`](crate::read::read_table) in any form of names.
    pub fn of_table(fib: NameFib) -> Result<Self, GenerateError> {
        let address = |label: crate::read::Label<'_>| {
            let text = label.to_string();
            text.parse().map(Some).map_err(|_| GenerateError::NoAddress { text })
        };
        let mut addresses = vec![None];
        for (_, label) in fib.labels.iter() {
            addresses.push(address(label)?);
        }
        Ok(Self(Kind::File { names: Box::new(fib.names), addresses }))
    }

    /// Random addresses instead of real ones: for each domain a random prefix of the FIB (IPv4 if there is
    /// any), and an address in it. All names of a domain share the address, except for one in ten.
    /// O(prefixes).
    pub fn stand_in(fib: &Fib, seed: u64) -> Result<Self, GenerateError> {
        fn prefixes<A: Address>(rib: &Rib<A>) -> Vec<Prefix<A>> {
            rib.iter().map(|(prefix, _)| prefix).collect()
        }
        let v4 = prefixes(&fib.v4);
        let v6 = if v4.is_empty() { prefixes(&fib.v6) } else { Vec::new() };
        match v4.is_empty() && v6.is_empty() {
            true => Err(GenerateError::NoPrefixes),
            false => Ok(Self(Kind::StandIn { v4, v6, seed })),
        }
    }

    /// The address of a name.
    pub fn resolve(&self, name: &Name) -> Option<IpAddr> {
        match &self.0 {
            Kind::File { names, addresses } => *addresses.get(names.result(name) as usize)?,
            Kind::StandIn { v4, v6, seed } => {
                let own = xxhash_rust::xxh3::xxh3_64_with_seed(name.as_bytes(), *seed);
                let is_own = own.is_multiple_of(10);
                let mut rng = Rng::new(if is_own { own } else { domain_hash(name, *seed) });
                match v4.is_empty() {
                    true => {
                        Some(std::net::Ipv6Addr::from(address_in(v6[rng.index(v6.len())], &mut rng)).into())
                    }
                    false => {
                        Some(std::net::Ipv4Addr::from(address_in(v4[rng.index(v4.len())], &mut rng)).into())
                    }
                }
            }
        }
    }
}

fn address_in<A: Address>(prefix: Prefix<A>, rng: &mut Rng) -> A {
    let host = A::from_u128_low(rng.bits128()).to_u128() & !A::MAX.keep(prefix.len()).to_u128();
    A::from_u128_low(prefix.address().to_u128() | host)
}

impl fmt::Display for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::File { names, .. } => write!(f, "a file with the addresses of {} names", names.len()),
            Kind::StandIn { seed, .. } => write!(f, "made addresses (seed {seed}), in place of DNS"),
        }
    }
}

/// Counts of a table's names by outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Resolved {
    /// Names with a next hop.
    pub routed: usize,
    /// Names without an address, which were left out.
    pub without_address: usize,
    /// Names whose address has no route, which were left out.
    pub without_route: usize,
}

/// The names of a table with the next hops of their addresses as results, named as in the FIB. O(names).
///
/// ```
/// use wirespeed_fib::read::{ReadOptions, read_fib_from};
/// use wirespeed_namelookup::generate::{Resolver, via_fib};
/// use wirespeed_namelookup::read::{self, read_table_from};
///
/// let (fib, _) = read_fib_from(&b"13.0.0.0/8 east\n13.1.0.0/16 west\n"[..], "fib", &ReadOptions::default())?;
/// let (domains, _) = read_table_from(&b"www.parc.com\nparc.com\n"[..], "domains", &read::ReadOptions::default())?;
/// let (dns, _) = read_table_from(&b"www.parc.com 13.1.64.95\n"[..], "dns", &read::ReadOptions::default())?;
///
/// let (table, resolved) = via_fib(&domains.names, &Resolver::of_table(dns)?, &fib)?;
/// let (name, result) = table.names.iter().next().expect("the one that was resolved");
/// assert_eq!(name.to_string(), "/com/parc/www");
/// assert_eq!(table.labels.label(result).expect("a next hop").to_string(), "west");
/// assert_eq!((resolved.routed, resolved.without_address), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn via_fib(
    names: &NameTable,
    resolver: &Resolver,
    fib: &Fib,
) -> Result<(NameFib, Resolved), GenerateError> {
    let mut labels = Labels::new();
    for (_, text) in fib.next_hops.iter() {
        labels.intern(text)?;
    }
    let (mut table, mut resolved) = (NameTable::new(), Resolved::default());
    table.reserve(names.node_count());
    each_entry(names, |name, _| match resolver.resolve(name).map(|address| next_hop(fib, address)) {
        None => resolved.without_address += 1,
        Some(NextHop::NONE) => resolved.without_route += 1,
        Some(next_hop) => {
            resolved.routed += 1;
            table.insert(name, next_hop.0);
        }
    });
    Ok((NameFib { names: table, labels }, resolved))
}

/// The next hop of an address; `NONE` also for a hole.
fn next_hop(fib: &Fib, address: IpAddr) -> NextHop {
    let found = match address {
        IpAddr::V4(address) => fib.v4.longest_match(address.into()).map(|(_, next_hop)| next_hop),
        IpAddr::V6(address) => fib.v6.longest_match(address.into()).map(|(_, next_hop)| next_hop),
    };
    found.unwrap_or(NextHop::NONE)
}
