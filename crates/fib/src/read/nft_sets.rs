//! Named sets of addresses as `nft -j list ruleset` or `nft -j list set …` writes them, as lists of prefixes.
//!
//! ```text
//! {"nftables": [{"metainfo": {…}},
//!  {"set": {"family": "inet", "table": "filter", "name": "blocked", "type": "ipv4_addr", "flags": ["interval"],
//!    "elem": ["192.0.2.7", {"prefix": {"addr": "10.0.0.0", "len": 8}}, {"range": ["10.1.0.5", "10.1.0.9"]},
//!             {"elem": {"val": "192.0.2.8", "comment": "ours", "counter": {…}}}]}}, …]}
//! ```
//!
//! One set is the table, see `members.rs`, by its name or by `FAMILY TABLE NAME`. Sets of other types hold
//! more than addresses, and maps lead from addresses to something else: these are other sets. An element that
//! ends by itself (`timeout`, `expires`) is refused, and so is a set that rules may change (`dynamic`), or
//! one with a member or flag that is not known. Rules and chains are passed over: for them there is
//! `wirespeed-classify`.

use serde_json::Value;
use wirespeed_input::Input;

use super::any_prefix::AnyPrefix;
use super::error::{End, Fault, SkipReason};
use super::json::{Entry, Groups, array, each_entry, text};
use super::members::Members;
use super::report::Ledger;
use super::table::Table;
use super::text::prefix_family;
use crate::address::{Family, V4, V6};
use crate::prefix::PrefixError;
use crate::range::prefixes_of_range;

/// Members of a set.
const MEMBERS: [&str; 13] = [
    "family",
    "table",
    "name",
    "handle",
    "type",
    "flags",
    "elem",
    "policy",
    "size",
    "comment",
    "auto-merge",
    "gc-interval",
    "stmt",
];
/// Elements of the list that are no sets of addresses.
const OTHERS: [&str; 17] = [
    "metainfo",
    "table",
    "chain",
    "rule",
    "map",
    "meter",
    "flowtable",
    "counter",
    "quota",
    "limit",
    "secmark",
    "synproxy",
    "ct helper",
    "ct timeout",
    "ct expectation",
    "ct count",
    "tunnel",
];

pub(super) fn read(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    table: &mut Table,
    wanted: Option<&str>,
) -> Result<(), End> {
    let mut members = Members::new(wanted);
    each_entry(input, ledger, Groups::Arrays, |entry, ledger| element(&entry, &mut members, ledger))?;
    members.finish(table, ledger)
}

fn element(entry: &Entry<'_>, members: &mut Members<'_>, ledger: &mut Ledger) -> Result<(), Fault> {
    let (Some("nftables"), None) = (entry.group, entry.key) else { return Err(SkipReason::Shape.into()) };
    let (kind, set) = single(entry.value).ok_or(SkipReason::Shape)?;
    if OTHERS.contains(&kind) {
        return Err(SkipReason::OtherRecord.into());
    }
    if kind != "set" {
        return Err(SkipReason::Member.into());
    }
    let family = match set.get("type").and_then(Value::as_str) {
        Some("ipv4_addr") => Family::V4,
        Some("ipv6_addr") => Family::V6,
        _ => return Err(SkipReason::OtherSet.into()),
    };
    let part = |key| text(set, key)?.ok_or(SkipReason::Shape);
    let (name, whole) = (part("name")?, format!("{} {} {}", part("family")?, part("table")?, part("name")?));
    members.set(name, &whole);
    if !members.is_chosen(&whole) {
        return Err(SkipReason::OtherSet.into());
    }
    check(set)?;
    for one in array(set, "elem")?.unwrap_or_default() {
        if let Err(reason) = take(one, family, members, ledger) {
            ledger.fault(reason.into(), entry.place, one.to_string())?;
        }
    }
    Ok(())
}

