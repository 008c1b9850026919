//! [`Sets`]: sets of addresses and ports as `ipset save` writes them.
//!
//! ```text
//! create blocked hash:net family inet hashsize 1024 maxelem 65536
//! add blocked 10.0.0.0/8
//! add blocked 10.1.0.0/16 nomatch
//! create web hash:ip,port family inet
//! add web 192.0.2.1,tcp:443
//! ```
//!
//! A set whose content isn't all in the file, or that asks for more than a tuple holds, is there by name,
//! with the reason why nothing more is known: entries that expire, sets that a rule adds to, sets of sets, of
//! MAC addresses, marks and interfaces.

use std::collections::BTreeMap;

use super::address::{Read, addresses, number, ports};
use super::words::{Match, words};
use super::wrong::{Wrong, field};
use crate::read::chains::{FieldSet, Region};
use crate::tuple::{Field, Fields};

/// Sets by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sets(BTreeMap<String, Set>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Set {
    dimensions: Vec<Dimension>,
    is_v6: bool,
    /// Whether ports are of TCP and UDP alike, and not said with each.
    has_bare_ports: bool,
    entries: Vec<Entry>,
    /// Why nothing is known of its content.
    unknown: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dimension {
    Address,
    Port,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// The parts of the entry, by dimension.
    parts: Vec<String>,
    is_exception: bool,
}

impl Sets {
    /// Reads sets; an error says the line and what is wrong.
    pub(super) fn of(text: &str) -> Result<Self, (u64, String)> {
        let mut sets = Self::default();
        for (at, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                sets.line(line).map_err(|why| (at, why))?;
            }
        }
        Ok(sets)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let words = words(line)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match &*words {
            ["create" | "-N", name, kind, options @ ..] => {
                let before = self.0.insert((*name).to_owned(), Set::of(kind, options));
                if before.is_some() { Err(format!("the set {name} is there twice")) } else { Ok(()) }
            }
            ["add" | "-A", name, entry, options @ ..] => {
                let set = self.0.get_mut(*name).ok_or_else(|| format!("a set that there is not ({name})"))?;
                set.add(entry, options)
            }
            _ => Err("neither a set (create) nor an entry (add)".to_owned()),
        }
    }

    /// Says that rules change a set: its content when a packet comes is not that of the file.
    pub(super) fn is_changed_by_rules(&mut self, name: &str) {
        if let Some(set) = self.0.get_mut(name) {
            set.unknown.get_or_insert_with(|| "rules add to it or take from it".to_owned());
        }
    }

    /// The tuples that a set has, by the directions of its dimensions: `src,dst`.
    pub(super) fn region(&self, fields: Fields, name: &str, directions: &str) -> Result<Region, Wrong> {
        let unknown = |why: &str| Wrong::Unknown(format!("a match of the set {name}: {why}"));
        let set = self.0.get(name).ok_or_else(|| unknown("its content isn't given"))?;
        if let Some(why) = &set.unknown {
            return Err(unknown(why));
        }
        if set.dimensions.contains(&Dimension::Address) && set.is_v6 != fields.are_v6() {
            return Err(unknown("it is of the other family"));
        }
        let sides: Vec<bool> = directions
            .split(',')
            .map(|side| match side {
                "src" => Ok(true),
                "dst" => Ok(false),
                _ => Err(Wrong::Bad(format!("{side:?} is neither src nor dst"))),
            })
            .collect::<Result<_, _>>()?;
        if sides.len() != set.dimensions.len() {
            return Err(unknown("it has another number of dimensions"));
        }
        set.region(fields, &sides).map_err(|wrong| match wrong {
            Wrong::Unknown(why) | Wrong::Bad(why) | Wrong::OtherFamily(why) => unknown(&why),
        })
    }

    /// Whether a match asks a set for ports.
    pub(super) fn has_ports(&self, one: &Match) -> bool {
        let name = one.option("--match-set").map_or("", |given| given.value());
        self.0.get(name).is_some_and(|set| set.dimensions.contains(&Dimension::Port))
    }
}

