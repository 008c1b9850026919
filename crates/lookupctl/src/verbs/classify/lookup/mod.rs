//! `classify lookup`: finds the rule that a tuple matches, and the rules that it nearly matches.

mod ask;
mod near;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::num::NonZeroU64;
use std::path::PathBuf;

use anyhow::{Result, bail};
use ask::{Form, joined};
use clap::Args;
use near::{Miss, Near};
use serde::Serialize;
use wirespeed::Fleet;
use wirespeed::classify::image_file::RuleImageFile;
use wirespeed::classify::tuple_name::{TupleVisitor, visit};
use wirespeed::engine::{AnyTable, EngineName, RuleTuple};
use wirespeed::gpu::classify::Offload;
use wirespeed_classify::oracle::{Expected, Right};
use wirespeed_classify::read::{Doubts, Lines, RuleFile, SourceLine};
use wirespeed_classify::{Ipv4Tuple, Rule, RuleSet, Step};
use wirespeed_commands::rules::{
    Actions, Known, Raw, ReadArguments,
    doubt::{self, Because},
    of_image,
};

use super::source::BuildArguments;
use crate::Outcome;
use crate::lines;
use crate::number::{counted, grouped};
use crate::output::Output;
use crate::stdin::at_most_one;
use crate::tables;
use crate::verbs::lookup::{LookupArguments, Printer, StepLine, print_steps};

/// Looks up tuples: shows the rule that each tuple matches, and the rules that only a single field keeps from
/// matching
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    /// Tuples, as text or in columns like traces (source, destination, ports, protocol). Quote each tuple if
    /// there are several. By default read from standard input, one on each line
    #[arg(value_name = "TUPLE")]
    tuples: Vec<String>,

    /// The rules; - is standard input
    #[arg(long, value_name = "FILE", required_unless_present = "image")]
    rules: Option<OsString>,

    /// Compiled set (see build), instead of --rules
    #[arg(long, value_name = "IMG", conflicts_with_all = ["engine", "rules", "tuple", "memory_cap"])]
    image: Option<PathBuf>,

    /// Read Ethernet frames in hex, and look up the tuple of each frame
    #[arg(long)]
    frame: bool,

    /// Ingress port of the frames, for OpenFlow rules
    #[arg(long, value_name = "PORT", default_value_t = 0, requires = "frame")]
    in_port: u16,

    #[command(flatten)]
    lookup: LookupArguments<Ipv4Tuple>,

    /// The most rules to show that nearly match: all their fields match except one
    #[arg(long, value_name = "N", default_value_t = 5)]
    nearly: usize,

    #[command(flatten)]
    build: BuildArguments,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl classify lookup --rules acl.rules src=10.0.0.1 dst=192.0.2.7 sport=4000 dport=443 proto=tcp
  lookupctl classify lookup --rules acl.rules 10.0.0.1 192.0.2.7 4000 443 tcp
  lookupctl classify lookup --rules acl.rules 'src=10.0.0.1 udp' 'dst=192.0.2.7 tcp dport=80'
  lookupctl classify lookup --rules flows.txt in_port=1 dl_type=0x0800 nw_dst=10.1.2.3
  lookupctl classify lookup --rules flows.txt --in-port 3 --frame '00005e005301 00005e005302 0800 4500...'
  lookupctl classify lookup --image acl.img --json < acl.trace | jq .rule

A host's firewall: the verdict on a new connection that comes in by eth0, and on a packet without any assumption
  iptables-save > fw.txt; lookupctl classify lookup --rules fw.txt --assume ct=new --assume in=eth0 src=192.0.2.1 dport=443 tcp
  lookupctl classify lookup --rules fw.txt --lenient src=192.0.2.1 dport=443 tcp
With --assume the answer is for packets of that kind, and repeats the assumptions. With --lenient rules that can't be decided are left \
out, and an answer that one of them could change is marked uncertain, with the line of the file; in JSON uncertain_because lists them.

