//! Random chains, written out and gone through packet by packet.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::fact::{Fact, Wanted};
use super::super::region::tests::{regions, tuples};
use super::super::{Chain, When};
use super::*;
use crate::oracle::{Oracle, Right};
use crate::read::{Input, RuleFile, RuleFormat};
use crate::{Ipv4Tuple, Tuple};

/// Names of chains; each jumps to later ones only.
const CHAINS: [&str; 4] = ["base", "one", "two", "three"];
const VERDICTS: [&str; 3] = ["ACCEPT", "DROP", "REJECT"];
const STATES: [&str; 5] = ["new", "established", "related", "invalid", "untracked"];

/// What a firewall knows of a packet beside its tuple.
#[derive(Clone, Copy, Debug)]
struct Facts {
    /// Two facts that are called `a` and `b`.
    unknown: [bool; 2],
    state: usize,
    /// The state after something changed it.
    changed: usize,
}

impl Facts {
    fn all(assumed: Option<usize>) -> impl Iterator<Item = Self> {
        let of = move |n: usize| Self {
            unknown: [n & 1 == 1, n & 2 == 2],
            state: assumed.unwrap_or(n / 4 % 5),
            changed: n / 20,
        };
        (0..100).map(of)
    }

    fn holds(&self, fact: &Fact, is_changed: bool) -> bool {
        let plain = match &fact.of {
            None => self.unknown[usize::from(fact.what == "b")],
            Some((AssumptionKey::Ct, Wanted::OneOf(words))) => {
                let state = STATES[if is_changed { self.changed } else { self.state }];
                words.iter().any(|word| word == state)
            }
            other => unreachable!("no such fact is made: {other:?}"),
        };
        plain != fact.is_negated
    }
}

/// What becomes of a packet in a chain, as a kernel goes through it; `None` at its end. Where `facts` are not
/// given, lines are in effect only where that is sure.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    Verdict(String),
    Anything,
}

struct Kernel<'a> {
    chains: &'a Chains,
    assume: &'a Assumptions,
    facts: Option<Facts>,
    is_changed: bool,
}

impl Kernel<'_> {
    fn run(&mut self, chain: &str, tuple: &Ipv4Tuple) -> Option<Fate> {
        for line in &self.chains.by_name[chain].lines {
            let holds = |fact: &Fact| match &self.facts {
                Some(facts) => facts.holds(fact, self.is_changed),
                None => fact.under(self.assume).0 == Truth::True,
            };
            let is_met = line.when.region.contains(tuple);
            let is_in_effect = is_met && line.when.facts.iter().all(holds);
            if let Then::Change(_) = line.then {
                self.is_changed |= is_in_effect;
                continue;
            }
            if !is_in_effect {
                continue;
            }
            match &line.then {
                Then::Verdict(verdict) => return Some(Fate::Verdict(verdict.clone())),
                Then::Unknown(_) if self.facts.is_none() => {}
                Then::Unknown(_) => return Some(Fate::Anything),
                Then::Jump(to) => {
                    if let Some(fate) = self.run(to, tuple) {
                        return Some(fate);
                    }
                }
                Then::Goto(to) => return self.run(to, tuple),
                Then::Return => return None,
                Then::Continue | Then::Change(_) => {}
            }
        }
        None
    }
}

fn facts() -> impl Strategy<Value = Vec<Fact>> {
    let fact = prop_oneof![
        4 => (0..2usize).prop_map(|n| Fact::unknown(["a", "b"][n])),
        4 => (0..5usize, 0..5usize)
            .prop_map(|(a, b)| Fact::one_of(AssumptionKey::Ct, &[STATES[a], STATES[b]], "a state")),
    ];
    let fact = (fact, any::<bool>()).prop_map(|(fact, is_negated)| fact.negated_if(is_negated));
    prop_oneof![2 => Just(Vec::new()), 1 => proptest::collection::vec(fact, 1..3)]
}

