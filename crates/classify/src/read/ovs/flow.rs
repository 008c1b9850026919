//! [`Flow`]: a flow as it is written, and the patterns of a tuple that it comes to.

use super::asks::Ask;
use super::vlan::Vlan;
use super::words::{Masked, Needs, Slot, ones, shorthand, word};
use crate::pattern::Pattern;
use crate::read::assume::{Assumption, AssumptionKey, Assumptions};
use crate::read::chains::Truth;
use crate::read::report::Fault;
use crate::tuple::{Field, Tuple, VLAN_NONE};

/// The priority that Open vSwitch takes if none is given (`OFP_DEFAULT_PRIORITY`).
const PRIORITY: u32 = 0x8000;

const IPV4: u128 = 0x0800;
const ARP: u128 = 0x0806;
const RARP: u128 = 0x8035;
const IPV6: u128 = 0x86dd;

/// Words with a value that say nothing about packets.
const STATISTICS: [&str; 9] = [
    "cookie",
    "duration",
    "n_packets",
    "n_bytes",
    "idle_age",
    "hard_age",
    "idle_timeout",
    "hard_timeout",
    "importance",
];

/// Words of their own that say nothing about packets.
const FLAGS: [&str; 5] =
    ["send_flow_rem", "check_overlap", "reset_counts", "no_packet_counts", "no_byte_counts"];

/// A flow by its words.
#[derive(Debug)]
pub(super) struct Flow<'l> {
    pub(super) table: Table,
    pub(super) priority: u32,
    /// The actions as they are written; `None` of a bare match.
    pub(super) actions: Option<&'l str>,
    /// The number of the conjunction that has to be met.
    pub(super) conj_id: Option<u32>,
    wants: Vec<(Slot, Masked)>,
    vlan: Vlan,
    /// What it asks for beside the fields of tuples.
    asks: Vec<Ask>,
    needs: Vec<(&'l str, Needs)>,
}

/// The table that a flow is of.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Table {
    Number(u8),
    Name(String),
}

/// What a flow means to a tuple.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning<T> {
    /// No packet that has such a tuple meets it.
    Never,
    /// Packets of these patterns meet it where all facts hold; no two patterns match one tuple.
    Patterns { patterns: Vec<Pattern<T>>, facts: Vec<String> },
}

/// What assumptions make of a flow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Assumed<'a> {
    /// Whether packets that they are true of don't meet it.
    pub(super) is_never: bool,
    /// Conditions that are left undecided, in words.
    pub(super) facts: Vec<String>,
    /// The assumptions that decided something.
    pub(super) by: Vec<&'a Assumption>,
    /// The keys of which one more would help.
    pub(super) would_help: Vec<AssumptionKey>,
}

impl<'l> Flow<'l> {
    /// Reads a flow.
    pub(super) fn parse(line: &'l str) -> Result<Self, Fault> {
        let (matches, actions) = split(line)?;
        let mut flow = Self {
            // `ovs-ofctl --no-stats` doesn't write it.
            table: Table::Number(0),
            priority: PRIORITY,
            actions,
            conj_id: None,
            wants: Vec::new(),
            vlan: Vlan::default(),
            asks: Vec::new(),
            needs: Vec::new(),
        };
        let (mut has_table, mut has_priority) = (false, false);
        for word in matches.split([',', ' ', '\t']).filter(|word| !word.is_empty()) {
            match word.split_once('=') {
                Some(("table", text)) => {
                    once("table", &mut has_table)?;
                    flow.table = match text.parse() {
                        Ok(number) => Table::Number(number),
                        Err(_) => Table::Name(text.to_owned()),
                    };
                }
                Some(("priority", text)) => {
                    once("priority", &mut has_priority)?;
                    let priority =
                        super::words::number(text).and_then(|priority| u16::try_from(priority).ok());
                    flow.priority = priority.ok_or_else(|| Fault::bad("not a priority"))?.into();
                }
                Some((name, _)) if STATISTICS.contains(&name) => {}
                Some((name, text)) => flow.field(name, text)?,
                None if FLAGS.contains(&word) => {}
                None => flow.shorthand(word)?,
            }
        }
        Ok(flow)
    }

