//! [`RuleReport`]: the result of a reading, and the rules that it left out.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroU64;

use wirespeed_input::{Input, Line, plural};

use super::assume::{Assumption, AssumptionKey};
use super::format::RuleFormat;

/// The result of a reading. Displays as a few lines for people.
#[derive(Clone, Debug)]
pub struct RuleReport {
    /// The file.
    pub name: String,
    /// The format, recognised or given.
    pub format: RuleFormat,
    /// Lines, or elements of JSON.
    pub records: u64,
    /// The rules that were read.
    pub rules: usize,
    /// The patterns that the rules were expanded to.
    pub entries: u64,
    /// Rules of chains or tables that the user did not choose.
    pub elsewhere: u64,
    /// Rules and blocks of addresses that are of the other family of addresses than the tuple, in a file of
    /// both families. No packet of the tuple's family can match them.
    pub other_family: u64,
    /// Rules without a verdict in the chosen part that change nothing for other rules: they count or log.
    pub without_verdict: u64,
    /// Rules that were read without a condition that no tuple holds: filters of ClassBench that look at TCP
    /// flags. Answers that are such a rule [are in doubt](super::Doubts::widened).
    pub widened: u64,
    /// The assumptions that decided something.
    pub assumed: Vec<Assumption>,
    /// Assumptions with which rules could be read that were left out.
    pub would_help: BTreeSet<AssumptionKey>,
    /// The rules that were left out, in order.
    pub left_out: Vec<LeftOut>,
}

/// A rule that was left out, or that is uncertain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The place. Line 0 of what the file implies and no line says.
    pub place: Place,
    /// The reason.
    pub why: String,
    /// The text of the rule.
    pub text: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.why, self.text)
    }
}

/// A place in a file of rules. Displays as `line 7`, `line 7, entry 4`, or `implied` with line 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line, from 1.
    pub line: u64,
    /// The number of the rule or element in JSON, from 1: one line may hold many. `None` in other formats.
    pub entry: Option<NonZeroU64>,
}

impl From<u64> for Place {
    fn from(line: u64) -> Self {
        Self { line, entry: None }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str("implied"),
            _ => write!(f, "line {}", self.behind_name()),
        }
    }
}

impl Place {
    /// The place as it stands behind a file's name and a colon: `7`, or `7, entry 4`.
    fn behind_name(self) -> String {
        let Self { line, entry } = self;
        entry.map_or_else(|| line.to_string(), |entry| format!("{line}, entry {entry}"))
    }

    /// The place as a word that [`parse`](Self::parse) reads: `7`, or `7/4`.
    pub(super) fn word(self) -> String {
        let Self { line, entry } = self;
        entry.map_or_else(|| line.to_string(), |entry| format!("{line}/{entry}"))
    }

    /// Reads what [`word`](Self::word) wrote.
    pub(super) fn parse(word: &str) -> Option<Self> {
        let (line, entry) = match word.split_once('/') {
            None => (word, None),
            Some((line, entry)) => (line, Some(entry.parse().ok()?)),
        };
        Some(Self { line: line.parse().ok()?, entry })
    }
}

impl RuleReport {
    /// Refuses a file of both families of addresses, for a caller that took the tuple by the content alone:
    /// rules of one family would pass for the whole file. `choose` tells how to choose a tuple.
    pub fn refuse_other_family(&self, choose: &str) -> Result<(), ReadError> {
        let why = match self.other_family {
            0 => return Ok(()),
            1 => "1 entry is of the other family of addresses".to_owned(),
            entries => format!("{entries} entries are of the other family of addresses"),
        };
        let why = format!("the file is of IPv4 and of IPv6, and {why}: {choose}");
        Err(ReadError::Choice { name: self.name.clone(), why })
    }
}

impl fmt::Display for RuleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The number of rules that are shown.
        const SHOWN: usize = 10;
        let Self {
            name,
            format,
            records,
            rules,
            entries,
            elsewhere,
            other_family,
            without_verdict,
            widened,
            assumed,
            left_out,
            ..
        } = self;
        let counted = |count: u64, noun: &str| format!("{count} {}", plural(count, noun));
        let (read, patterns) = (counted(*records, "record"), counted(*entries, "pattern"));
        write!(f, "{name}: {format}, {read}, {} of {patterns}", counted(*rules as u64, "rule"))?;
        if *elsewhere > 0 {
            write!(f, "\n  {} of other chains or tables passed over", counted(*elsewhere, "rule"))?;
        }
        if *other_family > 0 {
            let entries = if *other_family == 1 { "entry" } else { "entries" };
            write!(f, "\n  {other_family} {entries} of the other family of addresses passed over")?;
        }
        if *without_verdict > 0 {
            write!(f, "\n  {} without a verdict", counted(*without_verdict, "rule"))?;
        }
        if *widened > 0 {
            let are = if *widened == 1 { "is" } else { "are" };
            let filters = counted(*widened, "filter");
            write!(
                f,
                "\n  {filters} {are} wider than said, as TCP flags are no field of a tuple: an answer by one is uncertain"
            )?;
        }
        if !assumed.is_empty() {
            let assumed: Vec<_> = assumed.iter().map(ToString::to_string).collect();
            write!(f, "\n  under the assumption of {}", assumed.join(", "))?;
        }
        for one in left_out.iter().take(SHOWN) {
            write!(f, "\n  left out {one}")?;
        }
        match left_out.len().checked_sub(SHOWN) {
            Some(more) if more > 0 => write!(f, "\n  left out {more} more"),
            _ => Ok(()),
        }
    }
}

