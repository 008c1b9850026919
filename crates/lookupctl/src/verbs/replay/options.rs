//! [`Options`]: what a replay was asked for, and its table, trace and updates.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use wirespeed::engine::Addresses;
use wirespeed::gpu::runtime::GpuOptions;
use wirespeed_fib::merge::MergeSource;
use wirespeed_fib::read::ReadReport;
use wirespeed_fib::synth::{self, TableSpec};
use wirespeed_fib::{AnyUpdate, Family, Fib, InFib, NextHop, Rib, Update, V4, V6};
use wirespeed_input::plural;
use wirespeed_sail::Fibs;

use super::arguments::{DriveArguments, Updates};
use crate::engine::{self, BothFamilies, Choice};
use crate::family;
use crate::followed::Followed;
use crate::memory::check_room;
use crate::merged;
use crate::number::{counted, grouped, parse_positive};
use crate::refuse::{NOTHING_MADE, refuse};
use crate::source::{FamilyArgument, ReadArguments, TableArguments};
use crate::trace::{self, AnyKeys, Keys, Trace};
use crate::verbs::generate;

/// Drives a trace through an engine, with updates in flight: rate, latency, hits, and a checksum of the
/// results.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The table; - is standard input. The default is a synthetic one as large as today's full IPv4 table.
    /// Several tables are the FIBs of virtual routers: keys go to each in turn, updates to the first
    #[arg(long, value_name = "FILE")]
    pub(super) fib: Vec<OsString>,

    /// Sources to merge to one table, each by an option of its own: see build
    #[arg(long, value_name = "NAME[:COLUMN,...]=FILE", conflicts_with_all = ["fib", "image", "follow"])]
    pub(super) merge: Vec<MergeSource>,

    /// A source whose routes are the table, and are followed while lookups run: the kernel's main table,
    /// FRR's, which connects to this address by FPM, or routers', by BMP
    #[arg(long, value_name = "kernel|fpm:ADDR:PORT|bmp:ADDR:PORT", conflicts_with_all = ["fib", "image", "updates"])]
    pub(super) follow: Option<Followed>,

    /// A compiled table (see build), to start at once
    #[arg(long, value_name = "IMG", conflicts_with_all = ["fib", "engine", "strides", "updates", "memory_cap"])]
    pub(super) image: Option<PathBuf>,

    /// The addresses to look up: a file (one a line, or .bin), a capture (pcap, pcapng), or a kind of trace
    /// to make: random (all over the space), prefix (a prefix at random, then an address inside), zipf:SKEW
    /// (prefixes by popularity), deepest (the addresses that take most steps)
    #[arg(long, value_name = "FILE|KIND", default_value = "prefix", value_parser = trace::parser())]
    pub(super) trace: Trace,

    /// Number of keys of a trace that is made. The default is 4M
    #[arg(long, alias = "keys", value_name = "N", value_parser = parse_positive)]
    count: Option<usize>,

    /// Seed of all that is made. The default is 1
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// The engine
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = engine::choice::<BothFamilies>())]
    pub(super) engine: Choice,

    #[command(flatten)]
    pub(super) drive: DriveArguments,
    #[command(flatten)]
    pub(super) family: FamilyArgument,
    #[command(flatten)]
    pub(super) table: TableArguments,
    #[command(flatten)]
    pub(super) read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl replay                        a synthetic table and its own trace
  lookupctl replay --updates synth:1M     the same with updates in flight
  lookupctl replay --fib rib.mrt.bz2 --trace capture.pcap
  lookupctl replay --fib fib.txt --updates updates.mrt.gz --rate 100k
  lookupctl replay --fib fib.txt --trace zipf:1.1 --threads 1 --batch 256 --json
  lookupctl replay --image fib.img --trace addresses.bin
  lookupctl replay --follow kernel --seconds 60
  lookupctl replay --merge own=networks.csv --merge asn=pfx2as.txt
  lookupctl replay --fib red.txt --fib blue.txt --engine sail-m
  lookupctl replay --device gpu --updates synth:1M
  lookupctl replay --device gpu --latency-bound 100us

Every thread first looks up its part of the trace once to warm up, then batch after batch until the time is up. \
Latencies are of whole batches: from sending one to having its results, and with --latency-bound, where batches are \
offered at fixed times, from when it was due.
On a GPU each batch sees one state of the table, as on the CPU; where the GPU is lost in mid-run the CPU goes on.
The checksum is the sum of the results (next-hop numbers) of one pass over the trace after the last update, modulo \
2^64: equal for every engine, device and number of threads.
matched counts, among the lookups done, those of keys that a prefix matches in that pass.
With --follow lookups begin when the source's first state is whole. The report tells what it changed meanwhile, and how stale it is.
Updates are read from plain text, bgpdump -m and MRT; those of one peer are taken, the table's where the file has any of it (--peer).
A table of both families is asked for both: all keys of a trace from a file, in its mixture, or made keys of each family in proportion to \
its prefixes. A trace of one family, or --family, takes that family alone. Addresses of a trace that are of the other family than the table \
are passed over and counted. Packed addresses (.bin) name no family: a table of both needs --family for them.
Ctrl-C or SIGTERM ends the replay: what was measured until then is told, and the exit status is 130 or 143. A second one ends it without a word.";

