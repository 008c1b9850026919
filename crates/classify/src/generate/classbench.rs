//! 5-tuple sets in the style of ClassBench: access lists, firewalls and chains, with the typical shares of
//! prefix lengths, port ranges and protocols. They are not copies of its seeds: for measurements to compare
//! with others, take the real sets.
//!
//! Addresses come from a few networks with many hosts each, so that rules overlap. A more specific rule comes
//! earlier, and the first rule wins.

use std::str::FromStr;

use wirespeed_rng::Rng;
use wirespeed_table::sort_by_number;

use crate::expand::FieldRange;
use crate::pattern::Pattern;
use crate::rule::Rule;
use crate::rules::RuleSet;
use crate::tuple::{Field, Tuple};

/// The kind of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An access list: precise destinations, source ports of any number.
    Acl,
    /// A firewall: many wildcards and ranges.
    Firewall,
    /// A chain of filters: in between.
    Chain,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Acl, Self::Firewall, Self::Chain];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acl => "acl",
            Self::Firewall => "fw",
            Self::Chain => "ipc",
        }
    }

    const fn shares(self) -> Shares {
        match self {
            Self::Acl => Shares {
                addresses: [[5, 5, 25, 25, 40], [1, 4, 10, 25, 60]],
                ports: [[98, 0, 0, 1, 1], [20, 10, 3, 7, 60]],
                proto: [10, 75, 13, 2],
            },
            Self::Firewall => Shares {
                addresses: [[35, 5, 10, 15, 35], [30, 5, 10, 15, 40]],
                ports: [[60, 20, 2, 3, 15], [30, 15, 3, 7, 45]],
                proto: [12, 60, 22, 6],
            },
            Self::Chain => Shares {
                addresses: [[8, 7, 20, 25, 40], [8, 7, 20, 25, 40]],
                ports: [[65, 10, 2, 3, 20], [35, 10, 3, 7, 45]],
                proto: [15, 55, 25, 5],
            },
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| format!("no kind of set is called {text:?}: there are acl, fw and ipc"))
    }
}

/// Shares in percent.
struct Shares {
    /// Addresses of source and destination: any, a short prefix, a network, a subnet, a host.
    addresses: [[u32; 5]; 2],
    /// Ports of source and destination: any, 1024 and up, 1023 and down, a range, one.
    ports: [[u32; 5]; 2],
    /// Any, TCP, UDP, ICMP.
    proto: [u32; 4],
}

/// A set of different rules of a kind, `count` of them, for tuples with addresses, ports and a protocol.
pub fn classbench<T: Tuple>(kind: Kind, count: usize, seed: u64) -> RuleSet<T> {
    let mut rng = Rng::new(seed);
    let shares = kind.shares();
    let field = |name| *T::field_of(name).expect("all tuples have these fields");
    let [src, dst, sport, dport, proto] = ["src", "dst", "sport", "dport", "proto"].map(field);
    let networks: Vec<u128> = (0..8 + count / 100).map(|_| rng.bits128()).collect();
    let mut rules: Vec<Rule<T>> = Vec::with_capacity(count);
    let mut seen = std::collections::HashSet::new();
    while rules.len() < count {
        let mut pattern = Pattern::all();
        for (field, shares) in [src, dst].into_iter().zip(&shares.addresses) {
            let (value, mask) = prefix(&mut rng, &field, shares, &networks);
            pattern = pattern.with(&field, value, mask);
        }
        let number = [0, 6, 17, 1][rng.weighted(&shares.proto)];
        pattern = pattern.with(&proto, number, if number == 0 { 0 } else { proto.all() });
        // Only TCP and UDP have ports.
        let ranges = match number {
            6 | 17 => [sport, dport]
                .into_iter()
                .zip(&shares.ports)
                .map(|(field, shares)| ports(&mut rng, field, shares))
                .collect(),
            _ => Vec::new(),
        };
        let rule = Rule::with_ranges(pattern, ranges, 0, 0).expect("900 patterns at most");
        if seen.insert(rule.to_string()) {
            rules.push(rule);
        }
    }
    let said =
        |rule: &Rule<T>| rule.base().mask().ones() + 8 * u32::try_from(rule.ranges().len()).unwrap_or(0);
    sort_by_number(&mut rules, |rule| !u64::from(said(rule)));
    rules.into_iter().collect()
}

/// A prefix: of a known network, except for any address and short prefixes.
fn prefix(rng: &mut Rng, field: &Field, shares: &[u32; 5], networks: &[u128]) -> (u128, u128) {
    // In thirty-seconds of the address.
    let (from, to) = [(0, 0), (6, 15), (16, 20), (21, 31), (32, 32)][rng.weighted(shares)];
    let len = u16::try_from(from + rng.below(to - from + 1)).expect("at most 32") * (field.width / 32).max(1);
    let mask = field.prefix(len);
    // The upper half is the network's, the lower one anything: of a few hosts each.
    // Some networks have more rules than others.
    let among = 1 + rng.index(networks.len());
    let network = networks[rng.index(among)];
    let host = host_of(rng, network);
    let upper = field.prefix(field.width / 2);
    ((network & upper | host & !upper & field.all()) & mask, mask)
}

/// One of the hosts of a network.
fn host_of(rng: &mut Rng, network: u128) -> u128 {
    let [seed, ..] = bytemuck::cast::<u128, [u64; 2]>(network);
    Rng::stream(seed, rng.below(4_000)).bits128()
}

/// Usual services.
const SERVICES: [u128; 12] = [20, 21, 22, 23, 25, 53, 80, 110, 123, 161, 443, 8080];

fn ports(rng: &mut Rng, field: Field, shares: &[u32; 5]) -> FieldRange {
    let (from, to) = match rng.weighted(shares) {
        0 => (0, 65_535),
        1 => (1_024, 65_535),
        2 => (0, 1_023),
        3 => {
            let (one, other) = (rng.below(65_536), rng.below(1_000));
            (one.into(), u128::from(one + other).min(65_535))
        }
        _ => {
            let port =
                if rng.chance(0.7) { SERVICES[rng.index(SERVICES.len())] } else { rng.below(65_536).into() };
            (port, port)
        }
    };
    FieldRange::new(field, from, to).expect("ports")
}
