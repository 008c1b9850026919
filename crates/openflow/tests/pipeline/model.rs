//! A slow, plain model of the pipeline: flows in a list, fields read from bytes one by one, packets copied at
//! each step. It shares nothing with the switch but the types of messages.

use std::collections::BTreeMap;

use crate::made::TABLES;
use wirespeed_openflow::wire::{Action, Bucket, Field, FlowMod, GroupKind, Instructions, number::port};

/// A switch that looks at every flow.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) flows: Vec<FlowMod>,
    pub(crate) groups: BTreeMap<u32, (GroupKind, Vec<Bucket>)>,
    pub(crate) ports: u32,
    /// Packets and bytes of each flow.
    pub(crate) counts: Vec<(u64, u64)>,
    /// Packets that each table looked up, and those that it had a flow for.
    pub(crate) of_table: [[u64; 2]; TABLES as usize],
    pub(crate) told: u64,
}

/// A packet in the model.
#[derive(Clone)]
struct Packet {
    bytes: Vec<u8>,
    in_port: u32,
    metadata: u64,
}

fn be(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u128::from(byte))
}

impl Packet {
    /// The number of tags, the type behind them, and where what follows begins.
    fn link(&self) -> (usize, u16, usize) {
        let mut tags = 0;
        loop {
            let at = 12 + 4 * tags;
            let ether = be(&self.bytes[at..at + 2]) as u16;
            if ether != 0x8100 && ether != 0x88a8 {
                return (tags, ether, at + 2);
            }
            tags += 1;
        }
    }

    /// The number in a field; `None` for a packet that does not have it. Frames of the tests are whole.
    fn field(&self, field: Field) -> Option<u128> {
        let (tags, ether, at) = self.link();
        let bytes = &self.bytes;
        let ipv4 = ether == 0x0800;
        let proto = if ipv4 {
            bytes[at + 9]
        } else if ether == 0x86dd {
            bytes[at + 6]
        } else {
            0
        };
        let l4 = at + if ipv4 { 20 } else { 40 };
        let of = |range: std::ops::Range<usize>| be(&bytes[range]);
        let entry = || be(&bytes[at..at + 4]);
        Some(match field {
            Field::InPort | Field::InPhyPort => self.in_port.into(),
            Field::Metadata => self.metadata.into(),
            Field::EthDst => of(0..6),
            Field::EthSrc => of(6..12),
            Field::EthType => ether.into(),
            Field::VlanVid if tags == 0 => 0,
            Field::VlanVid => of(14..16) & 0xfff | 0x1000,
            Field::VlanPcp if tags > 0 => of(14..16) >> 13,
            Field::IpDscp if ipv4 => u128::from(bytes[at + 1] >> 2),
            Field::IpEcn if ipv4 => u128::from(bytes[at + 1] & 3),
            Field::IpDscp if ether == 0x86dd => of(at..at + 4) >> 22 & 0x3f,
            Field::IpEcn if ether == 0x86dd => of(at..at + 4) >> 20 & 3,
            Field::IpProto if ipv4 || ether == 0x86dd => proto.into(),
            Field::Ipv4Src if ipv4 => of(at + 12..at + 16),
            Field::Ipv4Dst if ipv4 => of(at + 16..at + 20),
            Field::TcpSrc if proto == 6 => of(l4..l4 + 2),
            Field::TcpDst if proto == 6 => of(l4 + 2..l4 + 4),
            Field::UdpSrc if proto == 17 => of(l4..l4 + 2),
            Field::UdpDst if proto == 17 => of(l4 + 2..l4 + 4),
            Field::Icmpv4Type if ipv4 && proto == 1 => bytes[l4].into(),
            Field::Icmpv4Code if ipv4 && proto == 1 => bytes[l4 + 1].into(),
            Field::Ipv6Src if ether == 0x86dd => of(at + 8..at + 24),
            Field::Ipv6Dst if ether == 0x86dd => of(at + 24..at + 40),
            Field::Ipv6Flabel if ether == 0x86dd => of(at..at + 4) & 0xf_ffff,
            Field::ArpOp if ether == 0x0806 => of(at + 6..at + 8),
            Field::ArpSha if ether == 0x0806 => of(at + 8..at + 14),
            Field::ArpSpa if ether == 0x0806 => of(at + 14..at + 18),
            Field::ArpTha if ether == 0x0806 => of(at + 18..at + 24),
            Field::ArpTpa if ether == 0x0806 => of(at + 24..at + 28),
            Field::MplsLabel if ether == 0x8847 => entry() >> 12,
            Field::MplsTc if ether == 0x8847 => entry() >> 9 & 7,
            Field::MplsBos if ether == 0x8847 => entry() >> 8 & 1,
            _ => return None,
        })
    }

