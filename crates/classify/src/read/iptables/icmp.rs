//! Types and codes of ICMP by their names, as iptables and ip6tables have them.

/// A type, and the codes from one to another.
pub(super) type Message = (u8, (u8, u8));

const ALL: (u8, u8) = (0, 255);

/// Names of ICMP for IPv4.
const V4: [(&str, Message); 40] = [
    ("echo-reply", (0, ALL)),
    ("pong", (0, ALL)),
    ("destination-unreachable", (3, ALL)),
    ("network-unreachable", (3, (0, 0))),
    ("host-unreachable", (3, (1, 1))),
    ("protocol-unreachable", (3, (2, 2))),
    ("port-unreachable", (3, (3, 3))),
    ("fragmentation-needed", (3, (4, 4))),
    ("source-route-failed", (3, (5, 5))),
    ("network-unknown", (3, (6, 6))),
    ("host-unknown", (3, (7, 7))),
    ("network-prohibited", (3, (9, 9))),
    ("host-prohibited", (3, (10, 10))),
    ("TOS-network-unreachable", (3, (11, 11))),
    ("TOS-host-unreachable", (3, (12, 12))),
    ("communication-prohibited", (3, (13, 13))),
    ("host-precedence-violation", (3, (14, 14))),
    ("precedence-cutoff", (3, (15, 15))),
    ("source-quench", (4, ALL)),
    ("redirect", (5, ALL)),
    ("network-redirect", (5, (0, 0))),
    ("host-redirect", (5, (1, 1))),
    ("TOS-network-redirect", (5, (2, 2))),
    ("TOS-host-redirect", (5, (3, 3))),
    ("echo-request", (8, ALL)),
    ("ping", (8, ALL)),
    ("router-advertisement", (9, ALL)),
    ("router-solicitation", (10, ALL)),
    ("time-exceeded", (11, ALL)),
    ("ttl-exceeded", (11, ALL)),
    ("ttl-zero-during-transit", (11, (0, 0))),
    ("ttl-zero-during-reassembly", (11, (1, 1))),
    ("parameter-problem", (12, ALL)),
    ("ip-header-bad", (12, (0, 0))),
    ("required-option-missing", (12, (1, 1))),
    ("timestamp-request", (13, ALL)),
    ("timestamp-reply", (14, ALL)),
    ("address-mask-request", (17, ALL)),
    ("address-mask-reply", (18, ALL)),
    // Any type, as the number 255 is.
    ("any", (255, ALL)),
];

/// Names of ICMP for IPv6.
const V6: [(&str, Message); 28] = [
    ("destination-unreachable", (1, ALL)),
    ("no-route", (1, (0, 0))),
    ("communication-prohibited", (1, (1, 1))),
    ("beyond-scope", (1, (2, 2))),
    ("address-unreachable", (1, (3, 3))),
    ("port-unreachable", (1, (4, 4))),
    ("failed-policy", (1, (5, 5))),
    ("reject-route", (1, (6, 6))),
    ("packet-too-big", (2, ALL)),
    ("time-exceeded", (3, ALL)),
    ("ttl-exceeded", (3, ALL)),
    ("ttl-zero-during-transit", (3, (0, 0))),
    ("ttl-zero-during-reassembly", (3, (1, 1))),
    ("parameter-problem", (4, ALL)),
    ("bad-header", (4, (0, 0))),
    ("unknown-header-type", (4, (1, 1))),
    ("unknown-option", (4, (2, 2))),
    ("echo-request", (128, ALL)),
    ("ping", (128, ALL)),
    ("echo-reply", (129, ALL)),
    ("pong", (129, ALL)),
    ("router-solicitation", (133, ALL)),
    ("router-advertisement", (134, ALL)),
    ("neighbour-solicitation", (135, ALL)),
    ("neighbor-solicitation", (135, ALL)),
    ("neighbour-advertisement", (136, ALL)),
    ("neighbor-advertisement", (136, ALL)),
    ("redirect", (137, ALL)),
];

/// The message that a name or numbers mean: `echo-request`, `8`, `3/4`. `None` of what isn't known.
pub(super) fn message(text: &str, is_v6: bool) -> Option<Message> {
    let names: &[(&str, Message)] = if is_v6 { &V6 } else { &V4 };
    if let Some((_, message)) = names.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
        return Some(*message);
    }
    let small = |text: &str| u8::try_from(super::address::number(text)?).ok();
    match text.split_once('/') {
        Some((kind, code)) => small(code).and_then(|code| Some((small(kind)?, (code, code)))),
        None => Some((small(text)?, ALL)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_their_family() {
        for (text, v4, v6) in [
            ("echo-request", Some((8, ALL)), Some((128, ALL))),
            ("destination-unreachable", Some((3, ALL)), Some((1, ALL))),
            ("communication-prohibited", Some((3, (13, 13))), Some((1, (1, 1)))),
            ("time-exceeded", Some((11, ALL)), Some((3, ALL))),
            ("redirect", Some((5, ALL)), Some((137, ALL))),
            ("router-advertisement", Some((9, ALL)), Some((134, ALL))),
            ("packet-too-big", None, Some((2, ALL))),
            ("source-quench", Some((4, ALL)), None),
            ("3/4", Some((3, (4, 4))), Some((3, (4, 4)))),
            ("0x80", Some((128, ALL)), Some((128, ALL))),
            ("256", None, None),
            ("3/", None, None),
            ("echo", None, None),
        ] {
            assert_eq!((message(text, false), message(text, true)), (v4, v6), "{text}");
        }
    }
}
