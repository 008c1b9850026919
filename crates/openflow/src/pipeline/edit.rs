//! [`Packet`]: a packet whose headers are changed, with right checksums.
//!
//! A change keeps a checksum as right or as wrong as it was (RFC 1624): what a host damaged stays damaged.
//! SCTP's checksum can't be changed so, and is made again from the whole packet. So a fragment's ports of
//! SCTP can't be set. A change of a header that the packet does not have does nothing.

use wirespeed_router::checksum::changed;

use super::parse::{ICMP, ICMPV6, Ip, Layout, SCTP, TCP, UDP, be16, be32, be48, came_in, parse, parse_to};
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

    pub(crate) fn push_vlan(&mut self, ether: u16) {
        self.refresh();
        if self.bytes.len() < 14 {
            return;
        }
        let tag = if self.layout.tags > 0 { be16(&self.bytes, 14).unwrap_or(0) } else { 0 };
        self.insert(12, &[ether.to_be_bytes(), tag.to_be_bytes()].concat());
    }

    pub(crate) fn pop_vlan(&mut self) {
        self.refresh();
        if self.layout.tags > 0 {
            self.remove(12, 4);
        }
    }

    pub(crate) fn push_mpls(&mut self, ether: u16) {
        self.refresh();
        if self.bytes.len() < 14 {
            return;
        }
        let entry = if self.layout.is_mpls {
            // The new entry has what the old one has, and is not the last.
            be32(&self.bytes, self.layout.payload).unwrap_or(0) & !0x100
        } else {
            0x100 | u32::from(self.ip_hops().map_or(0, |at| self.bytes[at]))
        };
        // The outermost place: before other tags (specification 1.3.5, section 5.12).
        // In front of entries that there are, else in the outermost place, before tags (specification 1.3.5,
        // section 5.12.1): a tag loses its type there, and gets it back when the entry is taken off.
        let at = if self.layout.is_mpls { self.layout.ether_at } else { 12 };
        self.put(at, &ether.to_be_bytes());
        self.insert(at + 2, &entry.to_be_bytes());
    }

    pub(crate) fn pop_mpls(&mut self, ether: u16) {
        self.refresh();
        if self.layout.is_mpls {
            let at = self.layout.ether_at;
            self.bytes[at..at + 2].copy_from_slice(&ether.to_be_bytes());
            self.remove(self.layout.payload, 4);
        }
    }

    pub(crate) fn push_pbb(&mut self, ether: u16) {
        self.refresh();
        let Some(addresses) = self.bytes.first_chunk::<12>().copied() else { return };
        let pcp = if self.layout.tags > 0 { be16(&self.bytes, 14).unwrap_or(0) >> 13 } else { 0 };
        let isid = if self.layout.is_pbb {
            be32(&self.bytes, self.layout.payload).unwrap_or(0) & 0xff_ffff
        } else {
            0
        };
        let mut header = [0; 18];
        header[..12].copy_from_slice(&addresses);
        header[12..14].copy_from_slice(&ether.to_be_bytes());
        header[14..].copy_from_slice(&(u32::from(pcp) << 29 | isid).to_be_bytes());
        self.insert(0, &header);
    }

    pub(crate) fn pop_pbb(&mut self) {
        self.refresh();
        if self.layout.is_pbb && self.layout.tags == 0 {
            self.remove(0, self.layout.payload + 4);
        }
    }

    /// Where the time to live of IP is, directly under Ethernet.
    fn ip_hops(&self) -> Option<usize> {
        self.layout.ip.map(|ip| ip.at + if ip.is_v6 { 7 } else { 8 })
    }

    /// Where the time to live of the header behind the outer MPLS entry is, and whether it is of IPv4.
    fn inner_hops(&self) -> Option<(usize, Option<usize>)> {
        let at = self.layout.payload;
        let entry = be32(&self.bytes, at).filter(|_| self.layout.is_mpls)?;
        let inner = at + 4;
        if entry & 0x100 == 0 {
            return (self.bytes.len() >= inner + 4).then_some((inner + 3, None));
        }
        match self.bytes.get(inner)? >> 4 {
            4 if self.bytes.len() >= inner + 20 => Some((inner + 8, Some(inner))),
            6 if self.bytes.len() >= inner + 40 => Some((inner + 7, None)),
            _ => None,
        }
    }

    /// Sets a time to live, which is no field. The fields are those of the bytes before and after.
    fn set_hops(&mut self, at: usize, ipv4: Option<usize>, hops: u8) {
        match ipv4 {
            Some(base) => self.replace(base, at, &[hops], &[Some(base + 10)]),
            None => self.bytes[at] = hops,
        }
        self.is_stale = false;
    }

    pub(crate) fn set_nw_ttl(&mut self, hops: u8) {
        self.refresh();
        if let (Some(at), Some(ip)) = (self.ip_hops(), self.layout.ip) {
            self.set_hops(at, (!ip.is_v6).then_some(ip.at), hops);
        }
    }

    pub(crate) fn dec_nw_ttl(&mut self) -> Result<(), Stopped> {
        self.refresh();
        match self.ip_hops().map(|at| self.bytes[at]) {
            Some(0 | 1) => Err(Stopped::Spent),
            Some(hops) => {
                self.set_nw_ttl(hops - 1);
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub(crate) fn set_mpls_ttl(&mut self, hops: u8) {
        self.refresh();
        if self.layout.is_mpls {
            self.bytes[self.layout.payload + 3] = hops;
        }
    }

    pub(crate) fn dec_mpls_ttl(&mut self) -> Result<(), Stopped> {
        self.refresh();
        if self.layout.is_mpls {
            let hops = &mut self.bytes[self.layout.payload + 3];
            if *hops <= 1 {
                return Err(Stopped::Spent);
            }
            *hops -= 1;
        }
        Ok(())
    }

    pub(crate) fn copy_ttl_out(&mut self) {
        self.refresh();
        if let Some((at, _)) = self.inner_hops() {
            self.bytes[self.layout.payload + 3] = self.bytes[at];
        }
    }

    pub(crate) fn copy_ttl_in(&mut self) {
        self.refresh();
        if let Some((at, ipv4)) = self.inner_hops() {
            let hops = self.bytes[self.layout.payload + 3];
            self.set_hops(at, ipv4, hops);
        }
    }

    /// Raises the drop precedence of a packet with an assured-forwarding code point (RFC 2597).
    pub(crate) fn remark(&mut self, levels: u8) {
        self.refresh();
        if self.layout.ip.is_none() {
            return;
        }
        let dscp = self.key.of(Field::IpDscp);
        let (class, precedence) = (dscp >> 3, dscp >> 1 & 3);
        if (1..=4).contains(&class) && precedence > 0 && dscp & 1 == 0 {
            let precedence = (precedence + u128::from(levels)).min(3);
            self.set_field(Field::IpDscp, class << 3 | precedence << 1);
        }
    }

    /// Whether the packet has all that a field's checksum covers, where that has to be made again.
    pub(crate) fn is_whole_for(&mut self, field: Field) -> bool {
        if !matches!(field, Field::SctpSrc | Field::SctpDst) {
            return true;
        }
        self.refresh();
        let sctp = self.layout.ip.filter(|ip| ip.protocol == SCTP);
        sctp.is_none_or(|ip| ip.transport.is_none_or(|at| self.sctp_end(ip, at).is_some()))
    }

    /// Sets a field.
    pub(crate) fn set_field(&mut self, field: Field, value: u128) {
        let bytes = value.to_be_bytes();
        let last = |count: usize| &bytes[16 - count..];
        // Where these lie needs no layout.
        match field {
            Field::EthDst if self.bytes.len() >= 12 => return self.put(0, last(6)),
            Field::EthSrc if self.bytes.len() >= 12 => return self.put(6, last(6)),
            _ => self.refresh(),
        }
        match field {
            Field::EthType if self.layout.payload > 0 => self.put(self.layout.ether_at, last(2)),
            Field::VlanVid | Field::VlanPcp if self.layout.tags > 0 => {
                let tag = be16(&self.bytes, 14).unwrap_or(0);
                #[allow(clippy::cast_possible_truncation)] // as many bits as the field has
                let tag = match field {
                    Field::VlanVid => tag & 0xf000 | value as u16 & 0xfff,
                    _ => tag & 0x1fff | (value as u16 & 7) << 13,
                };
                self.put(14, &tag.to_be_bytes());
            }
            Field::ArpOp if self.layout.is_arp => self.put(self.layout.payload + 6, last(2)),
            Field::ArpSha if self.layout.is_arp => self.put(self.layout.payload + 8, last(6)),
            Field::ArpSpa if self.layout.is_arp => self.put(self.layout.payload + 14, last(4)),
            Field::ArpTha if self.layout.is_arp => self.put(self.layout.payload + 18, last(6)),
            Field::ArpTpa if self.layout.is_arp => self.put(self.layout.payload + 24, last(4)),
            Field::MplsLabel if self.layout.is_mpls => {
                self.set_bits(self.layout.payload, 0xffff_f000, value, 12);
            }
            Field::MplsTc if self.layout.is_mpls => self.set_bits(self.layout.payload, 0xe00, value, 9),
            Field::MplsBos if self.layout.is_mpls => self.set_bits(self.layout.payload, 0x100, value, 8),
            Field::PbbIsid if self.layout.is_pbb => self.set_bits(self.layout.payload, 0xff_ffff, value, 0),
            Field::TunnelId => self.key.set(field, value),
            _ => {
                if let Some(ip) = self.layout.ip {
                    self.set_ip(ip, field, value);
                    self.note(ip, field, value);
                }
            }
        }
    }

    /// Notes the number of a field that was set where no other field depends on it, so that the frame need
    /// not be read again.
    fn note(&mut self, ip: Ip, field: Field, value: u128) {
        let is_whole = |at: usize| self.bytes.len() >= at + 4;
        let is_alone = match field {
            Field::Ipv4Src | Field::Ipv4Dst | Field::Ipv6Src | Field::Ipv6Dst => true,
            Field::TcpSrc | Field::TcpDst | Field::UdpSrc | Field::UdpDst => {
                ip.transport.is_some_and(is_whole)
            }
            _ => false,
        };
        // It is stale only if the packet has the field.
        if is_alone && self.is_stale {
            self.key.set(field, value);
            self.is_stale = false;
        }
    }

    /// Sets bits of a word of 32.
    #[allow(clippy::cast_possible_truncation)] // as many bits as the mask has
    fn set_bits(&mut self, at: usize, mask: u32, value: u128, shift: u32) {
        let word = be32(&self.bytes, at).unwrap_or(0);
        self.put(at, &(word & !mask | (value as u32) << shift & mask).to_be_bytes());
    }

    #[allow(clippy::cast_possible_truncation)] // as many bits as the field has
    fn set_ip(&mut self, ip: Ip, field: Field, value: u128) {
        let bytes = value.to_be_bytes();
        let last = |count: usize| &bytes[16 - count..];
        let header = (!ip.is_v6).then_some(ip.at + 10);
        let pseudo = self.transport_sum(ip, true);
        match (field, ip.is_v6) {
            (Field::IpDscp | Field::IpEcn, false) => {
                let old = self.bytes[ip.at + 1];
                let new = match field {
                    Field::IpDscp => old & 3 | (value as u8) << 2,
                    _ => old & 0xfc | value as u8 & 3,
                };
                self.replace(ip.at, ip.at + 1, &[new], &[header]);
            }
            (Field::IpDscp, true) => self.set_bits(ip.at, 0x0fc0_0000, value, 22),
            (Field::IpEcn, true) => self.set_bits(ip.at, 0x0030_0000, value, 20),
            (Field::Ipv6Flabel, true) => self.set_bits(ip.at, 0x000f_ffff, value, 0),
            // The sum of the transport header that is there covers the protocol, as the last byte of a word.
            (Field::IpProto, false) => self.replace(ip.at, ip.at + 9, last(1), &[header, pseudo]),
            (Field::IpProto, true) => self.replace(ip.at + 1, ip.at + 6, last(1), &[pseudo]),
            (Field::Ipv4Src, false) => self.replace(ip.at, ip.at + 12, last(4), &[header, pseudo]),
            (Field::Ipv4Dst, false) => self.replace(ip.at, ip.at + 16, last(4), &[header, pseudo]),
            (Field::Ipv6Src, true) => self.replace(ip.at, ip.at + 8, &bytes, &[pseudo]),
            (Field::Ipv6Dst, true) => self.replace(ip.at, ip.at + 24, &bytes, &[pseudo]),
            _ => self.set_transport(ip, field, value),
        }
    }

    fn set_transport(&mut self, ip: Ip, field: Field, value: u128) {
        let bytes = value.to_be_bytes();
        let Some(at) = ip.transport else { return };
        let is_icmp6 = ip.is_v6 && ip.protocol == ICMPV6;
        let offset = match field {
            Field::TcpSrc if ip.protocol == TCP => 0,
            Field::TcpDst if ip.protocol == TCP => 2,
            Field::UdpSrc if ip.protocol == UDP => 0,
            Field::UdpDst if ip.protocol == UDP => 2,
            Field::SctpSrc if ip.protocol == SCTP => 0,
            Field::SctpDst if ip.protocol == SCTP => 2,
            Field::Icmpv4Type if ip.protocol == ICMP && !ip.is_v6 => 0,
            Field::Icmpv4Code if ip.protocol == ICMP && !ip.is_v6 => 1,
            Field::Icmpv6Type if is_icmp6 => 0,
            Field::Icmpv6Code if is_icmp6 => 1,
            Field::Ipv6NdTarget if is_icmp6 && self.is_nd(at) => 8,
            Field::Ipv6NdSll | Field::Ipv6NdTll if is_icmp6 => {
                let wanted = if field == Field::Ipv6NdSll { 135 } else { 136 };
                match ip.nd_address.filter(|_| self.bytes[at] == wanted) {
                    Some(address) => address - at,
                    None => return,
                }
            }
            _ => return,
        };
        if self.bytes.len() < at + offset + field.bytes() {
            return;
        }
        let sum = self.transport_sum(ip, false);
        self.replace(at, at + offset, &bytes[16 - field.bytes()..], &[sum]);
        if ip.protocol == SCTP {
            self.sum_sctp(ip, at);
        }
    }

    fn is_nd(&self, at: usize) -> bool {
        matches!(self.bytes.get(at..at + 2), Some([135 | 136, 0]))
    }

    /// Where the checksum of the transport header is, if it is there and covers what changes: the addresses
    /// or the header itself.
    fn transport_sum(&self, ip: Ip, of_addresses: bool) -> Option<usize> {
        let at = ip.transport?;
        let sum = match ip.protocol {
            TCP => at + 16,
            UDP => at + 6,
            ICMP if !ip.is_v6 && !of_addresses => at + 2,
            ICMPV6 if ip.is_v6 => at + 2,
            _ => return None,
        };
        let old = be16(&self.bytes, sum)?;
        // UDP without a checksum stays without.
        (ip.protocol != UDP || old != 0).then_some(sum)
    }

    /// The end of a packet of SCTP that is whole.
    fn sctp_end(&self, ip: Ip, at: usize) -> Option<usize> {
        let (start, len) = if ip.is_v6 { (ip.at + 40, ip.at + 4) } else { (ip.at, ip.at + 2) };
        let end = start + usize::from(be16(&self.bytes, len)?);
        (!ip.has_more && (at + 12..=self.bytes.len()).contains(&end)).then_some(end)
    }

    /// Makes SCTP's checksum again, if the packet is whole.
    fn sum_sctp(&mut self, ip: Ip, at: usize) {
        let Some(end) = self.sctp_end(ip, at) else { return };
        self.bytes[at + 8..at + 12].fill(0);
        let sum = crc32c(&self.bytes[at..end]);
        self.bytes[at + 8..at + 12].copy_from_slice(&sum.to_le_bytes());
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

/// The cyclic redundancy check of RFC 3309, bit by bit: packets of SCTP whose ports are set are few.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

#[cfg(test)]
mod tests {
    use wirespeed_rng::Rng;
    use wirespeed_router::Mac;
    use wirespeed_router::checksum::checksum;
    use wirespeed_router::frames::Datagram;

    use super::*;

    /// A datagram of UDP.
    fn datagram(addresses: [&str; 2], bytes: usize) -> Vec<u8> {
        let addresses = (addresses[0].parse().unwrap(), addresses[1].parse().unwrap());
        let (to, from, ports) = (Mac([2; 6]), Mac([4; 6]), (1000, 2000));
        Datagram { to, from, addresses, ports, hops: 64, bytes }.to_bytes()
    }

    #[test]
    fn another_protocol_keeps_the_sum_that_covers_it() {
        for (addresses, start, proto) in [(["10.0.0.1", "10.0.0.2"], 26, 23), (["::1", "::2"], 22, 20)] {
            let frame = datagram(addresses, 99);
            let mut packet = Packet::new(frame, 1);
            let transport = if start == 26 { 34 } else { 54 };
            let sum = |packet: &Packet| {
                let mut pseudo = packet.bytes[start..].to_vec();
                // The pseudo header has the protocol and the length at its end, in whatever order.
                pseudo.resize(pseudo.len().next_multiple_of(2), 0);
                pseudo.extend([0, packet.bytes[proto]]);
                #[allow(clippy::cast_possible_truncation)] // it is short
                pseudo.extend(((packet.bytes.len() - transport) as u16).to_be_bytes());
                checksum(&pseudo)
            };
            assert_eq!((packet.bytes[proto], sum(&packet)), (UDP, 0));
            packet.set_field(Field::IpProto, TCP.into());
            assert_eq!((packet.bytes[proto], sum(&packet)), (TCP, 0));
            if start == 26 {
                assert_eq!(checksum(&packet.bytes[14..34]), 0);
            }
        }
    }

    /// Fields after changes that read the frame again, and after those that only note what they set.
    #[test]
    fn fields_are_those_of_the_bytes_after_each_change() {
        let mut rng = Rng::new(11);
        let mut noted = 0;
        for round in 0..4000 {
            let addresses = if round % 2 == 0 { ["10.0.0.1", "10.0.0.2"] } else { ["::1", "::2"] };
            let mut frame = datagram(addresses, 80);
            // Another protocol, a tag, a later fragment, or a frame that is cut off.
            frame[if round % 2 == 0 { 23 } else { 20 }] = [TCP, UDP, SCTP, ICMP, ICMPV6][rng.index(5)];
            if rng.chance(0.2) {
                frame.splice(12..12, [0x81, 0, 0x20, 7]);
            }
            if rng.chance(0.1) {
                frame[20] |= 0x3f;
            }
            if rng.chance(0.3) {
                frame.truncate(rng.index(80));
            }
            let mut packet = Packet::new(frame, 9);
            for _ in 0..6 {
                match rng.below(8) {
                    0 => packet.set_nw_ttl(7),
                    1 => drop(packet.dec_nw_ttl()),
                    2 => packet.push_vlan(0x8100),
                    3 => packet.push_mpls(0x8847),
                    _ => {
                        let field = Field::ALL[rng.index(Field::ALL.len())];
                        packet.set_field(field, rng.bits128());
                    }
                }
                noted += usize::from(!packet.is_stale);
                let mut known = packet.clone();
                known.refresh();
                let mut key = packet.key.and(&OUTSIDE);
                let layout = parse_to(&packet.bytes, &mut key);
                assert_eq!((known.key, known.layout), (key, layout), "{:x?}", packet.bytes);
            }
        }
        assert!((1000..23_000).contains(&noted), "{noted} of 24,000");
    }

    #[test]
    fn ports_of_sctp_are_set_where_the_packet_is_whole() {
        for addresses in [["10.0.0.1", "10.0.0.2"], ["::1", "::2"]] {
            let is_v6 = addresses[0].contains(':');
            let frame = datagram(addresses, 80);
            // The first fragment and one that is the whole packet, or a packet that is none.
            for (more, is_fragment) in [(1, true), (0, true), (0, false)] {
                let mut frame = frame.clone();
                if !is_v6 {
                    frame[23] = SCTP;
                    frame[20] = more << 5;
                } else if is_fragment {
                    frame[20] = 44;
                    frame[19] += 8;
                    frame.splice(54..54, [SCTP, 0, 0, more, 0, 0, 0, 1]);
                } else {
                    frame[20] = SCTP;
                }
                let mut packet = Packet::new(frame.clone(), 1);
                assert_eq!(packet.is_whole_for(Field::SctpSrc), more == 0, "{frame:x?}");
                assert!(packet.is_whole_for(Field::Ipv4Src) && packet.is_whole_for(Field::UdpSrc));
                packet.set_field(Field::SctpSrc, 7);
                let at = packet.layout.ip.unwrap().transport.unwrap();
                let sum = u32::from_le_bytes(*packet.bytes[at + 8..].first_chunk().unwrap());
                packet.bytes[at + 8..at + 12].fill(0);
                assert_eq!(sum == crc32c(&packet.bytes[at..]), more == 0, "{frame:x?}");
                // A packet that is cut off is none.
                frame.pop();
                assert!(!Packet::new(frame, 1).is_whole_for(Field::SctpDst));
            }
        }
    }

    #[test]
    fn packets_of_a_flow_have_one_hash() {
        for addresses in [["10.0.0.1", "10.0.0.2"], ["::1", "::2"]] {
            let mut frame = datagram(addresses, 80);
            frame.splice(12..12, [0x81, 0, 0x20, 7]);
            let hash_with = |field: Field, value: u128| {
                let mut packet = Packet::new(frame.clone(), 9);
                packet.set_field(field, value);
                packet.refresh();
                assert_eq!(packet.key.of(field), value, "{}", field.name());
                packet.flow_hash()
            };
            let hash = Packet::new(frame.clone(), 9).flow_hash();
            for (field, value) in
                [(Field::IpEcn, 3), (Field::IpDscp, 46), (Field::VlanPcp, 6), (Field::VlanVid, 0x1009)]
            {
                assert_eq!(hash_with(field, value), hash, "{}", field.name());
            }
            let is_v6 = addresses[0].contains(':');
            let (src, dst) =
                if is_v6 { (Field::Ipv6Src, Field::Ipv6Dst) } else { (Field::Ipv4Src, Field::Ipv4Dst) };
            for field in [Field::EthSrc, Field::EthDst, src, dst, Field::UdpSrc, Field::UdpDst] {
                assert_ne!(hash_with(field, 99), hash, "{}", field.name());
            }
            assert_ne!(hash_with(Field::IpProto, TCP.into()), hash);
        }
    }

    #[test]
    fn fragments_of_a_flow_have_one_hash() {
        for addresses in [["10.0.0.1", "10.0.0.2"], ["::1", "::2"]] {
            // A part by the word of its offset, in units of eight bytes, and of whether more follow.
            let part = |offset: u16, has_more: bool| {
                let mut frame = datagram(addresses, 120);
                if addresses[0].contains(':') {
                    let word = (offset << 3 | u16::from(has_more)).to_be_bytes();
                    // Options for the destination come before the ports, so the first part alone has the
                    // number of the protocol.
                    let options = if offset == 0 { &[17, 0, 1, 4, 0, 0, 0, 0][..] } else { &[] };
                    frame[20] = 44;
                    frame[19] += if offset == 0 { 16 } else { 8 };
                    frame.splice(54..54, [&[60, 0, word[0], word[1], 0, 0, 0, 1], options].concat());
                } else {
                    let word = offset | u16::from(has_more) << 13;
                    frame[20..22].copy_from_slice(&word.to_be_bytes());
                }
                Packet::new(frame, 1).flow_hash()
            };
            let hash = part(0, true);
            assert_eq!([part(1, true), part(5, true), part(9, false)], [hash; 3], "{addresses:?}");
            // A packet that is whole has its ports, also as the only part.
            assert_ne!(part(0, false), hash);
            let other = datagram([addresses[0], addresses[0]], 120);
            assert_ne!(Packet::new(other, 1).flow_hash(), hash);
        }
    }

    #[test]
    fn the_check_of_a_known_text() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }
}
