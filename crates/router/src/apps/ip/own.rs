//! [`Owns`]: what the router is at its ports, and [`OwnSources`]: which packets claim to come from it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::{Mac, PortId};

/// The router's identity at a port: the addresses that it sends errors from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// The link-layer address.
    pub mac: Mac,
    /// An IPv4 address.
    pub v4: Option<Ipv4Addr>,
    /// An IPv6 address.
    pub v6: Option<Ipv6Addr>,
}

/// The router's identities at its ports, in their order. They may change while the router runs.
#[derive(Debug, Default)]
pub struct Owns {
    ports: RwLock<Vec<Own>>,
    sources: RwLock<Vec<Arc<OwnSources>>>,
    /// The number of changes of `sources`, so that a worker sees one without taking the lock.
    version: AtomicU64,
}

impl Owns {
    /// Makes the router's identities at its ports.
    #[must_use]
    pub const fn new(own: Vec<Own>) -> Self {
        Self { ports: RwLock::new(own), sources: RwLock::new(Vec::new()), version: AtomicU64::new(0) }
    }

    /// Changes what the router is. Returns whether it was something else.
    pub fn set(&self, own: Vec<Own>) -> bool {
        let mut now = self.ports.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = *now != own;
        *now = own;
        is_new
    }

    /// Changes the addresses of the router that no packet to be forwarded may come from, for each port. Such
    /// a packet is dropped as [`Reason::Martian`](crate::Reason::Martian), as Linux does (RFC 1812, 5.3.8). A
    /// port without addresses takes all packets: that of the host itself is one.
    ///
    /// There are none for IPv6, whose packets Linux forwards.
    pub fn set_sources(&self, ports: impl IntoIterator<Item = Vec<Ipv4Addr>>) {
        let sources = ports.into_iter().map(|addresses| Arc::new(OwnSources::new(addresses))).collect();
        *self.sources.write().unwrap_or_else(PoisonError::into_inner) = sources;
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Something that the router has at a port, or else at any other.
    pub(in crate::apps) fn find<T>(&self, port: PortId, of: impl Fn(&Own) -> Option<T>) -> Option<T> {
        let own = self.ports.read().unwrap_or_else(PoisonError::into_inner);
        own.get(port.index()).and_then(&of).or_else(|| own.iter().find_map(of))
    }

    /// Whether an address is one of a port's sources.
    #[cfg(test)]
    pub(crate) fn is_source(&self, port: usize, address: Ipv4Addr) -> bool {
        self.sources().get(port).is_some_and(|own| own.has(address.into()))
    }

    /// The number of changes of the sources so far.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The sources of each port, in their order.
    pub(super) fn sources(&self) -> Vec<Arc<OwnSources>> {
        self.sources.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Addresses of the router at a port. A bit for each of 4,096 hashes answers for nearly all packets, from a
/// few cache lines.
#[derive(Debug)]
pub(super) struct OwnSources {
    bits: [u64; 64],
    sorted: Vec<u32>,
}

impl OwnSources {
    fn new(addresses: Vec<Ipv4Addr>) -> Self {
        let mut sorted: Vec<u32> = addresses.into_iter().map(u32::from).collect();
        sorted.sort_unstable();
        let mut bits = [0; 64];
        for &address in &sorted {
            let (word, bit) = Self::place(address);
            bits[word] |= 1 << bit;
        }
        Self { bits, sorted }
    }

    /// Whether an address is one of them.
    #[inline]
    pub(super) fn has(&self, address: u32) -> bool {
        let (word, bit) = Self::place(address);
        self.bits[word] >> bit & 1 == 1 && self.sorted.binary_search(&address).is_ok()
    }

    #[inline]
    const fn place(address: u32) -> (usize, u32) {
        let hash = address.wrapping_mul(0x9e37_79b1) >> 20;
        ((hash >> 6) as usize, hash & 63)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_and_no_others() {
        let all: Vec<Ipv4Addr> = (0..300_u32).map(|n| Ipv4Addr::from(n.wrapping_mul(0x0103_0507))).collect();
        let own = OwnSources::new(all.clone());
        assert!(all.iter().all(|&address| own.has(address.into())));
        assert!((0..100_000_u32).all(|n| own.has(n) == all.contains(&Ipv4Addr::from(n))));
        assert!(!OwnSources::new(Vec::new()).has(0));
    }
}
