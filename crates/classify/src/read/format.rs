//! [`RuleFormat`]: the formats of rules, by name.

use std::fmt;
use std::str::FromStr;

/// A format of rules; see [`read`](super).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuleFormat {
    /// A rule as text on each line.
    Plain,
    /// ClassBench filters.
    ClassBench,
    /// `ovs-ofctl dump-flows`.
    Ovs,
    /// `iptables-save`.
    Iptables,
    /// `nft -j list ruleset`.
    Nft,
    /// `aws ec2 describe-security-groups`.
    SecurityGroups,
    /// `kubectl get networkpolicy -o json` or `-o yaml`.
    NetworkPolicy,
}

impl RuleFormat {
    /// All formats.
    pub const ALL: [Self; 7] = [
        Self::Plain,
        Self::ClassBench,
        Self::Ovs,
        Self::Iptables,
        Self::Nft,
        Self::SecurityGroups,
        Self::NetworkPolicy,
    ];

    /// The name that the command line takes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::ClassBench => "classbench",
            Self::Ovs => "ovs",
            Self::Iptables => "iptables",
            Self::Nft => "nft",
            Self::SecurityGroups => "security-groups",
            Self::NetworkPolicy => "network-policy",
        }
    }

    /// Whether rules of this format are in chains and tables, of which one is read.
    pub const fn has_chains(self) -> bool {
        matches!(self, Self::Iptables | Self::Nft | Self::SecurityGroups | Self::NetworkPolicy)
    }
}

impl fmt::Display for RuleFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Text that is not the name of a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no format of rules is called {0:?}: there are {there}", there = RuleFormat::ALL.map(RuleFormat::name).join(", "))]
pub struct UnknownFormat(String);

impl FromStr for RuleFormat {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let found = Self::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}