    fn matches(&self, flow: &FlowMod) -> bool {
        flow.matched.iter().all(|field| {
            let (value, mask) = (flow.matched.value.of(field), flow.matched.mask.of(field));
            self.field(field).is_some_and(|found| found & mask == value)
        })
    }

    /// Writes all checksums of IPv4 and of its TCP, UDP and ICMP, and of UDP and TCP over IPv6, anew.
    fn sum(&mut self) {
        let (_, ether, at) = self.link();
        let fold = |mut sum: u32| {
            while sum > 0xffff {
                sum = (sum & 0xffff) + (sum >> 16);
            }
            sum as u16
        };
        let words = |bytes: &[u8]| {
            bytes
                .chunks(2)
                .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
                .sum::<u32>()
        };
        let (l4, proto, pseudo) = match ether {
            0x0800 => {
                self.bytes[at + 10..at + 12].fill(0);
                let sum = !fold(words(&self.bytes[at..at + 20]));
                self.bytes[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
                (at + 20, self.bytes[at + 9], words(&self.bytes[at + 12..at + 20]))
            }
            0x86dd => (at + 40, self.bytes[at + 6], words(&self.bytes[at + 8..at + 40])),
            _ => return,
        };
        let len = self.bytes.len() - l4;
        let (place, pseudo) = match proto {
            6 => (l4 + 16, pseudo),
            17 => (l4 + 6, pseudo),
            1 => (l4 + 2, 0),
            _ => return,
        };
        let pseudo = if proto == 1 { 0 } else { pseudo + u32::from(proto) + len as u32 };
        self.bytes[place..place + 2].fill(0);
        let sum = match !fold(pseudo + words(&self.bytes[l4..])) {
            0 if proto == 17 => 0xffff,
            sum => sum,
        };
        self.bytes[place..place + 2].copy_from_slice(&sum.to_be_bytes());
    }

    fn set(&mut self, field: Field, value: u128) {
        if self.field(field).is_none() {
            return;
        }
        let (tags, ether, at) = self.link();
        let l4 = at + if ether == 0x0800 { 20 } else { 40 };
        let mut put = |at: usize, count: usize| {
            self.bytes[at..at + count].copy_from_slice(&value.to_be_bytes()[16 - count..]);
        };
        match field {
            Field::EthDst => put(0, 6),
            Field::EthSrc => put(6, 6),
            Field::Ipv4Src => put(at + 12, 4),
            Field::Ipv4Dst => put(at + 16, 4),
            Field::Ipv6Src => put(at + 8, 16),
            Field::Ipv6Dst => put(at + 24, 16),
            Field::TcpSrc | Field::UdpSrc => put(l4, 2),
            Field::TcpDst | Field::UdpDst => put(l4 + 2, 2),
            Field::Icmpv4Type => put(l4, 1),
            Field::Icmpv4Code => put(l4 + 1, 1),
            Field::ArpOp => put(at + 6, 2),
            Field::ArpSpa => put(at + 14, 4),
            Field::ArpTpa => put(at + 24, 4),
            Field::VlanVid if tags > 0 => {
                let tag = be(&self.bytes[14..16]) as u16 & 0xf000 | value as u16 & 0xfff;
                self.bytes[14..16].copy_from_slice(&tag.to_be_bytes());
            }
            Field::VlanPcp => {
                let tag = be(&self.bytes[14..16]) as u16 & 0x1fff | (value as u16) << 13;
                self.bytes[14..16].copy_from_slice(&tag.to_be_bytes());
            }
            Field::IpDscp if ether == 0x0800 => {
                self.bytes[at + 1] = self.bytes[at + 1] & 3 | (value as u8) << 2;
            }
            Field::IpDscp => {
                let word = be(&self.bytes[at..at + 4]) as u32 & !(0x3f << 22) | (value as u32) << 22;
                self.bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
            }
            Field::MplsLabel => {
                let word = be(&self.bytes[at..at + 4]) as u32 & 0xfff | (value as u32) << 12;
                self.bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
            }
            _ => {}
        }
        self.sum();
    }

    /// Where the time to live of IP is.
    fn hops(&self) -> Option<usize> {
        match self.link() {
            (_, 0x0800, at) => Some(at + 8),
            (_, 0x86dd, at) => Some(at + 7),
            _ => None,
        }
    }

    fn push_mpls(&mut self) {
        let (tags, ether, at) = self.link();
        let entry: u32 = match ether {
            0x8847 => be(&self.bytes[at..at + 4]) as u32 & !0x100,
            _ => 0x100 | self.hops().map_or(0, |at| u32::from(self.bytes[at])),
        };
        let at = if ether == 0x8847 { 12 + 4 * tags } else { 12 };
        self.bytes[at..at + 2].copy_from_slice(&[0x88, 0x47]);
        let rest = self.bytes.split_off(at + 2);
        self.bytes.extend(entry.to_be_bytes());
        self.bytes.extend(rest);
    }
}

/// A packet that goes out of a port.
pub(crate) type Sent = (u32, Vec<u8>);

impl Model {
    /// All that a frame leads to.
    pub(crate) fn frame(&mut self, in_port: u32, bytes: &[u8]) -> Vec<Sent> {
        let mut packet = Packet { bytes: bytes.to_vec(), in_port, metadata: 0 };
        let (mut table, mut set, mut sent) = (0, Vec::new(), Vec::new());
        loop {
            self.of_table[usize::from(table)][0] += 1;
            let matching = (0..self.flows.len())
                .filter(|&at| self.flows[at].table == table && packet.matches(&self.flows[at]));
            let Some(at) = matching.max_by_key(|&at| self.flows[at].priority) else { return sent };
            self.of_table[usize::from(table)][1] += 1;
            self.counts[at].0 += 1;
            self.counts[at].1 += packet.bytes.len() as u64;
            let Instructions { apply, clear, write, metadata, goto, .. } =
                self.flows[at].instructions.clone();
            for action in apply {
                if !self.act(&mut packet, action, &mut sent) {
                    return sent;
                }
            }
            if clear {
                set.clear();
            }
            write_to(&mut set, &write);
            if let Some((value, mask)) = metadata {
                packet.metadata = packet.metadata & !mask | value;
            }
            match goto {
                Some(next) => table = next,
                None => break,
            }
        }
        self.set(&mut packet, &set, &mut sent);
        sent
    }