/// Checks that a set stays as it is, and asks for nothing that is not known.
fn check(set: &Value) -> Result<(), SkipReason> {
    let members = set.as_object().ok_or(SkipReason::Shape)?;
    if members.keys().any(|key| !MEMBERS.contains(&key.as_str())) {
        return Err(SkipReason::Member);
    }
    let flags = match set.get("flags") {
        None => &[][..],
        Some(Value::Array(flags)) => flags,
        Some(flag) => std::slice::from_ref(flag),
    };
    for flag in flags {
        match flag.as_str() {
            // Elements of a set with timeouts say themselves whether they end.
            Some("constant" | "interval" | "timeout") => {}
            Some("dynamic") => return Err(SkipReason::Dynamic),
            _ => return Err(SkipReason::Word),
        }
    }
    Ok(())
}

fn take(
    element: &Value,
    family: Family,
    members: &mut Members<'_>,
    ledger: &mut Ledger,
) -> Result<(), SkipReason> {
    match element {
        Value::String(address) => {
            let prefix = prefix_family(ledger.prefix(address.as_bytes())?, family)?;
            members.add(prefix, false, ledger);
            return Ok(());
        }
        Value::Object(_) => {}
        _ => return Err(SkipReason::Shape),
    }
    match single(element).ok_or(SkipReason::Shape)? {
        ("prefix", prefix) => {
            let address = text(prefix, "addr")?.ok_or(SkipReason::Shape)?;
            let len = prefix.get("len").and_then(Value::as_u64).ok_or(SkipReason::Number)?;
            let prefix = ledger.prefix_of(address, &len.to_string())?;
            members.add(prefix_family(prefix, family)?, false, ledger);
            Ok(())
        }
        ("range", Value::Array(ends)) => match &ends[..] {
            [Value::String(first), Value::String(last)] => range(first, last, family, members, ledger),
            _ => Err(SkipReason::Shape),
        },
        ("elem", inner) => {
            for key in inner.as_object().ok_or(SkipReason::Shape)?.keys() {
                match key.as_str() {
                    "val" | "comment" | "counter" => {}
                    "timeout" | "expires" => return Err(SkipReason::Timeout),
                    _ => return Err(SkipReason::Member),
                }
            }
            match inner.get("val").ok_or(SkipReason::Shape)? {
                // One element within another would be none that nft writes, and could be deep.
                value if single(value).is_some_and(|(kind, _)| kind == "elem") => Err(SkipReason::Shape),
                value => take(value, family, members, ledger),
            }
        }
        _ => Err(SkipReason::Member),
    }
}

fn range(
    first: &str,
    last: &str,
    family: Family,
    members: &mut Members<'_>,
    ledger: &mut Ledger,
) -> Result<(), SkipReason> {
    fn ends<A: std::str::FromStr + PartialOrd>(first: &str, last: &str) -> Result<(A, A), SkipReason> {
        let end = |text: &str| text.parse().map_err(|_| SkipReason::Prefix(PrefixError::Address));
        let (first, last) = (end(first)?, end(last)?);
        if first <= last { Ok((first, last)) } else { Err(SkipReason::Range) }
    }
    match family {
        Family::V4 => {
            let (first, last) = ends::<V4>(first, last)?;
            for prefix in prefixes_of_range(first, last) {
                members.add(AnyPrefix::V4(prefix), false, ledger);
            }
        }
        Family::V6 => {
            let (first, last) = ends::<V6>(first, last)?;
            for prefix in prefixes_of_range(first, last) {
                members.add(AnyPrefix::V6(prefix), false, ledger);
            }
        }
    }
    Ok(())
}

