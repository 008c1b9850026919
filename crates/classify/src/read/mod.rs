//! Reading rule sets and traces from files.
//!
//! ```text
//! Source ─► open: decompress ─► recognise the format ─► a line at a time ─► RuleFile + RuleReport
//!                                                                ├────────► tuples (a trace)
//!                                                                └────────► updates
//! ```
//!
//! | format | content | order of rules |
//! |---|---|---|
//! | `plain` | a rule as text on each line, as [`Rule`] writes it, with `number=N` where numbers are not consecutive | priority |
//! | `classbench` | filters of ClassBench | the first wins |
//! | `ovs` | `ovs-ofctl dump-flows`, and flows without statistics | priority, 32768 where it isn't given |
//! | `iptables` | `iptables-save` and `ip6tables-save`, one chain with all that it jumps to | the first wins, the chain's policy last |
//! | `nft` | `nft -j list ruleset`, one chain | the first wins, the chain's policy last |
//! | `security-groups` | `aws ec2 describe-security-groups`, the groups of an interface | none: all rules allow |
//! | `network-policy` | `kubectl get networkpolicy -o json` or `-o yaml`, the policies of a pod | none: all rules allow |
//!
//! A line that is not a rule is an error with its line number. [`ReadOptions::lenient`] leaves it out
//! instead, and reports its line and the reason. A rule of a firewall may also depend on facts outside a
//! tuple: the state of a connection, an interface, a rate. The user can state such facts as [`Assumptions`].
//! A rule that still depends on unknown facts is [left out](RuleReport::left_out), and the [`Doubts`] of the
//! file find the answers that it could change. A port may be given by the name of a service that IANA has
//! registered, such as `ssh`. A rule with another name is left out.
//!
//! ```
//! use wirespeed_classify::Ipv4Tuple;
//! use wirespeed_classify::read::{Assumptions, ReadOptions, read_rules_from};
//!
//! let saved = "*filter\n:INPUT DROP [0:0]\n-A INPUT -i lo -j ACCEPT\n-A INPUT -p tcp --dport 22 -j ACCEPT\nCOMMIT\n";
//! let (file, report) = read_rules_from::<Ipv4Tuple>(saved.as_bytes(), "saved", &ReadOptions::default())?;
//! assert_eq!(report.left_out[0].to_string(), "line 3: an interface (-i): -A INPUT -i lo -j ACCEPT");
//! // Rule 1 accepts SSH, and so would the rule that was left out; rule 2 is the policy.
//! assert_eq!((file.rules.len(), file.action(1), file.action(2)), (2, Some("ACCEPT"), Some("DROP")));
//! assert_eq!(file.doubts(&"tcp dport=22".parse()?, 1).count(), 0);
//! assert_eq!(file.doubts(&"tcp dport=23".parse()?, 2).count(), 1);
//!
//! let options = ReadOptions { assume: Assumptions::new(["in=eth0".parse()?])?, ..ReadOptions::default() };
//! let (file, report) = read_rules_from::<Ipv4Tuple>(saved.as_bytes(), "saved", &options)?;
//! assert!(file.doubts.is_empty() && report.left_out.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod allow;
mod assume;
mod chains;
mod classbench;
mod format;
mod iptables;
mod lines;
mod list;
mod nft;
mod ovs;
mod plain;
mod recognise;
mod report;
mod services;
mod trace;
mod uncertain;
mod updates;
mod yaml;

use std::io::Read;

pub use wirespeed_input::{Input, Line, OpenError, Source, open};
use wirespeed_table::one_copy;

pub use assume::{Assumption, AssumptionError, AssumptionKey, Assumptions};
pub use format::{RuleFormat, UnknownFormat};
pub use lines::{Lines, LinesError, SourceLine};
pub use ovs::vlan;
pub use report::{LeftOut, Place, ReadError, RuleReport};
pub use trace::{read_trace, read_trace_from, tuple_of_line};
pub use uncertain::{Doubts, DoubtsError, Effect, Uncertain};
pub use updates::{read_updates, read_updates_from};

use crate::pattern::Pattern;
use crate::rule::Rule;
use crate::rules::RuleSet;
use crate::tuple::{Fields, Tuple};
use report::Reading;

/// Options for reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format; recognised by content where not given.
    pub format: Option<RuleFormat>,
    /// Whether to leave bad lines out, rather than refuse the file.
    pub lenient: bool,
    /// The chain to read, of `iptables` (the default is `INPUT`) and `nft` (the default is the only one with
    /// a filter hook); the groups of `security-groups`, with commas between, and the policy of
    /// `network-policy` (the default is the only one).
    pub chain: Option<String>,
    /// The table to read, of `iptables` (the default is `filter`) and `nft` (the default is the only one with
    /// such a chain); `ingress` (the default) or `egress` of `security-groups` and `network-policy`.
    pub table_name: Option<String>,
    /// The table to read of `ovs`.
    pub table: u8,
    /// Facts about the packets in question, beside their header fields.
    pub assume: Assumptions,
    /// The sets that rules of `iptables` name, as `ipset save` writes them. A match of a set is left out
    /// where it isn't there.
    pub sets: Option<String>,
    /// The most rules that a chain may become; [`MOST_RULES`](Self::MOST_RULES) where not given.
    pub most_rules: Option<u64>,
    /// The most patterns that the rules of a chain may make; [`MOST_PATTERNS`](Self::MOST_PATTERNS) where not
    /// given.
    pub most_patterns: Option<u64>,
}

