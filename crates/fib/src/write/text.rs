//! The formats with one line for each route or update.

use std::fmt;
use std::io::Write;
use std::time::Duration;

use super::{Member, Routes, Way, WriteError, destination, is_foreign, refuse, text_of};
use crate::fib::AnyUpdate;
use crate::next_hop::{NextHop, NextHops};
use crate::read::any_prefix::AnyPrefix;
use crate::read::pfx2as::is_origin;
use crate::read::{Format, TimedUpdate};
use crate::update::Update;

pub(super) fn plain(routes: &mut Routes<'_>, out: &mut dyn Write) -> Result<(), WriteError> {
    routes.each(|prefix, next_hop| Ok(writeln!(out, "{prefix} {next_hop}")?))
}

pub(super) fn pfx2as(routes: &mut Routes<'_>, out: &mut dyn Write) -> Result<(), WriteError> {
    let format = routes.format;
    routes.each(|prefix, next_hop| {
        if !is_origin(next_hop) {
            return Err(refuse(format, prefix, next_hop));
        }
        match prefix {
            AnyPrefix::V4(prefix) => writeln!(out, "{}\t{}\t{next_hop}", prefix.address(), prefix.len())?,
            AnyPrefix::V6(prefix) => writeln!(out, "{}\t{}\t{next_hop}", prefix.address(), prefix.len())?,
        }
        Ok(())
    })
}

/// Writes a dump of one peer of AS 0.
pub(super) fn bgpdump(routes: &mut Routes<'_>, out: &mut dyn Write) -> Result<(), WriteError> {
    routes.each(|prefix, next_hop| {
        check_column(prefix, next_hop)?;
        let peer = peer_of(prefix);
        Ok(writeln!(out, "TABLE_DUMP2|0|B|{peer}|0|{prefix}||IGP|{next_hop}|0|0||NAG||")?)
    })
}

fn check_column(prefix: AnyPrefix, next_hop: &str) -> Result<(), WriteError> {
    match next_hop.contains('|') {
        true => Err(refuse(Format::Bgpdump, prefix, next_hop)),
        false => Ok(()),
    }
}

fn peer_of(prefix: AnyPrefix) -> &'static str {
    match prefix {
        AnyPrefix::V4(_) => "0.0.0.0",
        AnyPrefix::V6(_) => "::",
    }
}

pub(super) fn ip_route(routes: &mut Routes<'_>, out: &mut dyn Write) -> Result<(), WriteError> {
    let format = routes.format;
    routes.each(|prefix, next_hop| {
        let way = Way::of(next_hop);
        let dst = destination(prefix, &way);
        // `ip -6 route` ends its lines like this; it also tells the family of a default route.
        let pref = if matches!(prefix, AnyPrefix::V6(_)) { " pref medium" } else { "" };
        match &way {
            Way::Type(kind) => writeln!(out, "{kind} {dst}{pref}")?,
            Way::Members(members) => {
                if members.iter().any(|member| member.device.is_some_and(is_no_device)) {
                    return Err(refuse(format, prefix, next_hop));
                }
                match &members[..] {
                    [only] => writeln!(out, "{dst}{}{pref}", InRoute(only, prefix))?,
                    group => {
                        writeln!(out, "{dst}{pref}")?;
                        for member in group {
                            writeln!(out, "\tnexthop{} weight 1", InRoute(member, prefix))?;
                        }
                    }
                }
            }
        }
        Ok(())
    })
}

/// Whether a device would be read back as something else.
fn is_no_device(device: &str) -> bool {
    device.is_empty()
}

struct InRoute<'m>(&'m Member<'m>, AnyPrefix);

impl fmt::Display for InRoute<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(member, prefix) = self;
        if let Some(gateway) = member.gateway {
            let family = match is_foreign(gateway, *prefix) {
                true if gateway.is_ipv4() => "inet ",
                true => "inet6 ",
                false => "",
            };
            write!(f, " via {family}{gateway}")?;
        }
        member.device.map_or(Ok(()), |device| write!(f, " dev {device}"))
    }
}

/// The parts of an update: its prefix, and the announced next hop, or `None` for a withdrawal.
pub(super) fn parts(update: &AnyUpdate) -> (AnyPrefix, Option<Option<NextHop>>) {
    match *update {
        AnyUpdate::V4(Update::Announce { prefix, next_hop }) => (AnyPrefix::V4(prefix), Some(next_hop)),
        AnyUpdate::V4(Update::Withdraw { prefix }) => (AnyPrefix::V4(prefix), None),
        AnyUpdate::V6(Update::Announce { prefix, next_hop }) => (AnyPrefix::V6(prefix), Some(next_hop)),
        AnyUpdate::V6(Update::Withdraw { prefix }) => (AnyPrefix::V6(prefix), None),
    }
}

pub(super) fn update(update: &TimedUpdate, hops: &NextHops, out: &mut dyn Write) -> Result<(), WriteError> {
    let (prefix, announced) = parts(&update.update);
    // A line is written whole or not at all.
    let next_hop = match announced {
        Some(Some(hop)) => Some(text_of(hop, prefix, hops, Format::Updates)?),
        _ => None,
    };
    if let Some(time) = update.time {
        write!(out, "{} ", Seconds(time))?;
    }
    match (announced, next_hop) {
        (None, _) => writeln!(out, "W {prefix}")?,
        (Some(_), None) => writeln!(out, "A {prefix}")?,
        (Some(_), Some(next_hop)) => writeln!(out, "A {prefix} {next_hop}")?,
    }
    Ok(())
}

pub(super) fn bgpdump_update(
    update: &TimedUpdate,
    hops: &NextHops,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let time = Seconds(update.time.unwrap_or_default());
    let (prefix, announced) = parts(&update.update);
    let peer = peer_of(prefix);
    match announced {
        None => writeln!(out, "BGP4MP|{time}|W|{peer}|0|{prefix}")?,
        Some(None) => return Err(refuse(Format::Bgpdump, prefix, "")),
        Some(Some(hop)) => {
            let next_hop = text_of(hop, prefix, hops, Format::Bgpdump)?;
            check_column(prefix, next_hop)?;
            writeln!(out, "BGP4MP|{time}|A|{peer}|0|{prefix}||IGP|{next_hop}|0|0||NAG||")?;
        }
    }
    Ok(())
}

/// A time in seconds, with as many digits as it needs.
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.subsec_nanos() {
            0 => write!(f, "{}", self.0.as_secs()),
            nanos => write!(f, "{}.{}", self.0.as_secs(), format!("{nanos:09}").trim_end_matches('0')),
        }
    }
}
