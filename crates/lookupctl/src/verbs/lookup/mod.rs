//! `lookup`: the longest matching prefix and the next hop of addresses.

mod arguments;
mod tables;

use std::ffi::OsString;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use serde::Serialize;
use wirespeed::Error;
use wirespeed::gpu::runtime::GpuOptions;
use wirespeed::image_file::ImageFile;
use wirespeed_fib::merge::MergeSource;
use wirespeed_fib::read::ReadReport;
use wirespeed_fib::{Family, Step};
use wirespeed_sail::FibId;

use crate::Outcome;
use crate::device::On;
use crate::engine::BothFamilies;
use crate::lines::{self, BadLine};
use crate::merged;
use crate::number::counted_u64;
use crate::output::Output;
use crate::several;
use crate::source::{ReadArguments, TableArguments};
use crate::stdin;
use tables::{Compile, Found, Routes, Tables};

pub(in crate::verbs) use arguments::{LookupArguments, Printer};

/// Looks up addresses: shows the longest matching prefix of each, and its next hop
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Addresses of both families. By default read from standard input, one on each line
    #[arg(value_name = "ADDRESS")]
    addresses: Vec<IpAddr>,

    /// The table; - is standard input. Several tables are the FIBs of virtual routers: 0, 1 and so on
    #[arg(long, value_name = "FILE", required_unless_present_any = ["image", "merge"])]
    fib: Vec<OsString>,

    /// Sources to merge to one table, each by an option of its own: see build
    #[arg(long, value_name = "NAME[:COLUMN,...]=FILE", conflicts_with_all = ["fib", "within", "image"])]
    merge: Vec<MergeSource>,

    /// FIB to look up in, if there are several
    #[arg(long = "in", value_name = "ID", default_value_t = 0, conflicts_with = "image")]
    within: u16,

    /// Compiled table (see build), instead of --fib. In an image of VRFs, --vrf is the number of a VRF
    #[arg(long, value_name = "IMG", conflicts_with_all = ["fib", "engine", "strides", "memory_cap", "verbose"])]
    image: Option<PathBuf>,

    #[command(flatten)]
    lookup: LookupArguments<BothFamilies>,

    /// Show every prefix that contains an address, shortest first: in JSON as "all"
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    table: TableArguments,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl lookup --fib fib.txt 192.0.2.1 2001:db8::1
  ip -j route | lookupctl lookup --fib - 192.0.2.1
  lookupctl lookup --fib fib.txt --explain 192.0.2.1
  lookupctl lookup --fib fib.txt --all 192.0.2.1
  lookupctl lookup --fib rib.mrt.bz2 --json < hosts | jq -r .next_hop | sort
  lookupctl lookup --image fib.img 192.0.2.1
  lookupctl lookup --merge own=networks.csv --merge asn=pfx2as.txt 192.0.2.1
  lookupctl lookup --image vrfs.img --vrf 7 192.0.2.1
  lookupctl lookup --fib fib.txt --device gpu 192.0.2.1
  lookupctl lookup --fib red.txt --fib blue.txt --in 1 192.0.2.1

A table may be a list of prefixes without next hops. Each prefix then has the next hop member, and an address without a route is in no prefix.
With --json an answer is {\"address\",\"prefix\",\"next_hop\"}, null if nothing matches.
Every answer of the engine is checked against the routes, if they are known.
The first line of standard input that is not an address ends the lookups. With --lenient such lines are reported by number, passed over and counted.
Exit status 1 says that an address matches nothing, or that an answer is wrong; 2 says that a line was not an address, even if other lines were answered.";

pub(crate) fn run(options: Options) -> Result<Outcome> {
    let from_stdin = options.addresses.is_empty();
    let inputs = || options.fib.iter().chain(options.merge.iter().map(|source| &source.file));
    if from_stdin && inputs().any(|file| file == "-") {
        bail!("the table and the addresses can't both come from standard input");
    }
    let within = usize::from(options.within);
    if !options.fib.is_empty() && within >= options.fib.len() {
        bail!("--in {within}: there are {} FIBs, numbered from 0", options.fib.len());
    }
    if options.fib.len() > 1 {
        several::check_engine(options.lookup.engine, options.fib.len())?;
        if options.lookup.device == On::Gpu {
            bail!("--device gpu looks up in one FIB, and {} are given", options.fib.len());
        }
    }
    let images = options.image.as_deref().map(ImageFile::open_all);
    let is_of_vrfs = matches!(images, Some(Err(Error::ImageOf { found: "VRFs", .. })));
    let vrfs = options.image.as_deref().filter(|_| is_of_vrfs);
    let fleet = options.lookup.fleet(&GpuOptions::default())?;
    stdin::at_most_one(inputs().map(|file| ("the table", Some(&**file))))?;
    let loaded = several::load(&options.read, &options.fib)?;
    if vrfs.is_none() && options.merge.is_empty() {
        options.read.check(&loaded.iter().map(|loaded| &loaded.report).collect::<Vec<_>>(), None)?;
    }
    let mut left_out = loaded.iter().map(|loaded| loaded.report.faults()).sum();
    let mut fibs: Vec<_> = loaded.into_iter().map(|loaded| loaded.fib).collect();
    if !options.merge.is_empty() {
        let (fib, reports) = merged::load(&options.read, &options.merge)?;
        (fibs, left_out) = (vec![fib], reports.iter().map(ReadReport::faults).sum());
    }
    let tables = match (vrfs, images) {
        (Some(path), _) => Tables::of_vrf(path, options.read.vrf(), fleet.as_ref())?,
        (None, Some(images)) => {
            let images = images?;
            // The tables of one file were read from one.
            if let Some(image) = images.first() {
                left_out = image.left_out()?;
                tell_left_out(image.path(), left_out);
            }
            Tables::of_images(images, fleet.as_ref())?
        }
        (None, None) => {
            let routes = Routes { fibs: &fibs, within: FibId(options.within) };
            let (engine, build) = (options.lookup.engine, options.table.build_options(1));
            Tables::of_routes(routes, Compile { engine, build, fleet })
        }
    };
    let mut session = Session { tables, all: options.all, left_out, printer: options.lookup.printer() };
    if from_stdin {
        let lenient = options.read.is_lenient();
        lines::each_good(&mut session, LONGEST, lenient, Session::answer_line, |session| {
            Ok(session.printer.output.flush()?)
        })?;
    } else {
        options.addresses.iter().try_for_each(|&address| session.answer(address))?;
    }
    session.printer.finish()
}

/// Says that lines were left out of an image's table.
pub(in crate::verbs) fn tell_left_out(image: &Path, lines: u64) {
    if lines > 0 {
        let lines = counted_u64(lines, "line");
        eprintln!("{}: built without {lines} that --lenient left out", image.display());
    }
}

/// One line of JSON.
#[derive(Serialize)]
struct Line {
    address: IpAddr,
    prefix: Option<String>,
    next_hop: Option<String>,
    /// Every prefix that contains the address, shortest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<Vec<Covering>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<StepLine>>,
    /// Lines that lenient reading left out of the table: any of them could have changed the answer.
    #[serde(skip_serializing_if = "is_none_left_out")]
    left_out: u64,
}

/// Whether a table is whole, so that answers say nothing of it.
#[allow(clippy::trivially_copy_pass_by_ref)] // as serde wants it
pub(in crate::verbs) const fn is_none_left_out(left_out: &u64) -> bool {
    *left_out == 0
}

/// A prefix that contains an address.
#[derive(Serialize)]
struct Covering {
    prefix: String,
    next_hop: String,
}

#[derive(Serialize)]
pub(in crate::verbs) struct StepLine {
    section: &'static str,
    index: u64,
    value: u64,
    meaning: String,
}

/// A session that answers addresses on stdout.
struct Session<'a> {
    tables: Tables<'a>,
    /// Whether every prefix that contains an address is told.
    all: bool,
    /// Lines that were left out of the tables.
    left_out: u64,
    printer: Printer,
}

