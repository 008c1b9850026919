//! [`Conjunctions`]: flows that only together mean something (ovs-fields(7), conjunctive match fields).
//!
//! ```text
//! priority=9,ip,nw_src=10.0.0.1 actions=conjunction(7,1/2)     │ dimension 1 of 7
//! priority=9,ip,nw_src=10.0.0.4 actions=conjunction(7,1/2)     │
//! priority=9,tcp,tp_dst=80      actions=conjunction(7,2/2)       dimension 2 of 7
//! priority=9,conj_id=7          actions=output:2                 what is done with packets that meet a flow of each dimension
//! ```
//!
//! A packet that meets a flow of each dimension, and no other flow of their priority or a higher one, is
//! looked up once more as one with that `conj_id`. That comes to a rule for each choice of a flow from each
//! dimension, at the priority of these. It holds where all flows of a conjunction are of one priority, and
//! the flows with its `conj_id` of no lower one. A conjunction that is met, but by a packet that none of
//! these takes, hides conjunctions of lower priorities; so there may be none then. Where anything of this
//! doesn't hold, all flows of the table's conjunctions are left out, as uncertain rules.

use std::collections::BTreeMap;

use wirespeed_table::sort_by_number;

use super::file::{add, next};
use crate::pattern::Pattern;
use crate::read::RuleFile;
use crate::read::report::{Fault, LeftOut, Place, ReadError, Reading};
use crate::read::uncertain::{Effect, Uncertain};
use crate::rule::Rule;
use crate::tuple::Tuple;

/// The most rules that the conjunctions of a table may come to.
const MOST_RULES: usize = 1 << 16;
/// The most dimensions of a conjunction in Open vSwitch.
const MOST_DIMENSIONS: usize = 64;

/// The flows of conjunctions.
#[derive(Debug)]
pub(super) struct Conjunctions<T> {
    all: BTreeMap<u32, Conjunction<T>>,
    /// Flows with a `conj_id`, in order.
    answers: Vec<(u32, Member<T>)>,
    /// Flows with conjunctions as their actions, in order.
    members: Vec<Member<T>>,
    /// Why they can't be expressed.
    irregular: Option<String>,
}

#[derive(Debug)]
struct Conjunction<T> {
    priority: u32,
    dimensions: Vec<Vec<Pattern<T>>>,
}

/// A flow and what it means.
#[derive(Clone, Debug)]
pub(super) struct Member<T> {
    pub(super) at: u64,
    pub(super) line: String,
    pub(super) priority: u32,
    pub(super) action: u32,
    pub(super) patterns: Vec<Pattern<T>>,
    pub(super) facts: Vec<String>,
}

/// A conjunction that a flow is of: `conjunction(ID, K/N)`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Clause {
    id: u32,
    /// The clause's number, from 0.
    dimension: usize,
    of: usize,
}

/// A rule with the flow whose action it has.
type Of<'a, T> = (Rule<T>, &'a Member<T>);

impl<T> Default for Conjunctions<T> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), answers: Vec::new(), members: Vec::new(), irregular: None }
    }
}

impl<T: Tuple> Conjunctions<T> {
    /// Takes a flow that says what is done with packets that meet a conjunction.
    pub(super) fn answer(&mut self, id: u32, flow: Member<T>) {
        if let Some(fact) = flow.facts.first() {
            self.not_so(format!("a conjunction with {fact}"));
        }
        self.answers.push((id, flow));
    }

    /// Takes a flow that is of dimensions.
    pub(super) fn member(&mut self, clauses: &[Clause], flow: Member<T>) {
        if let Some(fact) = flow.facts.first() {
            self.not_so(format!("a conjunction with {fact}"));
        }
        for clause in clauses {
            let conjunction = self.all.entry(clause.id).or_insert_with(|| Conjunction {
                priority: flow.priority,
                dimensions: vec![Vec::new(); clause.of],
            });
            let (is_level, is_alike) =
                (conjunction.priority == flow.priority, conjunction.dimensions.len() == clause.of);
            if is_level && is_alike {
                conjunction.dimensions[clause.dimension].extend_from_slice(&flow.patterns);
            } else if is_alike {
                self.not_so("a conjunction of several priorities".to_owned());
            } else {
                self.not_so("a conjunction of several numbers of dimensions".to_owned());
            }
        }
        self.members.push(flow);
    }

