//! [`Key`]: what an expression looks at, the left side of a match or the key of a map.

use serde_json::Value;

use super::names::Names;
use crate::read::assume::AssumptionKey;
use crate::read::chains::{FieldSet, Region, TooMany};
use crate::tuple::{Field, Fields};

/// Protocols whose headers begin with two ports.
const WITH_PORTS: [u128; 5] = [6, 17, 33, 132, 136];

/// The family of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Ip,
    Ip6,
    Inet,
}

/// The packets that rules of a table are read for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packets {
    /// The family of the table.
    pub(super) family: Family,
    /// The fields of the tuple.
    pub(super) fields: Fields,
}

/// What an expression looks at, and what packets it is there of: a match of anything in others fails,
/// whatever it wants.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) what: What,
    /// The packets that have it.
    pub(super) of: Region,
    /// Whether it is in the transport header, which later fragments haven't.
    pub(super) is_transport: bool,
    /// Packets that have something else there, of which a tuple holds nothing.
    pub(super) beside: Option<Region>,
}

/// What is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A field of the tuple.
    Field(&'static Field, Names),
    /// The family of the packet: as its name, its number, its EtherType's name and number are.
    Family { own: [&'static str; 2], number: u64 },
    /// A fact: words that may be assumed.
    Fact(AssumptionKey),
    /// The status of a connection, of which its translations may be assumed.
    Status,
    /// The offset of a fragment, under the mask of all its bits.
    FragmentOffset,
    /// Something that no tuple holds and nothing can be assumed of, in words.
    Unknown(String),
}

impl Key {
    /// Something that no tuple holds.
    pub(super) fn unknown(why: impl Into<String>) -> Self {
        Self { what: What::Unknown(why.into()), of: Region::all(), is_transport: false, beside: None }
    }

    fn of(what: What) -> Self {
        Self { what, of: Region::all(), is_transport: false, beside: None }
    }

    /// Reads an expression.
    pub(super) fn parse(left: &Value, packets: Packets) -> Result<Self, TooMany> {
        let Some((kind, value)) = single(left) else {
            return Ok(Self::unknown(format!("a match by {}", shown(left))));
        };
        match kind {
            "payload" => Self::payload(value, packets),
            "meta" => Ok(Self::meta(value, packets.fields)),
            "ct" => Ok(Self::connection(value)),
            "fib" => Ok(Self::route(value)),
            other => Ok(Self::unknown(format!("a match by {other}"))),
        }
    }

    fn payload(value: &Value, packets: Packets) -> Result<Self, TooMany> {
        let Packets { family, fields } = packets;
        if value.get("tunnel").is_some() {
            return Ok(Self::unknown("a field of a header within a tunnel"));
        }
        let (Some(protocol), Some(field), Some(2)) =
            (text(value, "protocol"), text(value, "field"), value.as_object().map(serde_json::Map::len))
        else {
            return Ok(Self::unknown("a match of bytes by their place"));
        };
        let no_field = || format!("no field of a tuple ({protocol} {field})");
        let ports = match field {
            "sport" => Some("sport"),
            "dport" => Some("dport"),
            _ => None,
        };
        let number = match protocol {
            "ip" | "ip6" => return Ok(Self::network(fields, protocol, field)),
            "th" => {
                let Some(port) = ports.and_then(|port| fields.called(port)) else {
                    return Ok(Self::unknown(no_field()));
                };
                let of = protocols(fields, &WITH_PORTS);
                let beside = Some(Region::all().minus(&of)?);
                return Ok(Self { what: What::Field(port, Names::Ports), of, is_transport: true, beside });
            }
            "tcp" => 6,
            "udp" => 17,
            "dccp" => 33,
            "sctp" => 132,
            "udplite" => 136,
            "icmp" => 1,
            "icmpv6" => 58,
            _ => return Ok(Self::unknown(no_field())),
        };
        let mut of = protocols(fields, &[number]);
        // In a table of both families nft looks at the family first.
        let other = if number == 58 { !fields.are_v6() } else { number == 1 && fields.are_v6() };
        if other && family == Family::Inet {
            of = Region::none();
        }
        let what = match (protocol, field) {
            ("icmp", "type") => What::Field(fields.named("sport"), Names::IcmpTypes),
            ("icmp", "code") => What::Field(fields.named("dport"), Names::IcmpCodes),
            ("icmpv6", "type") => What::Field(fields.named("sport"), Names::Icmpv6Types),
            ("icmpv6", "code") => What::Field(fields.named("dport"), Names::Icmpv6Codes),
            ("tcp", "flags") => What::Fact(AssumptionKey::TcpFlags),
            ("tcp" | "udp" | "dccp" | "sctp" | "udplite", _) => match ports {
                Some(port) => What::Field(fields.named(port), Names::Ports),
                None => What::Unknown(no_field()),
            },
            _ => What::Unknown(no_field()),
        };
        Ok(Self { what, of, is_transport: true, beside: None })
    }

    /// A field of an IP header; only packets of that family have it.
    fn network(fields: Fields, protocol: &str, field: &str) -> Self {
        let is_own = (protocol == "ip6") == fields.are_v6();
        let of = if is_own { Region::all() } else { Region::none() };
        let what = match (protocol, field) {
            (_, "saddr") => What::Field(fields.named("src"), Names::OfField),
            (_, "daddr") => What::Field(fields.named("dst"), Names::OfField),
            ("ip", "protocol") => What::Field(fields.named("proto"), Names::OfField),
            ("ip", "frag-off") => What::FragmentOffset,
            // The first of perhaps several headers; a tuple has what is behind them.
            ("ip6", "nexthdr") => {
                What::Unknown("the header after that of IPv6 may be an extension (ip6 nexthdr)".to_owned())
            }
            _ => What::Unknown(format!("no field of a tuple ({protocol} {field})")),
        };
        Self { what, of, is_transport: false, beside: None }
    }

    fn meta(value: &Value, fields: Fields) -> Self {
        let (Some(key), Some(1)) = (text(value, "key"), value.as_object().map(serde_json::Map::len)) else {
            return Self::unknown(format!("a match by meta {}", shown(value)));
        };
        let is_v6 = fields.are_v6();
        Self::of(match key {
            "l4proto" => What::Field(fields.named("proto"), Names::OfField),
            "nfproto" if is_v6 => What::Family { own: ["ipv6", "ipv6"], number: 10 },
            "nfproto" => What::Family { own: ["ipv4", "ipv4"], number: 2 },
            "protocol" if is_v6 => What::Family { own: ["ip6", "ipv6"], number: 0x86dd },
            "protocol" => What::Family { own: ["ip", "ipv4"], number: 0x0800 },
            "iifname" | "iif" => What::Fact(AssumptionKey::In),
            "oifname" | "oif" => What::Fact(AssumptionKey::Out),
            "mark" => What::Fact(AssumptionKey::Mark),
            "pkttype" => What::Fact(AssumptionKey::PacketType),
            other => What::Unknown(format!("a match by meta {other}")),
        })
    }

    fn connection(value: &Value) -> Self {
        match (text(value, "key"), value.as_object().map(serde_json::Map::len)) {
            (Some("state"), Some(1)) => Self::of(What::Fact(AssumptionKey::Ct)),
            (Some("direction"), Some(1)) => Self::of(What::Fact(AssumptionKey::CtDirection)),
            (Some("mark"), Some(1)) => Self::of(What::Fact(AssumptionKey::CtMark)),
            (Some("status"), Some(1)) => Self::of(What::Status),
            (Some("zone"), Some(1)) => Self::of(What::Fact(AssumptionKey::CtZone)),
            // A zone may be that of one direction alone, and the default one in the other.
            (Some("zone"), _) => Self::unknown("a match by ct zone of one direction"),
            (Some(key), _) => Self::unknown(format!("a match by ct {key}")),
            _ => Self::unknown("a match by ct"),
        }
    }

    fn route(value: &Value) -> Self {
        let flags: Option<Vec<&str>> = match &value["flags"] {
            Value::Array(flags) => flags.iter().map(Value::as_str).collect(),
            Value::String(flag) => Some(vec![flag]),
            _ => None,
        };
        match (text(value, "result"), flags.as_deref()) {
            (Some("type"), Some(["daddr"])) => Self::of(What::Fact(AssumptionKey::DstType)),
            (Some("type"), Some(["saddr"])) => Self::of(What::Fact(AssumptionKey::SrcType)),
            _ => Self::unknown("a match by fib"),
        }
    }
}

/// The packets of any of some protocols.
pub(super) fn protocols(fields: Fields, numbers: &[u128]) -> Region {
    let proto = fields.named("proto");
    Region::of(proto, FieldSet::ranges(proto, numbers.iter().map(|&number| (number, number))))
}

/// The family that the tuple is not of, as tables call it.
pub(super) fn other_family(fields: Fields) -> &'static str {
    if fields.are_v6() { "ip" } else { "ip6" }
}

/// Whether a statement of a rule lets packets through only of the family that the tuple is not of.
pub(super) fn is_of_other_family(statement: &Value, fields: Fields) -> bool {
    let other: [&str; 3] = if fields.are_v6() { ["ip", "ipv4", "icmp"] } else { ["ip6", "ipv6", "icmpv6"] };
    let is_other = |value: &Value| value.as_str().is_some_and(|word| other.contains(&word));
    let (left, right) = match single(statement) {
        Some(("match", wanted)) if text(wanted, "op") == Some("==") => (&wanted["left"], &wanted["right"]),
        Some(("match", wanted)) => (&wanted["left"], &Value::Null),
        Some(("vmap", map)) => (&map["key"], &Value::Null),
        _ => return false,
    };
    let of_part = |part: &Value| match single(part) {
        Some(("payload", payload)) => is_other(&payload["protocol"]) && payload.get("tunnel").is_none(),
        Some(("meta", meta)) => matches!(text(meta, "key"), Some("nfproto" | "protocol")) && is_other(right),
        _ => false,
    };
    match single(left) {
        Some(("concat", parts)) => parts.as_array().is_some_and(|parts| parts.iter().any(of_part)),
        Some(("&", Value::Array(sides))) => sides.first().is_some_and(of_part),
        _ => of_part(left),
    }
}

/// The key and the value of an object of one.
pub(super) fn single(value: &Value) -> Option<(&str, &Value)> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    object.iter().next().map(|(key, value)| (key.as_str(), value))
}

/// A text in an object.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

/// Some of what a value says.
pub(super) fn shown(value: &Value) -> String {
    value.to_string().chars().take(60).collect()
}