    fn field(&mut self, name: &'l str, text: &str) -> Result<(), Fault> {
        let wrong = || Fault::bad(format!("{text:?} is not a value of {name}"));
        if name == "conj_id" {
            let id = super::words::number(text).and_then(|id| u32::try_from(id).ok()).ok_or_else(wrong)?;
            return match self.conj_id.replace(id) {
                Some(before) if before != id => Err(two(name)),
                _ => Ok(()),
            };
        }
        if self.vlan.take(name, text).map_err(Fault::bad)? {
            return Ok(());
        }
        let Some(word) = word(name) else {
            match name {
                "tcp_flags" => self.needs.push((name, Needs::Transport(6))),
                "ip_frag" | "nw_frag" => self.needs.push((name, Needs::Ip)),
                _ => {}
            }
            return self.ask(name, Ask::parse(name, text)?);
        };
        let Some(mut wanted) = word.parse(text) else {
            if name == "in_port" && text.parse::<f64>().is_err() {
                return self.ask(name, Some(Ask::port(text)));
            }
            return Err(wrong());
        };
        match name {
            "ip_dscp" => wanted = Masked { value: wanted.value << 2, mask: wanted.mask << 2 },
            // The lower bits are those of congestion notification.
            "nw_tos" if wanted.value & 3 != 0 => return Err(wrong()),
            "nw_tos" => wanted.mask &= 0xfc,
            // A byte in a field of two.
            "icmp_type" | "icmp_code" | "icmpv6_type" | "icmpv6_code" if wanted.mask != 0 => {
                wanted.mask = ones(16);
            }
            _ => {}
        }
        self.needs.push((name, word.needs));
        self.want(name, word.slot, wanted)
    }

    fn shorthand(&mut self, word: &str) -> Result<(), Fault> {
        let Some((ether_type, proto)) = shorthand(word) else {
            let what = format!("no field of a tuple ({word})");
            return self.ask(word, Some(Ask::unknown(word, what)));
        };
        if let Some(value) = ether_type {
            self.want(word, Slot::EthType, Masked { value, mask: ones(16) })?;
        }
        proto.map_or(Ok(()), |value| self.want(word, Slot::Proto, Masked { value, mask: ones(8) }))
    }

    fn ask(&mut self, name: &str, ask: Option<Ask>) -> Result<(), Fault> {
        let Some(ask) = ask else { return Ok(()) };
        // Open vSwitch lets the last one count.
        if self.asks.iter().any(|before| before.contradicts(&ask)) {
            return Err(two(name));
        }
        self.asks.push(ask);
        Ok(())
    }

    /// What assumptions make of what it asks for beside the fields of tuples.
    pub(super) fn under<'a>(&self, assume: &'a Assumptions) -> Assumed<'a> {
        let (mut facts, mut by, mut would_help) = (Vec::new(), Vec::new(), Vec::new());
        for ask in &self.asks {
            let (truth, mut because) = ask.under(assume);
            match truth {
                Truth::True => by.append(&mut because),
                Truth::False => {
                    let (facts, would_help) = (Vec::new(), Vec::new());
                    return Assumed { is_never: true, facts, by: because, would_help };
                }
                Truth::Unknown => {
                    facts.push(ask.what.clone());
                    would_help.extend(ask.would_help(assume));
                }
            }
        }
        Assumed { is_never: false, facts, by, would_help }
    }

    fn want(&mut self, name: &str, slot: Slot, wanted: Masked) -> Result<(), Fault> {
        match self.wanted(slot) {
            Some(before) if before == wanted => {}
            // Open vSwitch lets the last one count.
            Some(_) => return Err(two(name)),
            None => self.wants.push((slot, wanted)),
        }
        Ok(())
    }

    fn wanted(&self, slot: Slot) -> Option<Masked> {
        self.wants.iter().find(|want| want.0 == slot).map(|want| want.1)
    }

    /// The number that a field has to be.
    fn exact(&self, slot: Slot) -> Option<u128> {
        self.wanted(slot).filter(|wanted| wanted.mask != 0).map(|wanted| wanted.value)
    }

    /// What it means to a tuple, where these facts have to hold beside what the tuple holds.
    pub(super) fn meaning<T: Tuple>(&self, mut facts: Vec<String>) -> Result<Meaning<T>, Fault> {
        let ether_type = self.exact(Slot::EthType);
        if self.actions.is_some() {
            self.check_needs(ether_type)?;
        }
        let is_switch = T::field_of("dl_type").is_some();
        // Frames with a second tag have its type in Open vSwitch, and that behind the tags in a tuple.
        if matches!(ether_type, Some(0x8100 | 0x88a8)) {
            return Ok(Meaning::Patterns {
                patterns: vec![Pattern::all()],
                facts: vec!["a second VLAN tag".to_owned()],
            });
        }
        let is_wide = T::field_of("src").is_some_and(|field| field.width == 128);
        let own = if is_wide { IPV6 } else { IPV4 };
        if !is_switch && ether_type.is_some_and(|found| found != own) {
            return Ok(Meaning::Never);
        }
        let mut pattern = Pattern::<T>::all();
        for &(slot, Masked { value, mask }) in self.wants.iter().filter(|want| want.1.mask != 0) {
            match field::<T>(slot, ether_type) {
                Some(field) => pattern = pattern.with(field, value, mask),
                // A tuple of one protocol sees packets of that alone.
                None if slot == Slot::EthType => {}
                // A bare match of the other family.
                None if !is_switch && matches!(slot, Slot::Src4 | Slot::Dst4 | Slot::Src6 | Slot::Dst6) => {
                    return Ok(Meaning::Never);
                }
                None => facts.push(format!("no field of a tuple ({})", slot.name())),
            }
        }
        let patterns = match T::field_of("dl_vlan").zip(T::field_of("dl_vlan_pcp")) {
            Some((vlan, pcp)) => self.with_vlan(pattern, vlan, pcp),
            None => {
                if self.vlan.is_given() {
                    facts.push("no field of a tuple (dl_vlan)".to_owned());
                }
                vec![pattern]
            }
        };
        if patterns.is_empty() {
            return Ok(Meaning::Never);
        }
        facts.dedup();
        Ok(Meaning::Patterns { patterns, facts })
    }

    /// Words say nothing about packets that can't have what they ask for, and Open vSwitch drops them then.
    fn check_needs(&self, ether_type: Option<u128>) -> Result<(), Fault> {
        let proto = self.exact(Slot::Proto);
        let is_ip = matches!(ether_type, Some(IPV4 | IPV6));
        let is_arp = matches!(ether_type, Some(ARP | RARP));
        let is_icmp = matches!((ether_type, proto), (Some(IPV4), Some(1)) | (Some(IPV6), Some(58)));
        for &(name, needs) in &self.needs {
            let is_met = match needs {
                Needs::Nothing => true,
                Needs::Ip => is_ip,
                Needs::Ip4OrArp => ether_type == Some(IPV4) || is_arp,
                Needs::IpOrArp => is_ip || is_arp,
                Needs::Ip6 => ether_type == Some(IPV6),
                Needs::Arp => is_arp,
                Needs::Ports => is_ip && matches!(proto, Some(6 | 17 | 132)),
                Needs::Transport(of) => is_ip && proto == Some(of),
                Needs::Icmp => is_icmp,
                Needs::Icmp6 => is_icmp && ether_type == Some(IPV6),
            };
            if !is_met {
                return Err(Fault::left_out(format!("{name} without the protocol that has it")));
            }
        }
        Ok(())
    }

    /// Patterns for each of the ways to have the VLAN that is wanted.
    fn with_vlan<T: Tuple>(&self, pattern: Pattern<T>, vlan: &Field, pcp: &Field) -> Vec<Pattern<T>> {
        let Some(ways) = self.vlan.ways() else { return vec![pattern] };
        let untagged = ways.untagged.then(|| pattern.with(vlan, VLAN_NONE.into(), vlan.all()));
        let tagged = ways.tagged.map(|tagged| {
            // A VLAN has 12 bits: the other four tell it from a frame without a tag.
            let with = pattern.with(vlan, tagged.vid.value, tagged.vid.mask | 0xf000);
            if tagged.pcp.mask == 0 { with } else { with.with(pcp, tagged.pcp.value, tagged.pcp.mask) }
        });
        untagged.into_iter().chain(tagged).collect()
    }
}

