//! `gen`: generates synthetic tables, traces and updates of realistic shape from a seed.

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use wirespeed_fib::read::{Format, TimedUpdate};
use wirespeed_fib::synth::{self, TableSpec, Timed, UpdateSpec};
use wirespeed_fib::trace::{TraceKind, write_packed, write_text};
use wirespeed_fib::write::{write_fib, write_updates};
use wirespeed_fib::{Family, Fib, InFib, NextHops, V4, V6};
use wirespeed_image::replace_file;

use crate::Outcome;
use crate::busy::Busy;
use crate::family;
use crate::interrupt::{Interrupted, Running, UntilSignal, is_interrupted};
use crate::number::{parse_count, parse_positive};
use crate::output::{self, Output, is_no_input};
use crate::source::{FamilyArgument, ReadArguments, format_parser};
use crate::trace;

/// Generates synthetic tables, traces and updates of realistic shape; equal options give equal data on every
/// machine
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum What {
    Fib(FibOptions),
    Trace(TraceOptions),
    Updates(UpdatesOptions),
}

const EXAMPLES: &str = "\
Examples:
  lookupctl gen fib > full.txt              a table like today's full IPv4 table
  lookupctl gen fib --family 6 --count 10k --seed 7 -o six.txt
  lookupctl gen trace --fib full.txt --kind zipf:1.1 --to bin -o popular.bin
  lookupctl gen updates --fib full.txt --count 100k > updates.txt";

/// A table with today's distribution of lengths, density, nesting and next hops
#[derive(Debug, Args)]
pub(crate) struct FibOptions {
    /// Address family, 4 or 6
    #[arg(long, value_name = "4|6", default_value = "4", value_parser = family::parse)]
    family: Family,

    /// Number of prefixes. The default is the size of today's full table
    #[arg(long, alias = "prefixes", value_name = "N", value_parser = parse_positive)]
    count: Option<usize>,

    /// Number of next hops
    #[arg(long, value_name = "N", default_value = "62", value_parser = parse_count)]
    next_hops: u64,

    /// Format. In pfx2as next hops are origins, numbers of ASes of private use
    #[arg(long, value_name = "FORMAT", default_value = "plain", value_parser = format_parser(Format::is_written))]
    to: Format,

    #[command(flatten)]
    common: Common,
}

/// Addresses to look up in a table
#[derive(Debug, Args)]
pub(crate) struct TraceOptions {
    /// random (all over the address space), prefix (an address inside a random prefix), zipf:SKEW (prefixes
    /// by popularity) or deepest (the addresses that take most steps)
    #[arg(long, default_value = "prefix")]
    kind: TraceKind,

    /// Number of addresses
    #[arg(long, value_name = "N", default_value = "1M", value_parser = parse_positive)]
    count: usize,

    /// Format: one address on each line, or 4 or 16 bytes each in network order
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    to: TraceFormat,

    #[command(flatten)]
    table: TableArguments,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TraceFormat {
    Text,
    Bin,
}

/// Updates of a table, with times, mixed as in the real stream
#[derive(Debug, Args)]
pub(crate) struct UpdatesOptions {
    /// Number of updates
    #[arg(long, value_name = "N", default_value = "1M", value_parser = parse_positive)]
    count: usize,

    /// Updates a second, for the times. The default is the average of the real stream
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    rate: Option<usize>,

    /// Format
    #[arg(long, value_name = "FORMAT", default_value = "updates", value_parser = format_parser(Format::holds_updates))]
    to: Format,

    #[command(flatten)]
    table: TableArguments,
    #[command(flatten)]
    common: Common,
}

/// The table that a trace or updates are generated for.
#[derive(Debug, Args)]
struct TableArguments {
    /// The table; - is standard input. The default is the table that gen fib generates from the same seed
    #[arg(long, value_name = "FILE")]
    fib: Option<OsString>,

    #[command(flatten)]
    family: FamilyArgument,
    #[command(flatten)]
    read: ReadArguments,
}

#[derive(Debug, Args)]
pub(crate) struct Common {
    /// The seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Output file, or - for standard output, which is the default
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(what: &What) -> Result<Outcome> {
    match what {
        What::Fib(options) => options.run(),
        What::Trace(options) => options.run(),
        What::Updates(options) => options.run(),
    }?;
    Ok(Outcome::Done)
}

impl FibOptions {
    fn run(&self) -> Result<()> {
        let full = TableSpec::full(self.family);
        let prefixes = self.count.unwrap_or(full.prefixes);
        let next_hops = u32::try_from(self.next_hops).context("--next-hops is over 4294967295")?;
        let spec = TableSpec { prefixes, next_hops, seed: self.common.seed };
        let mut fib = make(self.family, &spec)?;
        if self.to == Format::Pfx2as {
            fib.next_hops = origins(&fib.next_hops)?;
        }
        self.common.write(|to| Ok(write_fib(&fib, self.to, to)?))
    }
}

/// Numbers of ASes of private use (RFC 6996) in place of next hops, for a format that has origins.
fn origins(next_hops: &NextHops) -> Result<NextHops> {
    const FIRST: u64 = 4_200_000_000;
    let mut origins = NextHops::new();
    for asn in (FIRST..).take(next_hops.len()) {
        origins.intern(&asn.to_string())?;
    }
    Ok(origins)
}

impl TraceOptions {
    fn run(&self) -> Result<()> {
        self.common.over_no_input(&self.table.fib)?;
        let (fib, family) = self.table.load(self.common.seed)?;
        match family {
            Family::V4 => self.write::<V4>(&fib),
            Family::V6 => self.write::<V6>(&fib),
        }
    }

