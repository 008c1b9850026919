//! Flows as `ovs-ofctl dump-flows` writes them, with statistics before them, and without; and bare matches.
//!
//! ```text
//!  cookie=0x0, duration=3.1s, table=0, n_packets=0, n_bytes=0, priority=100,tcp,in_port=1,nw_dst=10.0.0.0/8 actions=output:2
//!  nw_src=73.56.220.49/32, tp_src=445, dl_dst=fa:16:3e:17:c5:29
//! ```
//!
//! The grammar of a flow is that of ovs-fields(7); the answer is the list of actions in this table, whatever
//! tables these go on to. A bare match, one without actions as ClassBench-ng writes it, says what the fields
//! of the tuple are to be, and nothing else.
//!
//! | flow | comes to |
//! |---|---|
//! | of fields that the tuple has | rules: one, or two where frames with and without a VLAN tag meet it |
//! | of what [assumptions](super::Assumptions) decide, such as `ct_state` | as they say; else an uncertain rule of the fields that the tuple has |
//! | of other fields, such as `reg0` | an uncertain rule of the fields that the tuple has |
//! | of a protocol that no such tuple is of | nothing; it is counted as elsewhere |
//! | with a conjunction as its action | a part of the rules of that conjunction |
//! | with a field but not the protocol that has it | uncertain: Open vSwitch drops the field |
//!
//! An OpenFlow tuple has 0 in the fields behind `dl_type`, except for IPv4 and ARP. So a flow of IPv6 can
//! match the type only. Several flows of one priority may match one packet. OpenFlow does not say which one
//! counts; here the first one does.

mod asks;
mod conjunction;
mod file;
mod flow;
pub mod vlan;
mod words;

use rustc_hash::FxHashMap;
use wirespeed_input::Input;

use super::assume::Assumptions;
use super::report::{Fault, LeftOut, ReadError, Reading, RuleReport};
use super::uncertain::{Effect, Uncertain};
use super::{ReadOptions, RuleFile};
use crate::pattern::Pattern;
use crate::rule::Rule;
use crate::tuple::Tuple;
use conjunction::{Conjunctions, Member, clauses};
use file::{add, next};
use flow::{Assumed, Flow, Meaning, Table};

pub(super) fn read<T: Tuple>(
    input: &mut Input<'_>,
    reading: &mut Reading,
    file: &mut RuleFile<T>,
    options: &ReadOptions,
) -> Result<(), ReadError> {
    let mut flows = Flows {
        file,
        table: options.table,
        assume: &options.assume,
        is_bare: None,
        conjunctions: Conjunctions::default(),
        actions: FxHashMap::default(),
    };
    reading.each_record(input, &mut |at, line, report| {
        let line = line.map_err(|fault| flows.nothing_known(at, fault, ""))?;
        // As `ovs-ofctl` reads files.
        let line = line.split('#').next().unwrap_or_default().trim();
        if is_heading(line) || line.is_empty() {
            report.records -= 1;
            return Ok(());
        }
        match Flow::parse(line) {
            Ok(flow) => flows.take(at, line, &flow, report),
            Err(fault) => Err(flows.nothing_known(at, fault, line)),
        }
    })?;
    let Flows { file, conjunctions, .. } = flows;
    reading.report.assumed.clone_from(&file.doubts.assumed);
    conjunctions.finish(file, reading)
}

/// What `dump-flows` writes before the flows.
fn is_heading(line: &str) -> bool {
    line.starts_with("NXST_FLOW reply") || line.starts_with("OFPST_FLOW reply")
}

/// The flows so far.
struct Flows<'f, T: Tuple> {
    file: &'f mut RuleFile<T>,
    /// The table that is asked for.
    table: u8,
    /// Assumptions about the packets.
    assume: &'f Assumptions,
    /// Whether the file is one of bare matches, once a line has told.
    is_bare: Option<bool>,
    conjunctions: Conjunctions<T>,
    /// The numbers of actions.
    actions: FxHashMap<String, u32>,
}

