//! [`Packet`]: a packet whose headers are changed, with right checksums.
//!
//! A change keeps a checksum as right or as wrong as it was (RFC 1624): what a host damaged stays damaged.
//! SCTP's checksum can't be changed so, and is made again from the whole packet. So a fragment's ports of
//! SCTP can't be set. A change of a header that the packet does not have does nothing.

mod fields;
mod headers;
mod hops;
#[cfg(test)]
mod tests;

use wirespeed_router::checksum::changed;

use super::parse::{Layout, UDP, be16, be48, came_in, parse, parse_to};
use crate::wire::{Action, Field, Key, WORDS};

/// The fields that are no part of a frame.
const OUTSIDE: Key = Key([0; WORDS])
    .with(Field::InPort, Field::InPort.all())
    .with(Field::InPhyPort, Field::InPhyPort.all())
    .with(Field::Metadata, Field::Metadata.all())
    .with(Field::TunnelId, Field::TunnelId.all());

/// The fields that all packets of a flow have alike. Those of TCP have the places of other ports, too.
const OF_FLOW: Key = {
    use Field::{EthDst, EthSrc, EthType, IpProto, Ipv4Dst, Ipv4Src, Ipv6Dst, Ipv6Src, TcpDst, TcpSrc};
    let fields = [EthDst, EthSrc, EthType, IpProto, Ipv4Dst, Ipv4Src, Ipv6Dst, Ipv6Src, TcpDst, TcpSrc];
    let (mut key, mut at) = (Key([0; WORDS]), 0);
    while at < fields.len() {
        key.set(fields[at], fields[at].all());
        at += 1;
    }
    key
};

/// A packet on its way through the tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packet {
    pub(crate) bytes: Vec<u8>,
    /// Its fields. Those of the frame are right unless `is_stale`: most packets leave without a look at them.
    pub(crate) key: Key,
    layout: Layout,
    is_stale: bool,
}

/// The reason why a packet goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// The time to live was spent.
    Spent,
    /// A part of the packet is elsewhere, and a checksum that has to be made covers it.
    Part,
}

impl Packet {
    pub(crate) fn new(bytes: Vec<u8>, in_port: u32) -> Self {
        Self { bytes, key: came_in(in_port), layout: Layout::default(), is_stale: true }
    }

    /// Begins again with the bytes of another packet.
    pub(crate) fn begin(&mut self, bytes: &[u8], in_port: u32) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.key = came_in(in_port);
        self.is_stale = true;
    }

    /// Begins again with the fields of a frame, without its bytes.
    pub(crate) fn read(&mut self, frame: &[u8], in_port: u32) {
        self.bytes.clear();
        (self.key, self.layout) = parse(frame, in_port);
        self.is_stale = false;
    }

    /// Holds bytes of the frame whose fields were read.
    pub(crate) fn hold(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.is_stale = true;
    }

    /// Does an action that changes the packet itself. Others do nothing here.
    pub(crate) fn change(&mut self, action: Action) -> Result<(), Stopped> {
        match action {
            Action::CopyTtlOut => self.copy_ttl_out(),
            Action::CopyTtlIn => self.copy_ttl_in(),
            Action::SetMplsTtl(hops) => self.set_mpls_ttl(hops),
            Action::SetNwTtl(hops) => self.set_nw_ttl(hops),
            Action::PushVlan(ether) => self.push_vlan(ether),
            Action::PopVlan => self.pop_vlan(),
            Action::PushMpls(ether) => self.push_mpls(ether),
            Action::PopMpls(ether) => self.pop_mpls(ether),
            Action::PushPbb(ether) => self.push_pbb(ether),
            Action::PopPbb => self.pop_pbb(),
            Action::SetField(field, _) if !self.is_whole_for(field) => return Err(Stopped::Part),
            Action::SetField(field, value) => self.set_field(field, value),
            Action::DecMplsTtl => self.dec_mpls_ttl()?,
            Action::DecNwTtl => self.dec_nw_ttl()?,
            // Queues are refused: ports have none.
            Action::Output { .. } | Action::Group(_) | Action::SetQueue(_) => {}
        }
        Ok(())
    }

    /// Writes a value to the bits of the metadata under a mask.
    pub(crate) fn write_metadata(&mut self, (value, mask): (u64, u64)) {
        let old = self.key.of(Field::Metadata);
        self.key.set(Field::Metadata, old & !u128::from(mask) | u128::from(value));
    }

    /// Reads the fields and the layout of the frame, if they are not those of its bytes.
    #[inline]
    pub(crate) fn refresh(&mut self) {
        if self.is_stale {
            self.key = self.key.and(&OUTSIDE);
            self.layout = parse_to(&self.bytes, &mut self.key);
            self.is_stale = false;
        }
    }

    /// Writes bytes that no checksum covers.
    fn put(&mut self, at: usize, new: &[u8]) {
        self.bytes[at..at + new.len()].copy_from_slice(new);
        self.is_stale = true;
    }

    /// Writes bytes that checksums cover, whose words are counted from `base`.
    fn replace(&mut self, base: usize, at: usize, new: &[u8], sums: &[Option<usize>]) {
        let start = at - (at - base) % 2;
        let words = (at + new.len() - start).div_ceil(2);
        let word = |bytes: &[u8], n: usize| {
            let at = start + 2 * n;
            let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
            u16::from_be_bytes([byte(at), byte(at + 1)])
        };
        let mut old = [0; 9];
        old.iter_mut().take(words).enumerate().for_each(|(n, old)| *old = word(&self.bytes, n));
        self.put(at, new);
        for &sum_at in sums.iter().flatten() {
            let mut sum = be16(&self.bytes, sum_at).unwrap_or(0);
            for (n, &old) in old.iter().take(words).enumerate() {
                sum = changed(sum, old, word(&self.bytes, n));
            }
            let is_udp = self.layout.ip.is_some_and(|ip| ip.protocol == UDP && sum_at != ip.at + 10);
            // 0 says that there is none.
            let sum = if is_udp && sum == 0 { 0xffff } else { sum };
            self.bytes[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
        }
    }

    fn insert(&mut self, at: usize, new: &[u8]) {
        self.bytes.splice(at..at, new.iter().copied());
        self.is_stale = true;
    }

    fn remove(&mut self, at: usize, count: usize) {
        self.bytes.drain(at..at + count);
        self.is_stale = true;
    }

    /// A hash of the flow that the packet is of: its addresses, protocol and ports. Marks of congestion and
    /// priorities may change within a flow, and are left out. Fragments have one by their addresses alone:
    /// later ones have no ports, and in IPv6 not always the protocol.
    pub(crate) fn flow_hash(&mut self) -> u32 {
        self.refresh();
        let mut hash = 0_u64;
        let mut flow = self.key.and(&OF_FLOW);
        if self.layout.ip.is_some_and(|ip| ip.has_more || ip.transport.is_none()) {
            [Field::IpProto, Field::TcpSrc, Field::TcpDst].into_iter().for_each(|field| flow.set(field, 0));
        }
        for word in [1, 2, 3, 4, 10, 11, 12, 13, 0].map(|word| flow.0[word]) {
            hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 29;
        }
        #[allow(clippy::cast_possible_truncation)] // the upper half
        let hash = (hash >> 32) as u32;
        hash
    }

    /// The link-layer source and destination, for a switch that learns.
    pub(crate) fn addresses(&self) -> Option<(u64, u64)> {
        Some((be48(&self.bytes, 6)?, be48(&self.bytes, 0)?))
    }
}
