//! Each match field of OpenFlow 1.3, bit by bit: flows that match a frame in one bit, and flows that differ
//! from it there.

use std::collections::BTreeSet;

use wirespeed_openflow::wire::{Field, FlowMod, Instructions, Match, Request};
use wirespeed_openflow::{Switch, SwitchOptions};

use crate::{list, statistics};

const METADATA: u64 = 0x0123_4567_89ab_cdef;
const PORT: u32 = 2;
/// Tables behind the first one.
const LATER: usize = 253;
const V6: [u128; 3] = [0x2001_0db8 << 96 | 0x1234, 0x2001_0db8 << 96 | 0x5678_9abc, 0xfe80 << 112 | 0xf1];

/// Bytes of hexadecimal digits.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// A header of IPv4, with DSCP 0x15 and ECN 2.
fn v4(protocol: u8, body: &str) -> String {
    let len = 20 + hex(body).len();
    format!("0800 4556 {len:04x} 0000 0000 40 {protocol:02x} 0000 0a010203 c0a80509 {body}")
}

/// A header of IPv6, with DSCP 0x2a, ECN 1 and a flow label.
fn v6(next: u8, body: &str) -> String {
    format!("86dd 6a9a bcde {:04x} {next:02x} 40 {:032x} {:032x} {body}", hex(body).len(), V6[0], V6[1])
}

/// Frames, each with the fields that it has beside those of its link.
fn frames() -> Vec<(String, Vec<(Field, u128)>)> {
    use Field::{
        ArpOp, ArpSha, ArpSpa, ArpTha, ArpTpa, EthType, Icmpv4Code, Icmpv4Type, Icmpv6Code, Icmpv6Type,
        IpDscp, IpEcn, IpProto, Ipv4Dst, Ipv4Src, Ipv6Dst, Ipv6Exthdr, Ipv6Flabel, Ipv6NdSll, Ipv6NdTarget,
        Ipv6NdTll, Ipv6Src, MplsBos, MplsLabel, MplsTc, PbbIsid, SctpDst, SctpSrc, TcpDst, TcpSrc, UdpDst,
        UdpSrc, VlanPcp, VlanVid,
    };
    let ip4 = |protocol: u8| {
        let protocol = (IpProto, protocol.into());
        vec![
            (EthType, 0x0800),
            protocol,
            (IpDscp, 0x15),
            (IpEcn, 2),
            (Ipv4Src, 0x0a01_0203),
            (Ipv4Dst, 0xc0a8_0509),
        ]
    };
    let ip6 = |protocol: u8| {
        let fixed = [(EthType, 0x86dd), (IpProto, protocol.into()), (IpDscp, 0x2a), (IpEcn, 1)];
        fixed
            .into_iter()
            .chain([(Ipv6Flabel, 0xa_bcde), (Ipv6Src, V6[0]), (Ipv6Dst, V6[1])])
            .collect::<Vec<_>>()
    };
    let nd = |kind: u8, option: u8| {
        v6(58, &format!("{kind:02x}00 0000 00000000 {:032x} {option:02x}01 02aabbccddee", V6[2]))
    };
    let of_nd = |kind: u8, field| {
        [(Icmpv6Type, kind.into()), (Icmpv6Code, 0), (Ipv6NdTarget, V6[2]), (field, 0x02aa_bbcc_ddee)]
    };
    let ports = |source, destination| [(source, 0x1234), (destination, 0xabcd)];
    let types = |kind, code| [(kind, 0x1b), (code, 0x2d)];
    let tcp = "1234 abcd 00000000 00000000 5000 0000 0000 0000";
    let arp = "0806 0001 0800 0604 0002 02a1a2a3a4a5 0a0b0c0d 02b1b2b3b4b5 0e0f1011";
    let of_arp = [
        (EthType, 0x0806),
        (ArpOp, 2),
        (ArpSha, 0x02a1_a2a3_a4a5),
        (ArpSpa, 0x0a0b_0c0d),
        (ArpTha, 0x02b1_b2b3_b4b5),
        (ArpTpa, 0x0e0f_1011),
    ];
    vec![
        (format!("8100 a123 {arp}"), [&[(VlanVid, 0x1123), (VlanPcp, 5)][..], &of_arp].concat()),
        (v4(6, tcp), [&ip4(6)[..], &ports(TcpSrc, TcpDst)].concat()),
        (v4(17, "1234 abcd 0008 0000"), [&ip4(17)[..], &ports(UdpSrc, UdpDst)].concat()),
        (v4(132, "1234 abcd 00000000 00000000"), [&ip4(132)[..], &ports(SctpSrc, SctpDst)].concat()),
        (v4(1, "1b2d 0000 00000000"), [&ip4(1)[..], &types(Icmpv4Type, Icmpv4Code)].concat()),
        // Hop by hop and destination options.
        (
            v6(0, &format!("3c00 01040000 0000 0600 01040000 0000 {tcp}")),
            [&ip6(6)[..], &[(Ipv6Exthdr, 0x48)], &ports(TcpSrc, TcpDst)].concat(),
        ),
        (v6(17, "1234 abcd 0008 0000"), [&ip6(17)[..], &ports(UdpSrc, UdpDst)].concat()),
        (v6(132, "1234 abcd 00000000 00000000"), [&ip6(132)[..], &ports(SctpSrc, SctpDst)].concat()),
        (v6(58, "1b2d 0000 00000000"), [&ip6(58)[..], &types(Icmpv6Type, Icmpv6Code)].concat()),
        (nd(135, 1), [&ip6(58)[..], &of_nd(135, Ipv6NdSll)].concat()),
        (nd(136, 2), [&ip6(58)[..], &of_nd(136, Ipv6NdTll)].concat()),
        (
            "8847 12345 b 40 00000000".to_owned(),
            vec![(EthType, 0x8847), (MplsLabel, 0x1_2345), (MplsTc, 5), (MplsBos, 1)],
        ),
        (
            "88e7 00abcdef 020000000001 020000000002 0800".to_owned(),
            vec![(EthType, 0x88e7), (PbbIsid, 0xab_cdef)],
        ),
    ]
}

