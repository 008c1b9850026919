//! [`RuleFormat`]: the formats of rules, by name, and how a reader recognises them.

use std::fmt;
use std::str::FromStr;

use wirespeed_input::Input;

use super::report::ReadError;

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
    /// `kubectl get networkpolicy -o json`.
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

/// The most bytes in which a format is recognised.
const LOOK_AHEAD: usize = 16 << 10;

/// Recognises the format from the first line that is neither blank nor a comment. A file without such a line
/// is plain.
pub(super) fn recognise(input: &mut Input<'_>) -> Result<RuleFormat, ReadError> {
    let name = input.name().to_owned();
    let (start, _) = input.look_ahead(LOOK_AHEAD);
    let start = String::from_utf8_lossy(start).into_owned();
    let mut lines = start.trim_start_matches('\u{feff}').lines().map(str::trim);
    let Some(line) = lines.find(|line| !line.is_empty() && !line.starts_with('#')) else {
        return Ok(RuleFormat::Plain);
    };
    let is_flow = |line: &str| {
        line.contains(',')
            || line.contains("actions=")
            || line.contains("FLOW reply")
            || line.contains("OFPST_FLOW")
    };
    Ok(match line.as_bytes()[0] {
        b'@' => RuleFormat::ClassBench,
        b'*' | b'-' | b':' => RuleFormat::Iptables,
        b'{' => of_json(&start),
        _ if is_flow(line) => RuleFormat::Ovs,
        _ if line.contains('=') => RuleFormat::Plain,
        _ => {
            let start = line.chars().take(40).collect();
            return Err(ReadError::UnknownFormat { name, start });
        }
    })
}

/// The format of JSON.
fn of_json(start: &str) -> RuleFormat {
    match start.trim_start_matches('\u{feff}').split('"').nth(1) {
        Some("SecurityGroups") => RuleFormat::SecurityGroups,
        Some("apiVersion" | "items" | "kind" | "metadata" | "spec") => RuleFormat::NetworkPolicy,
        _ => RuleFormat::Nft,
    }
}
