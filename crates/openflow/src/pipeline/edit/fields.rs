//! Fields that are set, with the checksums that cover them.

use super::super::parse::{ICMP, ICMPV6, Ip, SCTP, TCP, UDP, be16, be32};
use super::Packet;
use crate::wire::Field;

impl Packet {
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

    /// The offset of the transport header's checksum, if it is there and covers what changes: the addresses
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
}

/// The cyclic redundancy check of RFC 3309, bit by bit: packets of SCTP whose ports are set are few.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}
