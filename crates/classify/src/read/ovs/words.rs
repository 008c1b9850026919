//! The words of a flow's match: the field of each one, the form of its value, and its needs beside it.
//!
//! The grammar is that of ovs-fields(7). A number is decimal or `0x` hexadecimal: Open vSwitch takes a
//! leading 0 for octal, so that `010` means 8 there and is refused here.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A field of flows that some tuple has, or that decides what the others mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot {
    InPort,
    EthSrc,
    EthDst,
    EthType,
    Tos,
    Proto,
    /// An address of IPv4 or ARP.
    Src4,
    Dst4,
    Src6,
    Dst6,
    TpSrc,
    TpDst,
}

/// Bits that are to be those of a value wherever the mask has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Masked {
    /// The value, 0 where the mask has no bit.
    pub value: u128,
    /// The mask.
    pub mask: u128,
}

/// What a packet has to be for a word to say anything about it. Open vSwitch drops the word where that isn't
/// given, so that the flow matches more than it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    /// IPv4 or IPv6.
    Ip,
    Ip4OrArp,
    IpOrArp,
    Ip6,
    Arp,
    Ports,
    Transport(u128),
    Icmp,
    Icmp6,
}

/// How a value is written.
#[derive(Clone, Copy)]
enum Form {
    Number,
    /// A port of the switch.
    Port,
    Mac,
    Ip4,
    Ip6,
}

/// A word that takes a value.
pub(super) struct Word {
    pub(super) slot: Slot,
    pub(super) needs: Needs,
    width: u16,
    form: Form,
    is_maskable: bool,
}

/// What a word of its own stands for: an EtherType and a protocol.
pub(super) fn shorthand(word: &str) -> Option<(Option<u128>, Option<u128>)> {
    const IP4: Option<u128> = Some(0x0800);
    const IP6: Option<u128> = Some(0x86dd);
    Some(match word {
        "eth" => (None, None),
        "ip" | "ip4" | "ipv4" => (IP4, None),
        "ipv6" | "ip6" => (IP6, None),
        "icmp" => (IP4, Some(1)),
        "tcp" => (IP4, Some(6)),
        "udp" => (IP4, Some(17)),
        "sctp" => (IP4, Some(132)),
        "icmp6" => (IP6, Some(58)),
        "tcp6" => (IP6, Some(6)),
        "udp6" => (IP6, Some(17)),
        "sctp6" => (IP6, Some(132)),
        "arp" => (Some(0x0806), None),
        "rarp" => (Some(0x8035), None),
        "mpls" => (Some(0x8847), None),
        "mplsm" => (Some(0x8848), None),
        _ => return None,
    })
}

/// What a word of a value is, unless it is of no field that a tuple has. VLANs are [`vlan`](super::vlan)'s.
pub(super) fn word(name: &str) -> Option<Word> {
    use Needs::{Arp, Icmp, Icmp6, Ip, Ip4OrArp, Ip6, IpOrArp, Nothing, Ports, Transport};
    let of = |slot, needs, width, form, is_maskable| Some(Word { slot, needs, width, form, is_maskable });
    match name {
        "in_port" => of(Slot::InPort, Nothing, 16, Form::Port, false),
        "dl_src" | "eth_src" => of(Slot::EthSrc, Nothing, 48, Form::Mac, true),
        "dl_dst" | "eth_dst" => of(Slot::EthDst, Nothing, 48, Form::Mac, true),
        "dl_type" | "eth_type" => of(Slot::EthType, Nothing, 16, Form::Number, false),
        "nw_tos" => of(Slot::Tos, Ip, 8, Form::Number, false),
        // Shifted by whoever takes it.
        "ip_dscp" => of(Slot::Tos, Ip, 6, Form::Number, false),
        "nw_proto" | "ip_proto" => of(Slot::Proto, IpOrArp, 8, Form::Number, false),
        "arp_op" => of(Slot::Proto, Arp, 8, Form::Number, false),
        "nw_src" | "ip_src" => of(Slot::Src4, Ip4OrArp, 32, Form::Ip4, true),
        "nw_dst" | "ip_dst" => of(Slot::Dst4, Ip4OrArp, 32, Form::Ip4, true),
        "arp_spa" => of(Slot::Src4, Arp, 32, Form::Ip4, true),
        "arp_tpa" => of(Slot::Dst4, Arp, 32, Form::Ip4, true),
        "ipv6_src" => of(Slot::Src6, Ip6, 128, Form::Ip6, true),
        "ipv6_dst" => of(Slot::Dst6, Ip6, 128, Form::Ip6, true),
        "tp_src" => of(Slot::TpSrc, Ports, 16, Form::Number, true),
        "tp_dst" => of(Slot::TpDst, Ports, 16, Form::Number, true),
        "tcp_src" => of(Slot::TpSrc, Transport(6), 16, Form::Number, true),
        "tcp_dst" => of(Slot::TpDst, Transport(6), 16, Form::Number, true),
        "udp_src" => of(Slot::TpSrc, Transport(17), 16, Form::Number, true),
        "udp_dst" => of(Slot::TpDst, Transport(17), 16, Form::Number, true),
        "sctp_src" => of(Slot::TpSrc, Transport(132), 16, Form::Number, true),
        "sctp_dst" => of(Slot::TpDst, Transport(132), 16, Form::Number, true),
        // Of either family, as `dump-flows` writes them.
        "icmp_type" => of(Slot::TpSrc, Icmp, 8, Form::Number, false),
        "icmp_code" => of(Slot::TpDst, Icmp, 8, Form::Number, false),
        "icmpv6_type" => of(Slot::TpSrc, Icmp6, 8, Form::Number, false),
        "icmpv6_code" => of(Slot::TpDst, Icmp6, 8, Form::Number, false),
        _ => None,
    }
}

