//! `verify`: engines against the oracle.

mod subject;
mod truth;

use std::ffi::OsString;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use subject::{OnCpu, OnGpu, Subject};
use truth::{Mismatch, Truth, Verdict, probes};
use wirespeed::engine::{Addresses, OnDevice, Visitor, visit};
use wirespeed::gpu::ip::{KeyBytes, Remote};
use wirespeed::gpu::runtime::{Fleet, GpuOptions};
use wirespeed_fib::{Address, BuildError, BuildOptions, Engine, Family, LiveTable, Rib, Update, V4, V6};

use crate::Outcome;
use crate::device::On;
use crate::engine::{self, Selection};
use crate::family::{self, number_of};
use crate::output::{Output, progress};
use crate::source::{FamilyArgument, Loaded, ReadArguments, TableArguments};
use crate::stdin;
use crate::threads::{self, all_cores};
use crate::verdict::{self, Line};

/// Holds engines against an independent method: at the ends of every prefix and at random, or at every
/// address.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The table; - is standard input
    #[arg(long, value_name = "FILE")]
    fib: OsString,

    /// Walk all 2^32 IPv4 addresses
    #[arg(long)]
    exhaustive: bool,

    /// An engine, all that are of use, or every one
    #[arg(long, value_name = "NAME", default_value = "all", value_parser = engine::selection())]
    engine: Selection,

    /// Updates to apply to the live table, which is then checked again
    #[arg(long, value_name = "FILE")]
    updates: Option<OsString>,

    /// What looks up: the engines on this machine's cores, or their kernels on its GPUs, for keys of each
    /// width that will do
    #[arg(long, default_value = "cpu")]
    device: On,

    /// Threads; by default one a core
    #[arg(long, value_name = "N", value_parser = threads::parser())]
    threads: Option<usize>,

    /// One JSON object for each engine and state
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    family: FamilyArgument,
    #[command(flatten)]
    table: TableArguments,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl verify --fib rib.mrt.bz2          ends of prefixes, and random
  lookupctl verify --fib fib.txt --exhaustive all 2^32 IPv4 addresses
  lookupctl verify --fib fib.txt --updates updates.txt
  lookupctl verify --fib fib.txt --engine sail-l --json
  lookupctl verify --fib fib.txt --device gpu --exhaustive

The right answers come from the sorted prefixes as ranges of addresses, without any lookup.
Exit status 1 says that an engine is wrong; the first wrong answers are shown.";

/// Updates that readers see appear at once.
const GROUP: usize = 1024;

pub(crate) fn run(options: Options) -> Result<Outcome> {
    let fleet = options.device.open(&GpuOptions::default())?;
    stdin::at_most_one([("the table", Some(&*options.fib)), ("the updates", options.updates.as_deref())])?;
    let loaded = options.read.load_one_of(&options.fib)?;
    match family::choose(options.family.wanted(), &loaded.fib) {
        Family::V4 => verify::<V4>(&options, fleet, loaded),
        Family::V6 => verify::<V6>(&options, fleet, loaded),
    }
}

fn verify<A: Addresses>(options: &Options, fleet: Option<Fleet>, loaded: Loaded) -> Result<Outcome> {
    let Loaded { mut fib, report, .. } = loaded;
    if options.exhaustive && A::BITS > 32 {
        bail!("--exhaustive is for IPv4: nobody can walk 2^{} addresses", A::BITS);
    }
    let updates = match &options.updates {
        Some(updates) => options.read.updates(updates, &mut fib.next_hops, &[&report])?,
        None => {
            options.read.check(&[&report], None)?;
            Vec::new()
        }
    };
    let (rib, next_hops) = A::into_rib(fib);
    options.engine.check_strides(&rib, &options.table.build_options(1).strides)?;
    let engines = options.engine.engines::<A>(&rib)?;
    let asked = options.table.build_options(if updates.is_empty() { 1 } else { 2 });
    let strides = if fleet.is_some() { asked.strides.clone().on_gpu() } else { asked.strides.clone() };
    let job = Job {
        before: Expected::of(&rib, options.exhaustive, &[]),
        after: (!updates.is_empty()).then(|| {
            let mut after = rib.clone();
            for update in &updates {
                after.apply(update);
            }
            Expected::of(&after, options.exhaustive, &updates)
        }),
        rib,
        updates: &updates,
        threads: options.threads.unwrap_or_else(all_cores),
        build: BuildOptions { results: u32::try_from(next_hops.len()).unwrap_or(u32::MAX), strides, ..asked },
        fleet,
    };
    verdict::tell::<_, _, BuildError>(&engines, options.json, |engine| {
        visit(engine, &job)?.with_context(|| format!("{engine} can't be built"))
    })
}