With --json an answer is {\"tuple\",\"rule\",\"priority\",\"action\",\"text\",\"nearly\",\"uncertain_because\",\"assuming\"}, null if \
nothing matches.
Fields that are not given are 0. Every answer is checked against the rules.
A rule that nearly matches fails by one field only. lookup shows the field, its value and the value that the rule wants, first for rules that would come \
before the matching rule.
Exit status 1 says that some tuple matches nothing, or that an answer is wrong.";

pub(super) fn run(options: Options) -> Result<Outcome> {
    let tuples = options.tuples.is_empty().then_some(OsStr::new("-"));
    let ipset = options.read.ipset.as_deref();
    at_most_one([("the rules", options.rules.as_deref()), ("the sets", ipset), ("the tuples", tuples)])?;
    let (tuple, from) = match (&options.image, &options.rules) {
        (Some(path), _) => {
            options.read.refuse_beside("an image, which holds what was assumed")?;
            let image = RuleImageFile::open(path)?;
            (image.tuple(), From::Image(Box::new(image)))
        }
        (None, Some(rules)) => {
            let raw = options.read.open(rules)?;
            (raw.tuple(), From::Rules(raw))
        }
        (None, None) => bail!("neither rules nor an image"),
    };
    visit(tuple, Job { options: &options, from })
}

/// The source of the compiled set.
enum From {
    Rules(Raw),
    Image(Box<RuleImageFile>),
}

struct Job<'a> {
    options: &'a Options,
    from: From,
}

impl TupleVisitor for Job<'_> {
    type Output = Result<Outcome>;

    fn visit<T: RuleTuple>(self) -> Result<Outcome> {
        let Self { options, from } = self;
        let fleet = options.lookup.fleet(&T::gpu_options())?;
        let (engine, table, beside) = match from {
            From::Rules(raw) => {
                let RuleFile { rules, actions, doubts, lines } = raw.load::<T>(&options.read)?;
                let engine = options.lookup.engine.resolve::<T>(&rules, fleet.is_some())?;
                let build = options.build.options(1, None);
                let table = tables::compile::<T>(engine, &rules, &build)?.table;
                let beside = Known { rules: Some(rules), actions: Actions(actions), doubts, lines };
                (engine, table, beside)
            }
            From::Image(image) => {
                let beside = of_image::<T>(&image)?;
                doubt::say(&beside.doubts);
                (image.engine(), image.into_table::<T>()?, beside)
            }
        };
        let Known { rules, actions, doubts, lines } = beside;
        let on_gpus = |fleet: &Fleet| tables::on_gpus::<T>(engine, &*table, fleet, &[]);
        let offload = fleet.as_ref().map(on_gpus).transpose()?;
        let expected = rules.as_ref().map(Expected::of);
        let form = if options.frame { Form::Frame(options.in_port) } else { Form::Words };
        let printer = options.lookup.printer();
        let assuming = doubt::assuming(&doubts);
        let beside = Beside { rules, actions, doubts, lines, assuming };
        let is_begun = false;
        let mut session =
            Session { options, engine, table, offload, beside, expected, form, is_begun, printer };
        if options.tuples.is_empty() {
            lines::each(&mut session, LONGEST, Session::answer_line, |session| {
                Ok(session.printer.output.flush()?)
            })?;
        } else {
            joined(&options.tuples, form).iter().try_for_each(|text| session.answer(text))?;
        }
        session.printer.finish()
    }
}

/// A session that answers tuples on stdout.
struct Session<'a, T: RuleTuple> {
    options: &'a Options,
    engine: EngineName,
    table: Box<dyn AnyTable<T>>,
    /// The table on GPUs, if they look up.
    offload: Option<Offload<T>>,
    beside: Beside<T>,
    expected: Option<Expected<T>>,
    form: Form,
    /// Whether an answer was printed. The assumptions are printed before the first one.
    is_begun: bool,
    printer: Printer,
}

/// The data beside the compiled set.
struct Beside<T: RuleTuple> {
    /// The rules, if they are known.
    rules: Option<RuleSet<T>>,
    actions: Actions,
    /// The doubts about answers.
    doubts: Doubts<T>,
    /// The source lines of the rules.
    lines: Lines,
    /// Assumptions that decided a rule.
    assuming: Vec<String>,
}