    fn not_so(&mut self, why: String) {
        self.irregular.get_or_insert(why);
    }

    /// Adds the rules that they come to.
    pub(super) fn finish(self, file: &mut RuleFile<T>, reading: &mut Reading) -> Result<(), ReadError> {
        let rules = match &self.irregular {
            Some(why) => Err(why.clone()),
            None => self.rules(),
        };
        match rules {
            Ok(rules) => {
                let (name, place, text) = (reading.report.name.clone(), Place::default(), String::new());
                let put = |(rule, flow): Of<'_, T>| add(file, rule, flow.at, &flow.line);
                let added = rules.into_iter().try_for_each(put);
                return added.map_err(|why| ReadError::Bad { name, place, why, text });
            }
            Err(why) => {
                for flow in &self.members {
                    doubt(flow, &why, file);
                    reading.fault(Fault::left_out(&*why), flow.at, &flow.line)?;
                }
                for (id, flow) in &self.answers {
                    // Where there is a conjunction, its flows say when it could be met.
                    if !self.all.contains_key(id) {
                        doubt(flow, &why, file);
                    }
                    reading.fault(Fault::left_out(&*why), flow.at, &flow.line)?;
                }
            }
        }
        Ok(())
    }

    /// The rules, each with the flow whose action it has; or why there are none.
    fn rules(&self) -> Result<Vec<Of<'_, T>>, String> {
        let mut rules = Vec::new();
        if let Some((id, _)) = self.answers.iter().find(|(id, _)| !self.all.contains_key(id)) {
            return Err(format!("a conj_id without a conjunction ({id})"));
        }
        let mut conjunctions: Vec<_> = self.all.iter().collect();
        sort_by_number(&mut conjunctions, |(_, conjunction)| (!conjunction.priority).into());
        for (at, (id, conjunction)) in conjunctions.iter().enumerate() {
            let mut answers: Vec<_> =
                self.answers.iter().filter(|(of, _)| of == *id).map(|(_, flow)| flow).collect();
            sort_by_number(&mut answers, |flow| (!flow.priority).into());
            if answers.iter().any(|flow| flow.priority < conjunction.priority) {
                return Err("a conj_id of a lower priority than its conjunction".to_owned());
            }
            let is_last = at + 1 == conjunctions.len();
            for pattern in conjunction.patterns()? {
                let taken = answers.iter().flat_map(|&flow| flow.patterns.iter().map(move |of| (flow, of)));
                let mut is_taken = false;
                for (flow, of) in taken {
                    let Some(both) = and(&pattern, of) else { continue };
                    is_taken |= both == pattern;
                    rules.push((Rule::new(both, conjunction.priority, flow.action), flow));
                }
                if !is_taken && !is_last {
                    return Err("a conjunction without a conj_id for all packets that meet it".to_owned());
                }
                if rules.len() > MOST_RULES {
                    return Err(too_many(rules.len()));
                }
            }
        }
        Ok(rules)
    }
}

impl<T: Tuple> Conjunction<T> {
    /// A pattern for each choice of a flow from each dimension; none where a dimension has no flow.
    fn patterns(&self) -> Result<Vec<Pattern<T>>, String> {
        let mut patterns = vec![Pattern::all()];
        for dimension in &self.dimensions {
            let choices = patterns.len().saturating_mul(dimension.len());
            if choices > MOST_RULES {
                return Err(too_many(choices));
            }
            let with =
                |pattern: &Pattern<T>| dimension.iter().filter_map(|of| and(pattern, of)).collect::<Vec<_>>();
            patterns = patterns.iter().flat_map(with).collect();
        }
        patterns.sort_unstable();
        patterns.dedup();
        Ok(patterns)
    }
}