/// One state of a table: what is right, and where to look.
struct Expected<A> {
    prefixes: usize,
    truth: Truth<A>,
    /// `None` for everywhere.
    probes: Option<Vec<A>>,
}

impl<A: Address> Expected<A> {
    fn of(rib: &Rib<A>, everywhere: bool, changed: &[Update<A>]) -> Self {
        let prefixes = || rib.iter().map(|(prefix, _)| prefix).chain(changed.iter().map(Update::prefix));
        Self { prefixes: rib.len(), truth: Truth::of(rib), probes: (!everywhere).then(|| probes(prefixes())) }
    }

    fn check<S: Subject<A>>(&self, table: &S, threads: usize, what: &'static str) -> Verdict {
        let total = self.probes.as_ref().map_or(1 << 32, |probes| probes.len() as u64);
        let bar = progress(total, what);
        let verdict = match &self.probes {
            Some(probes) => self.truth.check(table, probes, threads, &bar),
            None => self.truth.check_all(table, threads, &bar),
        };
        bar.finish_and_clear();
        verdict
    }

    /// Checks a table on GPUs.
    fn check_on_gpu(&self, remote: &Remote<A>, threads: usize, what: &'static str) -> Result<Verdict> {
        let subject = OnGpu::new(remote);
        let verdict = self.check(&subject, threads, what);
        match subject.failure() {
            None => Ok(verdict),
            Some(why) => Err(why).with_context(|| format!("{what} on the GPU")),
        }
    }
}

/// What every engine has to pass.
struct Job<'a, A: Address> {
    rib: Rib<A>,
    updates: &'a [Update<A>],
    before: Expected<A>,
    after: Option<Expected<A>>,
    fleet: Option<Fleet>,
    threads: usize,
    build: BuildOptions,
}

/// What one engine came to in one state.
#[derive(Debug, Serialize)]
struct Report {
    engine: &'static str,
    device: &'static str,
    /// Bytes of the keys that went to a GPU; they are of as few as prefixes allow, and may get more with
    /// updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_bytes: Option<usize>,
    family: u8,
    prefixes: usize,
    updates: usize,
    addresses: u64,
    mismatches: u64,
    seconds: f64,
    first: Vec<Mismatch>,
}

impl<A: Addresses> Visitor<A> for &Job<'_, A> {
    type Output = Result<Vec<Report>>;

    fn visit<E: Engine<A, Table: OnDevice>>(self) -> Self::Output {
        match (&self.fleet, &self.after) {
            (None, None) => Ok(vec![self.compiled::<E>()?]),
            (None, Some(after)) => self.live::<E>(after),
            (Some(fleet), None) => self.compiled_on_gpu::<E>(fleet),
            (Some(fleet), Some(after)) => self.live_on_gpu::<E>(fleet, after),
        }
    }
}

