//! Chains as `iptables-save` and `ip6tables-save` write them, and as `iptables -S` lists those of a table.
//!
//! ```text
//! *filter
//! :INPUT DROP [0:0]
//! :web - [0:0]
//! -A INPUT -s 10.0.0.0/8 -p tcp -m multiport --dports 22,80:90 -m comment --comment "a b" -j web
//! -A web ! -d 192.0.2.7/32 -j ACCEPT
//! COMMIT
//! ```
//!
//! The answer is the verdict of one chain on a packet that comes to it; chains that it jumps to belong to it,
//! other tables and hooks don't. The file doesn't say its family: the tuple that it is read for does, and
//! what is of the other is refused.
//!
//! A line is a list of options, of which each has to be known: [`words`] takes them apart, [`options`] knows
//! them, [`matches`] says what they want. An option that isn't known ends what can be said of its line: it
//! may match less than what was read, and do anything.

mod address;
mod icmp;
mod matches;
mod options;
mod sets;
mod words;
mod wrong;

use std::collections::BTreeMap;

use wirespeed_input::Input;

use self::matches::{Conditions, Context};
use self::options::Does;
use self::sets::Sets;
use self::words::{Parsed, words};
use self::wrong::Wrong;
use super::ReadOptions;
use super::assume::{AssumptionKey, Assumptions};
use super::chains::{Chains, End, Fact, Line, Out, Region, Then, Truth, When, flatten};
use super::report::{Fault, LeftOut, ReadError, Reading, there_are};
use crate::tuple::Fields;

/// The chains that a table has of itself.
const BUILT_IN: [&str; 5] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];

pub(super) fn read(
    input: &mut Input<'_>,
    reading: &mut Reading,
    (file, fields): (&mut dyn Out, Fields),
    options: &ReadOptions,
) -> Result<(), ReadError> {
    let wanted = options.table_name.as_deref().unwrap_or("filter");
    let base = options.chain.as_deref().unwrap_or("INPUT");
    let mut saved = Saved::read(input, reading, wanted)?;
    let Some(table) = saved.tables.remove(wanted) else {
        let there = there_are(saved.tables.keys().map(String::as_str));
        let why = format!("no table {wanted}; {there}");
        return Err(ReadError::Choice { name: reading.report.name.clone(), why });
    };
    let mut sets = Sets::of(options.sets.as_deref().unwrap_or_default()).map_err(|(line, why)| {
        ReadError::Bad { name: "ipset save".to_owned(), place: line.into(), why, text: String::new() }
    })?;
    let mut chains = table.chains((wanted, base), fields, &mut sets, &options.assume, reading)?;
    if let Some(chain) = chains.by_name.get_mut(base) {
        let line = |LeftOut { place: at, why, text }| Line {
            at,
            text,
            when: When::always(),
            then: Then::Unknown(why),
        };
        chain.lines.splice(0..0, saved.unread.into_iter().map(line));
    }
    // The packets that iptables sees.
    let within = Region::of_type(fields, 0x0800);
    flatten(&chains, base, &within, options, reading, file)
}

/// A file by its tables.
#[derive(Debug, Default)]
struct Saved {
    tables: BTreeMap<String, Table>,
    /// Lines of which not even the chain is known.
    unread: Vec<LeftOut>,
}

/// A table of a file.
#[derive(Debug, Default)]
struct Table {
    chains: BTreeMap<String, Declared>,
    /// Whether the file ends before it does.
    is_cut: bool,
}

/// A chain of a file.
#[derive(Debug, Default)]
struct Declared {
    /// Its policy, `-` of a chain of the user; `None` where the file doesn't say that the chain is there.
    policy: Option<String>,
    lines: Vec<Raw>,
}

/// A line of a chain.
#[derive(Debug)]
struct Raw {
    at: u64,
    text: String,
    words: Vec<String>,
}

impl Saved {
    fn read(input: &mut Input<'_>, reading: &mut Reading, wanted: &str) -> Result<Self, ReadError> {
        let mut saved = Self::default();
        // The table that is open, and where it began.
        let mut open: Option<(String, u64, String)> = None;
        let mut has_tables = false;
        reading.each_numbered_line(input, |at, line, report| {
            if let Some(name) = line.strip_prefix('*') {
                if let Some((before, ..)) = &open {
                    return Err(Fault::bad(format!("the table {before} has no COMMIT before it")));
                }
                if !has_tables && !saved.tables.is_empty() {
                    return Err(Fault::bad("rules before the first table"));
                }
                has_tables = true;
                open = Some((name.trim().to_owned(), at, line.to_owned()));
                if saved.tables.insert(name.trim().to_owned(), Table::default()).is_some() {
                    return Err(Fault::bad(format!("the table {name} is there twice")));
                }
                return Ok(());
            }
            if line == "COMMIT" {
                return open.take().map(|_| ()).ok_or_else(|| Fault::bad("COMMIT without a table"));
            }
            let name = match &open {
                Some((name, ..)) => name.clone(),
                None if has_tables => return Err(Fault::bad("neither a table (*) nor a rule of one")),
                // As `iptables -S` lists a table, which it doesn't name.
                None => wanted.to_owned(),
            };
            let is_ours = name == wanted;
            let table = saved.tables.entry(name).or_default();
            let is_rule = table.line(line, at, open.is_none()).map_err(Fault::bad)?;
            report.elsewhere += u64::from(is_rule && !is_ours);
            Ok(())
        })?;
        saved.unread.clone_from(&reading.report.left_out);
        if let Some((name, at, text)) = open {
            let why = format!("the table {name} has no COMMIT: the file is cut off");
            reading.fault(Fault::bad(why), at, &text)?;
            saved.tables.entry(name).or_default().is_cut = true;
        }
        Ok(saved)
    }
}

