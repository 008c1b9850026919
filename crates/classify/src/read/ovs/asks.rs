//! [`Ask`]: what a flow asks for beside the fields of tuples, and what assumptions say to it.
//!
//! | words | decided by |
//! |---|---|
//! | `ct_state` | `ct`, and `ct-dir` where it asks for `rpl` |
//! | `ct_mark`, `ct_zone`, `pkt_mark` | `ct-mark`, `ct-zone`, `mark` |
//! | `tcp_flags` | `tcp-flags` |
//! | `ip_frag`, `nw_frag` | `fragment` |
//! | `in_port` with a name | `in` |
//! | registers, `metadata`, `tun_id` and other fields of tunnels | nothing |
//!
//! An assumption is about packets as they come to the table that is read. A packet has no state in Open
//! vSwitch, `ct=untracked`, until an action `ct` has sent it on to a table.

use super::words::{Masked, ones};
use crate::read::assume::{Assumption, AssumptionKey, Assumptions};
use crate::read::chains::Truth;
use crate::read::report::Fault;

/// A condition of a flow that is on no field of a tuple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    name: String,
    /// What it is, for people.
    pub(super) what: String,
    of: Of,
}

/// What decides it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Of {
    /// Nothing that can be assumed.
    Nothing,
    /// Bits of the state of a connection.
    State(Masked),
    /// Bits of a number.
    Number(AssumptionKey, Masked),
    TcpFlags(Masked),
    Fragment(Fragment),
    /// The name of the port that the packet came in by.
    InPort(String),
}

/// Fragments as Open vSwitch tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fragment {
    No,
    Any,
    First,
    Later,
    NotLater,
}

/// Flags of `ct_state` from the lowest bit on.
const STATE: [&str; 8] = ["new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"];
/// Flags of TCP from the lowest bit on.
const TCP_FLAGS: [&str; 9] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns"];

/// What an ask comes to under assumptions, and which of these made it so.
pub(super) type Decided<'a> = (Truth, Vec<&'a Assumption>);

impl Ask {
    /// One that nothing decides.
    pub(super) fn unknown(name: &str, what: String) -> Self {
        Self { name: name.to_owned(), what, of: Of::Nothing }
    }

    /// A port of the switch by its name.
    pub(super) fn port(name: &str) -> Self {
        let plain = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
        let of = Of::InPort(plain.to_owned());
        Self { name: "in_port".to_owned(), what: format!("a port by its name ({name})"), of }
    }

    /// What a word of no field that a tuple has asks for; `None` where it asks for nothing.
    pub(super) fn parse(name: &str, text: &str) -> Result<Option<Self>, Fault> {
        let wrong = || Fault::bad(format!("{text:?} is not a value of {name}"));
        let of = match name {
            _ if text == "*" => return Ok(None),
            "ct_state" => Of::State(flags(text, &STATE, ones(8)).ok_or_else(wrong)?),
            "tcp_flags" => Of::TcpFlags(flags(text, &TCP_FLAGS, ones(12)).ok_or_else(wrong)?),
            "ct_mark" => Of::Number(AssumptionKey::CtMark, number(text, ones(32), true).ok_or_else(wrong)?),
            "pkt_mark" => Of::Number(AssumptionKey::Mark, number(text, ones(32), true).ok_or_else(wrong)?),
            "ct_zone" => Of::Number(AssumptionKey::CtZone, number(text, ones(16), false).ok_or_else(wrong)?),
            "ip_frag" | "nw_frag" => Of::Fragment(match text {
                "no" => Fragment::No,
                "yes" => Fragment::Any,
                "first" => Fragment::First,
                "later" => Fragment::Later,
                "not_later" => Fragment::NotLater,
                _ => return Err(wrong()),
            }),
            _ => Of::Nothing,
        };
        let what = match of {
            Of::Nothing => format!("{} ({name})", undecided(name)),
            _ => format!("no field of a tuple ({name})"),
        };
        Ok(Some(Self { name: name.to_owned(), what, of }))
    }

    /// Whether it asks for another thing of what a second one asks for.
    pub(super) fn contradicts(&self, other: &Self) -> bool {
        let is_same_field = match (&self.of, &other.of) {
            (Of::Nothing, _) | (_, Of::Nothing) => false,
            (Of::Fragment(_), Of::Fragment(_)) => true,
            _ => self.name == other.name,
        };
        is_same_field && self.of != other.of
    }