impl Session<'_> {
    /// Answers the address of a line, if there is one.
    fn answer_line(&mut self, line: &[u8]) -> Result<Result<(), BadLine>> {
        let text = line.split(|&byte| byte == b'#').next().unwrap_or_default().trim_ascii();
        if text.is_empty() {
            return Ok(Ok(()));
        }
        let Some(address) = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) else {
            let text = String::from_utf8_lossy(&text[..text.len().min(60)]).escape_debug().to_string();
            return Ok(Err(BadLine(anyhow!("not an address: \"{text}\""))));
        };
        match self.tables.refuses(Family::of(address)) {
            Some(why) => Ok(Err(BadLine(why))),
            None => Ok(Ok(self.answer(address)?)),
        }
    }

    fn answer(&mut self, address: IpAddr) -> Result<()> {
        let table = self.tables.of(Family::of(address))?;
        let Found { prefix, next_hop, wrong } = table.answer(address)?;
        let all = if self.all { Some(table.all(address)?) } else { None };
        let steps = if self.printer.explain { Some(table.explain(address)?) } else { None };
        let covering = |(prefix, next_hop)| Covering { prefix, next_hop: self.tables.name(next_hop) };
        let all = all.map(|all| all.into_iter().map(covering).collect::<Vec<_>>());
        let next_hop = next_hop.is_some().then(|| self.tables.name(next_hop));
        if next_hop.is_none() || wrong.is_some() {
            self.printer.outcome = Outcome::Differs;
        }
        if self.printer.json {
            let steps = steps.map(|steps| steps.into_iter().map(StepLine::from).collect());
            self.printer.output.json(&Line {
                address,
                prefix,
                next_hop,
                all,
                steps,
                left_out: self.left_out,
            })?;
        } else {
            self.print(address, prefix.as_deref(), next_hop.as_deref())?;
            for Covering { prefix, next_hop } in all.unwrap_or_default() {
                self.printer.output.line(format_args!("  {prefix}  {next_hop}"))?;
            }
            print_steps(&mut self.printer.output, &steps.unwrap_or_default())?;
        }
        if let Some(wrong) = wrong {
            self.printer.wrong(&wrong)?;
        }
        Ok(())
    }

    fn print(&mut self, address: IpAddr, prefix: Option<&str>, next_hop: Option<&str>) -> Result<()> {
        let output = &mut self.printer.output;
        match (prefix, next_hop) {
            (Some(prefix), Some(name)) => output.line(format_args!("{address}  {prefix}  {name}")),
            (Some(prefix), None) => output.line(format_args!("{address}  {prefix}  no next hop")),
            (None, Some(name)) => output.line(format_args!("{address}  {name}")),
            (None, None) => output.line(format_args!("{address}  no route")),
        }
    }
}

/// Prints the steps of a lookup, a line each.
pub(in crate::verbs) fn print_steps(output: &mut Output, steps: &[Step]) -> Result<()> {
    steps.iter().try_for_each(|Step { section, index, value, meaning }| {
        output.line(format_args!("  {section}[{index}] = {value:#x}: {meaning}"))
    })
}

impl From<Step> for StepLine {
    fn from(Step { section, index, value, meaning }: Step) -> Self {
        Self { section, index, value, meaning }
    }
}

/// The most bytes of a line with an address.
const LONGEST: u64 = 4096;
