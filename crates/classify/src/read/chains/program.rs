//! [`Program`]: the chains that can be reached from one, with jumps by number, checked.

use std::collections::{BTreeMap, BTreeSet};

use super::{Chains, End, Line, Then};
use crate::read::report::{Fault, Place, ReadError, Reading, there_are};

/// The most chains that may be within each other.
const MOST_DEPTH: usize = 200;

/// The chains that can be reached from one, which is the first.
pub(super) struct Program<'a> {
    pub(super) chains: Vec<Vec<Step<'a>>>,
    pub(super) end: &'a End,
    /// Lines of chains that can't be reached.
    pub(super) elsewhere: u64,
}

/// A line of a chain, ready to be gone through.
pub(super) struct Step<'a> {
    pub(super) line: &'a Line,
    pub(super) then: Go<'a>,
    /// The number of rules of this step and all steps after it in the chain, roughly.
    pub(super) size: u64,
}

/// The effect of a step.
pub(super) enum Go<'a> {
    Verdict(&'a str),
    Jump(usize),
    Goto(usize),
    Return,
    Continue,
    Change,
    Unknown(String),
}

impl<'a> Program<'a> {
    /// Resolves jumps. One that leads nowhere, or back to where it came from, is a fault of its line.
    pub(super) fn of(chains: &'a Chains, base: &'a str, reading: &mut Reading) -> Result<Self, ReadError> {
        let Some((_, first)) = chains.by_name.get_key_value(base) else {
            let there = there_are(chains.by_name.keys().map(String::as_str));
            let (name, why) = (reading.report.name.clone(), format!("no chain {base}; {there}"));
            return Err(ReadError::Choice { name, why });
        };
        let mut program = Self { chains: Vec::new(), end: &first.end, elsewhere: 0 };
        let mut made = BTreeMap::new();
        program.add(chains, base, &mut Vec::new(), &mut made, reading)?;
        // The first is made last, as all that it leads to comes before it.
        let unreached = chains.by_name.iter().filter(|(name, _)| !made.contains_key(name.as_str()));
        let lines: BTreeSet<Place> =
            unreached.flat_map(|(_, chain)| chain.lines.iter().map(|line| line.at)).collect();
        program.elsewhere = lines.len() as u64;
        Ok(program)
    }

    /// The number of the chain that is gone through first.
    pub(super) fn base(&self) -> usize {
        self.chains.len() - 1
    }

    /// The number of rules of a chain from a step on, roughly.
    pub(super) fn size(&self, chain: usize, from: usize) -> u64 {
        self.chains[chain].get(from).map_or(0, |step| step.size)
    }

    /// Adds a chain, after all that it jumps to; `within` are those that are being added.
    fn add(
        &mut self,
        chains: &'a Chains,
        name: &'a str,
        within: &mut Vec<&'a str>,
        made: &mut BTreeMap<&'a str, usize>,
        reading: &mut Reading,
    ) -> Result<usize, ReadError> {
        if within.len() >= MOST_DEPTH {
            let (found, limit) = (MOST_DEPTH as u64 + 1, MOST_DEPTH as u64);
            let name = reading.report.name.clone();
            return Err(ReadError::TooMany { name, what: "chains within each other", found, limit });
        }
        within.push(name);
        let mut steps = Vec::new();
        for line in &chains.by_name[name].lines {
            let then = match &line.then {
                Then::Verdict(name) => Go::Verdict(name),
                Then::Jump(to) | Then::Goto(to) => match self.chain_of(chains, to, within, made, reading)? {
                    Ok(chain) if matches!(line.then, Then::Jump(_)) => Go::Jump(chain),
                    Ok(chain) => Go::Goto(chain),
                    Err(why) => {
                        reading.fault(Fault::bad(&why), line.at, &line.text)?;
                        Go::Unknown(why)
                    }
                },
                Then::Return => Go::Return,
                Then::Continue => Go::Continue,
                Then::Change(_) => Go::Change,
                Then::Unknown(why) => Go::Unknown(why.clone()),
            };
            steps.push(Step { line, then, size: 0 });
        }
        let mut size = 0u64;
        for step in steps.iter_mut().rev() {
            let own = match step.then {
                Go::Verdict(_) => step.line.when.region.rules_len(),
                Go::Jump(chain) | Go::Goto(chain) => self.size(chain, 0),
                Go::Unknown(_) => 1,
                Go::Return | Go::Continue | Go::Change => 0,
            };
            size = size.saturating_add(own);
            step.size = size;
        }
        within.pop();
        self.chains.push(steps);
        made.insert(name, self.chains.len() - 1);
        Ok(self.chains.len() - 1)
    }

    /// The number of a chain that a line jumps to, or why it can't.
    fn chain_of(
        &mut self,
        chains: &'a Chains,
        to: &str,
        within: &mut Vec<&'a str>,
        made: &mut BTreeMap<&'a str, usize>,
        reading: &mut Reading,
    ) -> Result<Result<usize, String>, ReadError> {
        Ok(match chains.by_name.get_key_value(to) {
            None => Err(format!("a jump to {to}, a chain that there is not")),
            Some((to, _)) if within.contains(&to.as_str()) => {
                Err(format!("a jump to {to}, which leads here"))
            }
            Some((to, _)) => match made.get(to.as_str()) {
                Some(&chain) => Ok(chain),
                None => Ok(self.add(chains, to, within, made, reading)?),
            },
        })
    }
}