    /// What it comes to.
    pub(super) fn under<'a>(&self, assume: &'a Assumptions) -> Decided<'a> {
        let unknown = (Truth::Unknown, Vec::new());
        match &self.of {
            Of::Nothing => unknown,
            Of::State(wanted) => state(*wanted, assume),
            Of::Number(key, wanted) => {
                by(assume, *key, |assumed| Some(u128::from(assumed.number()?) & wanted.mask == wanted.value))
            }
            Of::TcpFlags(wanted) => by(assume, AssumptionKey::TcpFlags, |assumed| {
                // Nothing is assumed of the flags above the lowest eight.
                let (mask, flags) = (wanted.mask & 0xff, u128::from(assumed.flags()?));
                match flags & mask == wanted.value & 0xff {
                    true if wanted.mask != mask => None,
                    holds => Some(holds),
                }
            }),
            Of::Fragment(wanted) => by(assume, AssumptionKey::Fragment, |assumed| {
                match (assumed.value() == "yes", wanted) {
                    (is_later, Fragment::Later) => Some(is_later),
                    (is_later, Fragment::NotLater) => Some(!is_later),
                    (true, Fragment::Any) => Some(true),
                    (true, Fragment::No | Fragment::First) => Some(false),
                    // It may be whole, or a first fragment.
                    (false, Fragment::No | Fragment::Any | Fragment::First) => None,
                }
            }),
            Of::InPort(name) => by(assume, AssumptionKey::In, |assumed| Some(assumed.value() == name)),
        }
    }

    /// The keys of which an assumption would help to decide it.
    pub(super) fn would_help(&self, assume: &Assumptions) -> impl Iterator<Item = AssumptionKey> {
        let (first, second) = match &self.of {
            Of::Nothing => (None, None),
            Of::State(Masked { mask, .. }) => {
                let is_of_direction = mask & 0x08 != 0;
                (Some(AssumptionKey::Ct), is_of_direction.then_some(AssumptionKey::CtDirection))
            }
            Of::Number(key, _) => (Some(*key), None),
            Of::TcpFlags(_) => (Some(AssumptionKey::TcpFlags), None),
            Of::Fragment(_) => (Some(AssumptionKey::Fragment), None),
            Of::InPort(_) => (Some(AssumptionKey::In), None),
        };
        first.into_iter().chain(second).filter(|&key| assume.get(key).is_none())
    }
}

/// Why nothing decides what a word asks for. There are 16 registers, under three names each, and dozens of
/// fields of tunnels: assumptions of these would say again what the flows before them do.
fn undecided(name: &str) -> &'static str {
    let is_numbered = |before: &str| {
        name.strip_prefix(before)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    if ["reg", "xreg", "xxreg"].into_iter().any(is_numbered) || name == "metadata" {
        "no field of a tuple but what other flows write"
    } else if name.starts_with("tun_") {
        "no field of a tuple but one of a tunnel"
    } else {
        "no field of a tuple"
    }
}

/// What an assumption says; `None` where that isn't enough.
fn by<'a>(
    assume: &'a Assumptions,
    key: AssumptionKey,
    holds: impl FnOnce(&Assumption) -> Option<bool>,
) -> Decided<'a> {
    let assumed = assume.get(key);
    match assumed.and_then(holds) {
        None => (Truth::Unknown, Vec::new()),
        Some(holds) => (if holds { Truth::True } else { Truth::False }, assumed.into_iter().collect()),
    }
}

/// Whether the flags of a state are those wanted: each of them is known or not.
fn state(wanted: Masked, assume: &Assumptions) -> Decided<'_> {
    let (mut all, mut is_known) = (Vec::new(), true);
    for bit in (0..8).filter(|bit| wanted.mask >> bit & 1 == 1) {
        match flag(bit, assume) {
            None => is_known = false,
            Some((is_set, by)) if is_set != (wanted.value >> bit & 1 == 1) => {
                return (Truth::False, vec![by]);
            }
            Some((_, by)) if !all.contains(&by) => all.push(by),
            Some(_) => {}
        }
    }
    if is_known { (Truth::True, all) } else { (Truth::Unknown, Vec::new()) }
}

