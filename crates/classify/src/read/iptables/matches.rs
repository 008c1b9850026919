//! [`Conditions`]: what the options of a rule want of a packet.
//!
//! Each option becomes a region of tuples if a tuple holds what it asks for, else a fact: one that
//! assumptions decide, or one that nobody knows. None is passed over.

use super::address::{Read, address_range, addresses, number, port_list, ports, protocol};
use super::icmp;
use super::sets::Sets;
use super::words::{Given, Match, Parsed};
use super::wrong::{Wrong, field};
use crate::read::assume::AssumptionKey;
use crate::read::chains::{Fact, FieldSet, Region, TooMany, Wanted, When};
use crate::tuple::{Field, Fields};

/// What rules mean depends on.
#[derive(Debug)]
pub(super) struct Context<'a> {
    /// The fields of the tuple that they are read for.
    pub(super) fields: Fields,
    /// Sets by their names.
    pub(super) sets: &'a Sets,
    /// Whether packets may be fragments other than the first.
    pub(super) has_fragments: bool,
    /// Whether rules of the file change the type of service.
    pub(super) changes_tos: bool,
    /// Whether packets come to the chain before they have an interface to leave by.
    pub(super) has_no_out: bool,
    /// Whether packets come to the chain without one that they came in by.
    pub(super) has_no_in: bool,
}

/// What has to hold for a rule.
#[derive(Debug)]
pub(super) struct Conditions {
    /// Any of these; no two have a tuple in common.
    pub(super) any: Vec<When>,
    /// Whether it looks at the transport header, which later fragments don't have.
    pub(super) is_of_transport: bool,
}

/// What an option comes to.
enum Means {
    Region(Region),
    Fact(Fact),
    /// Any of these, of which no two have a tuple in common.
    Either(Vec<When>),
}

impl Conditions {
    /// What options want. Where something in them isn't known it is a fact that nobody knows.
    pub(super) fn of(parsed: &Parsed, context: &Context<'_>) -> Result<Self, Wrong> {
        let mut all = Self { any: vec![When::always()], is_of_transport: false };
        let mut addresses =
            parsed.base.iter().filter(|given| matches!(given.name, "--source" | "--destination"));
        if addresses.clone().any(|given| given.value().contains(','))
            && addresses.any(|given| given.is_negated)
        {
            return Err(Wrong::Bad("a list of addresses beside a negation".to_owned()));
        }
        for given in &parsed.base {
            all.take(base(given, context))?;
        }
        // Names of ports are those of a protocol.
        let protocol = parsed.protocol().and_then(|name| protocol(name).ok()?);
        for one in &parsed.matches {
            all.is_of_transport |=
                matches!(&*one.name, "tcp" | "udp" | "sctp" | "dccp" | "icmp" | "icmp6" | "multiport");
            needs_protocol(one, parsed)?;
            if let Some(fact) = as_a_whole(one)? {
                all.and(Means::Fact(fact));
                continue;
            }
            for given in &one.options {
                all.take(option(one, given, protocol, context))?;
            }
        }
        all.is_of_transport |=
            parsed.matches.iter().any(|one| one.name == "set" && context.sets.has_ports(one));
        Ok(all)
    }

    fn take(&mut self, means: Result<Option<Means>, Wrong>) -> Result<(), Wrong> {
        match means {
            Ok(Some(means)) => self.and(means),
            Ok(None) => {}
            Err(Wrong::Unknown(why)) => self.and(Means::Fact(Fact::unknown(why))),
            Err(wrong) => return Err(wrong),
        }
        Ok(())
    }

    fn and(&mut self, means: Means) {
        let whens = match means {
            Means::Region(region) => vec![When { region, facts: Vec::new() }],
            Means::Fact(fact) => vec![When { region: Region::all(), facts: vec![fact] }],
            Means::Either(whens) => whens,
        };
        let mut both = Vec::new();
        for a in &self.any {
            for b in &whens {
                let mut facts = [&*a.facts, &b.facts].concat();
                let region = a.region.and(&b.region).unwrap_or_else(|more| {
                    facts.push(Fact::unknown(more.to_string()));
                    a.region.clone()
                });
                if !region.is_empty() {
                    both.push(When { region, facts });
                }
            }
        }
        self.any = both;
    }
}

