//! `info`: what is in a table, and what each engine makes of it.

pub(in crate::verbs) mod image;
mod strides;

use std::ffi::{OsStr, OsString};
use std::fmt;

use anyhow::{Context, Result};
use clap::Args;
use image::ImageReport;
use serde::Serialize;
use strides::Choices;
use wirespeed::engine::Addresses;
use wirespeed_fib::read::ReadReport;
use wirespeed_fib::stats::Stats;
use wirespeed_fib::{BuildOptions, Family, Fib, NextHop, NextHops, V4, V6};
use wirespeed_image::Table;
use wirespeed_sail::SailM;

use crate::Outcome;
use crate::busy::Busy;
use crate::engine::{BothFamilies, Selection};
use crate::family::number_of;
use crate::made::{EngineReport, Entries, InfoArguments, NoMore};
use crate::memory;
use crate::number::{Bytes, counted_u64, share};
use crate::output::Output;
use crate::refuse::{IMAGE, refuse};
use crate::several;
use crate::skipped::Skipped;
use crate::source::{FamilyArgument, Loaded, MemoryArgument, ReadArguments, is_image};
use crate::stdin;
use crate::strides::{TRANSACTION, parse_transaction};

/// Tells what is in a table: counts, lengths, nesting, next hops, and memory and build time of engines;
/// or what an image is.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The table, or an image (see build); - is standard input. Of several tables it is also told what they
    /// take as the FIBs of one structure
    #[arg(value_name = "FIB", required = true)]
    fibs: Vec<OsString>,

    #[command(flatten)]
    info: InfoArguments<BothFamilies>,

    /// Tell only what strides a multi-bit trie of the table (gamt, gamt-s) may have: for every number of
    /// levels, and the fastest
    #[arg(long)]
    strides: bool,

    /// Bytes of a memory transaction, of which strides by number of levels take the fewest: 32, 64 or 128
    #[arg(long, value_name = "BYTES", default_value_t = TRANSACTION, requires = "strides", value_parser = parse_transaction)]
    transaction: u32,

    #[command(flatten)]
    family: FamilyArgument,
    #[command(flatten)]
    memory: MemoryArgument,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl info fib.txt.zst
  ip -6 route | lookupctl info -
  lookupctl info rib.20260501.mrt.bz2 --peer 193.0.0.56
  lookupctl info red.txt blue.txt green.txt
  lookupctl info fib.txt --engine fold --sections
  lookupctl info fib.img                      what an image is
  lookupctl info fib.txt --strides --transaction 32
  lookupctl info fib.txt --json | jq '.engines[] | {engine, bytes_per_prefix}'

With --json there is one object for each image, and for each table and family. Of several tables, one more for each family tells \
what they take together.";

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let build = options.memory.build_options(1);
    let mut output = Output::new();
    stdin::at_most_one(options.fibs.iter().map(|fib| ("the table", Some(&**fib))))?;
    if options.fibs.iter().all(|from| is_image(from)) {
        let own = [("strides", options.strides), options.family.given(), options.memory.given()];
        refuse(&[&own[..], &options.read.given()].concat(), IMAGE)?;
    }
    let (mut fibs, mut reports) = (Vec::new(), Vec::new());
    for from in &options.fibs {
        if is_image(from) {
            for report in ImageReport::of(from)? {
                report.show(options.info.json, &mut output)?;
            }
            continue;
        }
        let Loaded { fib, report, .. } = options.tell(from, &build, &mut output)?;
        fibs.push(fib);
        reports.push(report);
    }
    if !fibs.is_empty() || options.fibs.is_empty() {
        options.read.check(&reports.iter().collect::<Vec<_>>(), None)?;
    }
    if fibs.len() > 1 && !options.strides {
        for family in [Family::V4, Family::V6] {
            if options.family.wanted().is_some_and(|only| only != family)
                || fibs.iter().all(|fib| fib.len(family) == 0)
            {
                continue;
            }
            let together = match family {
                Family::V4 => Together::of::<V4>(&fibs, &build),
                Family::V6 => Together::of::<V6>(&fibs, &build),
            };
            if options.info.json { output.json(&together)? } else { output.line(&together)? }
        }
    }
    output.finish()?;
    Ok(Outcome::Done)
}

impl Options {
    /// Tells about one table.
    fn tell(&self, from: &OsStr, build: &BuildOptions, output: &mut Output) -> Result<Loaded> {
        let loaded = self.read.load_quietly(from)?;
        if self.fibs.len() == 1 {
            // Before anything is told, and built.
            self.read.check(&[&loaded.report], None)?;
        }
        let fib = &loaded.fib;
        if !self.info.json {
            output.line(&loaded)?;
            self.read.tell_peers(&loaded.report);
        }
        for family in [Family::V4, Family::V6] {
            let wanted = match self.family.wanted() {
                Some(only) => only == family,
                // An empty table is told about once.
                None => fib.len(family) > 0 || (fib.is_empty() && family == Family::V4),
            };
            if !wanted {
                continue;
            }
            if self.strides {
                self.tell_strides(&loaded, family, output)?;
                continue;
            }
            let report = match family {
                Family::V4 => Report::of::<V4>(fib, &loaded.report, build, self.info.engine)?,
                Family::V6 => Report::of::<V6>(fib, &loaded.report, build, self.info.engine)?,
            };
            if self.info.json { output.json(&report)? } else { report.print(self.info.sections, output)? }
        }
        Ok(loaded)
    }