/// Notes a flow that could do anything to packets that it matches.
fn doubt<T: Tuple>(flow: &Member<T>, why: &str, file: &mut RuleFile<T>) {
    let before = next(file);
    let uncertain = flow.patterns.iter().map(|&pattern| Uncertain {
        rule: Rule::new(pattern, flow.priority, 0),
        effect: Effect::Any,
        before,
        skips: 0,
        why: LeftOut { place: flow.at.into(), why: why.to_owned(), text: flow.line.clone() },
    });
    file.doubts.uncertain.extend(uncertain);
}

fn too_many(found: usize) -> String {
    format!("conjunctions of over {found} rules, where {MOST_RULES} are allowed")
}

/// The tuples that match both.
fn and<T: Tuple>(a: &Pattern<T>, b: &Pattern<T>) -> Option<Pattern<T>> {
    let both = a.mask().and(b.mask());
    (a.value().and(&both) == b.value().and(&both))
        .then(|| Pattern::new(a.value().or(b.value()), a.mask().or(b.mask())))
}

/// The conjunctions that actions name: none, or nothing else beside notes.
pub(super) fn clauses(actions: &str) -> Result<Vec<Clause>, Fault> {
    if !actions.contains("conjunction") {
        return Ok(Vec::new());
    }
    let wrong = || Fault::left_out("a conjunction among other actions");
    let (mut clauses, mut rest) = (Vec::new(), actions);
    while !rest.is_empty() {
        let (action, after) = match rest.strip_prefix("conjunction(") {
            Some(rest) => {
                let (inner, after) = rest.split_once(')').ok_or_else(wrong)?;
                clauses.push(clause(inner).ok_or_else(wrong)?);
                ("", after)
            }
            None => rest.split_once(',').map_or((rest, ""), |(action, _)| (action, &rest[action.len()..])),
        };
        if !action.is_empty() && !action.starts_with("note:") {
            return Err(wrong());
        }
        let after = after.trim_start();
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
        if !after.is_empty() && !after.starts_with(',') {
            return Err(wrong());
        }
    }
    if clauses.is_empty() { Err(wrong()) } else { Ok(clauses) }
}

fn clause(text: &str) -> Option<Clause> {
    let (id, rest) = text.split_once(',')?;
    let (dimension, of) = rest.split_once('/')?;
    let number = |text: &str| super::words::number(text.trim());
    let id = u32::try_from(number(id)?).ok()?;
    let of = usize::try_from(number(of)?).ok().filter(|of| (2..=MOST_DIMENSIONS).contains(of))?;
    let dimension = usize::try_from(number(dimension)?).ok()?.checked_sub(1).filter(|at| *at < of)?;
    Some(Clause { id, dimension, of })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_of_conjunctions() {
        let of = |id, dimension, of| Clause { id, dimension, of };
        for (actions, wanted) in [
            ("output:1", vec![]),
            ("conjunction(7,1/2)", vec![of(7, 0, 2)]),
            ("conjunction(7, 2/2),note:00.00,conjunction(0x9,3/3)", vec![of(7, 1, 2), of(9, 2, 3)]),
        ] {
            assert_eq!(clauses(actions).ok(), Some(wanted), "{actions}");
        }
        for wrong in [
            "conjunction(7,1/2),drop",
            "drop,conjunction(7,1/2)",
            "conjunction(7,1/1)",
            "conjunction(7,3/2)",
            "conjunction(7,0/2)",
            "conjunction(7,1/65)",
            "conjunction(7,1/2",
            "conjunction(7,1/2)drop",
            "note:conjunction",
        ] {
            assert!(clauses(wrong).is_err(), "{wrong}");
        }
    }
}
