//! FRR's `show ip route json` and `show ipv6 route json`: an object whose keys are prefixes and whose values
//! are lists of candidates. The selected and installed candidate is taken, with its next hops in the FIB.
//!
//! ```text
//! {"10.0.0.0/8":[{"prefix":"10.0.0.0/8","protocol":"bgp","vrfName":"default","selected":true,"installed":true,
//!                 "nexthops":[{"fib":true,"ip":"192.0.2.1","afi":"ipv4","interfaceName":"eth0","active":true}]}]}
//! ```
//!
//! With `vrf all` there is such an object for each VRF. Since FRR 10.1 the objects are in an outer object, by
//! the VRF's name. Before, they follow each other, and each route has a `vrfName`.
//!
//! ```text
//! {"default":{"10.0.0.0/8":[…]},"red":{"10.0.0.0/8":[…]}}                      {"10.0.0.0/8":[…]}{"10.0.0.0/8":[…]}
//! ```

use serde_json::Value;
use wirespeed_input::Input;

use super::error::{End, Fault, SkipReason};
use super::json::{Entry, Groups, array, each_entry, is_true, text};
use super::kernel::member;
use super::report::Ledger;
use super::table::Table;
use super::text::prefix_in_words;
use super::vrfs::{DEFAULT, Vrfs};

pub(super) fn read(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    table: &mut Table,
    vrf: Option<&str>,
) -> Result<(), End> {
    let mut vrfs = Vrfs::new(vrf);
    let vrfs_of = Groups::Objects(|key| prefix_in_words(key.as_bytes()).is_err());
    each_entry(input, ledger, vrfs_of, |entry, ledger| route(&entry, table, &mut vrfs, ledger))?;
    Ok(vrfs.close(&ledger.report.name)?)
}

fn route(
    entry: &Entry<'_>,
    table: &mut Table,
    vrfs: &mut Vrfs<'_>,
    ledger: &mut Ledger,
) -> Result<(), Fault> {
    if let (Some(vrf), None) = (entry.group, entry.key) {
        vrfs.meet(vrf);
        return Ok(());
    }
    let prefix = ledger.prefix(entry.key.ok_or(SkipReason::Shape)?.as_bytes())?;
    let Value::Array(candidates) = entry.value else { return Err(SkipReason::Shape.into()) };
    if !candidates.iter().all(Value::is_object) {
        return Err(SkipReason::Shape.into());
    }
    let named = candidates.first().map(|route| text(route, "vrfName")).transpose()?.flatten();
    if !vrfs.takes(entry.group.or(named).unwrap_or(DEFAULT)) {
        return Err(SkipReason::OtherVrf.into());
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

/// The next hops in the FIB, as text. A route without one has the name of its kind.
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

/// The word for a next hop that drops packets.
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
    use crate::read::tests::{lenient, read_strict, read_with, strict, text_of};
    use crate::read::{Format, Place, ReadError, ReadOptions, SkipReason};

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

    /// A route of one next hop, of a VRF as it says itself.
    fn one(prefix: &str, vrf: &str, hop: &str) -> String {
        format!(
            r#""{prefix}":[{{"vrfName":"{vrf}","selected":true,"installed":true,"nexthops":[{{"fib":true,"ip":"{hop}"}}]}}]"#
        )
    }

    #[test]
    fn one_vrf_of_several_is_taken() {
        let default = one("10.0.0.0/8", "default", "192.0.2.1");
        let red = [one("10.0.0.0/8", "red", "192.0.2.2"), one("10.1.0.0/16", "red", "192.0.2.2")].join(",");
        let nested = format!(r#"{{"default":{{{default}}},"red":{{{red}}},"empty":{{}}}}"#);
        let joined = format!("{{{default}}}\n{{{red}}}\n{{}}\n");
        let of = |text: &str, vrf: Option<&str>| {
            let options = ReadOptions { vrf: vrf.map(str::to_owned), ..ReadOptions::default() };
            read_with(text.as_bytes(), &options)
                .map(|(fib, report)| (text_of(&fib), report.skipped_for(SkipReason::OtherVrf)))
        };
        for text in [&nested, &joined] {
            let message = of(text, None).unwrap_err().to_string();
            assert!(
                message
                    .starts_with("test: several VRFs: choose one with lookupctl build --vrf: default, red"),
                "{message}"
            );
            assert_eq!(of(text, Some("default")).unwrap(), ("10.0.0.0/8 192.0.2.1\n".to_owned(), 2));
            let of_red = "10.0.0.0/8 192.0.2.2\n10.1.0.0/16 192.0.2.2\n".to_owned();
            assert_eq!(of(text, Some("red")).unwrap(), (of_red, 1));
            let message = of(text, Some("blue")).unwrap_err().to_string();
            assert!(message.starts_with("test: no VRF blue; there are default, red"), "{message}");
            let options = ReadOptions { lenient: true, ..ReadOptions::default() };
            assert!(
                read_with(text.as_bytes(), &options).is_err(),
                "not even then is one taken for the other"
            );
        }
        assert!(matches!(of(&nested, Some("empty")), Err(ReadError::Nothing { .. })));
        // One VRF alone needs no choice, whatever its name.
        let alone = format!(r#"{{"red":{{{red}}},"empty":{{}}}}"#);
        assert_eq!(of(&alone, None).unwrap().1, 0);
        assert_eq!(of(&format!("{{{red}}}"), None).unwrap().1, 0);
        // Where a VRF's name should be the key of an object it is that of something else.
        for odd in ["[7]", "7", "-7", "7.5", "true", "null", "\"x\""] {
            let text = format!(r#"{{"red":{odd}}}"#);
            let message = read_strict(Format::FrrJson, text.as_bytes()).unwrap_err().to_string();
            assert!(message.ends_with(r#"not an address: "red""#), "{message}");
        }
    }
}