impl<A: Addresses> Job<'_, A> {
    fn compiled<E: Engine<A>>(&self) -> Result<Report> {
        let began = Instant::now();
        let (_, table) = E::build(&self.rib, &self.build)?;
        let verdict = self.before.check(&OnCpu(&table), self.threads, E::NAME);
        Ok(Report::of(E::NAME, None, 0, &self.before, began, verdict))
    }

    fn live<E: Engine<A>>(&self, after: &Expected<A>) -> Result<Vec<Report>> {
        let mut live = LiveTable::<A, E>::new(self.rib.clone(), self.build.clone())?;
        let reader = live.reader();
        let check =
            |expected: &Expected<A>| Ok(expected.check(&OnCpu(&*reader.enter()), self.threads, E::NAME));
        self.before_and_after(&mut live, after, None, check)
    }

    /// The kernels for keys of each width that prefixes allow.
    fn compiled_on_gpu<E: Engine<A, Table: OnDevice>>(&self, fleet: &Fleet) -> Result<Vec<Report>> {
        let longest = self.rib.iter().map(|(prefix, _)| prefix.len()).max().unwrap_or(0);
        let (_, table) = E::build(&self.rib, &self.build)?;
        let mut reports = Vec::new();
        for bits in KeyBytes::kinds(A::FAMILY).iter().map(|kind| 8 * kind.count()) {
            let Ok(bits) = u8::try_from(bits) else { continue };
            if bits < longest {
                continue;
            }
            let began = Instant::now();
            let remote = upload::<A, E>(fleet, &table, bits)?;
            let verdict = self.before.check_on_gpu(&remote, self.threads, E::NAME)?;
            let key_bytes = Some(remote.key_bytes().count());
            reports.push(Report::of(E::NAME, key_bytes, 0, &self.before, began, verdict));
        }
        Ok(reports)
    }

    fn live_on_gpu<E: Engine<A, Table: OnDevice>>(
        &self,
        fleet: &Fleet,
        after: &Expected<A>,
    ) -> Result<Vec<Report>> {
        let mut live = LiveTable::<A, E>::new(self.rib.clone(), self.build.clone())?;
        let remote = upload::<A, E>(fleet, &*live.reader().enter(), live.reach())?;
        live.follow(|_| Ok::<_, anyhow::Error>(remote.follower()))?;
        let check = |expected: &Expected<A>| expected.check_on_gpu(&remote, self.threads, E::NAME);
        self.before_and_after(&mut live, after, Some(remote.key_bytes().count()), check)
    }

    /// Checks, applies the updates, checks again.
    fn before_and_after<E: Engine<A>>(
        &self,
        live: &mut LiveTable<A, E>,
        after: &Expected<A>,
        key_bytes: Option<usize>,
        check: impl Fn(&Expected<A>) -> Result<Verdict>,
    ) -> Result<Vec<Report>> {
        let began = Instant::now();
        let verdict = check(&self.before)?;
        let before = Report::of(E::NAME, key_bytes, 0, &self.before, began, verdict);
        let began = Instant::now();
        for group in self.updates.chunks(GROUP) {
            live.apply(group)?;
        }
        let verdict = check(after)?;
        Ok(vec![before, Report::of(E::NAME, key_bytes, self.updates.len(), after, began, verdict)])
    }
}

/// Brings a table to the GPUs, for keys of so many bits.
fn upload<A: Address, E: Engine<A, Table: OnDevice>>(
    fleet: &Fleet,
    table: &E::Table,
    bits: u8,
) -> Result<Remote<A>> {
    Remote::upload(fleet, table, bits).with_context(|| format!("{} can't be brought to the GPU", E::NAME))
}

impl Report {
    fn of<A: Address>(
        engine: &'static str,
        key_bytes: Option<usize>,
        updates: usize,
        expected: &Expected<A>,
        began: Instant,
        verdict: Verdict,
    ) -> Self {
        Self {
            engine,
            device: if key_bytes.is_some() { On::Gpu } else { On::Cpu }.name(),
            key_bytes,
            family: number_of(A::FAMILY),
            prefixes: expected.prefixes,
            updates,
            addresses: verdict.checked,
            mismatches: verdict.mismatches,
            seconds: began.elapsed().as_secs_f64(),
            first: verdict.first,
        }
    }
}