/// A flag of a packet's state, as ovs-fields(7) has it for what netfilter calls that state; and the
/// assumption that says so.
fn flag(bit: u32, assume: &Assumptions) -> Option<(bool, &Assumption)> {
    let ct = assume.get(AssumptionKey::Ct);
    if STATE[usize::try_from(bit).ok()?] == "rpl" && ct.is_none() {
        let direction = assume.get(AssumptionKey::CtDirection)?;
        return Some((direction.value() == "reply", direction));
    }
    let ct = ct?;
    let (state, translated) = ct.value().split_once('+').unwrap_or((ct.value(), ""));
    let is_set = match (STATE[usize::try_from(bit).ok()?], state) {
        ("trk", state) => state != "untracked",
        (_, "untracked") => false,
        // Which end was translated depends on the direction, and on what has been done to this packet.
        ("snat" | "dnat", _) if !translated.is_empty() => return None,
        ("snat" | "dnat", _) => false,
        ("inv", state) => state == "invalid",
        ("est", state) => state == "established",
        // The first packet of a related connection, or an error about one that is there.
        ("new", "related") => return None,
        ("new", state) => state == "new",
        ("rel", "related") => true,
        ("rel", "new") => false,
        // Flags of a connection that came of another one stay; those of no connection mean nothing.
        ("rel", _) | ("rpl", "invalid") => return None,
        // "rpl": a new connection has no reply.
        (_, state) => match (assume.get(AssumptionKey::CtDirection), state) {
            (Some(direction), "new") if direction.value() == "reply" => return None,
            (_, "new") => false,
            (direction, _) => {
                let direction = direction?;
                return Some((direction.value() == "reply", direction));
            }
        },
    };
    Some((is_set, ct))
}

/// Flags: `+syn-ack`, `syn|ack` (these and no others), or numbers, with a mask or without.
fn flags(text: &str, names: &[&str], all: u128) -> Option<Masked> {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return number(text, all, true);
    }
    let bit = |name: &str| names.iter().position(|known| *known == name).map(|at| 1_u128 << at);
    let mut wanted = Masked { value: 0, mask: 0 };
    if !text.starts_with(['+', '-']) {
        wanted.value = text.split('|').try_fold(0, |flags, name| Some(flags | bit(name)?))?;
        return Some(Masked { mask: all, ..wanted });
    }
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        let end = rest[1..].find(['+', '-']).map_or(rest.len(), |at| at + 1);
        let flag = bit(&rest[1..end]).filter(|flag| wanted.mask & flag == 0)?;
        wanted.mask |= flag;
        wanted.value |= if sign == '+' { flag } else { 0 };
        rest = &rest[end..];
    }
    Some(wanted)
}