/// The only member of an object.
fn single(value: &Value) -> Option<(&str, &Value)> {
    let mut members = value.as_object()?.iter();
    match (members.next(), members.next()) {
        (Some((key, value)), None) => Some((key, value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::tests::{lenient, read_strict, read_with, strict, text_of};
    use crate::read::{Format, Place, ReadError, ReadOptions};

    const RULESET: &str = r#"{"nftables":[{"metainfo":{"version":"1.0.9","json_schema_version":1}},
{"table":{"family":"inet","name":"filter","handle":1}},
{"set":{"family":"inet","name":"blocked","table":"filter","type":"ipv4_addr","handle":2,"flags":["interval"],
 "elem":["192.0.2.7",{"prefix":{"addr":"10.0.0.0","len":8}},{"range":["11.1.0.5","11.1.0.8"]},
 {"elem":{"val":{"prefix":{"addr":"198.51.100.0","len":24}},"comment":"ours","counter":{"packets":1,"bytes":2}}}]}},
{"chain":{"family":"inet","table":"filter","name":"in","handle":3}}MORE]}"#;

    fn ruleset(more: &str) -> String {
        RULESET.replace("MORE", more)
    }

    fn other(name: &str, table: &str) -> String {
        format!(
            ",\n{{\"set\":{{\"family\":\"ip6\",\"table\":\"{table}\",\"name\":\"{name}\",\"type\":\"ipv6_addr\",\"elem\":[\"2001:db8::1\"]}}}}"
        )
    }

    #[test]
    fn a_set_is_its_addresses() {
        let (fib, report) = strict(Format::NftSets, &ruleset(""));
        assert_eq!(
            text_of(&fib),
            "10.0.0.0/8 member\n11.1.0.5/32 member\n11.1.0.6/31 member\n11.1.0.8/32 member\n\
             192.0.2.7/32 member\n198.51.100.0/24 member\n"
        );
        assert!(report.is_list && report.skipped_for(SkipReason::OtherRecord) == 3);
    }

    #[test]
    fn one_of_several_sets_is_chosen_by_name() {
        let text = ruleset(&(other("six", "a") + &other("six", "b")));
        let of = |set: Option<&str>| {
            let options = ReadOptions { set: set.map(str::to_owned), ..ReadOptions::default() };
            read_with(text.as_bytes(), &options)
                .map(|(fib, _)| text_of(&fib))
                .map_err(|error| error.to_string())
        };
        let all = "inet filter blocked, ip6 a six, ip6 b six";
        let several = format!("test: several sets: choose one with lookupctl build --set: {all}");
        assert_eq!((of(None).unwrap_err(), of(Some("six")).unwrap_err()), (several.clone(), several));
        assert_eq!(of(Some("ip6 b six")).unwrap(), "2001:db8::1/128 member\n");
        assert!(of(Some("blocked")).unwrap().starts_with("10.0.0.0/8 member\n"));
        assert_eq!(of(Some("x")).unwrap_err(), format!("test: no set x of addresses; there are {all}"));
    }

    #[test]
    fn what_is_not_known_or_does_not_stay_is_refused() {
        let wrong_family = PrefixError::WrongFamily { found: Family::V6, wanted: Family::V4 };
        for (from, to, reason) in [
            ("\"192.0.2.7\"", "{\"elem\":{\"val\":\"192.0.2.7\",\"timeout\":60}}", SkipReason::Timeout),
            ("\"192.0.2.7\"", "{\"elem\":{\"val\":\"192.0.2.7\",\"mark\":60}}", SkipReason::Member),
            ("\"192.0.2.7\"", "{\"concat\":[\"192.0.2.7\",80]}", SkipReason::Member),
            ("\"192.0.2.7\"", "\"2001:db8::7\"", wrong_family.into()),
            ("\"192.0.2.7\"", "{\"range\":[\"192.0.2.7\",\"192.0.2.6\"]}", SkipReason::Range),
            ("\"192.0.2.7\"", "7", SkipReason::Shape),
            ("[\"interval\"]", "[\"dynamic\"]", SkipReason::Dynamic),
            ("[\"interval\"]", "\"odd\"", SkipReason::Word),
            ("\"handle\":2", "\"wheel\":2", SkipReason::Member),
            ("{\"table\":", "{\"tables\":", SkipReason::Member),
        ] {
            let text = ruleset("").replacen(from, to, 1);
            match read_strict(Format::NftSets, text.as_bytes()) {
                Err(ReadError::Bad { place: Place::Entry(..), reason: found, .. }) => {
                    assert_eq!(found, reason);
                }
                other => panic!("{text}: {other:?}"),
            }
            let (_, report) = lenient(Format::NftSets, &text);
            assert_eq!((report.faults(), report.skipped_for(reason)), (1, 1), "{text}");
        }
        let cut = &RULESET[..RULESET.len() - 9];
        assert!(matches!(read_strict(Format::NftSets, cut.as_bytes()), Err(ReadError::CutOff { .. })));
    }
}