/// The reason why a file could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file can't be opened or decompressed.
    #[error(transparent)]
    Open(#[from] wirespeed_input::OpenError),
    /// The operating system refused, or the compressed data is damaged.
    #[error("{name}: {cause}")]
    Io {
        /// The file.
        name: String,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// A line that is not a rule.
    #[error("{name}:{}: {why}: {text:?}", place.behind_name())]
    Bad {
        /// The file.
        name: String,
        /// The place.
        place: Place,
        /// The reason.
        why: String,
        /// The text of the line.
        text: String,
    },
    /// The user's choice is not in the file, or the file has several things that the user can choose.
    #[error("{name}: {why}")]
    Choice {
        /// The file.
        name: String,
        /// The choices.
        why: String,
    },
    /// The rules are more than allowed, after jumps, lists and ranges are written out.
    #[error("{name}: written out it makes at least {found} {what}, {limit} are allowed")]
    TooMany {
        /// The file.
        name: String,
        /// Rules or patterns.
        what: &'static str,
        /// The number when reading stopped.
        found: u64,
        /// The largest number allowed.
        limit: u64,
    },
    /// A file without a rule: it is being written, or another one is meant.
    #[error("no rules in {name}")]
    Nothing {
        /// The file.
        name: String,
    },
    /// A file whose format is not known.
    #[error("{name}: not recognised as rules: {start:?}")]
    UnknownFormat {
        /// The file.
        name: String,
        /// The start of the file.
        start: String,
    },
}

/// The reason why a line gave no rule.
pub(super) enum Fault {
    /// A rule that can't be expressed.
    LeftOut(String),
    /// Not a rule.
    Bad(String),
}

impl Fault {
    pub(super) fn left_out(why: impl Into<String>) -> Self {
        Self::LeftOut(why.into())
    }

    pub(super) fn bad(why: impl fmt::Display) -> Self {
        Self::Bad(why.to_string())
    }

    pub(super) fn why(&self) -> &str {
        match self {
            Self::LeftOut(why) | Self::Bad(why) => why,
        }
    }
}

/// The report while a file is read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) report: RuleReport,
    lenient: bool,
}

/// A function that takes a record by its number, and may add to the report.
pub(super) type Parser<'p> = dyn FnMut(u64, Result<&str, Fault>, &mut RuleReport) -> Result<(), Fault> + 'p;

impl Reading {
    pub(super) fn new(input: &Input<'_>, format: RuleFormat, lenient: bool) -> Self {
        let (name, left_out) = (input.name().to_owned(), Vec::new());
        let report = RuleReport {
            name,
            format,
            records: 0,
            rules: 0,
            entries: 0,
            elsewhere: 0,
            other_family: 0,
            without_verdict: 0,
            widened: 0,
            assumed: Vec::new(),
            would_help: BTreeSet::new(),
            left_out,
        };
        Self { report, lenient }
    }

    /// Gives each line that is neither blank nor a comment to a parser, and handles its result.
    pub(super) fn each_line(
        &mut self,
        input: &mut Input<'_>,
        mut parse: impl FnMut(&str, &mut RuleReport) -> Result<(), Fault>,
    ) -> Result<(), ReadError> {
        self.each_record(input, &mut |_, line, report| parse(line?, report))
    }

    /// Gives each line that is neither blank nor a comment to a parser, with its number from 1.
    pub(super) fn each_numbered_line(
        &mut self,
        input: &mut Input<'_>,
        mut parse: impl FnMut(u64, &str, &mut RuleReport) -> Result<(), Fault>,
    ) -> Result<(), ReadError> {
        self.each_record(input, &mut |at, line, report| parse(at, line?, report))
    }

    /// Gives each line that is neither blank nor a comment to a parser, with its number from 1, and handles
    /// the parser's result. For a line that is too long the parser gets the fault.
    pub(super) fn each_record(
        &mut self,
        input: &mut Input<'_>,
        parse: &mut Parser<'_>,
    ) -> Result<(), ReadError> {
        loop {
            let at = input.lines_read() + 1;
            let line = match input.next_line() {
                Ok(None) => return Ok(()),
                Ok(Some(Line::Whole(line))) => String::from_utf8_lossy(line).into_owned(),
                Ok(Some(Line::TooLong)) => {
                    let fault = Fault::bad(format!("a line of over {} bytes", Input::LONGEST_LINE));
                    self.report.records += 1;
                    if let Err(fault) = parse(at, Err(fault), &mut self.report) {
                        self.fault(fault, at, "")?;
                    }
                    continue;
                }
                Err(cause) => return Err(ReadError::Io { name: self.report.name.clone(), cause }),
            };
            let line = line.trim_start_matches('\u{feff}').trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            self.report.records += 1;
            if let Err(fault) = parse(at, Ok(line), &mut self.report) {
                self.fault(fault, at, line)?;
            }
        }
    }

    /// Handles a fault of a record.
    pub(super) fn fault(
        &mut self,
        fault: Fault,
        place: impl Into<Place>,
        text: &str,
    ) -> Result<(), ReadError> {
        const SHOWN: usize = 200;
        let place = place.into();
        let text: String = text.chars().take(SHOWN).collect();
        match fault {
            Fault::Bad(why) if !self.lenient => {
                Err(ReadError::Bad { name: self.report.name.clone(), place, why, text })
            }
            Fault::LeftOut(why) | Fault::Bad(why) => {
                self.report.left_out.push(LeftOut { place, why, text });
                Ok(())
            }
        }
    }
}

/// The part of an error about a choice that says what there is to choose from.
pub(super) fn there_are<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() { "there is none".to_owned() } else { format!("there are: {}", names.join(", ")) }
}