impl From<TooMany> for Wrong {
    fn from(more: TooMany) -> Self {
        Self::Unknown(more.to_string())
    }
}

/// The tuples with a field in a set, or the others.
fn is_in(field: &'static Field, set: FieldSet, is_negated: bool) -> Result<Option<Means>, Wrong> {
    let set = if is_negated { set.not()? } else { set };
    Ok(Some(Means::Region(Region::of(field, set))))
}

fn named(field: &'static Field, read: Read, given: &Given) -> Result<Option<Means>, Wrong> {
    match read {
        // A negation of everything is dropped by iptables over nftables, and matches nothing over the older
        // tables.
        Read::Set(set) if set.is_all() && given.is_negated => {
            Err(Wrong::Unknown(format!("a negation of everything ({given})")))
        }
        Read::Set(set) => is_in(field, set, given.is_negated),
        Read::Name => Err(Wrong::Unknown(format!("a name ({given})"))),
    }
}

/// What an option of a rule itself means.
fn base(given: &Given, context: &Context<'_>) -> Result<Option<Means>, Wrong> {
    let value = given.value();
    match given.name {
        "--source" | "--destination" => {
            let field = field(context.fields, if given.name == "--source" { "src" } else { "dst" })?;
            named(field, addresses(field, value)?, given)
        }
        "--protocol" => {
            let field = field(context.fields, "proto")?;
            let set =
                protocol(value)?.map_or(FieldSet::all(field), |number| FieldSet::one(field, number.into()));
            is_in(field, set, given.is_negated)
        }
        "--in-interface" => interface(given, AssumptionKey::In, context.has_no_in),
        "--out-interface" => interface(given, AssumptionKey::Out, context.has_no_out),
        "--fragment" => fragment(given, context.fields),
        _ => Err(Wrong::Unknown(format!("an option ({given})"))),
    }
}

fn interface(given: &Given, key: AssumptionKey, is_none: bool) -> Result<Option<Means>, Wrong> {
    let name = given.value();
    let wanted = match name.strip_suffix('+') {
        Some(prefix) => Wanted::InterfacePrefix(prefix.to_owned()),
        None if name.is_empty() => return Err(Wrong::Bad("an interface without a name".to_owned())),
        None => Wanted::Interface(name.to_owned()),
    };
    // The kernel compares with an empty name.
    let holds_of_none = name == "+";
    if is_none || holds_of_none {
        let holds = holds_of_none != given.is_negated;
        return Ok(Some(Means::Region(if holds { Region::all() } else { Region::none() })));
    }
    let what = if key == AssumptionKey::In { "an interface (-i)" } else { "an interface (-o)" };
    Ok(Some(Means::Fact(Fact::wanted(key, wanted, what).negated_if(given.is_negated))))
}

/// Later fragments are tuples with ports of 0; others may be, too.
fn fragment(given: &Given, fields: Fields) -> Result<Option<Means>, Wrong> {
    if fields.are_v6() {
        return Err(Wrong::Bad("ip6tables has no -f".to_owned()));
    }
    let (zero, other) = Region::all().split_at_ports_of_zero(fields)?;
    let word = if given.is_negated { "no" } else { "yes" };
    let fact = Fact::one_of(AssumptionKey::Fragment, &[word], "a match of fragments (-f)");
    let mut whens = vec![When { region: zero, facts: vec![fact] }];
    if given.is_negated {
        whens.push(When { region: other, facts: Vec::new() });
    }
    Ok(Some(Means::Either(whens)))
}

/// Refuses a match of a transport header in a rule that isn't of its protocol, as iptables does.
fn needs_protocol(one: &Match, parsed: &Parsed) -> Result<(), Wrong> {
    let wanted: &[u8] = match &*one.name {
        "tcp" => &[6],
        "udp" => &[17],
        "sctp" => &[132],
        "dccp" => &[33],
        "icmp" => &[1],
        "icmp6" => &[58],
        "multiport" => &[6, 17, 33, 132, 136],
        _ => return Ok(()),
    };
    let given = parsed.protocol().map(protocol).transpose();
    match given {
        Ok(Some(Some(number))) if wanted.contains(&number) => Ok(()),
        _ => Err(Wrong::Bad(format!("a match of {} without its protocol (-p)", one.name))),
    }
}