impl verdict::Report for Report {
    fn mismatches(&self) -> u64 {
        self.mismatches
    }

    fn print(&self, output: &mut Output) -> Result<()> {
        let table = match self.family {
            4 => "IPv4 prefixes",
            _ => "IPv6 prefixes",
        };
        output.line(Line {
            engine: self.engine,
            is_on_gpu: self.key_bytes.is_some(),
            key_bytes: self.key_bytes,
            table: (self.prefixes, table),
            updates: self.updates,
            keys: (self.addresses, "addresses"),
            mismatches: self.mismatches,
            seconds: self.seconds,
        })?;
        for Mismatch { address, right, found, lookup, .. } in &self.first {
            output.line(format_args!("  {address}: next hop {found}, right is {right} ({lookup})"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wirespeed::engine::of_domain;
    use wirespeed_fib::{NextHop, Prefix};

    use super::*;
    use crate::on_host;

    fn job<A: Addresses>(fleet: Fleet, updates: &[Update<A>]) -> Job<'_, A> {
        let routes = [(0u128, 0u8), (1 << 20, 8), (1 << 20, 20), (77, A::BITS)];
        let of = |(address, len)| Prefix::around(A::from_u128_low(address), len);
        let rib: Rib<A> = routes.into_iter().map(of).zip((1..).map(NextHop)).collect();
        let mut after = rib.clone();
        updates.iter().for_each(|update| assert!(after.apply(update)));
        Job {
            before: Expected::of(&rib, false, &[]),
            after: (!updates.is_empty()).then(|| Expected::of(&after, false, updates)),
            rib,
            updates,
            fleet: Some(fleet),
            threads: 2,
            build: BuildOptions::default(),
        }
    }

    fn kernels_are_right<A: Addresses>() {
        let Some((fleet, _)) = on_host::fleet() else { return };
        let prefix = Prefix::around(A::from_u128_low(1 << 12), 24);
        let updates = [Update::announce(prefix, NextHop(300))];
        for engine in of_domain::<A>() {
            for updates in [&updates[..0], &updates[..]] {
                let reports = visit(engine, &job::<A>(fleet.clone(), updates)).unwrap().unwrap();
                let states = if updates.is_empty() { 1 } else { 2 };
                assert_eq!(reports.len(), states, "whole addresses only: there is a prefix of all bits");
                for report in reports {
                    assert_eq!((report.mismatches, report.device), (0, On::Gpu.name()), "{report:?}");
                    assert_eq!(report.key_bytes, Some(usize::from(A::BITS / 8)), "{report:?}");
                    assert!(report.addresses > 90_000, "{report:?}");
                }
            }
        }
    }

    #[test]
    fn kernels_are_right_v4() {
        kernels_are_right::<V4>();
    }

    #[test]
    fn kernels_are_right_v6() {
        kernels_are_right::<V6>();
    }

    #[test]
    fn a_table_of_other_routes_is_found_out() {
        let Some((fleet, switch)) = on_host::fleet() else { return };
        let job = job::<V4>(fleet.clone(), &[]);
        let mut other = job.rib.clone();
        other.insert("10.0.0.0/8".parse().unwrap(), NextHop(9));
        let (_, table) = wirespeed_sail::SailL::build(&other, &job.build).unwrap();
        let remote = upload::<V4, wirespeed_sail::SailL>(&fleet, &table, 32).unwrap();
        let verdict = job.before.check_on_gpu(&remote, 2, "sail-l").unwrap();
        assert!(verdict.mismatches > 0 && verdict.first.iter().all(|m| m.found == 9), "{verdict:?}");
        switch.store(true, std::sync::atomic::Ordering::Relaxed);
        let lost = job.before.check_on_gpu(&remote, 2, "sail-l");
        assert!(lost.is_err(), "no answer is no right answer");
    }
}
