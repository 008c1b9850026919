//! Random frames, flows and groups, whose values come from small pools so that they meet.

use wirespeed_openflow::wire::{Action, Bucket, Field, FlowMod, GroupKind, Instructions, Match, number};
use wirespeed_rng::Rng;

pub(crate) const PORTS: u32 = 4;
pub(crate) const TABLES: u8 = 3;
/// Groups by number: all, indirect, fast failover, and a group of groups.
pub(crate) const GROUPS: u32 = 4;

fn put(bytes: &mut Vec<u8>, number: u128, count: usize) {
    bytes.extend(&number.to_be_bytes()[16 - count..]);
}

/// A value of a field, one of a few.
pub(crate) fn value(rng: &mut Rng, field: Field) -> u128 {
    let n = u128::from(rng.below(3));
    match field {
        Field::InPort => u128::from(rng.below(PORTS.into())) + 1,
        Field::EthDst | Field::EthSrc | Field::ArpSha | Field::ArpTha => 0x0200_0000_0000 + n * 0x0101,
        Field::VlanVid => 0x1000 | (n + 5),
        Field::Ipv4Src | Field::Ipv4Dst | Field::ArpSpa | Field::ArpTpa => 0x0a00_0001 + n * 0x0001_0001,
        Field::Ipv6Src | Field::Ipv6Dst => 0x2001_0db8 << 96 | n << 64 | n,
        Field::MplsBos => n & 1,
        _ => (n + 1) & field.all(),
    }
}

/// A frame with right lengths and checksums.
pub(crate) fn frame(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, value(rng, Field::EthDst), 6);
    put(&mut bytes, value(rng, Field::EthSrc), 6);
    for _ in 0..rng.below(3) {
        bytes.extend([0x81, 0]);
        let pcp = value(rng, Field::VlanPcp) << 13;
        put(&mut bytes, pcp | value(rng, Field::VlanVid) & 0xfff, 2);
    }
    match rng.below(8) {
        0 => {
            put(&mut bytes, 0x0806, 2);
            bytes.extend([0, 1, 8, 0, 6, 4]);
            for field in [Field::ArpOp, Field::ArpSha, Field::ArpSpa, Field::ArpTha, Field::ArpTpa] {
                put(&mut bytes, value(rng, field), field.bytes());
            }
        }
        1 => {
            put(&mut bytes, 0x8847, 2);
            let entry = value(rng, Field::MplsLabel) << 12 | value(rng, Field::MplsTc) << 9 | 0x100 | 64;
            put(&mut bytes, entry, 4);
            bytes.extend(rng.bits().to_be_bytes());
        }
        2 => {
            put(&mut bytes, 0x9999, 2);
            bytes.extend(rng.bits().to_be_bytes());
        }
        kind => {
            let is_v6 = kind < 5;
            let (protocol, transport) = match rng.below(if is_v6 { 2 } else { 3 }) {
                0 => (6, 20),
                1 => (17, 8),
                _ => (1, 8),
            };
            let mut body = Vec::new();
            match protocol {
                1 => {
                    put(&mut body, value(rng, Field::Icmpv4Type), 1);
                    put(&mut body, value(rng, Field::Icmpv4Code), 1);
                    body.extend([0; 6]);
                }
                _ => {
                    put(&mut body, value(rng, Field::TcpSrc), 2);
                    put(&mut body, value(rng, Field::TcpDst), 2);
                    body.resize(transport, 0);
                }
            }
            if protocol == 17 {
                body[4..6].copy_from_slice(&[0, 13]);
            }
            body.extend([1, 2, 3, 4, 5]);
            let tos = value(rng, Field::IpDscp) << 2 | value(rng, Field::IpEcn);
            let hops = rng.below(4) + 1;
            let start = bytes.len() + 2;
            if is_v6 {
                put(&mut bytes, 0x86dd, 2);
                put(&mut bytes, 6 << 28 | tos << 20 | value(rng, Field::Ipv6Flabel), 4);
                put(&mut bytes, body.len() as u128, 2);
                bytes.extend([protocol, hops as u8]);
                put(&mut bytes, value(rng, Field::Ipv6Src), 16);
                put(&mut bytes, value(rng, Field::Ipv6Dst), 16);
            } else {
                put(&mut bytes, 0x0800, 2);
                bytes.extend([0x45, tos as u8]);
                put(&mut bytes, body.len() as u128 + 20, 2);
                bytes.extend([0, 0, 0, 0, hops as u8, protocol, 0, 0]);
                put(&mut bytes, value(rng, Field::Ipv4Src), 4);
                put(&mut bytes, value(rng, Field::Ipv4Dst), 4);
            }
            bytes.extend(&body);
            sum(&mut bytes, start, is_v6, protocol, body.len());
        }
    }
    bytes
}