impl Word {
    /// The value that a text says: `V`, `V/MASK`, `V/LENGTH` of an address, or `*`.
    pub(super) fn parse(&self, text: &str) -> Option<Masked> {
        if text == "*" {
            return Some(Masked { value: 0, mask: 0 });
        }
        let all = ones(self.width);
        let (value, mask) = match text.split_once('/') {
            Some((value, mask)) if self.is_maskable => (value, self.mask(mask)?),
            Some(_) => return None,
            None => (text, all),
        };
        let value = self.value(value)?;
        (value <= all).then_some(Masked { value: value & mask, mask })
    }

    fn value(&self, text: &str) -> Option<u128> {
        match self.form {
            Form::Number => number(text),
            Form::Port => match text {
                "LOCAL" => Some(0xfffe),
                "CONTROLLER" => Some(0xfffd),
                "ANY" | "NONE" => Some(0xffff),
                text => number(text),
            },
            Form::Mac => mac(text),
            Form::Ip4 => text.parse::<Ipv4Addr>().ok().map(|address| address.to_bits().into()),
            Form::Ip6 => text.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits),
        }
    }

    fn mask(&self, text: &str) -> Option<u128> {
        let is_address = matches!(self.form, Form::Ip4 | Form::Ip6);
        match number(text).filter(|_| is_address) {
            Some(length) => {
                let length = u16::try_from(length).ok().filter(|&length| length <= self.width)?;
                Some(ones(self.width) & !ones(self.width - length))
            }
            None => self.value(text).filter(|&mask| mask <= ones(self.width)),
        }
    }
}

/// A number of so many ones.
pub(super) const fn ones(width: u16) -> u128 {
    if width < 128 { (1 << width) - 1 } else { u128::MAX }
}

/// A number as Open vSwitch and people read it alike.
pub(super) fn number(text: &str) -> Option<u128> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => return None,
        None => (text, 10),
    };
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    is_number.then(|| u128::from_str_radix(digits, radix).ok())?
}

fn mac(text: &str) -> Option<u128> {
    let mut parts = text.split(':');
    let mut all = 0;
    for _ in 0..6 {
        let part = parts.next().filter(|part| matches!(part.len(), 1 | 2))?;
        let is_byte = part.bytes().all(|b| b.is_ascii_hexdigit());
        all = all << 8 | is_byte.then(|| u128::from_str_radix(part, 16).ok())??;
    }
    parts.next().is_none().then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let parse = |name: &str, text: &str| {
            word(name).and_then(|word| word.parse(text)).map(|masked| (masked.value, masked.mask))
        };
        for (name, text, value, mask) in [
            ("tp_src", "80", 80, 0xffff),
            ("tp_src", "0x50/0xfff0", 0x50, 0xfff0),
            ("tp_src", "80/65520", 0x50, 0xfff0),
            ("nw_src", "10.0.0.5/8", 0x0a00_0000, 0xff00_0000),
            ("nw_src", "10.0.0.5/255.0.0.255", 0x0a00_0005, 0xff00_00ff),
            ("nw_src", "*", 0, 0),
            ("in_port", "LOCAL", 0xfffe, 0xffff),
            ("dl_dst", "1:0:0:0:0:ff/1:0:0:0:0:0", 1 << 40, 1 << 40),
            ("ipv6_src", "2001:db8::1/16", 0x2001 << 112, 0xffff << 112),
            ("ipv6_src", "2001:db8::1/ffff::", 0x2001 << 112, 0xffff << 112),
        ] {
            assert_eq!(parse(name, text), Some((value, mask)), "{name}={text}");
        }
        for (name, text) in [
            ("tp_src", "010"),
            ("tp_src", "80-90"),
            ("tp_src", "65536"),
            ("tp_src", "+1"),
            ("tp_src", "http"),
            ("tp_src", ""),
            ("nw_proto", "tcp"),
            ("nw_proto", "6/6"),
            ("nw_src", "10.0.0.0/33"),
            ("nw_src", "10.0.0.0-10.0.0.9"),
            ("nw_src", "1"),
            ("icmp_type", "256"),
            ("dl_src", "1:2:3:4:5"),
            ("in_port", "eth0"),
            ("in_port", "70000"),
        ] {
            assert_eq!(parse(name, text), None, "{name}={text}");
        }
    }
}