/// Adds a flow by its message, as controllers do.
fn add(switch: &Switch, table: usize, priority: u16, matched: Match, instructions: Instructions) {
    let asked = FlowMod::add(table as u8, priority, matched, instructions).to_message(1);
    let Ok(Request::FlowMod(asked)) = Request::read(&asked) else {
        panic!("{:?}: {matched:?}", Request::read(&asked))
    };
    switch.flow_mod(&asked).unwrap();
}

#[test]
fn each_field_is_looked_at_bit_by_bit() {
    let mut seen = BTreeSet::new();
    for (rest, more) in frames() {
        let frame = hex(&format!("020102030405 021112131415 {rest}"));
        let link = [(Field::EthDst, 0x0201_0203_0405), (Field::EthSrc, 0x0211_1213_1415)];
        let came = [(Field::InPort, PORT.into()), (Field::InPhyPort, PORT.into())];
        let others = [(Field::Metadata, METADATA.into()), (Field::TunnelId, 0)];
        let mut fields = [&came[..], &others, &link].concat();
        if more.iter().all(|&(field, _)| field != Field::VlanVid) {
            fields.push((Field::VlanVid, 0));
        }
        fields.extend(more);
        seen.extend(fields.iter().map(|&(field, _)| field));
        // A match of the field, with the fields that it needs; and one that differs.
        let mut cases = Vec::new();
        for &(field, value) in &fields {
            let mut needs = Match::all();
            let with = |matched: Match, value, mask| matched.with_masked(field, value & mask, mask);
            for need in [Field::InPort, Field::VlanVid, Field::EthType, Field::IpProto, Field::Icmpv6Type] {
                if !with(needs, value, field.all()).allows(field)
                    && let Some(&(_, value)) = fields.iter().find(|&&(known, _)| known == need)
                {
                    needs = needs.with(need, value);
                }
            }
            let exact = (field.all(), value ^ 1);
            let bits =
                (0..field.bits()).filter(|_| field.is_maskable()).map(|bit| (1 << bit, value ^ 1 << bit));
            // Without a mask a VLAN has to have its bit.
            let is_vlan = field == Field::VlanVid;
            let exact = (!is_vlan || value != 0).then_some(exact);
            cases.extend(
                bits.chain(exact).map(|(mask, other)| [value, other].map(|value| with(needs, value, mask))),
            );
        }
        for cases in cases.chunks(LATER) {
            let switch = Switch::new(SwitchOptions::with_ports(["p1", "p2"])).unwrap();
            let next = |table: usize| Some(table as u8 + 1).filter(|&next| usize::from(next) <= cases.len());
            let first = Instructions {
                metadata: Some((METADATA, u64::MAX)),
                goto: next(0),
                ..Instructions::default()
            };
            add(&switch, 0, 1, Match::all(), first);
            for (table, &[right, wrong]) in (1..).zip(cases) {
                let on = || Instructions { goto: next(table), ..Instructions::default() };
                add(&switch, table, 1, right, on());
                add(&switch, table, 2, wrong, on());
            }
            list::run(&switch, switch.app().unwrap(), 2, &[(PORT, frame.clone())], 1);
            for (table, priority, packets, _) in statistics(&switch) {
                let case = cases.get(usize::from(table).wrapping_sub(1));
                assert_eq!(packets, u64::from(priority == 1), "{frame:02x?} {case:?}");
            }
        }
    }
    assert_eq!(seen.len(), Field::ALL.len(), "{seen:?}");
}