/// The fact that a match is, if its options only make sense together; `None` if each says something by
/// itself.
fn as_a_whole(one: &Match) -> Result<Option<Fact>, Wrong> {
    let has = |name: &str| one.option(name).is_some();
    let limit = |word: &str, what: &str| Ok(Some(Fact::one_of(AssumptionKey::Limit, &[word], what)));
    match &*one.name {
        "limit" => limit("under", "a limit (-m limit)"),
        "hashlimit" => {
            let above = has("--hashlimit-above")
                || one.option("--hashlimit-upto").is_some_and(|given| given.is_negated);
            if has("--hashlimit-above") == has("--hashlimit-upto") {
                return Err(Wrong::Bad("a hashlimit needs one rate".to_owned()));
            }
            limit(if above { "over" } else { "under" }, "a limit (-m hashlimit)")
        }
        "recent" => {
            let verbs = ["--set", "--rcheck", "--update", "--remove"];
            let mut given = one.options.iter().filter(|given| verbs.contains(&given.name));
            let (Some(verb), None) = (given.next(), given.next()) else {
                return Err(Wrong::Bad(
                    "a match of recent needs one of --set, --rcheck, --update, --remove".to_owned(),
                ));
            };
            match verb.name {
                // It always matches.
                "--set" if !verb.is_negated => Ok(None),
                "--rcheck" | "--update" if has("--hitcount") => {
                    let fact = Fact::one_of(AssumptionKey::Limit, &["over"], "a count of hits (-m recent)");
                    Ok(Some(fact.negated_if(verb.is_negated)))
                }
                _ => Ok(Some(Fact::unknown(format!("a list of recent sources ({verb})")))),
            }
        }
        // A set that is also asked for its counters.
        "set" if one.options.iter().any(|given| given.name != "--match-set") => {
            Ok(Some(Fact::unknown("counters of a set (-m set)")))
        }
        "comment" | "nfacct" | "tcp" | "udp" | "sctp" | "dccp" | "multiport" | "icmp" | "icmp6"
        | "iprange" | "conntrack" | "state" | "mark" | "connmark" | "pkttype" | "mac" | "set" | "dscp"
        | "tos" => Ok(None),
        "addrtype" if !has("--limit-iface-in") && !has("--limit-iface-out") => Ok(None),
        name => {
            let options: Vec<_> = one.options.iter().map(ToString::to_string).collect();
            let space = if options.is_empty() { "" } else { ": " };
            Ok(Some(Fact::unknown(format!("a match of {name}{space}{}", options.join(" ")))))
        }
    }
}

