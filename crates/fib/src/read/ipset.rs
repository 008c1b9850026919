//! Sets of addresses as `ipset save` writes them, as lists of prefixes.
//!
//! ```text
//! create blocked hash:net family inet hashsize 1024 maxelem 65536 counters comment
//! add blocked 10.0.0.0/8 packets 12 bytes 900 comment "from the list"
//! add blocked 10.1.0.0/16 nomatch
//! ```
//!
//! One set is the table, see `members.rs`: `hash:ip`, `hash:net` and `bitmap:ip`. Sets of other types hold
//! more than addresses (ports, interfaces, marks, other sets): for rules of iptables that name such sets
//! there is `read::ReadOptions::sets` of `wirespeed-classify`. An element that ends by itself (`timeout`,
//! unless it is 0) is refused, and so is an option that is not known. Counters, comments and `skbinfo` say
//! nothing about membership.

use std::collections::BTreeMap;
use std::net::IpAddr;

use wirespeed_input::Input;

use super::any_prefix::AnyPrefix;
use super::error::{End, Fault, SkipReason};
use super::members::Members;
use super::report::Ledger;
use super::table::Table;
use super::text::{each_line, prefix_family, utf8};
use crate::address::Family;
use crate::prefix::PrefixError;

pub(super) fn read(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    table: &mut Table,
    wanted: Option<&str>,
) -> Result<(), End> {
    let mut members = Members::new(wanted);
    let mut sets: BTreeMap<String, Option<Set>> = BTreeMap::new();
    each_line(input, ledger, |line, _, ledger| {
        let words = words(utf8(line)?.trim())?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["create" | "-N", name, kind, ref options @ ..] => {
                ledger.report.records -= 1;
                if sets.contains_key(name) {
                    return Err(SkipReason::Record.into());
                }
                // Elements of a set that is not understood are refused, too.
                sets.insert(name.to_owned(), None);
                let set = Set::of(kind, options)?;
                if set.has_addresses {
                    members.set(name, name);
                }
                sets.insert(name.to_owned(), Some(set));
                Ok(())
            }
            ["add" | "-A", name, element, ref options @ ..] => {
                let set =
                    sets.get(name).ok_or(SkipReason::UnknownSet)?.as_ref().ok_or(SkipReason::UnknownSet)?;
                if !set.has_addresses || !members.is_chosen(name) {
                    return Err(SkipReason::OtherSet.into());
                }
                let is_exception = set.options(options)?;
                members.add(set.prefix(element, ledger)?, is_exception, ledger);
                Ok(())
            }
            _ => Err(SkipReason::Word.into()),
        }
    })?;
    members.finish(table, ledger)
}

/// The properties of a set.
struct Set {
    /// Whether its elements are addresses alone.
    has_addresses: bool,
    has_exceptions: bool,
    family: Family,
    /// The length of the networks whose addresses stand for them.
    netmask: Option<u32>,
}

impl Set {
    fn of(kind: &str, options: &[&str]) -> Result<Self, SkipReason> {
        let has_addresses = matches!(kind, "hash:ip" | "hash:net" | "bitmap:ip");
        let mut set =
            Self { has_addresses, has_exceptions: kind == "hash:net", family: Family::V4, netmask: None };
        let mut options = options.iter();
        let number = |options: &mut std::slice::Iter<'_, &str>| -> Result<u64, SkipReason> {
            let word = options.next().ok_or(SkipReason::TooFewColumns)?;
            let hex = word.strip_prefix("0x").map(|hex| u64::from_str_radix(hex, 16));
            hex.unwrap_or_else(|| word.parse()).map_err(|_| SkipReason::Number)
        };
        while let Some(&option) = options.next() {
            match option {
                "family" => {
                    set.family = match options.next() {
                        Some(&"inet") => Family::V4,
                        Some(&"inet6") => Family::V6,
                        _ => return Err(SkipReason::Word),
                    };
                }
                "netmask" => {
                    let len = u32::try_from(number(&mut options)?).map_err(|_| SkipReason::Number)?;
                    set.netmask = Some(len);
                }
                "hashsize" | "maxelem" | "bucketsize" | "initval" | "timeout" | "size" | "markmask" => {
                    number(&mut options)?;
                }
                // Its elements are within it anyway.
                "range" => _ = options.next().ok_or(SkipReason::TooFewColumns)?,
                "counters" | "comment" | "skbinfo" | "forceadd" => {}
                // Sets of other types may have options of their own.
                _ if !has_addresses => {}
                _ => return Err(SkipReason::Word),
            }
        }
        Ok(set)
    }

    /// Reads the options of an element. Returns whether it is an exception.
    fn options(&self, options: &[&str]) -> Result<bool, SkipReason> {
        let mut is_exception = false;
        let mut options = options.iter();
        while let Some(&option) = options.next() {
            match option {
                "nomatch" if self.has_exceptions => is_exception = true,
                "packets" | "bytes" | "comment" | "skbmark" | "skbprio" | "skbqueue" => {
                    options.next().ok_or(SkipReason::TooFewColumns)?;
                }
                "timeout" => match options.next() {
                    Some(&"0") => {}
                    Some(_) => return Err(SkipReason::Timeout),
                    None => return Err(SkipReason::TooFewColumns),
                },
                _ => return Err(SkipReason::Word),
            }
        }
        Ok(is_exception)
    }

    fn prefix(&self, element: &str, ledger: &mut Ledger) -> Result<AnyPrefix, SkipReason> {
        let prefix = match self.netmask {
            Some(len) if !element.contains('/') => {
                let address: IpAddr = element.parse().map_err(|_| PrefixError::Address)?;
                ledger.prefix_of_len(address, len)?
            }
            _ => ledger.prefix(element.as_bytes())?,
        };
        prefix_family(prefix, self.family)
    }
}