fn lines(chain: usize, odd: bool) -> impl Strategy<Value = Vec<Line>> {
    let then = (0..24usize, chain + 1..CHAINS.len().max(chain + 2)).prop_map(move |(kind, to)| {
        let to = CHAINS.get(to).map(|to| (*to).to_owned());
        match (kind, to) {
            (0..6, Some(to)) => Then::Jump(to),
            (6..9, Some(to)) => Then::Goto(to),
            (9..14, _) => Then::Return,
            (14, _) => Then::Continue,
            (15, _) if odd => Then::Change(vec![AssumptionKey::Ct]),
            (16, _) if odd => Then::Unknown("odd".to_owned()),
            _ => Then::Verdict(VERDICTS[kind % 3].to_owned()),
        }
    });
    let region = prop_oneof![1 => Just(Region::all()), 5 => regions()];
    let line = (region, facts(), then).prop_map(|(region, facts, then)| Line {
        at: 0.into(),
        text: format!("{then:?}"),
        when: When { region, facts },
        then,
    });
    proptest::collection::vec(line, 0..6)
}

fn programs() -> impl Strategy<Value = Chains> {
    any::<bool>().prop_flat_map(|odd| (lines(0, odd), lines(1, odd), lines(2, odd), lines(3, odd))).prop_map(
        |(a, b, c, d)| {
            let mut chains = Chains::new();
            let mut at = 0;
            for (name, mut lines) in CHAINS.into_iter().zip([a, b, c, d]) {
                for line in &mut lines {
                    at += 1;
                    line.at = u64::into(at);
                }
                let end = End::Verdict("POLICY".to_owned());
                chains.by_name.insert(name.to_owned(), Chain { lines, end });
            }
            chains
        },
    )
}

fn write_out(chains: &Chains, options: &ReadOptions) -> Result<(RuleFile<Ipv4Tuple>, Reading), ReadError> {
    let input = Input::new(Box::new(&b""[..]), "chains".to_owned()).expect("nothing to open");
    let (mut reading, mut file) = (Reading::new(&input, RuleFormat::Iptables, false), RuleFile::default());
    flatten(chains, "base", &Region::all(), options, &mut reading, &mut file)?;
    Ok((file, reading))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    /// The rules give what the chain gives where nothing uncertain is in effect; with all that can be in
    /// effect, nothing is given that is neither that nor among the doubts.
    #[test]
    fn rules_and_doubts_are_what_chains_give(
        chains in programs(),
        assumed in proptest::option::of(0..5usize),
        tuples in proptest::collection::vec(tuples(), 30),
    ) {
        let assume = assumed.map(|state| format!("ct={}", STATES[state]).parse().expect("an assumption"));
        let assume = Assumptions::new(assume).expect("one");
        let options = ReadOptions { assume: assume.clone(), ..ReadOptions::default() };
        let (file, _) = write_out(&chains, &options).expect("small");
        let oracle = Oracle::of(&file.rules);
        let mut lines = chains.by_name.values().flat_map(|chain| &chain.lines);
        let has_changes = lines.any(|line| matches!(line.then, Then::Change(_)));
        for tuple in &tuples {
            let answer = oracle.right(tuple);
            let given = file.action(answer).expect("there is a policy");
            // What is changed is unknown to all lines that are written out later, also where packets don't
            // come by.
            if !has_changes {
                let mut kernel = Kernel { chains: &chains, assume: &assume, facts: None, is_changed: false };
                let sure = kernel.run("base", tuple).unwrap_or(Fate::Verdict("POLICY".to_owned()));
                prop_assert_eq!(&Fate::Verdict(given.to_owned()), &sure, "{} by what is sure", tuple);
            }
            let doubts: Vec<_> = file.doubts(tuple, answer).collect();
            let is_any = doubts.iter().any(|one| one.effect == Effect::Any);
            let could: BTreeSet<&str> = doubts
                .iter()
                .filter_map(|one| one.action())
                .map(|action| &*file.actions[action as usize])
                .collect();
            for facts in Facts::all(assumed) {
                let mut kernel = Kernel { chains: &chains, assume: &assume, facts: Some(facts), is_changed: false };
                match kernel.run("base", tuple).unwrap_or(Fate::Verdict("POLICY".to_owned())) {
                    Fate::Anything => prop_assert!(is_any, "{} with {:?}", tuple, facts),
                    Fate::Verdict(verdict) => prop_assert!(
                        verdict == given || is_any || could.contains(&*verdict),
                        "{} with {:?}: {} is neither {} nor of {:?}", tuple, facts, verdict, given, could
                    ),
                }
            }
        }
    }
}