impl<T: Tuple> Flows<'_, T> {
    fn take(&mut self, at: u64, line: &str, flow: &Flow<'_>, report: &mut RuleReport) -> Result<(), Fault> {
        let is_named = match &flow.table {
            Table::Number(number) if *number != self.table => {
                report.elsewhere += 1;
                return Ok(());
            }
            Table::Number(_) => None,
            Table::Name(name) => Some(format!("a table by its name ({name})")),
        };
        let is_bare = flow.actions.is_none();
        if *self.is_bare.get_or_insert(is_bare) != is_bare {
            let fault = Fault::bad("flows with actions and flows without in one file");
            return Err(self.nothing_known(at, fault, line));
        }
        let Assumed { is_never, facts, by, would_help } = flow.under(self.assume);
        let meaning = match flow.meaning(facts) {
            Ok(meaning) => meaning,
            Err(fault) => return Err(self.may_be_any(at, flow.priority, fault, line)),
        };
        let (patterns, mut facts) = match meaning {
            Meaning::Never => {
                report.elsewhere += 1;
                (Vec::new(), Vec::new())
            }
            Meaning::Patterns { patterns, facts } => {
                for &one in &by {
                    if !self.file.doubts.assumed.contains(one) {
                        self.file.doubts.assumed.push(one.clone());
                    }
                }
                report.would_help.extend(would_help);
                if is_never { (Vec::new(), Vec::new()) } else { (patterns, facts) }
            }
        };
        // It may still be the flow that a conjunction lacks otherwise.
        facts.extend(is_named.filter(|_| !patterns.is_empty()));
        let actions = flow.actions.unwrap_or_default();
        // Bare matches have no names of actions.
        let action = if is_bare { 0 } else { self.intern(actions) };
        let clauses = match clauses(actions) {
            Ok(clauses) if flow.conj_id == Some(0) || flow.conj_id.is_some() && !clauses.is_empty() => {
                Err(Fault::left_out("a conj_id that isn't of a conjunction"))
            }
            clauses => clauses,
        };
        let clauses = clauses.map_err(|fault| self.may_be_any(at, flow.priority, fault, line))?;
        if flow.conj_id.is_some() || !clauses.is_empty() {
            let line = line.to_owned();
            let member = Member { at, line, priority: flow.priority, action, patterns, facts };
            match flow.conj_id {
                Some(id) => self.conjunctions.answer(id, member),
                None => self.conjunctions.member(&clauses, member),
            }
            return Ok(());
        }
        let rules = patterns.into_iter().map(|pattern| Rule::new(pattern, flow.priority, action));
        if facts.is_empty() {
            return rules.into_iter().try_for_each(|rule| add(self.file, rule, at, line)).map_err(Fault::Bad);
        }
        let why = facts.join(", ");
        for rule in rules {
            let before = next(self.file);
            let why = LeftOut { place: at.into(), why: why.clone(), text: line.to_owned() };
            self.file.doubts.uncertain.push(Uncertain {
                rule,
                effect: Effect::Action,
                before,
                skips: 0,
                why,
            });
        }
        Err(Fault::LeftOut(why))
    }

    /// The number of an action: files have as many as flows.
    fn intern(&mut self, action: &str) -> u32 {
        if let Some(&known) = self.actions.get(action) {
            return known;
        }
        let number = self.file.actions.len();
        self.file.actions.push(action.to_owned());
        let number = u32::try_from(number).expect("fewer actions than rules");
        self.actions.insert(action.to_owned(), number);
        number
    }

    /// Notes a flow that could match anything, at its priority.
    fn may_be_any(&mut self, at: u64, priority: u32, fault: Fault, line: &str) -> Fault {
        let before = next(self.file);
        let rule = Rule::new(Pattern::all(), priority, 0);
        let why = LeftOut { place: at.into(), why: fault.why().to_owned(), text: line.to_owned() };
        self.file.doubts.uncertain.push(Uncertain { rule, effect: Effect::Any, before, skips: 0, why });
        fault
    }

    /// Notes a line of which nothing is known: it could be any flow.
    fn nothing_known(&mut self, at: u64, fault: Fault, line: &str) -> Fault {
        self.may_be_any(at, u32::from(u16::MAX), fault, line)
    }
}