impl Table {
    /// Takes a line; whether it is a rule.
    fn line(&mut self, line: &str, at: u64, is_listed: bool) -> Result<bool, String> {
        if let Some(rest) = line.strip_prefix(':') {
            let rest: Vec<&str> = rest.split_whitespace().collect();
            let (name, policy) = match *rest {
                [name, policy] => (name, policy),
                [name, policy, counters] if are_counters(counters) => (name, policy),
                _ => return Err("not a chain, its policy and its counters".to_owned()),
            };
            return self.declare(name, policy).map(|()| false);
        }
        let mut words = words(line)?;
        if words.first().is_some_and(|word| are_counters(word)) {
            words.remove(0);
        }
        let parts: Vec<&str> = words.iter().map(String::as_str).collect();
        match *parts {
            ["-P" | "--policy", name, policy] if is_listed => self.declare(name, policy).map(|()| false),
            ["-N" | "--new-chain", name] => self.declare(name, "-").map(|()| false),
            ["-A" | "--append", name, ..] => {
                let raw = Raw { at, text: line.to_owned(), words: words[2..].to_vec() };
                self.chains.entry(name.to_owned()).or_default().lines.push(raw);
                Ok(true)
            }
            ["-I" | "--insert", name, ref rest @ ..] => {
                let place = rest.first().and_then(|word| word.parse::<usize>().ok());
                let words = words[2 + usize::from(place.is_some())..].to_vec();
                let lines = &mut self.chains.entry(name.to_owned()).or_default().lines;
                let place = place.unwrap_or(1);
                if place == 0 || place > lines.len() + 1 {
                    return Err(format!("the chain {name} has no place {place}"));
                }
                lines.insert(place - 1, Raw { at, text: line.to_owned(), words });
                Ok(true)
            }
            _ => Err("not a line of iptables-save".to_owned()),
        }
    }

    fn declare(&mut self, name: &str, policy: &str) -> Result<(), String> {
        let is_built_in = BUILT_IN.contains(&name);
        match policy {
            "ACCEPT" | "DROP" if is_built_in => {}
            "-" if !is_built_in => {}
            _ => return Err(format!("{policy:?} is no policy of {name}")),
        }
        if options::of_target(name).is_some() {
            return Err(format!("a chain can't be called {name}, as a target is"));
        }
        let chain = self.chains.entry(name.to_owned()).or_default();
        if chain.policy.is_some() {
            return Err(format!("the chain {name} is there twice"));
        }
        chain.policy = Some(policy.to_owned());
        Ok(())
    }

    /// Its chains as the model has them.
    fn chains(
        &self,
        (table, base): (&str, &str),
        fields: Fields,
        sets: &mut Sets,
        assume: &Assumptions,
        reading: &mut Reading,
    ) -> Result<Chains, ReadError> {
        let all = || self.chains.values().flat_map(|chain| &chain.lines);
        let targets = || all().filter_map(|raw| Parsed::of(&raw.words).ok()?.target);
        for (_, given) in targets().filter(|(target, _)| is_of(target, Does::FillsSet)) {
            given
                .iter()
                .filter(|given| given.arguments.len() == 2)
                .for_each(|given| sets.is_changed_by_rules(given.value()));
        }
        let is_whole = Fact::one_of(AssumptionKey::Fragment, &["no"], "no fragment");
        let context = Context {
            fields,
            sets,
            has_fragments: is_whole.under(assume).0 != Truth::True,
            changes_tos: targets().any(|(target, _)| is_of(&target, Does::ChangesTos)),
            has_no_out: matches!(base, "INPUT" | "PREROUTING"),
            has_no_in: matches!(base, "OUTPUT" | "POSTROUTING"),
        };
        let mut chains = Chains::new();
        for (name, declared) in &self.chains {
            let is_built_in = BUILT_IN.contains(&name.as_str());
            let end = match declared.policy.as_deref() {
                Some("-") => End::Verdict("RETURN".to_owned()),
                Some(policy) => End::Verdict(policy.to_owned()),
                None if is_built_in => End::Unknown,
                None => {
                    if let Some(raw) = declared.lines.first() {
                        let why = format!("a rule of {name}, a chain that there is not");
                        reading.fault(Fault::bad(why), raw.at, &raw.text)?;
                    }
                    End::Verdict("RETURN".to_owned())
                }
            };
            let chain = chains.chain(name, end);
            for raw in &declared.lines {
                match self.lines(raw, table, name, &context) {
                    Ok(lines) => chain.lines.extend(lines),
                    Err(Wrong::OtherFamily(why)) => reading.fault(Fault::bad(why), raw.at, &raw.text)?,
                    Err(Wrong::Bad(why) | Wrong::Unknown(why)) => {
                        reading.fault(Fault::bad(&why), raw.at, &raw.text)?;
                        chain.lines.push(raw.line(When::always(), Then::Unknown(why)));
                    }
                }
            }
            if self.is_cut {
                let (at, text) =
                    declared.lines.last().map_or((0, name.clone()), |raw| (raw.at, raw.text.clone()));
                let then = Then::Unknown("lines behind it may be cut off".to_owned());
                chain.lines.push(Line { at: at.into(), text, when: When::always(), then });
            }
        }
        Ok(chains)
    }

