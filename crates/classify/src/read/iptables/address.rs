//! Addresses, ports, protocols and numbers as iptables writes them, as sets of a field's numbers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::wrong::Wrong;
use crate::read::chains::FieldSet;
use crate::read::services;
use crate::tuple::Field;

/// What a text comes to.
pub(super) enum Read {
    /// Numbers of the field.
    Set(FieldSet),
    /// A name whose meaning only another machine knows.
    Name,
}

/// A number, decimal or with `0x`. Leading zeros would be octal, and are none of ours.
pub(super) fn number(text: &str) -> Option<u64> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    let is_octal = radix == 10 && digits.len() > 1 && digits.starts_with('0');
    let is_right = !digits.is_empty() && !is_octal && digits.chars().all(|c| c.is_digit(radix));
    is_right.then(|| u64::from_str_radix(digits, radix).ok())?
}

/// An address of the field's family.
fn address(field: &Field, text: &str) -> Result<Option<u128>, Wrong> {
    let other = || {
        let (own, other) = if field.width == 128 { ("IPv6", "IPv4") } else { ("IPv4", "IPv6") };
        Wrong::OtherFamily(format!("an {other} address in rules that are read as {own}"))
    };
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) if field.width == 32 => Ok(Some(Ipv4Addr::to_bits(address).into())),
        Ok(IpAddr::V6(address)) if field.width == 128 => Ok(Some(Ipv6Addr::to_bits(address))),
        Ok(_) => Err(other()),
        Err(_) => Ok(None),
    }
}

/// Addresses: `A`, `A/LENGTH` or `A/MASK`, and several joined by commas.
pub(super) fn addresses(field: &Field, text: &str) -> Result<Read, Wrong> {
    let mut all = Vec::new();
    for one in text.split(',') {
        let (host, mask) = one.split_once('/').map_or((one, None), |(host, mask)| (host, Some(mask)));
        let wrong = || Wrong::Bad(format!("{one:?} is no address"));
        let mask = match mask {
            None => field.all(),
            Some(mask) => match number(mask).filter(|&length| length <= field.width.into()) {
                Some(length) => field.prefix(u16::try_from(length).map_err(|_| wrong())?),
                None => address(field, mask)?.ok_or_else(wrong)?,
            },
        };
        // Of all addresses the name says nothing.
        let value = match address(field, host)? {
            Some(value) => value,
            None if mask == 0 && !host.is_empty() => 0,
            None if is_name(host) => return Ok(Read::Name),
            None => return Err(wrong()),
        };
        all.push(FieldSet::masked(field, value, mask));
    }
    Ok(Read::Set(FieldSet::any(field, &all)?))
}

/// Whether a text could be the name of a host; short forms of addresses, such as `10.1`, are, too: what they
/// mean depends on who reads.
fn is_name(text: &str) -> bool {
    let is_of_one = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    !text.is_empty() && text.chars().all(is_of_one)
}

/// A range of addresses: `A-B`, or one.
pub(super) fn address_range(field: &Field, text: &str) -> Result<FieldSet, Wrong> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let wrong = || Wrong::Bad(format!("{text:?} is no range of addresses"));
    let (from, to) = (address(field, from)?.ok_or_else(wrong)?, address(field, to)?.ok_or_else(wrong)?);
    if from > to {
        return Err(wrong());
    }
    Ok(FieldSet::range(field, from, to))
}

/// Ports: `N`, `A:B`, `:B`, `A:`.
pub(super) fn ports(field: &Field, protocol: Option<u8>, text: &str) -> Result<Read, Wrong> {
    let wrong = || Wrong::Bad(format!("{text:?} is no port and no range of ports"));
    let one = |text: &str| match number(text) {
        Some(number) if number <= 0xffff => Ok(Some(u128::from(number))),
        Some(_) => Err(wrong()),
        None if text.starts_with(|c: char| c.is_ascii_alphabetic()) && is_name(text) => {
            let known = protocol.and_then(|protocol| services::port(text, Some(protocol)));
            Ok(known.map(u128::from))
        }
        None => Err(wrong()),
    };
    let (from, to) = match text.split_once(':') {
        None => {
            let port = one(text)?;
            (port, port)
        }
        Some((from, to)) => {
            let from = if from.is_empty() { Some(0) } else { one(from)? };
            (from, if to.is_empty() { Some(0xffff) } else { one(to)? })
        }
    };
    match (from, to) {
        (Some(from), Some(to)) if from <= to => Ok(Read::Set(FieldSet::range(field, from, to))),
        (Some(_), Some(_)) => Err(wrong()),
        _ => Ok(Read::Name),
    }
}

/// A list of ports.
pub(super) fn port_list(field: &Field, protocol: Option<u8>, text: &str) -> Result<Read, Wrong> {
    /// The most numbers that a match of the kernel has room for. A range takes two.
    const MOST: usize = 15;
    let numbers = text.split(',').map(|one| 1 + usize::from(one.contains(':'))).sum::<usize>();
    if numbers > MOST {
        return Err(Wrong::Bad(format!("{numbers} numbers of ports, {MOST} are allowed (a range has two)")));
    }
    let mut all = Vec::new();
    for one in text.split(',') {
        match ports(field, protocol, one)? {
            Read::Set(set) => all.push(set),
            Read::Name => return Ok(Read::Name),
        }
    }
    Ok(Read::Set(FieldSet::any(field, &all)?))
}

