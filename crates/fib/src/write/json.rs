//! The JSON formats: one entry on each line.

use std::io::Write;

use serde_json::{Value, json};

use super::{Member, Routes, Way, WriteError, destination, is_foreign};
use crate::read::any_prefix::AnyPrefix;

/// Writes routes like `ip -json route`.
pub(super) fn ip_route(routes: &mut Routes<'_>, out: &mut dyn Write) -> Result<(), WriteError> {
    let mut start = "[";
    routes.each(|prefix, next_hop| {
        let way = Way::of(next_hop);
        let mut entry = json!({ "dst": destination(prefix, &way) });
        match &way {
            Way::Type(kind) => entry["type"] = json!(kind),
            Way::Members(members) => match &members[..] {
                [only] => add(&mut entry, only, prefix),
                group => {
                    let group = group.iter().map(|member| {
                        let mut entry = json!({ "weight": 1, "flags": [] });
                        add(&mut entry, member, prefix);
                        entry
                    });
                    entry["nexthops"] = group.collect();
                }
            },
        }
        if matches!(prefix, AnyPrefix::V6(_)) {
            entry["pref"] = json!("medium");
        }
        entry["flags"] = json!([]);
        write!(out, "{start}{entry}")?;
        start = ",\n";
        Ok(())
    })?;
    let empty = if start == "[" { "[" } else { "" };
    Ok(writeln!(out, "{empty}]")?)
}

fn add(entry: &mut Value, member: &Member<'_>, prefix: AnyPrefix) {
    if let Some(gateway) = member.gateway {
        if is_foreign(gateway, prefix) {
            let family = if gateway.is_ipv4() { "inet" } else { "inet6" };
            entry["via"] = json!({ "family": family, "host": gateway.to_string() });
        } else {
            entry["gateway"] = json!(gateway.to_string());
        }
    }
    if let Some(device) = member.device {
        entry["dev"] = json!(device);
    }
}

/// Writes routes like FRR's `show ip route json`.
pub(super) fn frr(routes: &mut Routes<'_>, out: &mut dyn Write) -> Result<(), WriteError> {
    let format = routes.format;
    let mut start = "{";
    routes.each(|prefix, next_hop| {
        let next_hops: Value = match &Way::of(next_hop) {
            Way::Type("blackhole") => json!([{ "unreachable": true, "blackhole": true, "active": true }]),
            Way::Type("unreachable") => json!([{ "unreachable": true, "reject": true, "active": true }]),
            Way::Type("prohibit") => {
                json!([{ "unreachable": true, "admin-prohibited": true, "active": true }])
            }
            Way::Type(_) => return Err(super::refuse(format, prefix, next_hop)),
            Way::Members(members) => members.iter().map(frr_member).collect(),
        };
        let text = prefix.to_string();
        let entry = json!([{
            "prefix": text, "protocol": "static", "selected": true, "installed": true, "nexthops": next_hops,
        }]);
        write!(out, "{start}{}:{entry}", json!(text))?;
        start = ",\n";
        Ok(())
    })?;
    let empty = if start == "{" { "{" } else { "" };
    Ok(writeln!(out, "{empty}}}")?)
}

fn frr_member(member: &Member<'_>) -> Value {
    let mut entry = json!({ "fib": true, "active": true });
    if let Some(gateway) = member.gateway {
        entry["ip"] = json!(gateway.to_string());
        entry["afi"] = json!(if gateway.is_ipv4() { "ipv4" } else { "ipv6" });
    }
    if let Some(device) = member.device {
        entry["interfaceName"] = json!(device);
    }
    entry
}