impl Slot {
    /// The word for it.
    const fn name(self) -> &'static str {
        match self {
            Self::InPort => "in_port",
            Self::EthSrc => "dl_src",
            Self::EthDst => "dl_dst",
            Self::EthType => "dl_type",
            Self::Tos => "nw_tos",
            Self::Proto => "nw_proto",
            Self::Src4 => "nw_src",
            Self::Dst4 => "nw_dst",
            Self::Src6 => "ipv6_src",
            Self::Dst6 => "ipv6_dst",
            Self::TpSrc => "tp_src",
            Self::TpDst => "tp_dst",
        }
    }
}

/// The field of a tuple that a field of flows is, in frames of a type. A tuple with a type has nothing behind
/// it unless that is IPv4 or ARP.
fn field<T: Tuple>(slot: Slot, ether_type: Option<u128>) -> Option<&'static Field> {
    let is_link = matches!(slot, Slot::InPort | Slot::EthSrc | Slot::EthDst | Slot::EthType);
    let has_rest = !matches!(ether_type, Some(other) if other != IPV4 && other != ARP);
    if T::field_of("dl_type").is_some() && !is_link && !has_rest {
        return None;
    }
    T::field_of(slot.name())
}

/// The match, and the actions where there are some.
fn split(line: &str) -> Result<(&str, Option<&str>), Fault> {
    // As Open vSwitch looks for them.
    let Some(at) = line.find("action") else { return Ok((line, None)) };
    let (matches, rest) = line.split_at(at);
    let rest = rest.strip_prefix("actions=").or_else(|| rest.strip_prefix("action="));
    let actions = rest.ok_or_else(|| Fault::bad("no actions after \"action\""))?;
    Ok((matches, Some(actions.trim())))
}

fn two(name: &str) -> Fault {
    Fault::bad(format!("two demands of {name}"))
}

fn once(name: &str, has: &mut bool) -> Result<(), Fault> {
    if std::mem::replace(has, true) { Err(two(name)) } else { Ok(()) }
}