/// A protocol by its number or name; `None` of all of them.
pub(super) fn protocol(text: &str) -> Result<Option<u8>, Wrong> {
    if let Some(number) = number(text) {
        let number = u8::try_from(number).map_err(|_| Wrong::Bad(format!("{text} is no protocol")))?;
        return Ok(Some(number).filter(|&number| number != 0));
    }
    let text = text.to_ascii_lowercase();
    if text == "all" {
        return Ok(None);
    }
    let found = PROTOCOLS.iter().find(|(names, _)| names.split(' ').any(|name| name == text));
    found
        .map(|(_, number)| Some(*number))
        .ok_or_else(|| Wrong::Unknown(format!("a protocol that isn't known ({text})")))
}

/// Protocols by the names that `/etc/protocols` has, and those of iptables itself.
const PROTOCOLS: [(&str, u8); 54] = [
    ("icmp", 1),
    ("igmp", 2),
    ("ggp", 3),
    ("ipencap ip-encap", 4),
    ("st", 5),
    ("tcp", 6),
    ("egp", 8),
    ("igp", 9),
    ("pup", 12),
    ("udp", 17),
    ("hmp", 20),
    ("xns-idp", 22),
    ("rdp", 27),
    ("iso-tp4", 29),
    ("dccp", 33),
    ("xtp", 36),
    ("ddp", 37),
    ("idpr-cmtp", 38),
    ("ipv6", 41),
    ("ipv6-route", 43),
    ("ipv6-frag", 44),
    ("idrp", 45),
    ("rsvp", 46),
    ("gre", 47),
    ("esp ipsec-esp", 50),
    ("ah ipsec-ah", 51),
    ("skip", 57),
    ("ipv6-icmp icmpv6 icmp6", 58),
    ("ipv6-nonxt", 59),
    ("ipv6-opts", 60),
    ("rspf", 73),
    ("vmtp", 81),
    ("eigrp", 88),
    ("ospf ospfigp", 89),
    ("ax.25", 93),
    ("ipip", 94),
    ("etherip", 97),
    ("encap", 98),
    ("pim", 103),
    ("ipcomp", 108),
    ("vrrp", 112),
    ("l2tp", 115),
    ("isis", 124),
    ("sctp", 132),
    ("fc", 133),
    ("mobility-header mh ipv6-mh", 135),
    ("udplite", 136),
    ("mpls-in-ip", 137),
    ("manet", 138),
    ("hip", 139),
    ("shim6", 140),
    ("wesp", 141),
    ("rohc", 142),
    ("ethernet", 143),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ipv4Tuple, Ipv6Tuple};

    #[test]
    fn protocols_by_name_and_number() {
        for (text, wanted) in [
            ("ipv6-icmp", 58),
            ("icmpv6", 58),
            ("TCP", 6),
            ("6", 6),
            ("gre", 47),
            ("esp", 50),
            ("0x11", 17),
            ("ax.25", 93),
        ] {
            assert_eq!(protocol(text).ok(), Some(Some(wanted)), "{text}");
        }
        assert!(matches!((protocol("all"), protocol("0")), (Ok(None), Ok(None))));
        assert!(protocol("quic").is_err() && protocol("256").is_err() && protocol("tcp-udp").is_err());
    }

    #[test]
    fn addresses_and_ports() {
        let src = |text: &str| match addresses(&Ipv4Tuple::SRC, text) {
            Ok(Read::Set(set)) => Some(set),
            _ => None,
        };
        let masked = |value, mask| Some(FieldSet::masked(&Ipv4Tuple::SRC, value, mask));
        assert_eq!(src("10.1.2.3/8"), masked(0x0a00_0000, 0xff00_0000));
        assert_eq!(src("10.1.2.3/255.0.0.255"), masked(0x0a00_0003, 0xff00_00ff));
        assert_eq!((src("any/0"), src("0.0.0.0/0")), (masked(0, 0), masked(0, 0)));
        assert_eq!(src("10.0.0.0/9,10.128.0.0/9"), src("10.0.0.0/8"));
        assert!(matches!(addresses(&Ipv4Tuple::SRC, "a.example"), Ok(Read::Name)));
        assert!(matches!(addresses(&Ipv4Tuple::SRC, "10.1"), Ok(Read::Name)));
        for wrong in
            ["10.0.0.0/33", "10.0.0.0/", "/8", "", "10.0.0.0/8/8", "10.0.0.1,", "!10.0.0.1", "10.0.0.0/08"]
        {
            assert!(addresses(&Ipv4Tuple::SRC, wrong).is_err(), "{wrong}");
        }
        assert!(matches!(addresses(&Ipv4Tuple::SRC, "2001:db8::/32"), Err(Wrong::OtherFamily(_))));
        assert!(matches!(addresses(&Ipv6Tuple::SRC, "10.0.0.0/8"), Err(Wrong::OtherFamily(_))));
        let port = |text: &str| match ports(&Ipv4Tuple::SPORT, Some(6), text) {
            Ok(Read::Set(set)) => Some(set),
            _ => None,
        };
        let range = |from, to| Some(FieldSet::range(&Ipv4Tuple::SPORT, from, to));
        assert_eq!(
            (port("22"), port(":9"), port("9:"), port(":")),
            (range(22, 22), range(0, 9), range(9, 65535), range(0, 65535))
        );
        for (protocol, name) in [(None, "ssh"), (Some(6), "syslog"), (Some(6), "ours"), (Some(6), "ssh:ours")]
        {
            assert!(matches!(ports(&Ipv4Tuple::SPORT, protocol, name), Ok(Read::Name)), "{name}");
        }
        for wrong in ["65536", "9:8", "022", "", "1-2", "1:2:3", "1:x:3"] {
            assert!(ports(&Ipv4Tuple::SPORT, Some(6), wrong).is_err(), "{wrong}");
        }
    }
}