impl ReadOptions {
    /// The most rules that a chain may become, where nothing else is asked for.
    pub const MOST_RULES: u64 = 1_000_000;
    /// The most patterns that the rules of a chain may make, where nothing else is asked for.
    pub const MOST_PATTERNS: u64 = 4_000_000;
}

/// Rules, and what their actions are called.
#[derive(Clone, Debug)]
pub struct RuleFile<T: Tuple> {
    /// The rules.
    pub rules: RuleSet<T>,
    /// The actions by number, from 0, where the format has names for them.
    pub actions: Vec<String>,
    /// Doubts about answers of the rules: rules that depend on things that no tuple holds and nothing was
    /// assumed of.
    pub doubts: Doubts<T>,
    /// The lines of the file that the rules come from, if a rule isn't simply a line.
    pub lines: Lines,
}

impl<T: Tuple> RuleFile<T> {
    /// The name of the action of a rule that a lookup returned; `None` for 0.
    pub fn action(&self, result: u32) -> Option<&str> {
        let action = self.rules.action(result)?;
        self.actions.get(usize::try_from(action).ok()?).map(String::as_str)
    }

    /// The doubts about an answer: the number of a rule, 0 of none, as a lookup of the tuple gave it.
    pub fn doubts(&self, tuple: &T, answer: u32) -> impl Iterator<Item = &Uncertain<T>> {
        self.doubts.of_answer(&self.rules, tuple, answer)
    }

    /// Doubts every answer, as lines could not be read that may be anything.
    fn doubt_all(&mut self, lines: &[LeftOut]) {
        let rule = Rule::new(Pattern::all(), u32::MAX, 0);
        let any = |why: &LeftOut| Uncertain {
            rule: rule.clone(),
            effect: Effect::Any,
            before: 1,
            skips: 0,
            why: why.clone(),
        };
        self.doubts.uncertain.extend(lines.iter().map(any));
    }

    /// The number of an action.
    fn intern(&mut self, action: &str) -> u32 {
        let at = self.actions.iter().position(|known| known == action).unwrap_or_else(|| {
            self.actions.push(action.to_owned());
            self.actions.len() - 1
        });
        u32::try_from(at).expect("fewer actions than rules")
    }

    fn add(&mut self, rule: Rule<T>) -> Result<(), String> {
        self.rules.insert(rule).map(|_| ()).map_err(|error| error.to_string())
    }
}

impl<T: Tuple> Default for RuleFile<T> {
    fn default() -> Self {
        Self { rules: RuleSet::new(), actions: Vec::new(), doubts: Doubts::none(), lines: Lines::default() }
    }
}

/// Reads a set.
pub fn read_rules<T: Tuple>(
    source: &Source,
    options: &ReadOptions,
) -> Result<(RuleFile<T>, RuleReport), ReadError> {
    read_rules_of(open(source)?, options)
}

/// Reads a set from a stream of bytes; `name` is for messages.
pub fn read_rules_from<T: Tuple>(
    reader: impl Read + Send,
    name: &str,
    options: &ReadOptions,
) -> Result<(RuleFile<T>, RuleReport), ReadError> {
    read_rules_of(Input::new(Box::new(reader), name.to_owned())?, options)
}

/// Reads a set from an open file or stream, whose first bytes may have been looked at.
#[inline(never)] // one copy for all crates
pub fn read_rules_of<T: Tuple>(
    mut input: Input<'_>,
    options: &ReadOptions,
) -> Result<(RuleFile<T>, RuleReport), ReadError> {
    let format = match options.format {
        Some(format) => format,
        None => recognise::recognise(&mut input)?,
    };
    let mut reading = Reading::new(&input, format, options.lenient);
    let (mut file, fields) = (RuleFile::default(), Fields::of::<T>());
    match format {
        RuleFormat::Plain => plain::read(&mut input, &mut reading, &mut file)?,
        RuleFormat::ClassBench => classbench::read(&mut input, &mut reading, &mut file)?,
        RuleFormat::Ovs => ovs::read(&mut input, &mut reading, &mut file, options)?,
        RuleFormat::Iptables => {
            iptables::read(&mut input, &mut reading, (&mut file, fields), options)?;
        }
        RuleFormat::Nft => nft::read(&mut input, &mut reading, (&mut file, fields), options)?,
        RuleFormat::SecurityGroups => {
            allow::security_groups::read(&mut input, &mut reading, (&mut file, fields), options)?;
        }
        RuleFormat::NetworkPolicy => {
            allow::network_policy::read(&mut input, &mut reading, (&mut file, fields), options)?;
        }
    }
    if matches!(format, RuleFormat::Plain | RuleFormat::ClassBench) && reading.report.records == 0 {
        return Err(ReadError::Nothing { name: reading.report.name });
    }
    if format == RuleFormat::Plain {
        file.doubt_all(&reading.report.left_out);
    }
    reading.report.rules = file.rules.len();
    reading.report.entries = file.rules.entries_len();
    Ok((file, reading.report))
}

one_copy! {
    T: Tuple = crate::Ipv4Tuple, crate::Ipv6Tuple, crate::OpenFlowTuple, crate::OpenFlow13Tuple;
    read_rules_of::<T>, read_trace::<T>, read_updates::<T>, tuple_of_line::<T>,
    Doubts::<T>::append, Doubts::<T>::from_text, Doubts::<T>::to_text,
}