/// What an option of a match means; `None` of one that wants nothing.
fn option(
    one: &Match,
    given: &Given,
    protocol: Option<u8>,
    context: &Context<'_>,
) -> Result<Option<Means>, Wrong> {
    let value = given.value();
    let (fields, is_v6) = (context.fields, context.fields.are_v6());
    let unknown = || Err(Wrong::Unknown(format!("a match of {} ({given})", one.name)));
    let fact = |key, wanted| {
        let what = format!("a match of {} ({given})", one.name);
        Ok(Some(Means::Fact(Fact::wanted(key, wanted, what).negated_if(given.is_negated))))
    };
    match (&*one.name, given.name) {
        ("comment" | "nfacct" | "recent", _) => Ok(None),
        (_, "--source-port") => {
            let field = field(fields, "sport")?;
            named(field, ports(field, protocol, value)?, given)
        }
        (_, "--destination-port") => {
            let field = field(fields, "dport")?;
            named(field, ports(field, protocol, value)?, given)
        }
        (_, "--source-ports") => {
            let field = field(fields, "sport")?;
            named(field, port_list(field, protocol, value)?, given)
        }
        (_, "--destination-ports") => {
            let field = field(fields, "dport")?;
            named(field, port_list(field, protocol, value)?, given)
        }
        (_, "--ports") => either_port(given, fields, protocol),
        (_, "--syn") => fact(AssumptionKey::TcpFlags, Wanted::Flags { mask: 0x17, set: 0x02 }),
        (_, "--tcp-flags") => {
            let (mask, set) = (flags(value)?, flags(&given.arguments[1])?);
            fact(AssumptionKey::TcpFlags, Wanted::Flags { mask, set })
        }
        ("icmp", _) if is_v6 => {
            Err(Wrong::OtherFamily("a match of ICMP for IPv4 in rules of IPv6".to_owned()))
        }
        ("icmp6", _) if !is_v6 => {
            Err(Wrong::OtherFamily("a match of ICMP for IPv6 in rules of IPv4".to_owned()))
        }
        ("icmp" | "icmp6", _) => message(given, fields),
        (_, "--src-range" | "--dst-range") => {
            let field = field(fields, if given.name == "--src-range" { "src" } else { "dst" })?;
            is_in(field, address_range(field, value)?, given.is_negated)
        }
        ("state", "--state") | ("conntrack", "--ctstate") => {
            states(value).and_then(|wanted| fact(AssumptionKey::Ct, wanted))
        }
        ("conntrack", "--ctdir") => {
            let word = value.to_ascii_lowercase();
            match &*word {
                "original" | "reply" => fact(AssumptionKey::CtDirection, Wanted::OneOf(vec![word])),
                _ => Err(Wrong::Bad(format!("{value:?} is no direction of a connection"))),
            }
        }
        ("mark", "--mark") => fact(AssumptionKey::Mark, mark(value)?),
        ("connmark", "--mark") => fact(AssumptionKey::CtMark, mark(value)?),
        ("pkttype", _) => match &*value.to_ascii_lowercase() {
            word @ ("unicast" | "broadcast" | "multicast") => {
                fact(AssumptionKey::PacketType, Wanted::OneOf(vec![word.to_owned()]))
            }
            _ => unknown(),
        },
        ("addrtype", "--src-type") => {
            address_type(given, field(fields, "src")?, AssumptionKey::SrcType, is_v6)
        }
        ("addrtype", "--dst-type") => {
            address_type(given, field(fields, "dst")?, AssumptionKey::DstType, is_v6)
        }
        ("mac", _) => match fields.called("dl_src") {
            Some(field) => match field.parse(value) {
                Ok(address) => is_in(field, FieldSet::one(field, address), given.is_negated),
                Err(error) => Err(Wrong::Bad(error.to_string())),
            },
            None => unknown(),
        },
        ("dscp", "--dscp") => match (fields.called("nw_tos"), number(value)) {
            (_, None) => Err(Wrong::Bad(format!("{value:?} is no DSCP"))),
            (_, Some(64..)) => Err(Wrong::Bad(format!("{value} is over the 6 bits of a DSCP"))),
            (Some(field), Some(dscp)) if !context.changes_tos => {
                is_in(field, FieldSet::masked(field, u128::from(dscp) << 2, 0xfc), given.is_negated)
            }
            _ => unknown(),
        },
        ("set", "--match-set") => {
            let region = context.sets.region(fields, value, &given.arguments[1])?;
            Ok(Some(Means::Region(if given.is_negated { region.not()? } else { region })))
        }
        _ => unknown(),
    }
}

/// A list of ports of which one is the source's or the destination's.
fn either_port(given: &Given, fields: Fields, protocol: Option<u8>) -> Result<Option<Means>, Wrong> {
    let (from, to) = (field(fields, "sport")?, field(fields, "dport")?);
    let (Read::Set(sources), Read::Set(destinations)) =
        (port_list(from, protocol, given.value())?, port_list(to, protocol, given.value())?)
    else {
        return Err(Wrong::Unknown(format!("a name ({given})")));
    };
    let (from, to) = (Region::of(from, sources), Region::of(to, destinations));
    let either = from.or(&to.minus(&from)?)?;
    Ok(Some(Means::Region(if given.is_negated { either.not()? } else { either })))
}

