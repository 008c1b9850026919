//! Answers of rules for flows that others read: the action, the number of the rule, and the reasons why the
//! answer is uncertain.
//!
//! A flow may lack ports, or the type and code of ICMP. It is looked up with zeros. Its answer is uncertain
//! if a rule that tests what is lacking could match the flow, would not come after the answer's rule, and
//! could change the action.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Result, bail};
use wirespeed::classify::TupleName;
use wirespeed::classify::image_file::RuleImageFile;
use wirespeed::engine::RuleTuple;
use wirespeed::{Classifier, RuleReader};
use wirespeed_classify::read::{Doubts, Effect, RuleFile};
use wirespeed_classify::tuple::{Field, FieldMatch};
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, Rank, Rule, RuleNumber, RuleSet};

use super::actions::{Actions, Known, of_image};
use super::doubt::{self, Because};
use super::set_arguments::SetArguments;
use super::source::ReadArguments;
use crate::number::grouped;
use crate::routes::is_image;

impl SetArguments {
    /// Reads rules or opens an image of them, and compiles the rules.
    pub fn open(&self, from: &OsStr, lenient: bool) -> Result<Box<dyn Judge>> {
        let Self { assume, chain, rule_table: table, flow_table, tuple, ipset } = self.clone();
        let table_option = "rule-table";
        let by_content = ReadArguments::by_content(lenient);
        let read =
            ReadArguments { assume, chain, table, table_option, flow_table, tuple, ipset, ..by_content };
        if is_image(from) {
            read.refuse_beside("an image, which holds what was assumed")?;
            let path = Path::new(from);
            let image = RuleImageFile::open(path)?;
            return match image.tuple() {
                TupleName::Ipv4 => of_file::<Ipv4Tuple>(path, &image),
                TupleName::Ipv6 => of_file::<Ipv6Tuple>(path, &image),
                other => bail!("{}: {}", path.display(), not_of_flows(other)),
            };
        }
        let raw = read.open(from)?;
        match raw.tuple() {
            // Records have no frames: a flow is read by the fields that they have.
            TupleName::OpenFlow if self.tuple.is_none() => compiled::<Ipv4Tuple>(raw.load(&read)?),
            TupleName::Ipv4 => compiled::<Ipv4Tuple>(raw.load(&read)?),
            TupleName::Ipv6 => compiled::<Ipv6Tuple>(raw.load(&read)?),
            other => bail!("{}: {}", from.display(), not_of_flows(other)),
        }
    }
}

fn not_of_flows(tuple: TupleName) -> String {
    format!("rules with the fields of {tuple}, which records don't have: rules of 5-tuples are needed")
}

fn of_file<T: FlowTuple>(path: &Path, image: &RuleImageFile) -> Result<Box<dyn Judge>> {
    let Known { rules, actions, doubts, .. } = of_image::<T>(image)?;
    let Some(rules) = rules else { bail!("{}: the image has no rules, only their table", path.display()) };
    doubt::say(&doubts);
    Ok(Box::new(Rules::new(RuleReader::open(path)?, rules, actions, doubts)))
}

fn compiled<T: FlowTuple>(file: RuleFile<T>) -> Result<Box<dyn Judge>> {
    let RuleFile { rules, actions, doubts, .. } = file;
    let reader = Classifier::builder().rule_set(rules.clone()).build()?.reader();
    Ok(Box::new(Rules::new(reader, rules, Actions(actions), doubts)))
}

/// The number of the protocol ICMP.
pub const ICMP: u8 = 1;
/// The number of the protocol ICMPv6.
pub const ICMPV6: u8 = 58;

/// The fields of a flow. The addresses are of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The source.
    pub src: IpAddr,
    /// The destination.
    pub dst: IpAddr,
    /// The number of the protocol.
    pub proto: u8,
    /// The ports; of ICMP, the type and the code. `None` if the record lacks it.
    pub ports: [Option<u16>; 2],
}

/// The answer for a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// The number of the rule. 0 if no rule matches, or if the rules are of the other family of addresses.
    pub number: u32,
    /// The reasons why the answer is uncertain.
    pub because: Option<String>,
}

/// Rules of either family of addresses.
pub trait Judge: Send + Sync {
    /// Looks flows up in one state of the rules, and writes an answer for each to the same index.
    fn judge(&self, flows: &[Flow], answers: &mut Vec<Judged>);

    /// The name of the action of each rule by its number, from 1. Empty for a number without a rule.
    fn actions(&self) -> Vec<String>;

    /// Whether the rules are of IPv4, and of IPv6.
    fn families(&self) -> [bool; 2];
}

/// A 5-tuple.
trait FlowTuple: RuleTuple {
    /// The fields of the ports.
    const PORTS: [Field; 2];
    /// Whether the addresses are of IPv4, and of IPv6.
    const FAMILIES: [bool; 2];

    /// The tuple of a flow. `None` if the flow is of the other family of addresses.
    fn of(flow: &Flow) -> Option<Self>;
}