    /// What a line says.
    fn lines(&self, raw: &Raw, table: &str, chain: &str, context: &Context<'_>) -> Result<Vec<Line>, Wrong> {
        let parsed = Parsed::of(&raw.words).map_err(Wrong::Bad)?;
        let family = if context.fields.are_v6() { 6 } else { 4 };
        if parsed.family.is_some_and(|only| only != family) {
            return Ok(Vec::new());
        }
        let has = |name: &str| parsed.base.iter().any(|given| given.name == name);
        for (option, place, chains) in [
            ("--out-interface", "out", ["INPUT", "PREROUTING"]),
            ("--in-interface", "in", ["OUTPUT", "POSTROUTING"]),
        ] {
            if chains.contains(&chain) && has(option) {
                return Err(Wrong::Bad(format!("{chain} knows no interface that packets come {place} by")));
            }
        }
        let conditions = Conditions::of(&parsed, context)?;
        let then = match &parsed.unknown {
            Some(why) => Then::Unknown(why.clone()),
            None => self.then(&parsed, table)?,
        };
        let mut lines = Vec::new();
        for when in conditions.any {
            let line = raw.line(when, then.clone());
            match conditions.is_of_transport && context.has_fragments {
                true => lines.extend(
                    line.of_transport(context.fields).map_err(|more| Wrong::Unknown(more.to_string()))?,
                ),
                false => lines.push(line),
            }
        }
        Ok(lines)
    }

    /// What a line does with packets that it matches.
    fn then(&self, parsed: &Parsed, table: &str) -> Result<Then, Wrong> {
        if let Some(chain) = &parsed.goto {
            return self.chain(chain).map(Then::Goto);
        }
        let Some((target, _)) = &parsed.target else { return Ok(Then::Continue) };
        let Some((_, does)) = options::of_target(target) else {
            let is_extension = target.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
            if is_extension && !BUILT_IN.contains(&target.as_str()) && !self.chains.contains_key(target) {
                return Ok(Then::Unknown(format!("a target that isn't known ({target})")));
            }
            return self.chain(target).map(Then::Jump);
        };
        Ok(match does {
            Does::Decides => Then::Verdict(target.clone()),
            Does::Translates if table == "nat" => Then::Verdict(target.clone()),
            Does::Translates => return Err(Wrong::Bad(format!("{target} is a target of the table nat"))),
            Does::Returns => Then::Return,
            Does::Nothing | Does::FillsSet | Does::ChangesTos => Then::Continue,
            Does::Marks => Then::Change(vec![AssumptionKey::Mark, AssumptionKey::CtMark]),
            Does::Tracks => Then::Change(vec![
                AssumptionKey::Ct,
                AssumptionKey::CtDirection,
                AssumptionKey::CtMark,
                AssumptionKey::CtZone,
            ]),
            Does::Depends => Then::Unknown(format!("what {target} does depends on more than a tuple")),
        })
    }

    /// A chain of the user that a line may lead to.
    fn chain(&self, name: &str) -> Result<String, Wrong> {
        if BUILT_IN.contains(&name) {
            return Err(Wrong::Bad(format!("a jump to {name}, which is no chain of the user")));
        }
        match self.chains.get(name).and_then(|chain| chain.policy.as_ref()) {
            Some(_) => Ok(name.to_owned()),
            None => Err(Wrong::Bad(format!("a jump to {name}, a chain that there is not"))),
        }
    }
}

impl Raw {
    fn line(&self, when: When, then: Then) -> Line {
        /// Characters that are kept of a line.
        const SHOWN: usize = 200;
        Line { at: self.at.into(), text: self.text.chars().take(SHOWN).collect(), when, then }
    }
}

fn is_of(target: &str, what: Does) -> bool {
    options::of_target(target).is_some_and(|(_, does)| does == what)
}

/// Whether a word is counters of packets and bytes: `[9:540]`.
fn are_counters(word: &str) -> bool {
    let inside = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    inside.and_then(|inside| inside.split_once(':')).is_some_and(|(a, b)| is_number(a) && is_number(b))
}
