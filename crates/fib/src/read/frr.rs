//! What FRR's `show ip route json` and `show ipv6 route json` print: an object by prefix, each value a list of
//! candidates. The one selected and installed is taken, with those of its next hops that are in the FIB.
//!
//! ```text
//! {"10.0.0.0/8":[{"prefix":"10.0.0.0/8","protocol":"bgp","selected":true,"installed":true,
//!                 "nexthops":[{"fib":true,"ip":"192.0.2.1","afi":"ipv4","interfaceName":"eth0","active":true}]}]}
//! ```

use serde_json::Value;
use wirespeed_input::Input;

use super::error::{End, Fault, SkipReason};
use super::json::{array, each_entry, is_true, text};
use super::kernel::member;
use super::report::Ledger;
use super::table::{AnyPrefix, Table};
use super::text::prefix;

pub(super) fn read(input: &mut Input<'_>, ledger: &mut Ledger, table: &mut Table) -> Result<(), End> {
    each_entry(input, ledger, |key, value, ledger| {
        let prefix = prefix(key.ok_or(SkipReason::Shape)?.as_bytes())?;
        route(prefix, value, table, ledger)
    })
}

fn route(prefix: AnyPrefix, value: &Value, table: &mut Table, ledger: &mut Ledger) -> Result<(), Fault> {
    let Value::Array(candidates) = value else { return Err(SkipReason::Shape.into()) };
    if !candidates.iter().all(Value::is_object) {
        return Err(SkipReason::Shape.into());
    }
    let taken = candidates.iter().find(|route| is_true(route, "selected") && is_true(route, "installed"));
    let route = taken.ok_or(SkipReason::NotInstalled)?;
    let members = members(route)?;
    if members.is_empty() {
        return Err(SkipReason::NotInstalled.into());
    }
    let next_hop = table.hop(members.join(",").as_bytes())?;
    table.insert(prefix, next_hop, ledger);
    Ok(())
}

/// The next hops that are in the FIB, as text. A route to nowhere is one of a kind's name.
fn members(route: &Value) -> Result<Vec<String>, Fault> {
    let mut members = Vec::new();
    for next_hop in array(route, "nexthops")?.unwrap_or_default() {
        let nowhere = nowhere(next_hop);
        let is_nowhere = nowhere.is_some() && is_true(next_hop, "active");
        if !is_nowhere && !is_true(next_hop, "fib") {
            continue;
        }
        let device = text(next_hop, "interfaceName")?;
        let member = member(text(next_hop, "ip")?, device).or(nowhere.map(str::to_owned));
        members.push(member.ok_or(SkipReason::NextHopMissing)?);
    }
    Ok(members)
}

/// The word for a next hop that drops what is sent to it.
fn nowhere(next_hop: &Value) -> Option<&'static str> {
    let is = |key| is_true(next_hop, key);
    match () {
        () if is("blackhole") => Some("blackhole"),
        () if is("admin-prohibited") => Some("prohibit"),
        () if is("reject") || is("unreachable") => Some("unreachable"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::prefix::PrefixError;
    use crate::read::tests::{lenient, read_strict, strict, text_of};
    use crate::read::{Format, Place, ReadError, SkipReason};

    const TABLE: &str = r#"{
"10.0.0.0/8":[
  {"protocol":"ospf","nexthops":[{"ip":"192.0.2.9","active":true}]},
  {"protocol":"bgp","selected":true,"installed":true,"nexthops":[
    {"ip":"203.0.113.1","recursive":true,"active":true},
    {"fib":true,"ip":"192.0.2.1","interfaceName":"eth0","active":true},
    {"fib":true,"directlyConnected":true,"interfaceName":"eth1","active":true}]}],
"10.1.0.0/16":[{"selected":true,"nexthops":[{"fib":true,"ip":"192.0.2.1"}]}],
"10.2.0.0/16":[{"selected":true,"installed":true,"nexthops":[{"unreachable":true,"blackhole":true,"active":true}]}],
"2001:db8::/32":[{"selected":true,"installed":true,"nexthops":[
    {"fib":true,"ip":"fe80::1","afi":"ipv6","interfaceName":"eth0"}]}]
}
"#;

    #[test]
    fn takes_what_is_selected_and_installed() {
        let (fib, report) = strict(Format::FrrJson, TABLE);
        let expected = "10.0.0.0/8 192.0.2.1,eth1\n10.2.0.0/16 blackhole\n2001:db8::/32 fe80::1%eth0\n";
        assert_eq!(text_of(&fib), expected);
        assert_eq!((report.records, report.skipped_for(SkipReason::NotInstalled)), (4, 1));
    }

    #[test]
    fn bad_entries() {
        let good = r#"[{"selected":true,"installed":true,"nexthops":[{"fib":true,"ip":"192.0.2.1"}]}]"#;
        for (entry, reason) in [
            (format!("\"10.0.0.1/8\":{good}"), SkipReason::Prefix(PrefixError::HostBits)),
            ("\"10.0.0.0/8\":7".into(), SkipReason::Shape),
            ("\"10.0.0.0/8\":[7]".into(), SkipReason::Shape),
            (format!("\"10.0.0.0/8\":{}", good.replace("\"192.0.2.1\"", "7")), SkipReason::Shape),
            (format!("\"10.0.0.0/8\":{}", good.replace("192.0.2.1", "a b")), SkipReason::NextHop),
            (format!("\"10.0.0.0/8\":{}", good.replace("\"ip\"", "\"pi\"")), SkipReason::NextHopMissing),
        ] {
            let text = format!("{{\"1.0.0.0/8\":{good},\n{entry}}}");
            match read_strict(Format::FrrJson, text.as_bytes()) {
                Err(ReadError::Bad { place: Place::Entry(2, 2), reason: found, .. }) => {
                    assert_eq!(found, reason);
                }
                other => panic!("{entry}: {other:?}"),
            }
            assert_eq!(lenient(Format::FrrJson, &text).0.v4.len(), 1);
        }
    }
}
