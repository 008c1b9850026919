//! `names info`: shows the content of a table of names, and the table that each engine compiles.

use std::ffi::OsString;
use std::io::Write;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use wirespeed::engine::AnyTable;
use wirespeed::names::NameRib;
use wirespeed_namelookup::fsm::{Fsm, Stride};
use wirespeed_namelookup::{Aggregated, NameDomain, NameModel, Savings};

use super::engines::engines;
use super::source::{BuildArguments, Loaded, NOT_AGGREGATED, OfList, ReadArguments};
use crate::Outcome;
use crate::busy::Busy;
use crate::made::{EngineReport, Entries, InfoArguments, More};
use crate::number::{Bytes, Grouped, counted, counted_u64, grouped, share};
use crate::output::Output;
use crate::refuse::{IMAGE, refuse};
use crate::skipped::Skipped;
use crate::source::is_image;
use crate::verbs::info::image::ImageReport;

/// Shows the content of a table of names: counts, depths, lengths, results, states, and memory and build time
/// of engines
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    /// The table, or an image (see build); - is standard input
    #[arg(value_name = "TABLE")]
    table: OsString,

    #[command(flatten)]
    info: InfoArguments<NameDomain>,

    #[command(flatten)]
    build: BuildArguments,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl names info domains.txt.zst
  lookupctl names info fib.txt --engine acta
  lookupctl names info fib.txt --aggregate
  lookupctl names info names.img               what an image is
  lookupctl names info fib.txt --json | jq '.engines[] | {engine, bytes_per_name, stt_ratio}'

States and transitions are those of the machine that takes so many bytes a step (MATA paper, section 2). Its table with 256 elements of \
4 bytes a state (STT), for one byte a step, is the size that all engines are compared with (section 6.1).
With --aggregate info also shows the number of entries that each of the paper's two rules (section 2.1) applies to and saves. Machines \
and engines are those of the names that are left; sizes per name count all names.";

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let mut output = Output::new();
    if is_image(&options.table) {
        let options_of_table = [&options.build.given()[..], &options.read.given()].concat();
        refuse(&options_of_table, IMAGE)?;
        for report in ImageReport::of(&options.table)? {
            report.show(options.info.json, &mut output)?;
        }
        output.finish()?;
        return Ok(Outcome::Done);
    }
    let loaded = options.read.load_quietly(&options.table)?;
    if loaded.list.is_some() && options.build.aggregate {
        bail!(NOT_AGGREGATED);
    }
    let build = options.build.options(1, 0);
    if !options.info.json {
        output.line(&loaded)?;
        output.flush()?;
    }
    let names = &loaded.fib.names;
    let aggregated = options.build.aggregate.then(|| Aggregated::new(names.clone()));
    let compiled = aggregated.as_ref().map_or(names, Aggregated::reduced);
    let mut report = Report::of(&loaded, compiled);
    report.aggregation = aggregated.is_some().then(|| Savings::of(names).into());
    if !options.info.json {
        report.print(&mut output)?;
        output.flush()?;
    }
    let stt = report.machines.first().and_then(|machine| machine.stt_bytes);
    for engine in engines(options.info.engine, compiled)? {
        let busy = Busy::with(format!("building {engine}"));
        let entries = Entries { count: names.len() as u64, one: "name" };
        let model = NameModel::new(names.clone(), options.build.aggregate);
        let engine =
            EngineReport::of::<NameDomain>(engine, compiled, (model, ()), &build, entries, |table| {
                OfNames { stt_ratio: stt.map(|stt| share(stt, table.image().bytes())), arrays: arrays(table) }
            })?;
        drop(busy);
        options.info.print(&engine, &mut output)?;
        report.engines.push(engine);
    }
    if options.info.json {
        output.json(&report)?;
    }
    output.finish()?;
    Ok(Outcome::Done)
}

