//! How a format of rules is recognised by its text.

use std::net::IpAddr;

use wirespeed_input::Input;

use super::format::RuleFormat;
use super::report::ReadError;
use super::yaml;
use crate::rule::Rule;
use crate::tuple::{Ipv4Tuple, Ipv6Tuple, OpenFlowTuple};

/// The most bytes in which a format is recognised.
pub(super) const LOOK_AHEAD: usize = 16 << 10;

/// The most lines that are looked at.
const LINES: usize = 64;

impl RuleFormat {
    /// Recognises the format of a file that may hold something else than rules, by its first bytes. `None` if
    /// no line there is surely one of rules: a reader of rules takes more for rules, so that its errors name
    /// the lines.
    ///
    /// ```
    /// use wirespeed_classify::read::RuleFormat;
    ///
    /// assert_eq!(RuleFormat::recognise(b"*filter\n:INPUT DROP [0:0]\n"), Some(RuleFormat::Iptables));
    /// assert_eq!(RuleFormat::recognise(b"dport=443 proto=tcp action=1\n"), Some(RuleFormat::Plain));
    /// assert_eq!(RuleFormat::recognise(b"*.example.com\n"), None);
    /// assert_eq!(RuleFormat::recognise(b"10.0.0.0/8 192.0.2.1\n"), None);
    /// ```
    pub fn recognise(start: &[u8]) -> Option<Self> {
        let start = String::from_utf8_lossy(start);
        let format = of_start(&start)?.ok()?;
        let mut lines = significant(&start);
        let is_sure = match format {
            Self::Plain => lines.take(LINES).any(is_rule),
            Self::ClassBench => lines.take(LINES).any(is_filter),
            Self::Ovs => lines.take(LINES).any(|line| is_flow(line) || has_field_of_flows(line)),
            Self::Iptables => lines.any(|line| line.starts_with("-A ") || is_table(line)),
            Self::Nft => start.trim_start_matches('\u{feff}').split('"').nth(1) == Some("nftables"),
            Self::SecurityGroups => true,
            Self::NetworkPolicy => {
                ["\"NetworkPolicy", "kind: NetworkPolicy"].iter().any(|kind| start.contains(kind))
            }
        };
        is_sure.then_some(format)
    }
}

/// Recognises the format from the first line that is neither blank nor a comment. A file without such a line
/// is plain.
pub(super) fn recognise(input: &mut Input<'_>) -> Result<RuleFormat, ReadError> {
    let name = input.name().to_owned();
    let (start, _) = input.look_ahead(LOOK_AHEAD);
    let start = String::from_utf8_lossy(start).into_owned();
    match of_start(&start) {
        None => Ok(RuleFormat::Plain),
        Some(Ok(format)) => Ok(format),
        Some(Err(line)) => Err(ReadError::UnknownFormat { name, start: line.chars().take(40).collect() }),
    }
}

/// The lines that are neither blank nor comments.
fn significant(start: &str) -> impl Iterator<Item = &str> {
    let lines = start.trim_start_matches('\u{feff}').lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The format by the first significant line, or that line if it fits none. `None` without such a line.
fn of_start(start: &str) -> Option<Result<RuleFormat, &str>> {
    let line = significant(start).next()?;
    let may_be_flow = line.contains(',') || is_flow(line);
    Some(Ok(match line.as_bytes()[0] {
        b'@' => RuleFormat::ClassBench,
        _ if yaml::is_start(line) => RuleFormat::NetworkPolicy,
        b'*' | b'-' | b':' => RuleFormat::Iptables,
        b'{' => of_json(start),
        _ if may_be_flow => RuleFormat::Ovs,
        _ if line.contains('=') => RuleFormat::Plain,
        _ => return Some(Err(line)),
    }))
}

/// Whether a line is surely of the flows of a switch.
fn is_flow(line: &str) -> bool {
    line.contains("actions=") || line.contains("FLOW reply") || line.contains("OFPST_FLOW")
}

/// Whether a line has a field that only flows have.
fn has_field_of_flows(line: &str) -> bool {
    const FIELDS: [&str; 4] = ["nw_", "tp_", "dl_", "in_port="];
    line.split([' ', '\t', ','])
        .any(|word| word.contains('=') && FIELDS.iter().any(|field| word.starts_with(field)))
}

/// Whether a line is a rule as text, of any tuple.
fn is_rule(line: &str) -> bool {
    line.contains('=')
        && (line.parse::<Rule<Ipv4Tuple>>().is_ok()
            || line.parse::<Rule<Ipv6Tuple>>().is_ok()
            || line.parse::<Rule<OpenFlowTuple>>().is_ok())
}

/// Whether a line begins like a filter of ClassBench: `@` and a prefix.
fn is_filter(line: &str) -> bool {
    let prefix = line.strip_prefix('@').and_then(|line| line.split_whitespace().next());
    let address = prefix.map(|prefix| prefix.split_once('/').map_or(prefix, |(address, _)| address));
    address.is_some_and(|address| address.parse::<IpAddr>().is_ok())
}

/// Whether a line begins a table of `iptables-save`.
fn is_table(line: &str) -> bool {
    ["*filter", "*nat", "*mangle", "*raw", "*security"].contains(&line)
}

/// The format of JSON.
fn of_json(start: &str) -> RuleFormat {
    match start.trim_start_matches('\u{feff}').split('"').nth(1) {
        Some("SecurityGroups") => RuleFormat::SecurityGroups,
        Some("apiVersion" | "items" | "kind" | "metadata" | "spec") => RuleFormat::NetworkPolicy,
        _ => RuleFormat::Nft,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_surely_rules() {
        let of = |start: &str| RuleFormat::recognise(start.as_bytes());
        for (start, format) in [
            ("# mine\ndport=443 proto=tcp action=1\n", RuleFormat::Plain),
            ("dport=x\nsrc=10.0.0.0/8 action=2\n", RuleFormat::Plain),
            ("@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t80 : 80\t0x06/0xFF\n", RuleFormat::ClassBench),
            ("cookie=0x0, priority=0 actions=drop\n", RuleFormat::Ovs),
            ("nw_dst=79.6.251.183/32, tp_src=67, tp_dst=2048\n", RuleFormat::Ovs),
            ("*filter\n:INPUT DROP [0:0]\n", RuleFormat::Iptables),
            ("-A INPUT -j ACCEPT\n", RuleFormat::Iptables),
            ("{\"nftables\": [", RuleFormat::Nft),
            ("{\"SecurityGroups\": [", RuleFormat::SecurityGroups),
            ("{\"apiVersion\": \"v1\", \"items\": [{\"kind\": \"NetworkPolicy\"", RuleFormat::NetworkPolicy),
            ("---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n", RuleFormat::NetworkPolicy),
        ] {
            assert_eq!(of(start), Some(format), "{start}");
        }
        for start in [
            "",
            "# none\n",
            "*.example.com\n",
            "@@||a.example^\n",
            "10.0.0.0/8 192.0.2.1\n",
            "prefix,asn\n10.0.0.0/8,1\n",
            "address=/ads.example/0.0.0.0\n",
            "http://a.example/b?c=d 7\n",
            "{\"10.0.0.0/8\": [",
            "domain,list\n",
            "---\napiVersion: v1\nkind: Service\n",
        ] {
            assert_eq!(of(start), None, "{start}");
        }
    }
}