/// Writes the checksums of a packet.
fn sum(bytes: &mut [u8], at: usize, is_v6: bool, protocol: u8, len: usize) {
    use wirespeed_router::checksum::{add, checksum, sum};
    let l4 = at + if is_v6 { 40 } else { 20 };
    let addresses = if is_v6 { sum(&bytes[at + 8..at + 40]) } else { sum(&bytes[at + 12..at + 20]) };
    if !is_v6 {
        let sum = checksum(&bytes[at..at + 20]);
        bytes[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
    }
    let place = l4
        + match protocol {
            6 => 16,
            17 => 6,
            _ => 2,
        };
    let pseudo = if protocol == 1 { 0 } else { add(add(addresses, protocol.into()), len as u16) };
    let value = match !add(pseudo, sum(&bytes[l4..])) {
        0 if protocol == 17 => 0xffff,
        value => value,
    };
    bytes[place..place + 2].copy_from_slice(&value.to_be_bytes());
}

/// A match of a few fields, with those that they need.
pub(crate) fn matched(rng: &mut Rng) -> Match {
    let mut matched = Match::all();
    let may = |rng: &mut Rng, matched: Match, fields: &[Field]| {
        let mut matched = matched;
        for &field in fields {
            if !rng.chance(0.25) {
                continue;
            }
            let value = value(rng, field);
            let mask = if field.is_maskable() && rng.chance(0.4) && field != Field::VlanVid {
                field.all() << rng.below(u64::from(field.bits())) & field.all()
            } else {
                field.all()
            };
            matched = matched.with_masked(field, value & mask, mask);
        }
        matched
    };
    matched = may(rng, matched, &[Field::InPort, Field::EthDst, Field::EthSrc, Field::Metadata]);
    match rng.below(5) {
        0 => matched = matched.with(Field::VlanVid, 0),
        1 => {
            matched = matched.with_masked(Field::VlanVid, 0x1000, 0x1000);
            matched = may(rng, matched, &[Field::VlanPcp]);
        }
        2 => {
            let vid = value(rng, Field::VlanVid);
            matched = may(rng, matched.with(Field::VlanVid, vid), &[Field::VlanPcp]);
        }
        _ => {}
    }
    match rng.below(6) {
        0 => {
            matched = matched.with(Field::EthType, 0x0806);
            matched = may(
                rng,
                matched,
                &[Field::ArpOp, Field::ArpSpa, Field::ArpTpa, Field::ArpSha, Field::ArpTha],
            );
        }
        1 => {
            matched = matched.with(Field::EthType, 0x8847);
            matched = may(rng, matched, &[Field::MplsLabel, Field::MplsTc, Field::MplsBos]);
        }
        kind @ 2..=4 => {
            let is_v6 = kind == 2;
            matched = matched.with(Field::EthType, if is_v6 { 0x86dd } else { 0x0800 });
            matched = may(rng, matched, &[Field::IpDscp, Field::IpEcn]);
            let addresses: &[Field] = if is_v6 {
                &[Field::Ipv6Src, Field::Ipv6Dst, Field::Ipv6Flabel]
            } else {
                &[Field::Ipv4Src, Field::Ipv4Dst]
            };
            matched = may(rng, matched, addresses);
            match rng.below(4) {
                0 => matched = may(rng, matched.with(Field::IpProto, 6), &[Field::TcpSrc, Field::TcpDst]),
                1 => matched = may(rng, matched.with(Field::IpProto, 17), &[Field::UdpSrc, Field::UdpDst]),
                2 if !is_v6 => {
                    let fields = [Field::Icmpv4Type, Field::Icmpv4Code];
                    matched = may(rng, matched.with(Field::IpProto, 1), &fields);
                }
                _ => {}
            }
        }
        _ => {}
    }
    matched
}

/// Fields that actions set here.
const SET: [Field; 15] = [
    Field::EthDst,
    Field::EthSrc,
    Field::VlanVid,
    Field::VlanPcp,
    Field::IpDscp,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::TcpSrc,
    Field::TcpDst,
    Field::UdpDst,
    Field::Icmpv4Type,
    Field::ArpTpa,
    Field::Ipv6Src,
    Field::Ipv6Dst,
    Field::MplsLabel,
];

fn action(rng: &mut Rng, has_groups: bool) -> Action {
    let output = |port| Action::Output { port, max_len: number::WHOLE };
    match rng.below(16) {
        0 => Action::PushVlan(0x8100),
        1 => Action::PopVlan,
        2 => Action::PushMpls(0x8847),
        // A type that nothing is read from: what is inside may be anything.
        3 => Action::PopMpls(0x9999),
        4 => Action::DecNwTtl,
        5 => Action::SetNwTtl(9),
        6..=8 => {
            let field = SET[rng.index(SET.len())];
            Action::SetField(field, value(rng, field))
        }
        9 => output(number::port::CONTROLLER),
        10 => output(number::port::IN_PORT),
        11 => output([number::port::ALL, number::port::FLOOD][rng.index(2)]),
        12 if has_groups => Action::Group(1 + rng.below(GROUPS.into()) as u32),
        _ => output(1 + rng.below(PORTS.into()) as u32),
    }
}

fn actions(rng: &mut Rng, has_groups: bool) -> Vec<Action> {
    (0..rng.below(4)).map(|_| action(rng, has_groups)).collect()
}

/// Groups of every kind whose outcome is certain.
pub(crate) fn groups(rng: &mut Rng) -> Vec<(u32, GroupKind, Vec<Bucket>)> {
    let bucket =
        |watch_port, actions| Bucket { weight: 0, watch_port, watch_group: number::group::ANY, actions };
    let any = number::port::ANY;
    vec![
        (1, GroupKind::All, (0..3).map(|_| bucket(any, actions(rng, false))).collect()),
        (2, GroupKind::Indirect, vec![bucket(any, actions(rng, false))]),
        (3, GroupKind::FastFailover, (1..3).map(|port| bucket(port, actions(rng, false))).collect()),
        (4, GroupKind::All, vec![bucket(any, vec![Action::Group(1)]), bucket(any, vec![Action::Group(2)])]),
    ]
}

/// A flow. A switch may refuse it: a field that is set may be one that its packets do not have.
pub(crate) fn flow(rng: &mut Rng, priority: u16) -> FlowMod {
    let table = rng.below(TABLES.into()) as u8;
    let goto = rng.chance(0.5) && table + 1 < TABLES;
    let (apply, write) = (actions(rng, true), actions(rng, true));
    let instructions = Instructions {
        meter: None,
        has_apply: !apply.is_empty(),
        apply,
        clear: rng.chance(0.1),
        has_write: !write.is_empty(),
        write,
        metadata: rng.chance(0.3).then(|| {
            let mask = [u64::MAX, 3, 1 << 40][rng.index(3)];
            (value(rng, Field::Metadata) as u64 & mask, mask)
        }),
        goto: goto.then(|| table + 1 + rng.below(u64::from(TABLES - table - 1)) as u8),
    };
    FlowMod::add(table, priority, matched(rng), instructions)
}
