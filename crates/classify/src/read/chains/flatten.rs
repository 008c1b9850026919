//! [`flatten`]: a chain, with all that it jumps to, as rules of which the first that matches wins.
//!
//! A jump needs no rule: the lines of its chain follow, within its condition, and what they leave undecided
//! comes to the lines behind it by itself. Packets that return early have to get past the rest of their
//! chain. Two ways are exact, and the one that makes fewer rules is taken: the rest is narrowed to the
//! others, or what is behind the jump is written out for those that return, ahead of the rest.
//!
//! A line that depends on an unknown fact makes no rule. Uncertain rules are put there instead: its verdict,
//! or the lines of the chain that it jumps to, or, where it returns, all that is behind the jump. Lines that
//! hang together in this way are a list of which the first that matches wins, too; so each says how many of
//! those after it a packet that it matches doesn't reach.
//!
//! Rules, their patterns and the work on all this are bounded; past a bound the chain is refused.

mod emit;

use std::collections::{BTreeMap, BTreeSet};

use super::fact::Truth;
use super::program::{Go, Program};
use super::region::Region;
use super::set::TooMany;
use super::{Chains, End, Line, Then};
use crate::read::ReadOptions;
use crate::read::assume::{Assumption, AssumptionKey, Assumptions};
use crate::read::report::{LeftOut, Place, ReadError, Reading};
use crate::read::uncertain::Effect;
pub(in crate::read) use emit::Out;

/// The most parts of regions that may be compared: some seconds.
const MOST_WORK: u64 = 30_000_000;

/// Writes a chain out: its rules, their actions and doubts into `file`, and a summary of them into the
/// report. `within` is what packets can be at all.
pub(in crate::read) fn flatten(
    chains: &Chains,
    base: &str,
    within: &Region,
    options: &ReadOptions,
    reading: &mut Reading,
    file: &mut dyn Out,
) -> Result<(), ReadError> {
    let program = Program::of(chains, base, reading)?;
    let mut walk = Walk {
        program: &program,
        assume: &options.assume,
        most_rules: options.most_rules.unwrap_or(ReadOptions::MOST_RULES),
        most_patterns: options.most_patterns.unwrap_or(ReadOptions::MOST_PATTERNS),
        file,
        rules: 0,
        patterns: 0,
        work: 0,
        changed: BTreeSet::new(),
        assumed: Vec::new(),
        left_out: BTreeMap::new(),
        would_help: BTreeMap::new(),
        without_verdict: BTreeSet::new(),
    };
    let done = walk.all(base, within);
    let Walk { assumed, left_out, would_help, without_verdict, .. } = walk;
    done.map_err(|Excess { what, found, limit }| ReadError::TooMany {
        name: reading.report.name.clone(),
        what,
        found,
        limit,
    })?;
    let report = &mut reading.report;
    report.elsewhere += program.elsewhere;
    report.without_verdict += without_verdict.len() as u64;
    report.would_help.extend(
        would_help.into_iter().filter(|(line, _)| left_out.contains_key(line)).flat_map(|(_, keys)| keys),
    );
    let known: BTreeSet<Place> = report.left_out.iter().map(|one| one.place).collect();
    let more = left_out.into_iter().filter(|(line, _)| !known.contains(line));
    report.left_out.extend(more.map(|(_, one)| one));
    report.left_out.sort_by_key(|one| one.place);
    report.assumed.clone_from(&assumed);
    file.assume(assumed);
    Ok(())
}

/// More of something than there may be.
struct Excess {
    what: &'static str,
    found: u64,
    limit: u64,
}

impl From<TooMany> for Excess {
    fn from(TooMany { what, limit }: TooMany) -> Self {
        Self { what, found: limit + 1, limit }
    }
}

/// Where packets go on at the end of a chain.
struct Behind<'c> {
    chain: usize,
    next: usize,
    up: Option<&'c Self>,
}

/// Going through chains.
struct Walk<'a> {
    program: &'a Program<'a>,
    assume: &'a Assumptions,
    most_rules: u64,
    most_patterns: u64,
    file: &'a mut dyn Out,
    rules: u64,
    patterns: u64,
    work: u64,
    /// What lines that were gone through have perhaps changed.
    changed: BTreeSet<AssumptionKey>,
    assumed: Vec<Assumption>,
    left_out: BTreeMap<Place, LeftOut>,
    /// Assumptions that would decide a line, by line.
    would_help: BTreeMap<Place, BTreeSet<AssumptionKey>>,
    /// Lines that only count or log.
    without_verdict: BTreeSet<Place>,
}