impl Set {
    fn of(kind: &str, options: &[&str]) -> Self {
        let mut set = Self::default();
        let (method, dimensions) = kind.split_once(':').unwrap_or((kind, ""));
        for dimension in dimensions.split(',') {
            match dimension {
                "ip" | "net" => set.dimensions.push(Dimension::Address),
                "port" => set.dimensions.push(Dimension::Port),
                _ => set.unknown = Some(format!("sets of {kind} hold what no tuple does")),
            }
        }
        if !matches!(method, "hash" | "bitmap") {
            set.unknown = Some(format!("sets of {kind} hold what no tuple does"));
        }
        set.has_bare_ports = kind == "bitmap:port";
        let mut options = options.iter();
        while let Some(&option) = options.next() {
            match option {
                "family" => set.is_v6 = options.next() == Some(&"inet6"),
                "hashsize" | "maxelem" | "bucketsize" | "initval" | "range" | "timeout" | "size" => {
                    _ = options.next();
                }
                "counters" | "comment" | "skbinfo" | "forceadd" => {}
                other => set.unknown = Some(format!("the option {other} of a set")),
            }
        }
        set
    }

    fn add(&mut self, entry: &str, options: &[&str]) -> Result<(), String> {
        let mut is_exception = false;
        let mut options = options.iter();
        while let Some(&option) = options.next() {
            match option {
                "nomatch" => is_exception = true,
                "comment" | "packets" | "bytes" | "skbmark" | "skbprio" | "skbqueue" => _ = options.next(),
                "timeout" if options.next() == Some(&"0") => {}
                "timeout" => self.unknown = Some("its entries expire".to_owned()),
                other => self.unknown = Some(format!("the option {other} of an entry")),
            }
        }
        let parts: Vec<String> = entry.split(',').map(str::to_owned).collect();
        if self.unknown.is_none() && parts.len() != self.dimensions.len() {
            return Err(format!("{entry:?} has another number of dimensions than its set"));
        }
        self.entries.push(Entry { parts, is_exception });
        Ok(())
    }

    fn region(&self, fields: Fields, is_source: &[bool]) -> Result<Region, Wrong> {
        let field = |name: &str| field(fields, name);
        if let ([Dimension::Address], [is_source]) = (&*self.dimensions, is_source) {
            let field = field(if *is_source { "src" } else { "dst" })?;
            return Ok(Region::of(field, self.addresses(field)?));
        }
        if self.entries.iter().any(|entry| entry.is_exception) {
            return Err(Wrong::Unknown("exceptions (nomatch) of several dimensions".to_owned()));
        }
        let mut all = Region::none();
        for entry in &self.entries {
            let mut one = Region::all();
            for ((part, dimension), is_source) in entry.parts.iter().zip(&self.dimensions).zip(is_source) {
                one = match dimension {
                    Dimension::Address => {
                        let field = field(if *is_source { "src" } else { "dst" })?;
                        one.and(&Region::of(field, one_address(field, part)?))?
                    }
                    Dimension::Port => {
                        let field = field(if *is_source { "sport" } else { "dport" })?;
                        one.and(&self.port(fields, field, part)?)?
                    }
                };
            }
            all.add(&one)?;
        }
        Ok(all)
    }

    /// The addresses of a set of one dimension: of entries that overlap the longest prefix counts.
    fn addresses(&self, field: &Field) -> Result<FieldSet, Wrong> {
        let mut exceptions: Vec<(u128, bool, FieldSet)> = Vec::new();
        let mut plain = Vec::new();
        let has_exceptions = self.entries.iter().any(|entry| entry.is_exception);
        for entry in &self.entries {
            let set = one_address(field, &entry.parts[0])?;
            let (Some(first), Some(last)) = (set.first(), set.last()) else { continue };
            match has_exceptions {
                true => exceptions.push((last - first, entry.is_exception, set)),
                false => plain.push((first, last)),
            }
        }
        // The widest first.
        exceptions.sort_by_key(|&(width, ..)| std::cmp::Reverse(width));
        let mut all = FieldSet::ranges(field, plain);
        for (_, is_exception, set) in exceptions {
            all = if is_exception { all.and(&set.not()?)? } else { all.or(&set)? };
        }
        Ok(all)
    }

    /// A port, with its protocol: `tcp:80`, `udp:53-60`; bare in sets of ports alone.
    fn port(&self, fields: Fields, at: &'static Field, text: &str) -> Result<Region, Wrong> {
        let unknown = || Wrong::Unknown(format!("the port {text}"));
        let proto = field(fields, "proto")?;
        let (protocols, port) = match text.split_once(':') {
            None if self.has_bare_ports => (&[6u8, 17][..], text),
            None => (&[6][..], text),
            Some(("tcp", port)) => (&[6][..], port),
            Some(("udp", port)) => (&[17][..], port),
            Some(("sctp", port)) => (&[132][..], port),
            Some(("udplite", port)) => (&[136][..], port),
            // Types of ICMP, and protocols without ports.
            Some(_) => return Err(unknown()),
        };
        let protocols =
            FieldSet::ranges(proto, protocols.iter().map(|&number| (number.into(), number.into())));
        match ports(at, None, &port.replace('-', ":")) {
            Ok(Read::Set(set)) => Ok(Region::of(proto, protocols).and(&Region::of(at, set))?),
            _ => Err(unknown()),
        }
    }
}