impl Options {
    /// Refuses options for what is made where nothing is.
    pub(super) fn check(&self) -> Result<()> {
        self.trace.refuse_for_file(&[("count", self.count.is_some())])?;
        let is_read = !(self.fib.is_empty() && self.merge.is_empty());
        let has_table = is_read || self.image.is_some() || self.follow.is_some();
        let makes_updates = matches!(self.drive.updates()?, Some(Updates::Made(_)));
        let is_vain = has_table && !self.trace.is_made() && !makes_updates;
        refuse(&[("seed", self.seed.is_some() && is_vain)], NOTHING_MADE)
    }

    /// The number of keys of a trace that is made.
    fn count(&self) -> usize {
        self.count.unwrap_or(4_000_000)
    }

    /// The seed of all that is made.
    fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// The table that was asked for, with the reports of its files, or a synthetic one.
    pub(super) fn load(&self) -> Result<(Fib, Vec<ReadReport>)> {
        if let Some(fib) = self.fib.first() {
            let loaded = self.read.load_one_of(fib)?;
            return Ok((loaded.fib, vec![loaded.report]));
        }
        if !self.merge.is_empty() {
            return merged::load(&self.read, &self.merge);
        }
        let began = Instant::now();
        let family = self.family.wanted().unwrap_or(Family::V4);
        let spec = TableSpec { seed: self.seed(), ..TableSpec::full(family) };
        let fib = generate::make(family, &spec)?;
        eprintln!(
            "synthetic table: {} {family} {}, {}, seed {}, made in {:.2} s",
            grouped(spec.prefixes),
            plural(spec.prefixes as u64, "prefix"),
            counted(fib.next_hops.len(), "next hop"),
            self.seed(),
            began.elapsed().as_secs_f64()
        );
        Ok((fib, Vec::new()))
    }

    /// The families to replay, for a table with so many prefixes of each: the given family, or those that the
    /// table and a trace from a file both have. The keys of such a trace are then read already.
    pub(super) fn families(&self, v4: usize, v6: usize) -> Result<(Families, Option<AnyKeys>)> {
        let one = match (self.family.wanted(), v4, v6) {
            (Some(family), ..) => family,
            (None, 0, 1..) => Family::V6,
            (None, _, 0) => Family::V4,
            (None, 1.., 1..) => return self.families_of_both(v4, v6),
        };
        Ok((Families::One(one), None))
    }

    /// The families to replay on a table of both.
    pub(super) fn families_of_both(&self, v4: usize, v6: usize) -> Result<(Families, Option<AnyKeys>)> {
        match self.trace.of_both_families()? {
            Some(trace @ (AnyKeys::V4(_) | AnyKeys::V6(_))) => {
                let family = trace.family();
                eprintln!(
                    "the table has both families: taking {family}, as the trace has it (--family takes the other)"
                );
                Ok((Families::One(family), Some(trace)))
            }
            trace => {
                family::tell_both(v4, v6);
                Ok((Families::Both, trace))
            }
        }
    }

    /// The family to replay on several FIBs. The keys of a trace from a file may then be read already.
    pub(super) fn family_and_trace(&self, fib: &Fib) -> Result<(Family, Option<AnyKeys>)> {
        if self.family.wanted().is_some() || fib.v4.is_empty() || fib.v6.is_empty() {
            return Ok((family::choose(self.family.wanted(), fib), None));
        }
        let Some(trace) = self.trace.of_both_families()? else {
            return Ok((family::choose(None, fib), None));
        };
        let family = trace.family();
        eprintln!(
            "several FIBs are of one family: taking {family}, as the trace has it (--family takes the other)"
        );
        Ok((family, Some(trace)))
    }

    /// What GPUs are started with for a trace of so many keys, if they are to look up.
    pub(super) fn gpus<A: Addresses>(&self, has_gpu: bool, keys: usize) -> Option<GpuOptions> {
        let options = || self.drive.gpu_options(keys, usize::from(A::BITS / 8), size_of::<NextHop>());
        has_gpu.then(options)
    }

    /// The keys to look up, at least one. They may be read already.
    pub(super) fn keys_read<A: Addresses>(&self, rib: &Rib<A>, read: Option<AnyKeys>) -> Result<Keys<A>> {
        let began = Instant::now();
        let keys = match read.and_then(AnyKeys::into_keys) {
            Some(keys) => keys,
            None => self.trace.keys(rib, self.count(), self.seed())?,
        };
        eprintln!(
            "trace: {}, {} {} {}, ready in {:.2} s",
            self.trace,
            grouped(keys.keys.len()),
            A::FAMILY,
            plural(keys.keys.len() as u64, "key"),
            began.elapsed().as_secs_f64()
        );
        Ok(keys)
    }

