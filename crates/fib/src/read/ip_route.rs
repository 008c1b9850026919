//! The output of `ip route` and `ip -6 route`.
//!
//! ```text
//! default via 192.0.2.1 dev eth0 proto dhcp metric 100
//! 10.9.0.0/16 proto bird
//!         nexthop via 192.0.2.1 dev eth0 weight 1        a group: indented lines, or all on one with `-o`
//!         nexthop via 192.0.2.2 dev eth1 weight 1
//! blackhole 10.10.0.0/16
//! 198.51.100.7 dev tun0 scope link                       a bare host
//! ```

use wirespeed_input::Input;

use super::error::{End, Fault, Place, SkipReason};
use super::kernel::{KernelRoute, KernelTable, destination, family_of, is_usual_table, member};
use super::report::Ledger;
use super::table::Table;
use super::text::{TYPES, each_line, utf8, words};
use crate::address::Family;

pub(super) fn read(input: &mut Input<'_>, ledger: &mut Ledger, table: &mut Table) -> Result<(), End> {
    let mut routes = KernelTable::new(table);
    let mut open = None;
    each_line(input, ledger, |line, place, ledger| {
        if line[0].is_ascii_whitespace() {
            return go_on(&mut open, line);
        }
        close(open.take(), &mut routes, ledger)?;
        open = Some(Open::Skipped);
        open = Some(Open::Route(start(utf8(line)?, ledger)?, place));
        Ok(())
    })?;
    close(open, &mut routes, ledger)?;
    routes.finish(ledger);
    Ok(())
}

/// The route that further lines may continue.
enum Open {
    Route(Draft, Place),
    /// A route that is not taken; the lines that continue it are not taken, either.
    Skipped,
}

/// A route while its words are read.
#[derive(Default)]
struct Draft {
    route: KernelRoute,
    gateway: Option<String>,
    device: Option<String>,
    /// Whether the words belong to a member of a group.
    in_group: bool,
    /// Whether the kernel does not use the member because its device is down, and whether there was one.
    is_dead: bool,
    has_dead: bool,
}

/// The words of a route that end those of an encapsulation, which come before them and have names of theirs.
const BEHIND_ENCAP: [&str; 8] = ["via", "dev", "nexthop", "nhid", "proto", "scope", "metric", "table"];

fn start(line: &str, ledger: &mut Ledger) -> Result<Draft, Fault> {
    let mut draft = Draft::default();
    let mut rest = words(line).peekable();
    let kind = rest.next_if(|word| TYPES.contains(word));
    rest.next_if_eq(&"unicast");
    let dst = rest.next().ok_or(SkipReason::TooFewColumns)?;
    draft.route.prefix = destination(dst, ledger)?;
    draft.take(rest)?;
    if let Some(kind) = kind {
        draft.route.members = vec![kind.to_owned()];
        (draft.gateway, draft.device) = (None, None);
    }
    Ok(draft)
}

/// A line that continues the one before.
fn go_on(open: &mut Option<Open>, line: &[u8]) -> Result<(), Fault> {
    let taken = match open {
        None => Err(SkipReason::Continuation.into()),
        Some(Open::Skipped) => Ok(()),
        Some(Open::Route(draft, _)) => {
            utf8(line).map_err(Fault::from).and_then(|line| draft.take(words(line)))
        }
    };
    if taken.is_err() && open.is_some() {
        *open = Some(Open::Skipped);
    }
    taken
}

/// Adds a complete route. An error found here is reported for the line where the route starts.
fn close(open: Option<Open>, routes: &mut KernelTable<'_>, ledger: &mut Ledger) -> Result<(), End> {
    let Some(Open::Route(mut draft, place)) = open else { return Ok(()) };
    let put = draft.end_member().and_then(|()| match draft.route.members.is_empty() {
        true if draft.has_dead => Err(SkipReason::NotInstalled.into()),
        true => Err(SkipReason::NextHopMissing.into()),
        false => routes.put(&draft.route, ledger),
    });
    put.or_else(|fault| ledger.fault(fault, place, ""))
}