/// An address, a prefix or a range of an entry.
fn one_address(field: &Field, text: &str) -> Result<FieldSet, Wrong> {
    let is_range = text.split_once('-').is_some();
    if is_range {
        return super::address::address_range(field, text);
    }
    let has_length = text.split_once('/').is_none_or(|(_, length)| number(length).is_some());
    match addresses(field, text)? {
        Read::Set(set) if has_length => Ok(set),
        _ => Err(Wrong::Unknown(format!("the entry {text}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ipv4Tuple, Ipv6Tuple};

    const SAVED: &str = "create nets hash:net family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x1\n\
        add nets 10.0.0.0/8\nadd nets 10.1.0.0/16 nomatch\nadd nets 10.1.2.0/24 comment \"a b\"\n\
        create web hash:ip,port family inet hashsize 64 maxelem 9 counters\n\
        add web 192.0.2.1,tcp:443 packets 0 bytes 0\nadd web 192.0.2.2,udp:53-60\n\
        create ports bitmap:port range 0-1024\nadd ports 22\n\
        create brief hash:ip family inet timeout 300\nadd brief 192.0.2.1 timeout 277\n\
        create v6 hash:net family inet6\nadd v6 2001:db8::/32\n\
        create links hash:net,iface family inet\nadd links 10.0.0.0/8,eth0\n\
        create all list:set size 8\nadd all nets\n\
        create ping hash:ip,port family inet\nadd ping 192.0.2.1,icmp:echo-request\n";

    #[test]
    fn sets_by_their_content() {
        let sets = Sets::of(SAVED).expect("sets");
        for (name, sides, tuple, is_in) in [
            ("nets", "src", "src=10.9.9.9", true),
            ("nets", "src", "src=10.1.9.9", false),
            ("nets", "src", "src=10.1.2.9", true),
            ("nets", "dst", "src=10.9.9.9", false),
            ("web", "dst,dst", "dst=192.0.2.1 dport=443 tcp", true),
            ("web", "dst,dst", "dst=192.0.2.1 dport=443 udp", false),
            ("web", "src,dst", "src=192.0.2.2 dport=60 udp", true),
            ("ports", "dst", "dport=22 udp", true),
            ("ports", "dst", "dport=22 sctp", false),
        ] {
            let region = sets
                .region(Fields::of::<Ipv4Tuple>(), name, sides)
                .unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
            assert_eq!(
                region.contains(&tuple.parse::<Ipv4Tuple>().expect("a tuple")),
                is_in,
                "{name} {sides} {tuple}"
            );
        }
        let v6 = sets.region(Fields::of::<Ipv6Tuple>(), "v6", "src").expect("a set");
        assert!(v6.contains(&"src=2001:db8::1".parse::<Ipv6Tuple>().expect("a tuple")));
        for (name, sides) in [
            ("brief", "src"),
            ("links", "src,src"),
            ("all", "src"),
            ("ping", "src,src"),
            ("v6", "src"),
            ("none", "src"),
            ("nets", "src,dst"),
        ] {
            assert!(
                matches!(sets.region(Fields::of::<Ipv4Tuple>(), name, sides), Err(Wrong::Unknown(_))),
                "{name}"
            );
        }
        let mut changed = sets;
        changed.is_changed_by_rules("nets");
        assert!(changed.region(Fields::of::<Ipv4Tuple>(), "nets", "src").is_err());
    }

    #[test]
    fn what_is_no_set_is_an_error_with_its_line() {
        for (text, line) in [
            ("create a hash:ip\nadd b 10.0.0.1\n", 2),
            ("create a hash:ip\ncreate a hash:ip\n", 2),
            ("hello\n", 1),
            ("create a hash:ip,port\nadd a 10.0.0.1\n", 2),
        ] {
            assert_eq!(Sets::of(text).map_err(|(at, _)| at), Err(line), "{text}");
        }
    }
}