impl FlowTuple for Ipv4Tuple {
    const PORTS: [Field; 2] = [Self::SPORT, Self::DPORT];
    const FAMILIES: [bool; 2] = [true, false];

    fn of(flow: &Flow) -> Option<Self> {
        let (IpAddr::V4(src), IpAddr::V4(dst)) = (flow.src, flow.dst) else { return None };
        let [sport, dport] = flow.ports.map(Option::unwrap_or_default);
        Some(Self::new(src, dst, sport, dport, flow.proto))
    }
}

impl FlowTuple for Ipv6Tuple {
    const PORTS: [Field; 2] = [Self::SPORT, Self::DPORT];
    const FAMILIES: [bool; 2] = [false, true];

    fn of(flow: &Flow) -> Option<Self> {
        let (IpAddr::V6(src), IpAddr::V6(dst)) = (flow.src, flow.dst) else { return None };
        let [sport, dport] = flow.ports.map(Option::unwrap_or_default);
        Some(Self::new(src, dst, sport, dport, flow.proto))
    }
}

/// The compiled rules, and what their answers need.
struct Rules<T: RuleTuple> {
    reader: RuleReader<T>,
    rules: RuleSet<T>,
    actions: Actions,
    doubts: Doubts<T>,
    /// The rules that test ports, from the first on.
    on_ports: Vec<OnPorts<T>>,
}

/// A rule that tests ports.
struct OnPorts<T> {
    rule: Rule<T>,
    rank: Rank,
    /// The ports that it tests.
    tests: [bool; 2],
    /// Its action. `None` of a rule that was left out and could do anything.
    action: Option<u32>,
    /// `rule 5`, or `line 7` of a rule that was left out.
    name: String,
}

impl<T: FlowTuple> OnPorts<T> {
    fn of(rule: &Rule<T>, before: u32, action: Option<u32>, name: String) -> Option<Self> {
        let rank = Rank::new(rule.priority(), RuleNumber::new(before)?);
        let tests = T::PORTS.map(|field| wanted(rule, &field) != (0, field.all()));
        (tests != [false; 2]).then(|| Self { rule: rule.clone(), rank, tests, action, name })
    }

    /// Whether it matches the tuple with some number in each port that the flow lacks.
    fn could_match(&self, tuple: &T, lacks: [bool; 2]) -> bool {
        let mut tuple = *tuple;
        let mut is_needed = false;
        for (at, field) in T::PORTS.iter().enumerate().filter(|&(at, _)| lacks[at]) {
            tuple.set_field(field, wanted(&self.rule, field).0);
            is_needed |= self.tests[at];
        }
        is_needed && self.rule.matches(&tuple)
    }
}

/// The least and the largest number that a rule takes in a field. Under a mask not all between match.
fn wanted<T: RuleTuple>(rule: &Rule<T>, field: &Field) -> (u128, u128) {
    match rule.field(field) {
        FieldMatch::Masked { value, mask } => (value, value | field.all() & !mask),
        FieldMatch::Range(from, to) => (from, to),
    }
}

impl<T: FlowTuple> Rules<T> {
    fn new(reader: RuleReader<T>, rules: RuleSet<T>, actions: Actions, doubts: Doubts<T>) -> Self {
        let of_set = rules.iter().filter_map(|(number, rule)| {
            OnPorts::of(rule, number.get(), Some(rule.action()), format!("rule {number}"))
        });
        let left_out = doubts.uncertain.iter().filter(|one| one.effect != Effect::Skip);
        let left_out = left_out.filter_map(|one| {
            let name = format!("{} ({})", one.why.place, one.why.why);
            OnPorts::of(&one.rule, one.before, one.action(), name)
        });
        let mut on_ports: Vec<_> = left_out.chain(of_set).collect();
        on_ports.sort_by_key(|one| std::cmp::Reverse(one.rank));
        Self { reader, rules, actions, doubts, on_ports }
    }

    /// The reasons why an answer is uncertain. O(rules left out), and for a flow that lacks ports, O(rules
    /// that test ports).
    fn because(&self, flow: &Flow, tuple: &T, found: u32) -> Option<String> {
        let because = if self.doubts.is_empty() {
            None
        } else {
            doubt::said(&Because::of(&self.doubts, &self.rules, &self.actions, (tuple, found)))
        };
        let lacks = flow.ports.map(|port| port.is_none());
        let lacking = if lacks == [false; 2] { None } else { self.lacking(flow, tuple, lacks, found) };
        match (because, lacking) {
            (Some(one), Some(other)) => Some(format!("{one}; {other}")),
            (one, other) => one.or(other),
        }
    }