/// A step that packets of a region come to and that may be in effect.
struct Met {
    /// The packets that it is for.
    region: Region,
    /// Whether these are all that come to it.
    is_for_all: bool,
    /// Why nobody knows whether it is in effect.
    doubt: Option<LeftOut>,
}

impl Walk<'_> {
    fn all(&mut self, base: &str, within: &Region) -> Result<(), Excess> {
        let first = self.program.base();
        match self.sure(first, 0, within.clone(), None)? {
            true => self.end(base, within),
            false => Ok(()),
        }
    }

    /// What becomes of packets at the end of all.
    fn end(&mut self, base: &str, region: &Region) -> Result<(), Excess> {
        match self.program.end {
            End::Verdict(verdict) => {
                self.rules(region, verdict, None, &format!("the policy of {base}, {verdict}"))
            }
            End::Unknown => {
                let why = format!("the file doesn't say what becomes of packets at the end of {base}");
                let steps = &self.program.chains[self.program.base()];
                let place = steps.last().map_or_else(Place::default, |step| step.line.at);
                self.uncertain(region, Effect::Any, "", &LeftOut { place, why, text: base.to_owned() })?;
                Ok(())
            }
        }
    }

    /// Rules for the packets of a region that run through a chain from a step on; whether some may come to
    /// its end, or return.
    fn sure(
        &mut self,
        chain: usize,
        from: usize,
        mut region: Region,
        behind: Option<&Behind<'_>>,
    ) -> Result<bool, Excess> {
        let program = self.program;
        let mut returned = false;
        for (next, step) in (from + 1..).zip(&program.chains[chain][from..]) {
            let Some(met) = self.meet(step.line, &region)? else { continue };
            let here = Behind { chain, next, up: behind };
            if let Some(why) = &met.doubt {
                self.perhaps(&step.then, step.line, &met.region, why, &here)?;
                continue;
            }
            match step.then {
                Go::Verdict(verdict) => {
                    self.rules(&met.region, verdict, Some(step.line.at), &step.line.text)?;
                    if met.is_for_all {
                        return Ok(returned);
                    }
                }
                Go::Jump(to) => {
                    let falls = self.sure(to, 0, met.region, Some(&here))?;
                    if met.is_for_all && !falls {
                        return Ok(returned);
                    }
                }
                Go::Goto(to) => {
                    let falls = self.sure(to, 0, met.region.clone(), behind)?;
                    if met.is_for_all {
                        return Ok(returned || falls);
                    }
                    if falls {
                        returned = true;
                        region = self.leave(region, met.region, &here)?;
                    }
                }
                Go::Return => {
                    if met.is_for_all {
                        return Ok(true);
                    }
                    returned = true;
                    region = self.leave(region, met.region, &here)?;
                }
                Go::Continue | Go::Change => self.pass(step.line),
                Go::Unknown(ref why) => {
                    self.uncertain(&met.region, Effect::Any, "", &left_out(step.line, why.clone()))?;
                }
            }
            if region.is_empty() {
                break;
            }
        }
        Ok(returned || !region.is_empty())
    }

    /// Gets those that return past the rest of a chain: what then comes to the rest.
    fn leave(&mut self, all: Region, gone: Region, here: &Behind<'_>) -> Result<Region, Excess> {
        let rest = self.program.size(here.chain, here.next);
        if rest == 0 {
            return Ok(all);
        }
        self.work(&all, &gone)?;
        let narrowed = all.minus(&gone).ok();
        let (mut behind, mut size) = (here.up, 1u64);
        while let Some(at) = behind {
            size = size.saturating_add(self.program.size(at.chain, at.next));
            behind = at.up;
        }
        let written_out = size.saturating_mul(gone.rules_len());
        match narrowed {
            Some(narrowed)
                if rest.saturating_mul(narrowed.rules_len().saturating_sub(all.rules_len()))
                    <= written_out =>
            {
                Ok(narrowed)
            }
            _ => {
                self.go_on(here.up, &gone)?;
                Ok(all)
            }
        }
    }

    /// Rules for packets from the end of a chain to the end of all.
    fn go_on(&mut self, mut behind: Option<&Behind<'_>>, region: &Region) -> Result<(), Excess> {
        while let Some(at) = behind {
            if !self.sure(at.chain, at.next, region.clone(), at.up)? {
                return Ok(());
            }
            behind = at.up;
        }
        self.end("the chain", region)
    }

    /// The possible effect on packets of a step that may or may not be in effect.
    fn perhaps(
        &mut self,
        then: &Go<'_>,
        line: &Line,
        region: &Region,
        why: &LeftOut,
        here: &Behind<'_>,
    ) -> Result<(), Excess> {
        match *then {
            Go::Verdict(verdict) => self.uncertain(region, Effect::Action, verdict, why).map(|_| ()),
            Go::Unknown(_) => self.uncertain(region, Effect::Any, "", why).map(|_| ()),
            Go::Continue | Go::Change => {
                self.pass(line);
                Ok(())
            }
            Go::Jump(to) => {
                let mut decided = Vec::new();
                self.doubtful(to, 0, region.clone(), why, &mut decided)?;
                self.hang_together(decided);
                Ok(())
            }
            Go::Goto(to) => {
                let mut decided = Vec::new();
                if self.doubtful(to, 0, region.clone(), why, &mut decided)? {
                    self.go_on_doubtfully(here.up, region, why, &mut decided)?;
                }
                self.hang_together(decided);
                Ok(())
            }
            // Without a rule behind it, a return is none.
            Go::Return if self.program.size(here.chain, here.next) == 0 => Ok(()),
            Go::Return => {
                let mut decided = Vec::new();
                self.go_on_doubtfully(here.up, region, why, &mut decided)?;
                self.hang_together(decided);
                Ok(())
            }
        }
    }

    /// Uncertain rules for packets from the end of a chain to the end of all.
    fn go_on_doubtfully(
        &mut self,
        mut behind: Option<&Behind<'_>>,
        region: &Region,
        why: &LeftOut,
        decided: &mut Vec<usize>,
    ) -> Result<(), Excess> {
        while let Some(at) = behind {
            if !self.doubtful(at.chain, at.next, region.clone(), why, decided)? {
                return Ok(());
            }
            behind = at.up;
        }
        match self.program.end {
            End::Verdict(verdict) => decided.extend(self.uncertain(region, Effect::Action, verdict, why)?),
            End::Unknown => drop(self.uncertain(region, Effect::Any, "", why)?),
        }
        Ok(())
    }

    /// Uncertain rules for packets that perhaps run through a chain from a step on; whether some may come to
    /// its end, or return. Adds the rules that decide where all of this is in effect.
    fn doubtful(
        &mut self,
        chain: usize,
        from: usize,
        region: Region,
        why: &LeftOut,
        decided: &mut Vec<usize>,
    ) -> Result<bool, Excess> {
        let program = self.program;
        // Rules that take packets to the end of the chain.
        let mut returning: Vec<usize> = Vec::new();
        // Whether a return that nobody is sure of leads past those that decide: what is behind the chain may
        // then be met with in any case.
        let mut leaks = false;
        let mut falls = true;
        for (next, step) in (from + 1..).zip(&program.chains[chain][from..]) {
            let Some(met) = self.meet(step.line, &region)? else { continue };
            let mut deciding = Vec::new();
            if let Some(why) = &met.doubt {
                match step.then {
                    Go::Verdict(verdict) => {
                        drop(self.uncertain(&met.region, Effect::Action, verdict, why)?);
                    }
                    Go::Unknown(_) => drop(self.uncertain(&met.region, Effect::Any, "", why)?),
                    Go::Continue | Go::Change => self.pass(step.line),
                    Go::Jump(to) | Go::Goto(to) => {
                        self.doubtful(to, 0, met.region, why, &mut deciding)?;
                        self.hang_together(std::mem::take(&mut deciding));
                        leaks |= matches!(step.then, Go::Goto(_));
                    }
                    Go::Return => leaks |= program.size(chain, next) > 0,
                }
                continue;
            }
            match step.then {
                Go::Verdict(verdict) => {
                    deciding = self.uncertain(&met.region, Effect::Action, verdict, why)?;
                    falls &= !met.is_for_all;
                }
                Go::Jump(to) => {
                    let through = self.doubtful(to, 0, met.region, why, &mut deciding)?;
                    falls &= !met.is_for_all || through;
                }
                Go::Goto(to) => {
                    let through = self.doubtful(to, 0, met.region.clone(), why, &mut deciding)?;
                    if met.is_for_all {
                        falls = false;
                        leaks |= through;
                    } else if through {
                        returning.extend(self.uncertain(&met.region, Effect::Skip, "", why)?);
                    }
                }
                Go::Return if met.is_for_all => {
                    falls = false;
                    leaks = true;
                }
                Go::Return if program.size(chain, next) == 0 => {}
                Go::Return => returning.extend(self.uncertain(&met.region, Effect::Skip, "", why)?),
                Go::Continue | Go::Change => self.pass(step.line),
                Go::Unknown(ref own) => {
                    self.uncertain(&met.region, Effect::Any, "", &left_out(step.line, own.clone()))?;
                }
            }
            if !leaks {
                decided.append(&mut deciding);
            }
            if !falls {
                break;
            }
        }
        let returns = !returning.is_empty();
        self.hang_together(returning);
        Ok(falls || leaks || returns)
    }

    /// Makes packets that these uncertain rules match skip all those that came since.
    fn hang_together(&mut self, rules: Vec<usize>) {
        let end = self.file.uncertain_len();
        for at in rules {
            self.file.skip(at, u32::try_from(end - at - 1).unwrap_or(u32::MAX));
        }
    }

    /// A line as packets of a region meet it; `None` if it isn't for any of them, or not in effect.
    fn meet(&mut self, line: &Line, region: &Region) -> Result<Option<Met>, Excess> {
        let (mut doubts, mut would_help, mut by) = (Vec::new(), BTreeSet::new(), Vec::new());
        for fact in &line.when.facts {
            let (mut truth, assumption) = fact.under(self.assume);
            let is_changed = fact.of.as_ref().is_some_and(|(key, _)| self.changed.contains(key));
            if is_changed && truth != Truth::Unknown {
                truth = Truth::Unknown;
                doubts.push(format!("{}, which a line before it may change", fact.what));
            } else if truth == Truth::Unknown {
                doubts.push(fact.what.clone());
                // What is assumed already doesn't help, nor does what a line before it may change.
                let key = fact.of.as_ref().map(|(key, _)| *key);
                would_help.extend(key.filter(|&key| !is_changed && self.assume.get(key).is_none()));
            } else {
                by.extend(assumption);
            }
            if truth == Truth::False {
                if !self.overlap(region, &line.when.region)?.is_empty() {
                    self.assumed(assumption.as_slice());
                }
                return Ok(None);
            }
        }
        let both = self.overlap(region, &line.when.region)?;
        if both.is_empty() {
            return Ok(None);
        }
        self.assumed(&by);
        if !would_help.is_empty() {
            self.would_help.entry(line.at).or_default().extend(would_help);
        }
        let is_for_all = both.is_same(region);
        let doubt = (!doubts.is_empty()).then(|| left_out(line, doubts.join(", ")));
        Ok(Some(Met { region: both, is_for_all, doubt }))
    }

    fn overlap(&mut self, a: &Region, b: &Region) -> Result<Region, Excess> {
        if b.is_all() {
            return Ok(a.clone());
        }
        self.work(a, b)?;
        Ok(a.and(b)?)
    }

    fn assumed(&mut self, by: &[&Assumption]) {
        for &one in by {
            if !self.assumed.contains(one) {
                self.assumed.push(one.clone());
            }
        }
    }

    /// Goes past a line that decides nothing.
    fn pass(&mut self, line: &Line) {
        self.without_verdict.insert(line.at);
        if let Then::Change(keys) = &line.then {
            self.changed.extend(keys);
        }
    }

    fn work(&mut self, a: &Region, b: &Region) -> Result<(), Excess> {
        let (cells_a, cells_b) = (a.cells().len() as u64, b.cells().len() as u64);
        let work = a.weight().saturating_mul(cells_b).saturating_add(b.weight().saturating_mul(cells_a));
        self.work = self.work.saturating_add(work);
        within("steps to write it out", self.work, MOST_WORK)
    }
}

fn within(what: &'static str, found: u64, limit: u64) -> Result<(), Excess> {
    if found > limit { Err(Excess { what, found, limit }) } else { Ok(()) }
}

fn left_out(line: &Line, why: String) -> LeftOut {
    LeftOut { place: line.at, why, text: line.text.clone() }
}

#[cfg(test)]
mod tests;