    /// Tells what strides a table may have.
    fn tell_strides(&self, loaded: &Loaded, family: Family, output: &mut Output) -> Result<()> {
        let (file, fib) = (&loaded.report.name, &loaded.fib);
        let choices = match family {
            Family::V4 => Choices::of(file, &fib.v4, self.transaction)?,
            Family::V6 => Choices::of(file, &fib.v6, self.transaction)?,
        };
        if self.info.json { choices.json(output) } else { choices.print(output) }
    }
}

/// What several tables of a family take as the FIBs of one structure, and what they take apart.
#[derive(Debug, Serialize)]
struct Together {
    family: u8,
    fibs: usize,
    #[serde(flatten)]
    sizes: Sizes,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Sizes {
    Built {
        prefixes: u64,
        /// All in one: by the engine of several FIBs.
        overlay: Size,
        /// A table for each: by the engine that suits the largest best.
        apart: Size,
    },
    Refused {
        error: String,
    },
}

#[derive(Debug, Serialize)]
struct Size {
    engine: &'static str,
    bytes: u64,
}

impl Together {
    fn of<A: Addresses>(fibs: &[Fib], build: &BuildOptions) -> Self {
        let refused =
            |error: anyhow::Error| Sizes::Refused { error: memory::as_asked(&format!("{error:#}")) };
        let sizes = Sizes::of::<A>(fibs, build).unwrap_or_else(refused);
        Self { family: number_of(A::FAMILY), fibs: fibs.len(), sizes }
    }
}

impl Sizes {
    fn of<A: Addresses>(fibs: &[Fib], build: &BuildOptions) -> Result<Self> {
        let routes = several::routes::<A>(fibs)?;
        let (_, table) = SailM::overlay(&routes, build).context(several::ENGINE)?;
        let largest = routes.iter().map(|(_, rib)| rib).max_by_key(|rib| rib.len());
        let name = A::best(largest.context("no FIB")?);
        let mut apart = 0;
        for (_, rib) in routes.iter() {
            let compiled = A::compile(name, rib, build)?.with_context(|| name.to_string())?;
            apart += compiled.table.image().bytes();
        }
        Ok(Self::Built {
            prefixes: table.image().entries(),
            overlay: Size { engine: several::ENGINE, bytes: table.image().bytes() },
            apart: Size { engine: name.as_str(), bytes: apart },
        })
    }
}

impl fmt::Display for Together {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, fibs, sizes } = self;
        write!(f, "\n{fibs} FIBs in one, IPv{family}: ")?;
        match sizes {
            Sizes::Refused { error } => write!(f, "can't be built: {error}"),
            Sizes::Built { prefixes, overlay, apart } => write!(
                f,
                "{} in {} by {}, {:.0} % of the {} that they take apart by {}",
                counted_u64(*prefixes, "prefix"),
                Bytes(overlay.bytes),
                overlay.engine,
                100.0 * share(overlay.bytes, apart.bytes),
                Bytes(apart.bytes),
                apart.engine
            ),
        }
    }
}

/// All about one family of a table.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    format: String,
    records: u64,
    /// Prefixes whose host bits were masked.
    masked: u64,
    skipped: Vec<Skipped>,
    #[serde(flatten)]
    stats: Stats,
    /// Next hops of the statistics, by name.
    #[serde(rename = "top_next_hop_names")]
    top_next_hops: Vec<TopNextHop>,
    rib_bytes: u64,
    engines: Vec<EngineReport<NoMore>>,
}

#[derive(Debug, Serialize)]
struct TopNextHop {
    index: u32,
    next_hop: String,
    prefixes: usize,
}

impl Report {
    fn of<A: Addresses>(
        fib: &Fib,
        read: &ReadReport,
        build: &BuildOptions,
        engines: Selection,
    ) -> Result<Self> {
        let rib = A::rib(fib);
        let busy = Busy::with("counting");
        let stats = Stats::of(rib);
        let measure = |engine| {
            busy.now(format!("building {engine}"));
            let entries = Entries { count: rib.len() as u64, one: "prefix" };
            EngineReport::of::<A>(engine, rib, (rib.clone(), ()), build, entries, |_| NoMore {})
        };
        engines.check_strides(rib, &build.strides)?;
        let engines = engines.engines::<A>(rib)?.into_iter().map(measure).collect::<Result<_>>()?;
        Ok(Self {
            file: read.name.clone(),
            format: read.format.to_string(),
            records: read.records,
            masked: read.masked,
            skipped: read
                .skipped
                .iter()
                .map(|skipped| Skipped::new(&skipped.reason, skipped.count))
                .collect(),
            top_next_hops: top_names(&stats, &fib.next_hops),
            stats,
            rib_bytes: rib.memory_usage() as u64,
            engines,
        })
    }
}

/// The most used next hops as the source calls them.
fn top_names(stats: &Stats, next_hops: &NextHops) -> Vec<TopNextHop> {
    stats
        .top_next_hops
        .iter()
        .map(|&(index, prefixes)| TopNextHop {
            index,
            next_hop: next_hops.text(NextHop(index)).unwrap_or_default().to_owned(),
            prefixes,
        })
        .collect()
}

impl Report {
    fn print(&self, with_sections: bool, output: &mut Output) -> Result<()> {
        output.line("")?;
        output.line(&self.stats)?;
        if !self.top_next_hops.is_empty() {
            let names = self.top_next_hops.iter().map(|top| format!("{} = {}", top.index, top.next_hop));
            output.line(format_args!("  by name: {}", names.collect::<Vec<_>>().join(", ")))?;
        }
        output.line(format_args!("routes held for updates: {}", Bytes(self.rib_bytes)))?;
        self.engines.iter().try_for_each(|engine| engine.print(with_sections, output))
    }
}
