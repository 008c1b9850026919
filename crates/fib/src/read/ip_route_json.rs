//! The output of `ip -json route`: an array of objects.
//!
//! ```text
//! [{"dst":"default","gateway":"192.0.2.1","dev":"eth0","metric":100,"flags":[]},
//!  {"dst":"10.9.0.0/16","nexthops":[{"gateway":"192.0.2.1","dev":"eth0","weight":1},…]},
//!  {"type":"blackhole","dst":"10.10.0.0/16"},
//!  {"dst":"10.12.0.0/16","via":{"family":"inet6","host":"fe80::1"},"dev":"eth0"}]
//! ```

use serde_json::Value;
use wirespeed_input::Input;

use super::error::{End, Fault, SkipReason};
use super::json::{Groups, array, each_entry, text};
use super::kernel::{KernelRoute, KernelTable, destination, family_of, is_usual_table, member};
use super::report::Ledger;
use super::table::Table;
use super::text::TYPES;
use crate::address::Family;

pub(super) fn read(input: &mut Input<'_>, ledger: &mut Ledger, table: &mut Table) -> Result<(), End> {
    let mut routes = KernelTable::new(table);
    each_entry(input, ledger, Groups::None, |entry, ledger| match entry.key {
        None => routes.put(&route(entry.value, ledger)?, ledger),
        Some(_) => Err(SkipReason::Shape.into()),
    })?;
    routes.finish(ledger);
    Ok(())
}

fn route(value: &Value, ledger: &mut Ledger) -> Result<KernelRoute, Fault> {
    let dst = text(value, "dst")?.ok_or(SkipReason::Shape)?;
    // An encapsulation has a type of service of its own, in the same object.
    let has_tos = value.get("tos").is_some() && value.get("encap").is_none();
    if has_tos || value.get("from").is_some() {
        return Err(SkipReason::OtherTable.into());
    }
    if text(value, "table")?.is_some_and(|table| !is_usual_table(table)) {
        return Err(SkipReason::OtherTable.into());
    }
    let mut route = KernelRoute { prefix: destination(dst, ledger)?, ..KernelRoute::default() };
    if let Some(metric) = value.get("metric") {
        let metric = metric.as_u64().and_then(|metric| u32::try_from(metric).ok());
        route.metric = metric.ok_or(SkipReason::Number)?;
    }
    match text(value, "type")? {
        Some(kind) if TYPES.contains(&kind) => route.members.push(kind.to_owned()),
        Some("unicast") | None => {
            let group = array(value, "nexthops")?.unwrap_or(std::slice::from_ref(value));
            for next_hop in group.iter().filter(|next_hop| !is_dead(next_hop)) {
                add_member(&mut route, next_hop)?;
            }
            if route.members.is_empty() && group.iter().any(is_dead) {
                return Err(SkipReason::NotInstalled.into());
            }
        }
        Some(_) => return Err(SkipReason::Shape.into()),
    }
    if value.get("pref").is_some() {
        route.family = route.family.or(Some(Family::V6));
    }
    if route.members.is_empty() {
        return Err(SkipReason::NextHopMissing.into());
    }
    Ok(route)
}

/// Whether the kernel does not use a next hop, because its device is down.
fn is_dead(next_hop: &Value) -> bool {
    next_hop
        .get("flags")
        .and_then(Value::as_array)
        .is_some_and(|flags| flags.iter().any(|flag| flag == "dead"))
}