impl<T: RuleTuple> Beside<T> {
    /// The doubts about an answer.
    fn because(&self, tuple: &T, found: u32) -> Vec<Because> {
        let none = RuleSet::new();
        let rules = self.rules.as_ref().unwrap_or(&none);
        Because::of(&self.doubts, rules, &self.actions, (tuple, found))
    }
}

/// One line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    tuple: String,
    rule: Option<u32>,
    priority: Option<u32>,
    action: Option<String>,
    text: Option<String>,
    /// The source line of the rule and its text, if a rule is not simply a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// The number of the rule or element in JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<NonZeroU64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line_text: Option<&'a str>,
    /// The number of other rules that match.
    #[serde(skip_serializing_if = "Option::is_none")]
    also_match: Option<usize>,
    nearly: Vec<NearLine>,
    /// The number of such rules; only some are shown.
    nearly_count: usize,
    /// Rules that were left out and could change the answer, and the answer's own rule if it is wider than
    /// its file says.
    uncertain_because: Vec<Because>,
    /// The number of rules in the set that are wider than their file says.
    widened: usize,
    /// Assumptions about the packet that decided a rule.
    assuming: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<StepLine>>,
}

/// A rule that nearly matches.
#[derive(Serialize)]
struct NearLine {
    rule: u32,
    text: String,
    field: &'static str,
    is: String,
    wanted: String,
    /// Whether it would come before the rule that matches.
    would_win: bool,
}

impl<T: RuleTuple> Session<'_, T> {
    /// Answers the tuple of a line, if there is one.
    fn answer_line(&mut self, line: &[u8]) -> Result<()> {
        let line = String::from_utf8_lossy(line);
        let text = line.split('#').next().unwrap_or_default().trim();
        if text.is_empty() { Ok(()) } else { self.answer(text) }
    }

    fn answer(&mut self, text: &str) -> Result<()> {
        let tuple: T = self.form.parse(text)?;
        let found = self.lookup(&tuple);
        let right = self.expected.as_ref().map(|expected| expected.right(&tuple));
        if found == 0 || right.is_some_and(|right| right != found) {
            self.printer.outcome = Outcome::Differs;
        }
        let steps = self.printer.explain.then(|| self.table.explain(&tuple));
        let most = self.options.nearly;
        let Beside { rules, actions, assuming, .. } = &self.beside;
        let near = rules.as_ref().filter(|_| most > 0).map(|rules| Near::of(rules, &tuple, found, most));
        let rule = rules.as_ref().and_then(|rules| rules.rule(found));
        let because = self.beside.because(&tuple, found);
        let line = self.beside.lines.of(found);
        let place = line.and_then(|line| line.place);
        let action = rule.map(|rule| actions.of(rule));
        if self.printer.json {
            let line = Line {
                tuple: tuple.to_string(),
                rule: (found != 0).then_some(found),
                priority: rule.map(Rule::priority),
                action,
                text: rule.map(|rule| actions.text(rule)),
                line: place.map(|place| place.line),
                entry: place.and_then(|place| place.entry),
                line_text: line.map(|line| &*line.text),
                also_match: near.as_ref().map(|near| near.also),
                nearly: near
                    .iter()
                    .flat_map(|near| &near.misses)
                    .map(|miss| miss.line(&tuple, actions))
                    .collect(),
                nearly_count: near.as_ref().map_or(0, |near| near.count),
                uncertain_because: because,
                widened: self.beside.doubts.widened().len(),
                assuming,
                steps: steps.map(|steps| steps.into_iter().map(StepLine::from).collect()),
            };
            self.printer.output.json(&line)?;
        } else {
            let assumed = doubt::assumed(assuming).filter(|_| !std::mem::replace(&mut self.is_begun, true));
            assumed.into_iter().try_for_each(|assumed| self.printer.output.line(assumed))?;
            let uncertain = doubt::said(&because);
            let near = near.as_ref();
            let told = Told { tuple: &tuple, found, rule, line, actions, near, uncertain };
            told.print(&mut self.printer.output, steps.as_deref())?;
        }
        if let Some(right) = right.filter(|&right| right != found) {
            let engine = self.engine;
            self.printer
                .wrong(&format!("{engine}: {tuple} leads to rule {found}, by the rules to {right}"))?;
        }
        Ok(())
    }

    fn lookup(&self, tuple: &T) -> u32 {
        let table = &*self.table;
        let Some(offload) = &self.offload else { return table.lookup(tuple) };
        let mut found = [0];
        offload.lookup_batch(std::slice::from_ref(tuple), &mut found, |tuples, found| {
            table.lookup_batch(tuples, found);
        });
        found[0]
    }
}

