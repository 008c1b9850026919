//! An access list in a proxy: connections of IPv4 and IPv6 are allowed or denied by a firewall's rules, and
//! an administrator bans addresses while they come in.
//!
//! `cargo run --release -p wirespeed --example acl_proxy [RULES_V4 RULES_V6]`
//!
//! The files are whatever a firewall writes (`iptables-save` and `ip6tables-save`, `nft -j list ruleset`), or
//! rules in words with actions of 1 (allow) and 0 (deny). Without them there are rules of a small site. What
//! no rule allows is denied.

use std::io::Write;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirespeed::classify::read::{
    AssumptionError, Assumptions, ReadOptions, RuleFile, RuleReport, Source, read_rules, read_rules_from,
};
use wirespeed::prelude::*;

/// A firewall as `iptables-save` writes it.
const SITE_V4: &str = "\
*filter
:INPUT DROP [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -s 203.0.113.0/24 -j DROP
-A INPUT -p tcp -m multiport --dports 80,443,8000:8080 -j ACCEPT
-A INPUT -s 192.0.2.0/24 -p tcp --dport 22 -j ACCEPT
COMMIT
";
/// A firewall as `ip6tables-save` writes it.
const SITE_V6: &str = "\
*filter
:INPUT DROP [0:0]
-A INPUT -p tcp -m multiport --dports 80,443 -j ACCEPT
-A INPUT -s 2001:db8:a::/48 -p tcp --dport 22 -j ACCEPT
COMMIT
";

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Verdict {
    Allow,
    Deny,
}

impl FromStr for Verdict {
    type Err = String;

    fn from_str(action: &str) -> Result<Self, String> {
        match action.to_ascii_lowercase().as_str() {
            "accept" | "1" => Ok(Self::Allow),
            "drop" | "reject" | "0" => Ok(Self::Deny),
            other => Err(format!("{other} is neither to allow nor to deny")),
        }
    }
}

/// The owner of the rules.
struct Acl {
    v4: Classifier<Ipv4Tuple>,
    v6: Classifier<Ipv6Tuple>,
    verdicts: Labels<Verdict>,
}

/// Looks connections up: one for each thread of the proxy.
#[derive(Clone)]
struct Checker {
    v4: RuleReader<Ipv4Tuple>,
    v6: RuleReader<Ipv6Tuple>,
    verdicts: Labels<Verdict>,
}

type Rules<T> = (RuleFile<T>, RuleReport);

impl Acl {
    fn new(v4: Rules<Ipv4Tuple>, v6: Rules<Ipv6Tuple>) -> Result<Self, wirespeed::Error> {
        let verdicts = Labels::new();
        // Rules that nobody can decide are an error: what is left of an access list need not be what was
        // meant.
        let v4 = Classifier::builder().read(v4, &verdicts).build()?;
        let v6 = Classifier::builder().read(v6, &verdicts).build()?;
        Ok(Self { v4, v6, verdicts })
    }

    fn checker(&self) -> Checker {
        Checker { v4: self.v4.reader(), v6: self.v6.reader(), verdicts: self.verdicts.clone() }
    }

    /// Denies all connections from an address from now on; the rule to take out again.
    fn ban(&mut self, address: IpAddr) -> Result<RuleNumber, Box<dyn std::error::Error>> {
        let deny = self.verdicts.intern(Verdict::Deny)?.0;
        Ok(match address {
            IpAddr::V4(from) => self.v4.insert(banned(from.to_bits().into(), Ipv4Tuple::SRC, deny))?,
            IpAddr::V6(from) => self.v6.insert(banned(from.to_bits(), Ipv6Tuple::SRC, deny))?,
        })
    }

    fn lift(&mut self, address: IpAddr, ban: RuleNumber) -> Result<(), wirespeed::Error> {
        match address {
            IpAddr::V4(_) => self.v4.remove(ban).map(drop),
            IpAddr::V6(_) => self.v6.remove(ban).map(drop),
        }
    }
}

/// A rule against an address: before all others, as those of files have a priority of 0.
fn banned<T: Tuple>(address: u128, field: wirespeed::classify::tuple::Field, deny: u32) -> Rule<T> {
    Rule::new(Pattern::all().with(&field, address, field.all()), u32::MAX, deny)
}

impl Checker {
    fn check(&self, from: SocketAddr, to: SocketAddr) -> Verdict {
        const TCP: u8 = 6;
        let (sport, dport) = (from.port(), to.port());
        // Canonical: on a socket of IPv6 addresses of IPv4 are mapped, and are to meet the rules of IPv4.
        let found = match (from.ip().to_canonical(), to.ip().to_canonical()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => self.v4.find(&Ipv4Tuple::new(from, to, sport, dport, TCP)),
            (IpAddr::V6(from), IpAddr::V6(to)) => self.v6.find(&Ipv6Tuple::new(from, to, sport, dport, TCP)),
            _ => None,
        };
        found.and_then(|found| self.verdicts.get(found.action)).map_or(Verdict::Deny, |verdict| *verdict)
    }
}

/// How rules are read: for connections that are new, as a proxy meets them, and come from outside. Rules that
/// ask for the state or the interface are then in effect or not.
fn options() -> Result<ReadOptions, AssumptionError> {
    let assume = Assumptions::new(["ct=new".parse()?, "in=eth0".parse()?])?;
    Ok(ReadOptions { assume, ..ReadOptions::default() })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let options = options()?;
    let mut acl = match &files[..] {
        [] => site()?,
        [v4, v6] => {
            let of = |path: &String| Source::Path(path.into());
            Acl::new(read_rules(&of(v4), &options)?, read_rules(&of(v6), &options)?)?
        }
        _ => return Err("two files are wanted, of IPv4 and of IPv6".into()),
    };
    let out = &mut std::io::stdout().lock();
    for report in acl.v4.reports().iter().chain(acl.v6.reports()) {
        writeln!(out, "{report}")?;
    }
    writeln!(out, "engines {} and {}\n", acl.v4.engine(), acl.v6.engine())?;
    decisions(&mut acl, out)?;
    under_load(&mut acl, Duration::from_millis(500), out)
}

/// The rules of a small site.
fn site() -> Result<Acl, Box<dyn std::error::Error>> {
    let options = options()?;
    let v4 = read_rules_from(SITE_V4.as_bytes(), "rules.v4", &options)?;
    Ok(Acl::new(v4, read_rules_from(SITE_V6.as_bytes(), "rules.v6", &options)?)?)
}

/// Some connections, and one of them again while its address is banned.
fn decisions(acl: &mut Acl, out: &mut impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let checker = acl.checker();
    let mut show = |from: &str, to: &str, note: &str| -> Result<(), Box<dyn std::error::Error>> {
        let verdict = checker.check(from.parse()?, to.parse()?);
        Ok(writeln!(out, "{from:>28} -> {to:<22} {verdict:?}{note}")?)
    };
    for (from, to) in [
        ("192.0.2.7:40000", "198.51.100.1:443"),
        ("192.0.2.7:40001", "198.51.100.1:22"),
        ("198.51.100.9:40002", "198.51.100.1:22"),
        ("203.0.113.5:40003", "198.51.100.1:443"),
        ("[::ffff:203.0.113.5]:40004", "198.51.100.1:443"),
        ("[2001:db8:a::7]:40005", "[2001:db8::1]:22"),
        ("[2001:db8:b::7]:40006", "[2001:db8::1]:22"),
    ] {
        show(from, to, "")?;
    }
    let address = "192.0.2.7".parse()?;
    let ban = acl.ban(address)?;
    show("192.0.2.7:40007", "198.51.100.1:443", "   (banned)")?;
    acl.lift(address, ban)?;
    show("192.0.2.7:40008", "198.51.100.1:443", "   (no longer)")
}

/// Two threads check connections while bans come and go.
fn under_load(acl: &mut Acl, time: Duration, out: &mut impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let (stop, checks, allowed) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let began = Instant::now();
    let bans = thread::scope(|scope| {
        for thread in 0..2 {
            let (checker, stop, checks, allowed) = (acl.checker(), &stop, &checks, &allowed);
            scope.spawn(move || {
                let to = SocketAddr::from(([198, 51, 100, 1], 443));
                for n in (thread..).step_by(2) {
                    let from = SocketAddr::from((Ipv4Addr::from_bits(0xc000_0200 | n & 0xff), 40_000));
                    let verdict = checker.check(from, to);
                    checks.fetch_add(1, Ordering::Relaxed);
                    allowed.fetch_add((verdict == Verdict::Allow).into(), Ordering::Relaxed);
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        let bans = bans_for(acl, time);
        stop.store(true, Ordering::Relaxed);
        bans
    })?;
    let (seconds, checks) = (began.elapsed().as_secs_f64(), checks.into_inner());
    let allowed = allowed.into_inner();
    writeln!(
        out,
        "\n{checks} checks by 2 threads in {seconds:.1} s, {} of them denied, while {bans} addresses were banned and let in again",
        checks - allowed
    )?;
    Ok(())
}

/// Bans one address after the other for a while; how many that were.
fn bans_for(acl: &mut Acl, time: Duration) -> Result<u32, Box<dyn std::error::Error>> {
    let began = Instant::now();
    let mut bans = 0;
    while began.elapsed() < time {
        let address = IpAddr::V4(Ipv4Addr::from_bits(0xc000_0200 | bans & 0xff));
        let ban = acl.ban(address)?;
        thread::sleep(Duration::from_millis(1));
        acl.lift(address, ban)?;
        bans += 1;
    }
    Ok(bans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_site_is_as_open_as_its_rules_say() {
        let mut acl = site().unwrap();
        let assumed: Vec<_> = acl.v4.doubts().assumed.iter().map(ToString::to_string).collect();
        assert!(acl.v4.doubts().is_empty() && assumed == ["in=eth0"], "{assumed:?}");
        let mut shown = Vec::new();
        decisions(&mut acl, &mut shown).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        let verdicts: Vec<_> = shown.lines().filter_map(|line| line.split_whitespace().nth(3)).collect();
        let (allow, deny) = ("Allow", "Deny");
        assert_eq!(verdicts, [allow, allow, deny, deny, deny, allow, deny, deny, allow], "{shown}");
    }

    #[test]
    fn bans_of_both_families_end_when_they_are_lifted() {
        let mut acl = site().unwrap();
        let checker = acl.checker();
        for (from, to) in [("192.0.2.7:1", "192.0.2.1:80"), ("[2001:db8::7]:1", "[2001:db8::1]:80")] {
            let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
            assert_eq!(checker.check(from, to), Verdict::Allow);
            let ban = acl.ban(from.ip()).unwrap();
            assert_eq!(checker.check(from, to), Verdict::Deny);
            acl.lift(from.ip(), ban).unwrap();
            assert_eq!(checker.check(from, to), Verdict::Allow);
        }
        let mixed = checker.check("192.0.2.7:1".parse().unwrap(), "[2001:db8::1]:80".parse().unwrap());
        assert_eq!(mixed, Verdict::Deny);
    }

    #[test]
    fn checks_go_on_while_bans_come_and_go() {
        let (mut acl, mut shown) = (site().unwrap(), Vec::new());
        let rules = acl.v4.len();
        under_load(&mut acl, Duration::from_millis(20), &mut shown).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.contains("checks by 2 threads") && !shown.starts_with("\n0 checks"), "{shown}");
        assert_eq!(acl.v4.len(), rules);
    }
}