    /// The rules whose answer depends on what the flow lacks, as text.
    fn lacking(&self, flow: &Flow, tuple: &T, lacks: [bool; 2], found: u32) -> Option<String> {
        /// The most rules that are named.
        const SHOWN: usize = 3;
        let rule = self.rules.rule(found);
        let rank = rule.zip(RuleNumber::new(found)).map(|(rule, number)| Rank::new(rule.priority(), number));
        let rank = rank.unwrap_or(Rank::NONE);
        let action = rule.map(Rule::action);
        let mut names: Vec<&str> = Vec::new();
        for one in self.on_ports.iter().take_while(|one| one.rank >= rank) {
            let could_change = one.rank == rank || one.action.is_none() || one.action != action;
            if could_change && one.could_match(tuple, lacks) && !names.contains(&&*one.name) {
                names.push(&one.name);
            }
        }
        let what = match (flow.proto, lacks) {
            (ICMP | ICMPV6, [true, true]) => "ICMP type and code",
            (ICMP | ICMPV6, [true, false]) => "ICMP type",
            (ICMP | ICMPV6, [false, _]) => "ICMP code",
            (_, [true, true]) => "ports",
            (_, [true, false]) => "source port",
            (_, [false, _]) => "destination port",
        };
        let (more, verb) = match names.len() {
            0 => return None,
            1 => (String::new(), "tests"),
            all if all > SHOWN => (format!(" and {} more", grouped(all - SHOWN)), "test"),
            _ => (String::new(), "test"),
        };
        names.truncate(SHOWN);
        Some(format!("the record has no {what}, which {}{more} {verb}", names.join(", ")))
    }
}

impl<T: FlowTuple> Judge for Rules<T> {
    fn judge(&self, flows: &[Flow], answers: &mut Vec<Judged>) {
        answers.clear();
        answers.resize(flows.len(), Judged::default());
        let (places, tuples): (Vec<usize>, Vec<T>) =
            flows.iter().enumerate().filter_map(|(at, flow)| Some((at, T::of(flow)?))).unzip();
        let mut numbers = vec![0; tuples.len()];
        self.reader.lookup_batch(&tuples, &mut numbers);
        for ((at, tuple), number) in places.into_iter().zip(&tuples).zip(numbers) {
            answers[at] = Judged { number, because: self.because(&flows[at], tuple, number) };
        }
    }

    fn actions(&self) -> Vec<String> {
        let of = |number| self.rules.rule(number).map_or_else(String::new, |rule| self.actions.of(rule));
        (1..=self.rules.last_number()).map(of).collect()
    }

    fn families(&self) -> [bool; 2] {
        T::FAMILIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Rules<Ipv4Tuple> {
        let mut set = RuleSet::new();
        for text in texts {
            set.insert(text.parse().unwrap()).unwrap();
        }
        let reader = Classifier::builder().rule_set(set.clone()).build().unwrap().reader();
        Rules::new(reader, set, Actions(Vec::new()), Doubts::none())
    }

    fn judged(rules: &Rules<Ipv4Tuple>, proto: u8, ports: [Option<u16>; 2]) -> (u32, Option<String>) {
        let flow = Flow { src: [10, 0, 0, 1].into(), dst: [192, 0, 2, 7].into(), proto, ports };
        let mut answers = Vec::new();
        rules.judge(&[flow], &mut answers);
        (answers[0].number, answers[0].because.take())
    }

    #[test]
    fn flows_that_lack_ports() {
        let rules = rules(&[
            "dport=443 proto=tcp action=1",
            "dport=80 proto=tcp action=2",
            "dst=198.51.100.1 dport=22 proto=tcp action=1",
            "sport=0-1023 proto=tcp action=3",
            "proto=tcp action=2",
            "sport=8 proto=icmp action=1",
            "sport=0 dport=0 action=7",
        ]);
        let known = |sport, dport| judged(&rules, 6, [Some(sport), Some(dport)]);
        assert_eq!(known(4000, 443), (1, None));
        assert_eq!(known(4000, 22), (5, None));
        let says = |of: &str| Some(format!("the record has no {of}"));
        // Of rules with the same action none is named but the answer's own.
        let (number, because) = judged(&rules, 6, [None, None]);
        assert_eq!((number, because), (4, says("ports, which rule 1, rule 2, rule 4 test")));
        let (number, because) = judged(&rules, 6, [Some(4000), None]);
        assert_eq!((number, because), (5, says("destination port, which rule 1 tests")));
        let (number, because) = judged(&rules, 6, [None, Some(443)]);
        assert_eq!((number, because), (1, None));
        let (number, because) = judged(&rules, 1, [None, None]);
        assert_eq!((number, because), (7, says("ICMP type and code, which rule 6, rule 7 test")));
        assert_eq!(judged(&rules, 1, [Some(8), None]), (6, None));
        assert_eq!(judged(&rules, 17, [Some(0), None]).0, 7);
        assert_eq!(judged(&rules, 17, [Some(1), None]), (0, None));
    }

    #[test]
    fn the_other_family_has_no_answer() {
        let rules = rules(&["action=1"]);
        let v6: IpAddr = "2001:db8::1".parse().unwrap();
        let flow = Flow { src: v6, dst: v6, proto: 6, ports: [Some(1); 2] };
        let mut answers = Vec::new();
        rules.judge(&[flow], &mut answers);
        assert_eq!(answers, [Judged::default()]);
        assert_eq!(rules.actions(), ["1"]);
    }
}