    /// Executes an action set, in the order of the specification.
    fn set(&mut self, packet: &mut Packet, set: &[Action], sent: &mut Vec<Sent>) {
        let order: [fn(&Action) -> bool; 9] = [
            |action| matches!(action, Action::PopVlan),
            |action| matches!(action, Action::PopMpls(_)),
            |action| matches!(action, Action::PushMpls(_)),
            |action| matches!(action, Action::PushVlan(_)),
            |action| matches!(action, Action::DecNwTtl),
            |action| matches!(action, Action::SetField(..)),
            |action| matches!(action, Action::SetNwTtl(_)),
            |action| matches!(action, Action::Group(_)),
            |action| matches!(action, Action::Output { .. }),
        ];
        let has_group = set.iter().any(|action| matches!(action, Action::Group(_)));
        for (place, is_next) in order.into_iter().enumerate() {
            let mut now: Vec<Action> = set.iter().copied().filter(is_next).collect();
            now.sort_by_key(|action| match action {
                Action::SetField(field, _) => *field as u8,
                _ => 0,
            });
            for action in now.into_iter().filter(|_| !(place == 8 && has_group)) {
                if !self.act(packet, action, sent) {
                    return;
                }
            }
        }
    }

    /// Executes an action; `false` ends the packet.
    fn act(&mut self, packet: &mut Packet, action: Action, sent: &mut Vec<Sent>) -> bool {
        match action {
            Action::Output { port: port::CONTROLLER, .. } => self.told += 1,
            Action::Output { port: port::IN_PORT, .. } => sent.push((packet.in_port, packet.bytes.clone())),
            Action::Output { port: port::ALL | port::FLOOD, .. } => {
                let others = (1..=self.ports).filter(|&to| to != packet.in_port);
                sent.extend(others.map(|to| (to, packet.bytes.clone())));
            }
            Action::Output { port, .. } if port != packet.in_port => sent.push((port, packet.bytes.clone())),
            Action::Output { .. } => {}
            Action::Group(number) => {
                let (kind, buckets) = self.groups[&number].clone();
                let chosen = match kind {
                    GroupKind::All => buckets.len(),
                    // Selecting groups of the tests have buckets that are alike.
                    _ => 1,
                };
                for bucket in &buckets[..chosen] {
                    let mut set = Vec::new();
                    write_to(&mut set, &bucket.actions);
                    self.set(&mut packet.clone(), &set, sent);
                }
            }
            Action::DecNwTtl => {
                if let Some(at) = packet.hops() {
                    if packet.bytes[at] <= 1 {
                        return false;
                    }
                    packet.bytes[at] -= 1;
                    packet.sum();
                }
            }
            Action::SetNwTtl(hops) => {
                if let Some(at) = packet.hops() {
                    packet.bytes[at] = hops;
                    packet.sum();
                }
            }
            Action::PushVlan(ether) => {
                let tag = if packet.link().0 > 0 { packet.bytes[14..16].to_vec() } else { vec![0, 0] };
                let rest = packet.bytes.split_off(12);
                packet.bytes.extend(ether.to_be_bytes());
                packet.bytes.extend(tag);
                packet.bytes.extend(rest);
            }
            Action::PopVlan => {
                if packet.link().0 > 0 {
                    packet.bytes.drain(12..16);
                }
            }
            Action::PushMpls(_) => packet.push_mpls(),
            Action::PopMpls(ether) => {
                if let (tags, 0x8847, at) = packet.link() {
                    packet.bytes[12 + 4 * tags..14 + 4 * tags].copy_from_slice(&ether.to_be_bytes());
                    packet.bytes.drain(at..at + 4);
                }
            }
            Action::SetField(field, value) => packet.set(field, value),
            other => panic!("{other:?} is not in the tests"),
        }
        true
    }
}

/// Writes actions into a set: the last one of a type stays.
fn write_to(set: &mut Vec<Action>, actions: &[Action]) {
    for &action in actions {
        set.retain(|&known| !is_same_type(known, action));
        set.push(action);
    }
}

/// Whether an action takes the place of another one in a set.
fn is_same_type(one: Action, other: Action) -> bool {
    match (one, other) {
        (Action::SetField(one, _), Action::SetField(other, _)) => one == other,
        (one, other) => std::mem::discriminant(&one) == std::mem::discriminant(&other),
    }
}