fn message(given: &Given, fields: Fields) -> Result<Option<Means>, Wrong> {
    let (text, is_v6) = (given.value(), fields.are_v6());
    let Some((kind, codes)) = icmp::message(text, is_v6) else {
        // Abbreviations are taken by iptables, too.
        return Err(Wrong::Unknown(format!("an ICMP type that isn't known ({text})")));
    };
    let (kinds, all_codes) = (field(fields, "sport")?, field(fields, "dport")?);
    let region = match kind {
        255 if !is_v6 => Region::all(),
        kind => {
            let code = FieldSet::range(all_codes, codes.0.into(), codes.1.into());
            let code = if codes == (0, 255) { FieldSet::all(all_codes) } else { code };
            Region::of(kinds, FieldSet::one(kinds, kind.into())).and(&Region::of(all_codes, code))?
        }
    };
    Ok(Some(Means::Region(if given.is_negated { region.not()? } else { region })))
}

fn states(text: &str) -> Result<Wanted, Wrong> {
    let one = |state: &str| match state.to_ascii_lowercase() {
        word if matches!(
            &*word,
            "new" | "established" | "related" | "invalid" | "untracked" | "snat" | "dnat"
        ) =>
        {
            Ok(word)
        }
        _ => Err(Wrong::Bad(format!("{state:?} is no state of a connection"))),
    };
    Ok(Wanted::OneOf(text.split(',').map(one).collect::<Result<_, _>>()?))
}

fn mark(text: &str) -> Result<Wanted, Wrong> {
    let (value, mask) = text.split_once('/').unwrap_or((text, "0xffffffff"));
    let one = |text: &str| number(text).and_then(|number| u32::try_from(number).ok());
    match (one(value), one(mask)) {
        (Some(value), Some(mask)) => Ok(Wanted::Masked { value, mask }),
        _ => Err(Wrong::Bad(format!("{text:?} is no mark"))),
    }
}

fn flags(text: &str) -> Result<u8, Wrong> {
    text.split(',').try_fold(0, |flags, name| {
        let bits = match &*name.to_ascii_uppercase() {
            "FIN" => 0x01,
            "SYN" => 0x02,
            "RST" => 0x04,
            "PSH" => 0x08,
            "ACK" => 0x10,
            "URG" => 0x20,
            "ALL" => 0x3f,
            "NONE" => 0,
            _ => return Err(Wrong::Bad(format!("{name:?} is no TCP flag"))),
        };
        Ok(flags | bits)
    })
}

/// What an address is to the machine. Some addresses are broadcast or multicast to any.
fn address_type(
    given: &Given,
    field: &'static Field,
    key: AssumptionKey,
    is_v6: bool,
) -> Result<Option<Means>, Wrong> {
    let words: Vec<String> = given.value().split(',').map(str::to_ascii_lowercase).collect();
    let are_known = words.iter().all(|word| crate::read::Assumption::new(key, word).is_ok());
    if !are_known {
        return Err(Wrong::Bad(format!("{:?} is no type of an address", given.value())));
    }
    let what = format!("a match of addrtype ({given})");
    let has = |word: &str| words.iter().any(|known| known == word);
    if is_v6 {
        // Several types have to hold together, which is another question than that of one type.
        return match &*words {
            [one] if one == "multicast" => {
                is_in(field, FieldSet::masked(field, 0xff << 120, 0xff << 120), given.is_negated)
            }
            [_] => {
                let fact = Fact::wanted(key, Wanted::OneOf(words), what);
                Ok(Some(Means::Fact(fact.negated_if(given.is_negated))))
            }
            _ => Err(Wrong::Unknown(what)),
        };
    }
    let multicast = FieldSet::masked(field, 0xe000_0000, 0xf000_0000);
    let broadcast = FieldSet::ranges(field, [(0, 0), (0xffff_ffff, 0xffff_ffff)]);
    let other = multicast.or(&broadcast)?.not()?;
    let mut whens = Vec::new();
    for (set, holds) in [(multicast, has("multicast")), (broadcast, has("broadcast"))] {
        if holds != given.is_negated {
            whens.push(When { region: Region::of(field, set), facts: Vec::new() });
        }
    }
    let fact = Fact::wanted(key, Wanted::OneOf(words.clone()), what).negated_if(given.is_negated);
    whens.push(When { region: Region::of(field, other), facts: vec![fact] });
    Ok(Some(Means::Either(whens)))
}