/// An answer as text.
struct Told<'a, T> {
    tuple: &'a T,
    found: u32,
    rule: Option<&'a Rule<T>>,
    line: Option<&'a SourceLine>,
    actions: &'a Actions,
    near: Option<&'a Near<'a, T>>,
    /// The doubts about the answer.
    uncertain: Option<String>,
}

impl<T: RuleTuple> Told<'_, T> {
    fn print(&self, output: &mut Output, steps: Option<&[Step]>) -> Result<()> {
        let Self { tuple, found, rule, line, actions, near, uncertain } = self;
        let uncertain = uncertain.as_ref().map_or_else(String::new, |why| format!("  uncertain: {why}"));
        match (found, rule) {
            (0, _) => output.line(format_args!("{tuple}  no rule{uncertain}"))?,
            (_, Some(rule)) => {
                output.line(format_args!("{tuple}  rule {found}  {}{uncertain}", actions.said(rule)))?;
            }
            (_, None) => output.line(format_args!("{tuple}  rule {found}{uncertain}"))?,
        }
        if let Some(rule) = rule {
            let line = match line {
                None => String::new(),
                Some(SourceLine { place: Some(place), text }) => format!(" ({place}: {text})"),
                Some(SourceLine { place: None, text }) => format!(" ({text})"),
            };
            output.line(format_args!("  matches rule {found}{line}: {}", actions.text(rule)))?;
        }
        if let Some(Near { also, misses, count }) = near {
            if *also > 0 {
                let (rules, match_) =
                    if *also == 1 { ("rule", "matches, and comes") } else { ("rules", "match, and come") };
                output.line(format_args!("  {} more {rules} {match_} after it", grouped(*also)))?;
            }
            misses.iter().try_for_each(|miss| miss.print(output, self))?;
            if *count > misses.len() {
                output.line(format_args!(
                    "  {} nearly {} (--nearly N shows N)",
                    counted(count - misses.len(), "more rule"),
                    if count - misses.len() == 1 { "matches" } else { "match" }
                ))?;
            }
        }
        print_steps(output, steps.unwrap_or_default())
    }
}

impl<T: RuleTuple> Miss<'_, T> {
    /// The value of the field, and the value that the rule wants.
    fn values(&self, tuple: &T) -> (String, String) {
        let is = self.field.show(tuple.field(self.field)).to_string();
        (is, self.field.show_match(self.rule.field(self.field)))
    }

    fn line(&self, tuple: &T, actions: &Actions) -> NearLine {
        let (is, wanted) = self.values(tuple);
        NearLine {
            rule: self.number.get(),
            text: actions.text(self.rule),
            field: self.field.name,
            is,
            wanted,
            would_win: self.would_win,
        }
    }

    fn print(&self, output: &mut Output, told: &Told<'_, T>) -> Result<()> {
        let (is, wanted) = self.values(told.tuple);
        let Self { number, rule, field, .. } = self;
        let order = match (told.found, self.would_win) {
            (0, _) => "",
            (_, true) => ", which would win",
            (_, false) => ", which comes after it",
        };
        output.line(format_args!(
            "  nearly rule {number}{order}: {} is {is}, wanted {wanted}: {}",
            field.name,
            told.actions.text(rule)
        ))
    }
}

/// The most bytes of a line with a tuple or a frame.
const LONGEST: u64 = 1 << 19;
