//! [`Route`]: what a route of the table does with a packet. [`Hop`], [`Group`]: where it goes.
//!
//! A table maps prefixes to indexes, and [`Labels`](wirespeed::Labels) map an index to a `Route`. If a
//! neighbour's address changes, the label is replaced in place, and no route is touched.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::{Mac, PortId};

/// A route: it says what happens to a packet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Route {
    /// The packet goes to a next hop.
    Via(Hop),
    /// The packet goes to one of several next hops, chosen by its flow.
    Group(Group),
    /// The packet is for the router itself, or its next hop has to be resolved: the operating system takes
    /// it.
    Kernel,
    /// The next hop is not resolved yet, and the operating system has no such route by which it would find
    /// it: the packet is dropped.
    Unresolved,
    /// The packet is dropped silently.
    Blackhole,
    /// The packet is dropped, and its sender is told that the destination can't be reached.
    Unreachable,
    /// The packet is dropped, and its sender is told that the destination is prohibited.
    Prohibited,
}

/// A next hop: a port and the link-layer header of its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hop {
    /// The first 12 bytes of its frames: the next hop's address, and the port's.
    header: [u8; 12],
    port: PortId,
    /// The largest packet that the link takes, in bytes from the IP header on.
    mtu: u16,
}

impl Hop {
    /// The next hop `to`, behind a port with the address `from`, over a link that takes packets of `mtu`
    /// bytes.
    #[must_use]
    pub const fn new(port: PortId, to: Mac, from: Mac, mtu: u16) -> Self {
        let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (to.0, from.0);
        Self { header: [a, b, c, d, e, f, g, h, i, j, k, l], port, mtu }
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> PortId {
        self.port
    }

    /// The next hop's link-layer address.
    #[must_use]
    pub fn to(&self) -> Mac {
        let [a, b, c, d, e, f, ..] = self.header;
        Mac([a, b, c, d, e, f])
    }

    /// The first 12 bytes of frames to it.
    #[must_use]
    pub const fn header(&self) -> &[u8; 12] {
        &self.header
    }

    /// The largest packet that the link takes, in bytes from the IP header on.
    #[must_use]
    pub const fn mtu(&self) -> u16 {
        self.mtu
    }
}

/// Next hops with weights. The packets of a flow take one of them (hash-threshold, RFC 2992).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    hops: Box<[Hop]>,
    /// The sum of weights up to each next hop, as a share of 2^32: increasing, and `u32::MAX` at the end.
    thresholds: Box<[u32]>,
}

impl Group {
    /// A group of next hops with weights. `None` if no next hop has a weight.
    #[must_use]
    pub fn new(hops: impl IntoIterator<Item = (Hop, u16)>) -> Option<Self> {
        let hops: Vec<_> = hops.into_iter().filter(|&(_, weight)| weight > 0).collect();
        let total: u64 = hops.iter().map(|&(_, weight)| u64::from(weight)).sum();
        let (mut sum, mut thresholds) = (0, Vec::with_capacity(hops.len()));
        for &(_, weight) in &hops {
            sum += u64::from(weight);
            // A share of 2^32, less one: it fits, because the sum is at most the total.
            #[allow(clippy::cast_possible_truncation)]
            thresholds.push(((sum << 32) / total - 1) as u32);
        }
        let hops: Box<[Hop]> = hops.into_iter().map(|(hop, _)| hop).collect();
        (total > 0).then(|| Self { hops, thresholds: thresholds.into() })
    }

    /// The next hop of a flow.
    #[inline]
    #[must_use]
    pub fn of_flow(&self, hash: u32) -> &Hop {
        let at = self.thresholds.partition_point(|&threshold| threshold < hash);
        &self.hops[at]
    }

    /// The next hops.
    #[must_use]
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }
}

/// A number for the flow of a packet: from addresses, protocol and ports. Packets of a flow have the same.
/// Fragments have no ports, so callers give 0 for all fragments of a packet.
#[must_use]
pub fn flow_hash(addresses: &[u8], protocol: u8, ports: u32) -> u32 {
    // Keys are fixed: a flow keeps its way when a router starts again, and both routers of a pair agree.
    let mut hasher = DefaultHasher::new();
    (addresses, protocol, ports).hash(&mut hasher);
    (hasher.finish() >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(port: u16) -> Hop {
        Hop::new(PortId(port), Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]), 1500)
    }

    #[test]
    fn flows_spread_by_weight_and_stay() {
        let group = Group::new([(hop(0), 1), (hop(1), 0), (hop(2), 3)]).unwrap();
        assert_eq!(group.hops().len(), 2);
        let mut counts = [0_u32; 3];
        for flow in 0..40_000_u32 {
            let hash = flow_hash(&flow.to_be_bytes(), 6, 80);
            assert_eq!(group.of_flow(hash), group.of_flow(hash));
            counts[group.of_flow(hash).port().index()] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((9_400..10_600).contains(&counts[0]), "{counts:?}");
        assert_eq!(group.of_flow(0).port(), PortId(0));
        assert_eq!(group.of_flow(u32::MAX).port(), PortId(2));
    }

    #[test]
    fn a_group_has_a_next_hop() {
        assert_eq!(Group::new([]), None);
        assert_eq!(Group::new([(hop(1), 0)]), None);
        let many = Group::new((0..600).map(|n| (hop(n), u16::MAX))).unwrap();
        assert_eq!(many.of_flow(u32::MAX).port(), PortId(599));
    }
}