fn line(at: u64, region: Region, facts: Vec<Fact>, then: Then) -> Line {
    Line { at: at.into(), text: format!("line {at}"), when: When { region, facts }, then }
}

fn port(number: u128) -> Region {
    Region::of(&Ipv4Tuple::DPORT, super::super::FieldSet::one(&Ipv4Tuple::DPORT, number))
}

fn chains(all: Vec<(&str, Vec<Line>)>) -> Chains {
    let mut chains = Chains::new();
    for (name, lines) in all {
        chains.chain(name, End::Verdict("DROP".to_owned())).lines = lines;
    }
    chains
}

fn verdict(verdict: &str) -> Then {
    Then::Verdict(verdict.to_owned())
}

/// A chain that is perhaps run through is a list in itself: only what differs is a doubt.
#[test]
fn doubts_are_only_what_differs() {
    let zone = || {
        vec![
            line(10, port(22), Vec::new(), verdict("ACCEPT")),
            line(11, Region::all(), Vec::new(), verdict("REJECT")),
        ]
    };
    let inner = |at| Then::Goto(if at == 1 { "inner" } else { "outer" }.to_owned());
    let chains = chains(vec![
        (
            "base",
            vec![
                line(1, Region::all(), vec![Fact::unknown("-i eth0")], inner(1)),
                line(2, Region::all(), Vec::new(), inner(2)),
            ],
        ),
        ("inner", zone()),
        ("outer", zone()),
    ]);
    let (file, reading) = write_out(&chains, &ReadOptions::default()).expect("small");
    let oracle = Oracle::of(&file.rules);
    for (tuple, action) in [("dport=22", "ACCEPT"), ("dport=23", "REJECT")] {
        let tuple = tuple.parse().expect("a tuple");
        let answer = oracle.right(&tuple);
        assert_eq!(file.action(answer), Some(action));
        assert_eq!(file.doubts(&tuple, answer).count(), 0, "both zones do the same");
    }
    assert_eq!(reading.report.left_out.len(), 1);
    assert_eq!(reading.report.left_out[0].to_string(), "line 1: -i eth0: line 1");
}

#[test]
fn what_decides_nothing_is_not_left_out() {
    let log = || Then::Jump("log".to_owned());
    let chains = chains(vec![
        (
            "base",
            vec![
                line(1, Region::all(), vec![Fact::unknown("a limit")], log()),
                line(2, port(7), Vec::new(), verdict("ACCEPT")),
            ],
        ),
        (
            "log",
            vec![
                line(3, Region::all(), vec![Fact::unknown("x")], Then::Return),
                line(4, Region::all(), vec![Fact::unknown("x")], Then::Continue),
            ],
        ),
        ("other", vec![line(5, port(8), Vec::new(), verdict("ACCEPT"))]),
    ]);
    let (file, reading) = write_out(&chains, &ReadOptions::default()).expect("small");
    assert!(file.doubts.is_empty() && reading.report.left_out.is_empty(), "{}", reading.report);
    assert_eq!((file.rules.len(), reading.report.elsewhere, reading.report.without_verdict), (2, 1, 1));
}