/// The report of a table.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    format: String,
    records: u64,
    skipped: Vec<Skipped>,
    entries: usize,
    /// Distinct prefixes of all entries, without the root.
    components: usize,
    results: usize,
    mean_length: f64,
    longest: usize,
    /// Entries by number of components, from 0. The last element counts all deeper entries, too.
    by_depth: Vec<u64>,
    /// Entries with other entries beneath them.
    with_entries_beneath: u64,
    names_bytes: u64,
    /// Entries of a list of domains.
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<ListEntries>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregation: Option<Aggregation>,
    machines: Vec<Machine>,
    engines: Vec<EngineReport<OfNames>>,
}

/// The entries of a list of domains, by scope, and how many of them are exceptions.
#[derive(Debug, Serialize)]
struct ListEntries {
    exact: usize,
    one_label: usize,
    beneath: usize,
    subtree: usize,
    exceptions: usize,
    /// Different answers of its names.
    answers: usize,
}

impl From<&OfList> for ListEntries {
    fn from(list: &OfList) -> Self {
        let [exact, one_label, beneath, subtree] = list.counts.by_scope;
        let (exceptions, answers) = (list.counts.exceptions, list.answers.len());
        Self { exact, one_label, beneath, subtree, exceptions, answers }
    }
}

/// The effect of the paper's rules of aggregation.
#[derive(Debug, Serialize)]
struct Aggregation {
    /// Entries that rule 1 applies to: they have another entry as a prefix.
    beneath: usize,
    /// Entries of these that rule 2 applies to, too: the nearest entry above has the same result.
    saved: usize,
    left: usize,
}

impl From<Savings> for Aggregation {
    fn from(savings: Savings) -> Self {
        Self { beneath: savings.beneath, saved: savings.saved, left: savings.left() }
    }
}

/// The state machine for a number of bytes a step.
#[derive(Debug, Serialize)]
struct Machine {
    stride: usize,
    states: u64,
    transitions: u64,
    leaves: u64,
    /// States with one transition.
    single: u64,
    /// The most transitions of a state.
    widest: u64,
    /// Bytes of its two-dimensional table.
    #[serde(skip_serializing_if = "Option::is_none")]
    stt_bytes: Option<u64>,
}

/// Further facts about a table of names.
#[derive(Debug, Serialize)]
struct OfNames {
    /// The factor by which it is smaller than the two-dimensional table.
    stt_ratio: Option<f64>,
    /// The arrays that hold transitions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    arrays: Vec<Array>,
}

impl More for OfNames {
    fn beside_bytes(&self) -> String {
        self.stt_ratio.map_or_else(String::new, |ratio| format!(", {ratio:.1} times under the STT"))
    }

    fn line(&self) -> Option<String> {
        let load = |array: &Array| format!("{:.1} % of {}", 100.0 * array.load, Grouped(array.places));
        let loads: Vec<_> = self.arrays.iter().map(load).collect();
        (!loads.is_empty()).then(|| format!("load of each array: {}", loads.join(", ")))
    }
}

#[derive(Debug, Serialize)]
struct Array {
    places: u64,
    taken: u64,
    load: f64,
}

/// The number of depths that are reported singly.
const DEPTHS: usize = 16;

impl Report {
    /// The report without the engines, for these compiled names.
    fn of(loaded: &Loaded, compiled: &NameRib) -> Self {
        let Loaded { fib, report: read, list, .. } = loaded;
        let (file, format, records, skipped) = read.parts();
        let names = &fib.names;
        let (mut by_depth, mut bytes, mut longest, mut above) = (vec![0; DEPTHS + 1], 0, 0, 0);
        let mut tell = |depth: usize, length: usize, has_children: bool| {
            by_depth[depth.min(DEPTHS)] += 1;
            bytes += length as u64;
            longest = longest.max(length);
            above += u64::from(has_children);
        };
        each(names, |depth, length, node| tell(depth, length, node.has_children()));
        let last = by_depth.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        by_depth.truncate(last);
        let machines: Vec<_> = (1..=4).filter_map(|stride| Machine::of(compiled, stride)).collect();
        Self {
            file: file.to_owned(),
            format,
            records,
            skipped,
            entries: names.len(),
            components: names.node_count() - 1,
            results: fib.labels.len(),
            mean_length: share(bytes, names.len() as u64),
            longest,
            by_depth,
            with_entries_beneath: above,
            names_bytes: names.memory_usage(),
            list: list.as_ref().map(ListEntries::from),
            aggregation: None,
            machines,
            engines: Vec::new(),
        }
    }