impl Draft {
    fn take<'w>(&mut self, mut words: impl Iterator<Item = &'w str>) -> Result<(), Fault> {
        let mut in_encap = false;
        while let Some(word) = words.next() {
            in_encap &= !BEHIND_ENCAP.contains(&word);
            if in_encap {
                continue;
            }
            let mut value = || words.next().ok_or(SkipReason::TooFewColumns);
            match word {
                "via" => {
                    let mut gateway = value()?;
                    // A gateway of the other family has the family's name before it.
                    let mut family = None;
                    if matches!(gateway, "inet" | "inet6") {
                        family = Some(if gateway == "inet6" { Family::V4 } else { Family::V6 });
                        gateway = value()?;
                    }
                    let own = family_of(gateway)?;
                    self.route.family = Some(family.unwrap_or(own));
                    self.gateway = Some(gateway.to_owned());
                }
                "dev" => self.device = Some(value()?.to_owned()),
                "metric" => self.route.metric = value()?.parse().map_err(|_| SkipReason::Number)?,
                "nexthop" => {
                    self.end_member()?;
                    self.in_group = true;
                }
                "table" if !is_usual_table(value()?) => return Err(SkipReason::OtherTable.into()),
                "tos" | "dsfield" | "from" => return Err(SkipReason::OtherTable.into()),
                "encap" => in_encap = true,
                "dead" => (self.is_dead, self.has_dead) = (true, true),
                // Only IPv6 routes have a preference.
                "pref" => self.route.family = self.route.family.or(Some(Family::V6)),
                _ => {}
            }
        }
        Ok(())
    }

    /// The words of one next hop are complete.
    fn end_member(&mut self) -> Result<(), Fault> {
        let is_dead = std::mem::take(&mut self.is_dead);
        match member(self.gateway.take().as_deref(), self.device.take().as_deref()) {
            Some(_) if is_dead => {}
            Some(member) => self.route.members.push(member),
            None if self.in_group => return Err(SkipReason::NextHopMissing.into()),
            None => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::prefix::PrefixError;
    use crate::read::tests::{bad_line, lenient, strict, text_of};
    use crate::read::{Format, SkipReason};

    #[test]
    fn reads_every_shape() {
        let text = "\
default via 192.0.2.1 dev eth0 proto dhcp metric 100
default via 192.0.2.9 dev eth1 proto dhcp metric 50
10.9.0.0/16 proto bird
\tnexthop via 192.0.2.1 dev eth0 weight 1
\tnexthop via 192.0.2.2 dev eth1 weight 1
10.8.0.0/16 proto bird \\\tnexthop via 192.0.2.1 dev eth0 weight 1\\\tnexthop dev tun0 weight 1
blackhole 10.10.0.0/16
unreachable 10.11.0.0/16 metric 4278198272
local 10.0.0.5 dev eth0 table local proto kernel scope host src 10.0.0.5
198.51.100.7 dev tun0 scope link
192.0.2.0/24 dev eth0 proto kernel scope link src 192.0.2.77
10.12.0.0/16 via inet6 fe80::1 dev eth0
10.13.0.0/16 via 192.0.2.1 dev eth0 table 100
10.14.0.0/16 tos 0x10 via 192.0.2.1 dev eth0
";
        let (fib, report) = strict(Format::IpRoute, text);
        let expected = "\
0.0.0.0/0 192.0.2.9
10.0.0.5/32 local
10.8.0.0/16 192.0.2.1,tun0
10.9.0.0/16 192.0.2.1,192.0.2.2
10.10.0.0/16 blackhole
10.11.0.0/16 unreachable
10.12.0.0/16 fe80::1%eth0
192.0.2.0/24 eth0
198.51.100.7/32 tun0
";
        assert_eq!(text_of(&fib), expected);
        assert_eq!((report.repeated, report.skipped_for(SkipReason::OtherTable)), (1, 2));
    }

    #[test]
    fn tunnels_and_dead_routes() {
        let text = "\
default via 192.0.2.1 dev d0
10.1.0.0/16 via 198.51.100.2 dev v0 dead linkdown
10.3.0.0/16  encap ip id 5 src 192.0.2.2 dst 203.0.113.9 ttl 0 tos 0 via 192.0.3.1 dev d1
10.4.0.0/16  encap mpls  100/200 via 192.0.3.2 dev d1 linkdown
10.5.0.0/16 proto bird
\tnexthop via 192.0.2.1 dev v0 weight 1 dead linkdown
\tnexthop  encap ip id 7 src 0.0.0.0 dst 203.0.113.8 ttl 0 tos 0 via 192.0.2.2 dev d1 weight 1
10.6.0.0/16
\tnexthop via 192.0.2.1 dev v0 weight 1 dead linkdown
10.7.0.0/16 tos 0x10 via 192.0.2.1 dev d0
";
        let (fib, report) = strict(Format::IpRoute, text);
        let expected = "\
0.0.0.0/0 192.0.2.1
10.3.0.0/16 192.0.3.1
10.4.0.0/16 192.0.3.2
10.5.0.0/16 192.0.2.2
";
        assert_eq!(text_of(&fib), expected);
        let skipped = [SkipReason::NotInstalled, SkipReason::OtherTable].map(|why| report.skipped_for(why));
        assert_eq!(skipped, [2, 1]);
    }

    #[test]
    fn a_default_takes_the_family_of_its_gateway_or_of_the_routes_around_it() {
        for (text, expected) in [
            ("default via fe80::1 dev eth0 metric 1024 pref medium\n", "::/0 fe80::1%eth0\n"),
            ("default dev tun0 metric 1024 pref medium\n", "::/0 tun0\n"),
            ("default dev tun0\n", "0.0.0.0/0 tun0\n"),
            ("default dev tun0\n2001:db8::/32 dev tun1\n", "2001:db8::/32 tun1\n::/0 tun0\n"),
            ("2001:db8::/32 dev tun1\ndefault dev tun0\n", "2001:db8::/32 tun1\n::/0 tun0\n"),
            (
                "default dev tun0 metric 9\ndefault dev tun1\n10.0.0.0/8 dev tun2\n",
                "0.0.0.0/0 tun1\n10.0.0.0/8 tun2\n",
            ),
        ] {
            let (fib, _) = strict(Format::IpRoute, text);
            let mut lines: Vec<_> = text_of(&fib).lines().map(|l| format!("{l}\n")).collect();
            lines.sort();
            assert_eq!(lines.concat(), expected);
        }
    }

    #[test]
    fn bad_lines() {
        for (line, reason) in [
            ("10.0.0.1/8 dev eth0", SkipReason::Prefix(PrefixError::HostBits)),
            ("noise dev eth0", SkipReason::Prefix(PrefixError::Address)),
            ("10.0.0.0/8 proto bird", SkipReason::NextHopMissing),
            ("10.0.0.0/8 via nowhere", SkipReason::NextHop),
            ("10.0.0.0/8 via", SkipReason::TooFewColumns),
            ("blackhole", SkipReason::TooFewColumns),
            ("10.0.0.0/8 dev eth0 metric x", SkipReason::Number),
            ("10.0.0.0/8 dev eth#0", SkipReason::NextHop),
        ] {
            let text = format!("1.0.0.0/8 dev eth0\n{line}\n2.0.0.0/8 dev eth0\n");
            bad_line(Format::IpRoute, &text, 2, reason);
            assert_eq!(lenient(Format::IpRoute, &text).0.v4.len(), 2);
        }
        bad_line(Format::IpRoute, "\tnexthop via 192.0.2.1\n", 1, SkipReason::Continuation);
        bad_line(Format::IpRoute, "10.0.0.0/8\n\tnexthop weight 1\n", 1, SkipReason::NextHopMissing);
    }

    #[test]
    fn a_bad_route_takes_its_continuation_lines_along() {
        let text = "10.0.0.1/8\n\tnexthop via 192.0.2.1\n2.0.0.0/8 dev eth0\n";
        let (fib, report) = lenient(Format::IpRoute, text);
        assert_eq!((fib.v4.len(), report.faults()), (1, 1));
    }
}