/// A number, or one under a mask.
fn number(text: &str, all: u128, is_maskable: bool) -> Option<Masked> {
    let one = |text: &str| super::words::number(text).filter(|&number| number <= all);
    match text.split_once('/') {
        None => Some(Masked { value: one(text)?, mask: all }),
        Some((value, mask)) if is_maskable => {
            let mask = one(mask)?;
            Some(Masked { value: one(value)? & mask, mask })
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assuming(texts: &str) -> Assumptions {
        Assumptions::new(texts.split_whitespace().map(|text| text.parse().expect("one"))).expect("several")
    }

    #[test]
    fn what_nothing_decides_is_told_why() {
        for (name, says) in [
            ("reg0", "what other flows write (reg0)"),
            ("xxreg3", "what other flows write (xxreg3)"),
            ("metadata", "what other flows write (metadata)"),
            ("tun_id", "but one of a tunnel (tun_id)"),
            ("register", "no field of a tuple (register)"),
            ("ct_zone", "no field of a tuple (ct_zone)"),
        ] {
            let ask = Ask::parse(name, "1").ok().flatten().expect("something");
            assert!(ask.what.ends_with(says), "{}", ask.what);
        }
    }

    #[test]
    fn asks_under_assumptions() {
        for (name, text, yes, no, unknown) in [
            (
                "ct_state",
                "+trk+est-inv",
                &["ct=established", "ct=established+snat"][..],
                &["ct=new", "ct=related", "ct=invalid", "ct=untracked"][..],
                &["", "mark=1", "ct-dir=reply"][..],
            ),
            ("ct_state", "-trk", &["ct=untracked"], &["ct=new", "ct=invalid"], &[""]),
            ("ct_state", "0", &["ct=untracked"], &["ct=new"], &[""]),
            ("ct_state", "+new", &["ct=new"], &["ct=established", "ct=invalid"], &["ct=related", ""]),
            ("ct_state", "0x21/0x21", &["ct=new"], &["ct=established", "ct=untracked"], &["ct=related"]),
            ("ct_state", "new|trk", &["ct=new"], &["ct=established", "ct=related"], &["ct=new+dnat"]),
            ("ct_state", "+rel", &["ct=related"], &["ct=new", "ct=untracked"], &["ct=established"]),
            (
                "ct_state",
                "+trk+rpl",
                &["ct=established ct-dir=reply", "ct=related ct-dir=reply"],
                &["ct=established ct-dir=original", "ct=new", "ct=untracked ct-dir=reply", "ct-dir=original"],
                &["ct=established", "ct-dir=reply", "ct=new ct-dir=reply", "ct=invalid ct-dir=reply"],
            ),
            ("ct_state", "-rpl", &["ct-dir=original", "ct=new"], &["ct-dir=reply"], &["ct=established"]),
            ("ct_state", "+snat", &[], &["ct=new", "ct=untracked"], &["ct=new+snat", "ct=new+dnat"]),
            ("ct_mark", "0x5/0xf", &["ct-mark=0x15"], &["ct-mark=4"], &["", "mark=5"]),
            ("pkt_mark", "5", &["mark=5"], &["mark=21"], &["", "ct-mark=5"]),
            ("ct_zone", "0x10", &["ct-zone=16"], &["ct-zone=1"], &[""]),
            ("tcp_flags", "+syn-ack", &["tcp-flags=syn", "tcp-flags=syn+cwr"], &["tcp-flags=syn+ack"], &[""]),
            ("tcp_flags", "2/0x12", &["tcp-flags=syn"], &["tcp-flags=none"], &[""]),
            // Nobody knows of the flags above.
            ("tcp_flags", "syn", &[], &["tcp-flags=syn+ack"], &["tcp-flags=syn"]),
            ("tcp_flags", "+ns", &[], &[], &["tcp-flags=syn"]),
            ("ip_frag", "later", &["fragment=yes"], &["fragment=no"], &["", "ct=new"]),
            ("nw_frag", "not_later", &["fragment=no"], &["fragment=yes"], &[""]),
            ("nw_frag", "yes", &["fragment=yes"], &[], &["fragment=no"]),
            ("nw_frag", "no", &[], &["fragment=yes"], &["fragment=no"]),
            ("nw_frag", "first", &[], &["fragment=yes"], &["fragment=no"]),
            ("reg0", "5", &[], &[], &["mark=5"]),
        ] {
            let Ok(Some(ask)) = Ask::parse(name, text) else { panic!("{name}={text}") };
            for (all, wanted) in [(yes, Truth::True), (no, Truth::False), (unknown, Truth::Unknown)] {
                for assume in all {
                    let assumed = assuming(assume);
                    let (truth, by) = ask.under(&assumed);
                    assert_eq!(truth, wanted, "{name}={text} under {assume}");
                    assert_eq!(by.is_empty(), truth == Truth::Unknown, "{name}={text} by {by:?}");
                }
            }
        }
        assert_eq!(Ask::port("\"eth0\"").under(&assuming("in=eth0")).0, Truth::True);
        assert_eq!(Ask::port("eth1").under(&assuming("in=eth0")).0, Truth::False);
        for (name, text) in [
            ("ct_state", "+trk+trk"),
            ("ct_state", "+foo"),
            ("ct_state", "+"),
            ("ct_state", ""),
            ("ct_state", "0x100/0x100"),
            ("ct_state", "trk,est"),
            ("ct_zone", "5/3"),
            ("ct_zone", "70000"),
            ("ct_mark", "0x100000000"),
            ("tcp_flags", "+foo"),
            ("tcp_flags", "0x1000"),
            ("ip_frag", "maybe"),
        ] {
            assert!(Ask::parse(name, text).is_err(), "{name}={text}");
        }
        assert!(matches!(Ask::parse("ct_state", "*"), Ok(None)));
        let of = |name: &str, text: &str| Ask::parse(name, text).ok().flatten().expect("an ask");
        assert!(of("ct_state", "+est").contradicts(&of("ct_state", "+new")));
        assert!(of("ip_frag", "no").contradicts(&of("nw_frag", "yes")));
        assert!(!of("ct_state", "+est").contradicts(&of("ct_state", "2/2")));
        assert!(!of("ct_mark", "1").contradicts(&of("pkt_mark", "2")));
        let helps = |ask: &Ask, assume| ask.would_help(&assuming(assume)).collect::<Vec<_>>();
        assert_eq!(helps(&of("ct_state", "+rpl"), ""), [AssumptionKey::Ct, AssumptionKey::CtDirection]);
        assert_eq!(helps(&of("ct_state", "+rpl"), "ct=established"), [AssumptionKey::CtDirection]);
        assert_eq!(helps(&of("ct_zone", "1"), ""), [AssumptionKey::CtZone]);
    }
}
