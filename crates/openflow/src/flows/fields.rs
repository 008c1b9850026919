//! Fields of flows in texts, and their values.

use wirespeed_classify::read::vlan::{Masked, PRESENT, Tagged, Vlan, Ways};

use super::number;
use crate::wire::number::port;
use crate::wire::{Field, Match};

/// A word that stands for the type, and for the protocol.
fn shorthand(word: &str) -> Option<(u128, Option<u128>)> {
    Some(match word {
        "ip" => (0x0800, None),
        "icmp" => (0x0800, Some(1)),
        "tcp" => (0x0800, Some(6)),
        "udp" => (0x0800, Some(17)),
        "sctp" => (0x0800, Some(132)),
        "ipv6" => (0x86dd, None),
        "icmp6" => (0x86dd, Some(58)),
        "tcp6" => (0x86dd, Some(6)),
        "udp6" => (0x86dd, Some(17)),
        "sctp6" => (0x86dd, Some(132)),
        "arp" => (0x0806, None),
        "mpls" => (0x8847, None),
        "mplsm" => (0x8848, None),
        _ => return None,
    })
}

/// The port of a name.
pub(super) fn port(text: &str) -> Option<u32> {
    Some(match text.to_ascii_lowercase().as_str() {
        "in_port" => port::IN_PORT,
        "all" => port::ALL,
        "flood" => port::FLOOD,
        "normal" => port::NORMAL,
        "controller" => port::CONTROLLER,
        "local" => port::LOCAL,
        "table" => port::TABLE,
        _ => return None,
    })
}

/// The field of a name. Some names mean different fields for different packets.
pub(super) fn field(name: &str, by: &Match) -> Result<Field, String> {
    let ether = by.value.of(Field::EthType);
    let proto = by.value.of(Field::IpProto);
    let transport = |tcp, udp, sctp| match proto {
        6 => Ok(tcp),
        17 => Ok(udp),
        132 => Ok(sctp),
        _ => Err(format!("{name} without the protocol that has it")),
    };
    Ok(match name {
        "dl_src" => Field::EthSrc,
        "dl_dst" => Field::EthDst,
        "dl_type" => Field::EthType,
        "dl_vlan" | "vlan_vid" => Field::VlanVid,
        "dl_vlan_pcp" | "vlan_pcp" => Field::VlanPcp,
        "nw_tos" | "ip_dscp" => Field::IpDscp,
        "nw_ecn" | "ip_ecn" => Field::IpEcn,
        "nw_proto" if ether == 0x0806 => Field::ArpOp,
        "nw_proto" | "ip_proto" => Field::IpProto,
        "nw_src" if ether == 0x0806 => Field::ArpSpa,
        "nw_dst" if ether == 0x0806 => Field::ArpTpa,
        "nw_src" | "ip_src" => Field::Ipv4Src,
        "nw_dst" | "ip_dst" => Field::Ipv4Dst,
        "tp_src" => transport(Field::TcpSrc, Field::UdpSrc, Field::SctpSrc)?,
        "tp_dst" => transport(Field::TcpDst, Field::UdpDst, Field::SctpDst)?,
        "icmp_type" if ether == 0x86dd => Field::Icmpv6Type,
        "icmp_code" if ether == 0x86dd => Field::Icmpv6Code,
        "icmp_type" => Field::Icmpv4Type,
        "icmp_code" => Field::Icmpv4Code,
        "ipv6_label" => Field::Ipv6Flabel,
        "nd_target" => Field::Ipv6NdTarget,
        "nd_sll" => Field::Ipv6NdSll,
        "nd_tll" => Field::Ipv6NdTll,
        "tun_id" => Field::TunnelId,
        name => {
            let known = Field::ALL.into_iter().find(|field| field.name() == name);
            known.ok_or_else(|| format!("{name:?} is no field of OpenFlow 1.3"))?
        }
    })
}