    /// The updates that were asked for, read or made.
    pub(super) fn updates<A: Addresses>(
        &self,
        fib: &mut Fib,
        tables: &[&ReadReport],
    ) -> Result<Vec<Update<A>>> {
        let count = match self.drive.updates()? {
            Some(Updates::File(from)) => return self.read.updates(from, &mut fib.next_hops, tables),
            Some(Updates::Made(count)) => Some(count),
            None => None,
        };
        self.read.check(tables, None)?;
        let Some(count) = count else { return Ok(Vec::new()) };
        check_room::<Update<A>>(count, "updates")?;
        Ok(made_updates(fib, self.seed()).take(count).collect())
    }

    /// The keys of both families, at least one of each unless a trace was read. They may be read already.
    /// Keys that are made are of each family in proportion to its prefixes.
    pub(super) fn keys_of_both(
        &self,
        (v4, v6): (&Rib<V4>, &Rib<V6>),
        prefixes: (usize, usize),
        read: Option<AnyKeys>,
    ) -> Result<(Vec<V4>, Vec<V6>)> {
        let began = Instant::now();
        let (fours, sixes) = match (read, &self.trace) {
            (Some(AnyKeys::Both(fours, sixes)), _) => (fours, sixes),
            (_, Trace::Made(kind)) => {
                if self.count() < 2 {
                    bail!("--count {}: a trace of both families has at least 2 keys", self.count());
                }
                let of_v4 = share_of(self.count(), prefixes).clamp(1, self.count() - 1);
                let fours = trace::made(*kind, v4, of_v4, self.seed())?;
                (fours, trace::made(*kind, v6, self.count() - of_v4, self.seed())?)
            }
            (_, Trace::File(_)) => bail!("{}: keys of one family", self.trace),
        };
        eprintln!(
            "trace: {}, {} IPv4 and {} IPv6 {}, ready in {:.2} s",
            self.trace,
            grouped(fours.len()),
            grouped(sixes.len()),
            plural(sixes.len() as u64, "key"),
            began.elapsed().as_secs_f64()
        );
        for (family, prefixes, keys) in
            [(Family::V4, prefixes.0, fours.len()), (Family::V6, prefixes.1, sixes.len())]
        {
            if prefixes == 0 {
                eprintln!("the table has no {family} prefix: {} of the trace miss", counted(keys, "key"));
            }
        }
        Ok((fours, sixes))
    }

    /// The updates of both families that were asked for, read or made. Those that are made are of each family
    /// in proportion to its prefixes.
    pub(super) fn updates_of_both(&self, fib: &mut Fib, tables: &[&ReadReport]) -> Result<Vec<AnyUpdate>> {
        let count = match self.drive.updates()? {
            Some(Updates::File(from)) => return self.read.updates_of_both(from, &mut fib.next_hops, tables),
            Some(Updates::Made(count)) => count,
            None => 0,
        };
        self.read.check(tables, None)?;
        check_room::<AnyUpdate>(count, "updates")?;
        let mut fours = made_updates(fib, self.seed()).map(V4::any);
        let mut sixes = made_updates(fib, self.seed()).map(V6::any);
        let prefixes = (fib.v4.len(), fib.v6.len());
        let before = |update| share_of(update, prefixes);
        let is_v4 = |update| before(update + 1) > before(update);
        Ok((0..count).filter_map(|at| if is_v4(at) { fours.next() } else { sixes.next() }).collect())
    }

    /// The keys to look up in several FIBs in turn: of a trace that is made, each FIB's turns are its own
    /// trace.
    pub(super) fn keys_in_turn<A: Addresses>(
        &self,
        fibs: &Fibs<A>,
        read: Option<AnyKeys>,
    ) -> Result<Keys<A>> {
        let kind = match &self.trace {
            Trace::Made(kind) => *kind,
            Trace::File(_) => return self.keys_read(&Rib::new(), read),
        };
        let share = self.count().div_ceil(fibs.len());
        let mut own = Vec::new();
        for (seed, (id, rib)) in (self.seed()..).zip(fibs.iter()) {
            own.push(trace::made(kind, rib, share, seed).with_context(|| format!("FIB {id}"))?);
        }
        let turn = |key: usize| own[key % own.len()][key / own.len()];
        Ok(Keys { keys: (0..self.count()).map(turn).collect(), other_family: 0 })
    }
}

/// The families that a replay looks up.
#[derive(Clone, Copy)]
pub(super) enum Families {
    One(Family),
    Both,
}

/// The part of a count that is of IPv4, by the prefixes of both families.
#[allow(clippy::cast_possible_truncation)] // at most `count`
fn share_of(count: usize, (v4, v6): (usize, usize)) -> usize {
    (count as u128 * v4 as u128 / (v4 as u128 + v6 as u128).max(1)) as usize
}

/// Endless updates of one family.
fn made_updates<A: InFib>(fib: &Fib, seed: u64) -> impl Iterator<Item = Update<A>> {
    let spec = generate::update_spec::<A>(fib, seed);
    synth::Updates::new(A::rib(fib), &spec).map(|timed| timed.update)
}