    fn write<A: InFib>(&self, fib: &Fib) -> Result<()> {
        let busy = Busy::with("making the trace");
        let keys = trace::made(self.kind, A::rib(fib), self.count, self.common.seed)?;
        drop(busy);
        self.common.write(|to| {
            match self.to {
                TraceFormat::Text => write_text(&keys, to)?,
                TraceFormat::Bin => write_packed(&keys, to)?,
            }
            Ok(())
        })
    }
}

impl UpdatesOptions {
    fn run(&self) -> Result<()> {
        self.common.over_no_input(&self.table.fib)?;
        let (fib, family) = self.table.load(self.common.seed)?;
        match family {
            Family::V4 => self.write::<V4>(&fib),
            Family::V6 => self.write::<V6>(&fib),
        }
    }

    fn write<A: InFib>(&self, fib: &Fib) -> Result<()> {
        let mut spec = update_spec::<A>(fib, self.common.seed);
        #[allow(clippy::cast_precision_loss)] // a rate
        if let Some(rate) = self.rate {
            spec.rate = rate as f64;
        }
        let mut updates = synth::Updates::new(A::rib(fib), &spec).take(self.count);
        self.common.write(|to| {
            updates.try_for_each(|Timed { at, update }| {
                let update = TimedUpdate { time: Some(at), update: A::any(update) };
                Ok(write_updates([&update], &fib.next_hops, self.to, to)?)
            })
        })
    }
}

/// The mix of updates for a table as in the real stream, with the table's own next hops.
pub(crate) fn update_spec<A: InFib>(fib: &Fib, seed: u64) -> UpdateSpec {
    let next_hops = u32::try_from(fib.next_hops.len()).unwrap_or(u32::MAX).max(1);
    UpdateSpec { next_hops, seed, ..UpdateSpec::real(A::FAMILY) }
}

impl TableArguments {
    fn load(&self, seed: u64) -> Result<(Fib, Family)> {
        if let Some(fib) = &self.fib {
            let fib = self.read.load(fib)?;
            let family = family::choose(self.family.wanted(), &fib);
            return Ok((fib, family));
        }
        self.read.check(&[], None)?;
        let family = self.family.wanted().unwrap_or(Family::V4);
        Ok((make(family, &TableSpec { seed, ..TableSpec::full(family) })?, family))
    }
}

/// A table of one family.
pub(crate) fn make(family: Family, spec: &TableSpec) -> Result<Fib> {
    let _busy = Busy::with("making a table");
    Ok(match family {
        Family::V4 => synth::fib(Some(spec), None)?,
        Family::V6 => synth::fib(None, Some(spec))?,
    })
}

impl Common {
    /// The seed.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Refuses an output that is the input.
    pub(crate) fn over_no_input(&self, input: &Option<OsString>) -> Result<()> {
        is_no_input(self.output.as_deref(), input)
    }

    /// Writes to the output.
    pub(crate) fn write(&self, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        Self::write_to(self.output.as_deref(), write)
    }

    /// Writes to a file, or to standard output without one and for `-`. A file that was there stays as it was
    /// if this fails.
    pub(crate) fn write_to(
        path: Option<&Path>,
        write: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        Self::write_boxed(path, Box::new(write))
    }

    fn write_boxed(path: Option<&Path>, write: Writing<'_>) -> Result<()> {
        let path = output::file(path);
        let _busy = Busy::unless_seen("writing", path.is_some());
        let Some(path) = path else { return put(None, write) };
        // A signal ends the writing as a failure does, so that no unfinished file stays.
        let _running = Running::begin();
        match put(Some(path), Box::new(|to| write(&mut UntilSignal(to)))) {
            Err(_) if is_interrupted() => Err(Interrupted("the file was whole").into()),
            written => written,
        }
    }

    /// Writes like [`write_to`](Self::write_to), without a sign of life.
    pub(crate) fn write_quietly(
        path: Option<&Path>,
        write: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        put(output::file(path), Box::new(write))
    }
}

/// A function that writes an output. Its type is not needed, so what is around it is compiled once.
type Writing<'w> = Box<dyn FnOnce(&mut dyn Write) -> Result<()> + 'w>;

/// Writes to a file, or to standard output.
fn put(path: Option<&Path>, write: Writing<'_>) -> Result<()> {
    let Some(path) = path else {
        let mut output = Output::new();
        write(&mut output)?;
        return output.finish();
    };
    let replaced = replace_file(path, |file| -> Result<()> {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        Ok(file.flush()?)
    });
    let Err(error) = replaced else { return Ok(()) };
    // An error of what `write` reads says where it is.
    let is_of_file = error.chain().len() == 1 && error.is::<std::io::Error>();
    Err(if is_of_file { error.context(path.display().to_string()) } else { error })
}