/// The number of a value, such as an address or a port's name.
pub(super) fn value(name: &str, field: Field, text: &str) -> Result<u128, String> {
    let wrong = || format!("{text:?} is no {name}");
    if field.bits() == 128 {
        return text.parse::<std::net::Ipv6Addr>().map(u128::from).map_err(|_| wrong());
    }
    if field.bits() == 48 && text.contains(':') {
        let mut bytes = text.split(':').map(|byte| u8::from_str_radix(byte, 16));
        let number = bytes
            .by_ref()
            .take(6)
            .try_fold(0_u128, |number, byte| byte.map(|byte| number << 8 | u128::from(byte)));
        return match (number, bytes.next(), text.split(':').count()) {
            (Ok(number), None, 6) => Ok(number),
            _ => Err(wrong()),
        };
    }
    if field.bits() == 32 && text.contains('.') {
        return text.parse::<std::net::Ipv4Addr>().map(|ip| u32::from(ip).into()).map_err(|_| wrong());
    }
    if field == Field::InPort
        && let Some(port) = port(text)
    {
        return Ok(port.into());
    }
    let number = u128::from(number(text)?);
    let number = match name {
        "nw_tos" => number >> 2,
        // A tag's bit, which this name does not write.
        "dl_vlan" => number | PRESENT,
        _ => number,
    };
    if number > field.all() { Err(format!("{text} is too large for {name}")) } else { Ok(number) }
}

/// The mask of a value: a length for addresses, else a number like the value.
fn mask(name: &str, field: Field, text: &str) -> Result<u128, String> {
    let is_address = matches!(
        field,
        Field::Ipv4Src | Field::Ipv4Dst | Field::ArpSpa | Field::ArpTpa | Field::Ipv6Src | Field::Ipv6Dst
    );
    match text.parse::<u32>() {
        Ok(len) if is_address && len <= field.bits() => {
            Ok(if len == 0 { 0 } else { field.all() >> (field.bits() - len) << (field.bits() - len) })
        }
        Ok(_) if is_address => Err(format!("{text:?} is no length of a prefix")),
        _ => value(name, field, text),
    }
}

/// The match of the words before the actions.
pub(super) fn matched(words: &[(&str, Option<&str>)]) -> Result<Match, String> {
    let mut matched = Match::all();
    // What other fields depend on comes first.
    let is_first = |name: &str| matches!(name, "dl_type" | "eth_type" | "nw_proto" | "ip_proto");
    for &(name, given) in words.iter().filter(|(_, given)| given.is_none()) {
        debug_assert!(given.is_none(), "filtered");
        let (ether, proto) = shorthand(name).ok_or_else(|| format!("{name:?} is no word of OpenFlow 1.3"))?;
        for (field, number) in [(Field::EthType, Some(ether)), (Field::IpProto, proto)] {
            let Some(number) = number else { continue };
            if matched.has(field) && matched.value.of(field) != number {
                return Err(format!("{name} beside a word for other packets"));
            }
            matched = matched.with(field, number);
        }
    }
    let given = |is_wanted: bool| {
        words
            .iter()
            .filter_map(|&(name, given)| Some((name, given?)))
            .filter(move |(name, _)| is_first(name) == is_wanted)
    };
    let mut types: Vec<(&str, &str)> = given(true).collect();
    types.sort_by_key(|(name, _)| !name.ends_with("_type"));
    let mut vlan = Vlan::default();
    for (name, given) in types.into_iter().chain(given(false)) {
        if vlan.take(name, given)? {
            continue;
        }
        let field = field(name, &matched)?;
        let (number, mask) = match given.split_once('/') {
            Some((number, bits)) => (value(name, field, number)?, mask(name, field, bits)?),
            None => (value(name, field, given)?, field.all()),
        };
        if matched.has(field) && (matched.value.of(field) != number & mask || matched.mask.of(field) != mask)
        {
            return Err(format!("two demands of {name}"));
        }
        matched = matched.with_masked(field, number & mask, mask);
    }
    vlan.ways().map_or(Ok(matched), |ways| tagged(matched, ways))
}

/// The match of frames with some tags, or without one, among those of a match.
fn tagged(matched: Match, ways: Ways) -> Result<Match, String> {
    let none = Masked { value: 0, mask: 0 };
    let (vid, pcp) = match ways {
        Ways { untagged: true, tagged: None } => (Masked { value: 0, mask: Field::VlanVid.all() }, none),
        Ways { untagged: false, tagged: Some(Tagged { vid, pcp }) } => {
            (Masked { value: vid.value | PRESENT, mask: vid.mask | PRESENT }, pcp)
        }
        Ways { tagged: Some(Tagged { vid, pcp }), .. } if pcp.mask == 0 => (vid, pcp),
        _ => return Err("a priority of frames that may have no tag: OpenFlow 1.3 can't match it".to_owned()),
    };
    let matched = matched.with_masked(Field::VlanVid, vid.value, vid.mask);
    Ok(if pcp.mask == 0 { matched } else { matched.with_masked(Field::VlanPcp, pcp.value, pcp.mask) })
}