#[test]
fn jumps_that_lead_nowhere_or_back_are_faults() {
    let to = |name: &str| Then::Jump(name.to_owned());
    let nowhere = chains(vec![("base", vec![line(1, port(1), Vec::new(), to("gone"))])]);
    let error = write_out(&nowhere, &ReadOptions::default()).expect_err("no such chain").to_string();
    assert!(error.starts_with("chains:1: a jump to gone"), "{error}");
    let back = chains(vec![
        ("base", vec![line(1, port(1), Vec::new(), to("b"))]),
        ("b", vec![line(2, port(1), Vec::new(), to("base"))]),
    ]);
    let error = write_out(&back, &ReadOptions::default()).expect_err("a circle").to_string();
    assert!(error.starts_with("chains:2: a jump to base"), "{error}");
    let names: Vec<String> =
        (0..300).map(|n| if n == 0 { "base".to_owned() } else { format!("c{n}") }).collect();
    let chain = |n: usize| {
        line(n as u64, port(1), Vec::new(), if n == 299 { verdict("DROP") } else { to(&names[n + 1]) })
    };
    let last = |n: usize| {
        let then = if n == 199 { verdict("ACCEPT") } else { to(&names[n + 1]) };
        vec![
            line(n as u64, port(1), vec![Fact::unknown("x")], Then::Return),
            line(n as u64, port(1), Vec::new(), then),
        ]
    };
    let deepest = chains((0..200).map(|n| (&*names[n], last(n))).collect());
    let (file, _) = write_out(&deepest, &ReadOptions::default()).expect("as deep as may be");
    assert_eq!(file.rules.len(), 2);
    let deep = chains((0..300).map(|n| (&*names[n], vec![chain(n)])).collect());
    let error = write_out(&deep, &ReadOptions::default()).expect_err("too deep").to_string();
    assert_eq!(error, "chains: written out it makes at least 201 chains within each other, 200 are allowed");
}

/// What grows without measure is refused soon, with both numbers.
#[test]
fn what_grows_too_large_is_refused() {
    let everything = |n: u64, to: &str| {
        (0..n)
            .map(|at| {
                let field = &Ipv4Tuple::FIELDS[usize::try_from(at).expect("few") % 4];
                let from = u128::from(at) * 2 + 1;
                let set = super::super::FieldSet::range(field, from, from + 70_000_000 % field.all());
                line(at, Region::of(field, set), Vec::new(), Then::Jump(to.to_owned()))
            })
            .collect::<Vec<_>>()
    };
    let last = || {
        (0..40)
            .map(|at| {
                line(at, port(at.into()), Vec::new(), verdict(if at % 2 == 0 { "ACCEPT" } else { "DROP" }))
            })
            .collect()
    };
    let chains = chains(vec![
        ("base", everything(60, "b")),
        ("b", everything(60, "c")),
        ("c", everything(60, "d")),
        ("d", everything(60, "e")),
        ("e", last()),
    ]);
    let began = std::time::Instant::now();
    for options in [
        ReadOptions::default(),
        ReadOptions { most_rules: Some(1_000), ..ReadOptions::default() },
        ReadOptions { most_patterns: Some(1_000), ..ReadOptions::default() },
    ] {
        let error = write_out(&chains, &options).expect_err("too large");
        assert!(matches!(error, ReadError::TooMany { found, limit, .. } if found > limit), "{error}");
    }
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}

/// Ranges of all fields at once make more patterns than a rule may have: they become several rules.
#[test]
fn a_rule_of_many_patterns_becomes_several() {
    let mut region = Region::all();
    for field in [&Ipv4Tuple::SRC, &Ipv4Tuple::DST, &Ipv4Tuple::SPORT, &Ipv4Tuple::DPORT] {
        let set = super::super::FieldSet::range(field, 1, field.all() - 1);
        region = region.and(&Region::of(field, set)).expect("a box");
    }
    let chains = chains(vec![("base", vec![line(1, region, Vec::new(), verdict("ACCEPT"))])]);
    let (file, _) = write_out(&chains, &ReadOptions::default()).expect("many, but not too many");
    assert_eq!(file.rules.entries_len(), 62 * 62 * 30 * 30 + 1);
    assert!(file.rules.len() > 2, "{}", file.rules.len());
}