fn add_member(route: &mut KernelRoute, value: &Value) -> Result<(), Fault> {
    let mut gateway = text(value, "gateway")?;
    if let Some(gateway) = gateway {
        route.family = Some(family_of(gateway)?);
    }
    if let Some(via) = value.get("via") {
        // This is a gateway of the other family.
        gateway = Some(text(via, "host")?.ok_or(SkipReason::NextHopMissing)?);
        route.family = match text(via, "family")? {
            Some("inet6") => Some(Family::V4),
            Some("inet") => Some(Family::V6),
            _ => route.family,
        };
    }
    let member = member(gateway, text(value, "dev")?).ok_or(SkipReason::NextHopMissing)?;
    route.members.push(member);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::prefix::PrefixError;
    use crate::read::tests::{lenient, read_strict, strict, text_of};
    use crate::read::{Format, Place, ReadError, SkipReason};

    #[test]
    fn reads_every_shape() {
        let text = r#"[{"dst":"default","gateway":"192.0.2.1","dev":"eth0","metric":100,"flags":[]},
{"dst":"default","gateway":"192.0.2.2","dev":"eth0","metric":10},
{"dst":"10.9.0.0/16","protocol":"bird","nexthops":[{"gateway":"192.0.2.1","dev":"eth0","weight":1,"flags":[]},
  {"dev":"tun0","weight":2}]},
{"type":"blackhole","dst":"10.10.0.0/16"},
{"dst":"10.12.0.0/16","via":{"family":"inet6","host":"fe80::1"},"dev":"eth0"},
{"dst":"10.13.0.0/16","dev":"eth0","table":"100"},
{"dst":"192.0.2.7","dev":"eth1","scope":"link"}]
[{"dst":"default","gateway":"fe80::1","dev":"eth0","metric":1024,"pref":"medium"}]
"#;
        let (fib, report) = strict(Format::IpRouteJson, text);
        let expected = "\
0.0.0.0/0 192.0.2.2
10.9.0.0/16 192.0.2.1,tun0
10.10.0.0/16 blackhole
10.12.0.0/16 fe80::1%eth0
192.0.2.7/32 eth1
::/0 fe80::1%eth0
";
        assert_eq!(text_of(&fib), expected);
        assert_eq!((report.records, report.repeated, report.skipped_for(SkipReason::OtherTable)), (8, 1, 1));
    }

    #[test]
    fn tunnels_and_dead_routes() {
        // Some versions of iproute2 write the tunnel into the route's object, with a second `dst` and a
        // `tos`.
        let text = r#"[{"dst":"10.3.0.0/16","encap":"ip","id":5,"src":"192.0.2.2","dst":"203.0.113.9","ttl":0,"tos":0,
  "gateway":"192.0.3.1","dev":"d1","flags":[]},
{"dst":"10.1.0.0/16","gateway":"198.51.100.2","dev":"v0","flags":["dead","linkdown"]},
{"dst":"10.5.0.0/16","nexthops":[{"gateway":"192.0.2.1","dev":"v0","weight":1,"flags":["dead","linkdown"]},
  {"gateway":"192.0.2.2","dev":"d1","weight":1,"flags":[]}]},
{"dst":"10.6.0.0/16","nexthops":[{"gateway":"192.0.2.1","dev":"v0","weight":1,"flags":["dead"]}]}]
"#;
        let (fib, report) = strict(Format::IpRouteJson, text);
        assert_eq!(text_of(&fib), "10.3.0.0/16 192.0.3.1\n10.5.0.0/16 192.0.2.2\n");
        assert_eq!(report.skipped_for(SkipReason::NotInstalled), 2);
    }

    #[test]
    fn bad_entries_are_named_and_can_be_passed_over() {
        for (entry, reason) in [
            (r#"{"dst":"10.0.0.1/8","dev":"eth0"}"#, SkipReason::Prefix(PrefixError::HostBits)),
            (r#"{"dst":7,"dev":"eth0"}"#, SkipReason::Shape),
            (r#"{"dev":"eth0"}"#, SkipReason::Shape),
            ("5", SkipReason::Shape),
            (r#"{"dst":"10.0.0.0/8"}"#, SkipReason::NextHopMissing),
            (r#"{"dst":"10.0.0.0/8","nexthops":[]}"#, SkipReason::NextHopMissing),
            (r#"{"dst":"10.0.0.0/8","nexthops":7}"#, SkipReason::Shape),
            (r#"{"dst":"10.0.0.0/8","dev":"a b"}"#, SkipReason::NextHop),
            (r#"{"dst":"10.0.0.0/8","dev":""}"#, SkipReason::NextHopMissing),
            (r#"{"dst":"10.0.0.0/8","gateway":"x"}"#, SkipReason::NextHop),
            (r#"{"dst":"10.0.0.0/8","dev":"a","metric":-1}"#, SkipReason::Number),
            (r#"{"dst":"10.0.0.0/8","dev":"a","dst":"11.0.0.0/8"}"#, SkipReason::KeyTwice),
            (r#"{"dst":"10.0.0.0/8","nexthops":[{"dev":"a","dev":"b"}]}"#, SkipReason::KeyTwice),
        ] {
            let text = format!(
                "[{{\"dst\":\"1.0.0.0/8\",\"dev\":\"a\"}},\n{entry},\n{{\"dst\":\"2.0.0.0/8\",\"dev\":\"a\"}}]"
            );
            match read_strict(Format::IpRouteJson, text.as_bytes()) {
                Err(ReadError::Bad { place: Place::Entry(2, 2), reason: found, .. }) => {
                    assert_eq!(found, reason);
                }
                other => panic!("{entry}: {other:?}"),
            }
            let (fib, report) = lenient(Format::IpRouteJson, &text);
            assert_eq!((fib.v4.len(), report.faults()), (2, 1));
        }
    }

    #[test]
    fn json_that_ends_too_soon_or_is_none() {
        let text = "[{\"dst\":\"1.0.0.0/8\",\"dev\":\"a\"},\n{\"dst\":\"2.0";
        let message = read_strict(Format::IpRouteJson, text.as_bytes()).unwrap_err().to_string();
        assert_eq!(message, "test:2:11: the JSON ends too soon; 1 whole record before it, 1 taken");
        let (fib, report) = lenient(Format::IpRouteJson, text);
        assert_eq!((fib.v4.len(), report.truncated.unwrap().place), (1, Place::Column(2, 11)));
        let message = read_strict(Format::IpRouteJson, b"[}").unwrap_err().to_string();
        assert_eq!(message, "test:1:2: bad JSON (expected value); 0 whole records before it");
        let deep = [&b"["[..], &vec![b'['; 100_000]].concat();
        assert!(read_strict(Format::IpRouteJson, &deep).is_err());
    }
}