/// The words of a line; a comment in quotes is one word.
fn words(line: &str) -> Result<Vec<String>, Fault> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or(SkipReason::Quotes)?,
            None => rest.split_at(rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len())),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::tests::{bad_line, lenient, read_strict, read_with, strict, text_of};
    use crate::read::{Format, ReadOptions};

    const SAVED: &str = "\
create blocked hash:net family inet hashsize 1024 maxelem 65536 counters comment bucketsize 12 initval 0x8c4c1b0f
add blocked 10.0.0.0/30 packets 0 bytes 0 comment \"a list, of ours\"
add blocked 10.0.0.1 nomatch
add blocked 192.0.2.7 timeout 0
";

    #[test]
    fn a_set_is_its_addresses_without_the_exceptions() {
        let (fib, report) = strict(Format::Ipset, SAVED);
        assert_eq!(text_of(&fib), "10.0.0.0/32 member\n10.0.0.2/31 member\n192.0.2.7/32 member\n");
        assert!(report.is_list && report.records == 3);
        let within = format!("{SAVED}add blocked 10.0.0.1/32\n");
        // The last one for a prefix counts.
        assert_eq!(
            text_of(&strict(Format::Ipset, &within).0),
            "10.0.0.0/30 member\n10.0.0.1/32 member\n192.0.2.7/32 member\n"
        );
        let deeper = SAVED.replace("10.0.0.1 nomatch", "10.0.0.0/31 nomatch\nadd blocked 10.0.0.1");
        assert_eq!(
            text_of(&strict(Format::Ipset, &deeper).0),
            "10.0.0.1/32 member\n10.0.0.2/31 member\n192.0.2.7/32 member\n"
        );
        let six = "create six hash:ip family inet6 hashsize 64 maxelem 9 netmask 64\nadd six 2001:db8::\n";
        assert_eq!(text_of(&strict(Format::Ipset, six).0), "2001:db8::/64 member\n");
    }

    #[test]
    fn one_of_several_sets_is_chosen_by_name() {
        let text = format!(
            "{SAVED}create web hash:ip,port family inet\nadd web 192.0.2.1,tcp:443\ncreate own hash:ip\nadd own 192.0.2.9\n"
        );
        let of = |set: Option<&str>| {
            let options = ReadOptions { set: set.map(str::to_owned), ..ReadOptions::default() };
            read_with(text.as_bytes(), &options)
        };
        assert_eq!(
            of(None).unwrap_err().to_string(),
            "test: several sets: choose one with lookupctl build --set: blocked, own"
        );
        let (fib, report) = of(Some("own")).unwrap();
        assert_eq!(
            (text_of(&fib).as_str(), report.skipped_for(SkipReason::OtherSet)),
            ("192.0.2.9/32 member\n", 4)
        );
        for name in ["web", "none"] {
            let message = of(Some(name)).unwrap_err().to_string();
            assert_eq!(message, format!("test: no set {name} of addresses; there are blocked, own"));
        }
    }

    #[test]
    fn what_is_not_known_or_does_not_stay_is_refused_by_line() {
        let head = "create a hash:net family inet\nadd a 10.0.0.0/8\n";
        for (line, reason) in [
            ("add a 11.0.0.0/8 timeout 300", SkipReason::Timeout),
            ("add a 11.0.0.0/8 wildcard", SkipReason::Word),
            ("add a 11.0.0.1/8", PrefixError::HostBits.into()),
            (
                "add a 2001:db8::/32",
                PrefixError::WrongFamily { found: Family::V6, wanted: Family::V4 }.into(),
            ),
            ("add b 11.0.0.0/8", SkipReason::UnknownSet),
            ("add a 11.0.0.0/8 comment \"open", SkipReason::Quotes),
            ("add a 11.0.0.0/8 comment", SkipReason::TooFewColumns),
            ("del a 11.0.0.0/8", SkipReason::Word),
            ("create a hash:net", SkipReason::Record),
            ("create c hash:net colour", SkipReason::Word),
        ] {
            let text = format!("{head}{line}\n");
            bad_line(Format::Ipset, &text, 3, reason);
            let (fib, report) = lenient(Format::Ipset, &text);
            assert_eq!(
                (text_of(&fib).as_str(), report.skipped_for(reason)),
                ("10.0.0.0/8 member\n", 1),
                "{line}"
            );
        }
        let hidden = "create c hash:ip bitmask 255.0.0.0\nadd c 10.0.0.0\ncreate a hash:ip\nadd a 10.0.0.1\n";
        let (fib, report) = lenient(Format::Ipset, hidden);
        assert_eq!((text_of(&fib).as_str(), report.faults()), ("10.0.0.1/32 member\n", 2));
        assert!(read_strict(Format::Ipset, b"create a hash:ip\n").is_err());
    }
}