    fn print(&self, output: &mut Output) -> Result<()> {
        let share_of = |count: u64| 100.0 * share(count, self.entries as u64);
        output.line("")?;
        output.line(format_args!(
            "{}, {:.1} bytes each, {} the longest; {:.1} % have entries beneath them",
            counted(self.entries, "entry"),
            self.mean_length,
            grouped(self.longest),
            share_of(self.with_entries_beneath)
        ))?;
        let depth = |(depth, &count): (usize, &u64)| {
            let more = if depth == DEPTHS { " or more" } else { "" };
            (count > 0).then(|| format!("{depth}{more}: {:.1} %", share_of(count)))
        };
        let depths: Vec<_> = self.by_depth.iter().enumerate().filter_map(depth).collect();
        output.line(format_args!("  by number of components: {}", depths.join(", ")))?;
        output.line(format_args!("names held for updates: {}", Bytes(self.names_bytes)))?;
        if let Some(Aggregation { beneath, saved, left }) = &self.aggregation {
            output.line(format_args!(
                "aggregation: {} entries lie beneath others (rule 1), {} of them have the result of the nearest (rule 2): these are \
                 saved, {} are left ({:.1} %)",
                grouped(*beneath),
                grouped(*saved),
                grouped(*left),
                share_of(*left as u64)
            ))?;
        }
        self.machines.iter().try_for_each(|machine| machine.print(output))
    }
}

/// Calls `give` with every entry's depth, length and node.
fn each(names: &NameRib, mut give: impl FnMut(usize, usize, wirespeed_namelookup::Node<'_>)) {
    let children = names.children();
    let mut stack = vec![(names.root(), 0, 0)];
    while let Some((node, depth, length)) = stack.pop() {
        if node.result() != 0 {
            give(depth, length, node);
        }
        stack.extend(
            children.of_node(node).map(|child| (child, depth + 1, length + 1 + child.component().len())),
        );
    }
}

impl Machine {
    /// Makes the machine. `None` if it has too many transitions to number.
    fn of(names: &NameRib, stride: usize) -> Option<Self> {
        let machine = Fsm::of(names, Stride::new(u8::try_from(stride).ok()?)?).ok()?;
        let census = machine.census();
        Some(Self {
            stride,
            states: census.states,
            transitions: census.transitions,
            leaves: census.leaves,
            single: census.single,
            widest: census.widest,
            stt_bytes: (stride == 1).then(|| census.stt_bytes()),
        })
    }

    fn print(&self, output: &mut Output) -> Result<()> {
        let Self { stride, states, transitions, leaves, single, widest, stt_bytes } = self;
        let stt = stt_bytes
            .map_or_else(String::new, |bytes| format!("; as a table of 256 a state {}", Bytes(bytes)));
        output.line(format_args!(
            "{} a step: {}, {}; {:.1} % of the states have one, {:.1} % none, one has {}{stt}",
            counted(*stride, "byte"),
            counted_u64(*states, "state"),
            counted_u64(*transitions, "transition"),
            100.0 * share(*single, *states),
            100.0 * share(*leaves, *states),
            Grouped(*widest),
        ))
    }
}

fn arrays(table: &dyn AnyTable<NameDomain>) -> Vec<Array> {
    let loads = table.loads().into_iter();
    loads
        .map(|load| Array { places: load.places, taken: load.taken, load: share(load.taken, load.places) })
        .collect()
}
