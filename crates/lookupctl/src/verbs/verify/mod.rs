//! `verify`: compares engines with the oracle.

mod truth;

use std::ffi::OsString;

use anyhow::{Result, bail};
use clap::Args;
use truth::State;
use wirespeed::Fleet;
use wirespeed::engine::Addresses;
use wirespeed_fib::{BuildOptions, Family, V4, V6};

use crate::Outcome;
use crate::check::{CheckArguments, Job, copies};
use crate::engine::{self, Selection};
use crate::family;
use crate::source::{FamilyArgument, Loaded, ReadArguments, TableArguments};
use crate::stdin;

/// Compares engines with an independent method: at the ends of every prefix and at random, or at every
/// address
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The table; - is standard input
    #[arg(long, value_name = "FILE")]
    fib: OsString,

    /// Walk all 2^32 IPv4 addresses
    #[arg(long)]
    exhaustive: bool,

    /// Engine to check: a name, all (without those of papers), or every
    #[arg(long, value_name = "NAME", default_value = "all", value_parser = engine::selection())]
    engine: Selection,

    #[command(flatten)]
    check: CheckArguments,

    #[command(flatten)]
    family: FamilyArgument,
    #[command(flatten)]
    table: TableArguments,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl verify --fib rib.mrt.bz2          ends of prefixes, and random addresses
  lookupctl verify --fib fib.txt --exhaustive all 2^32 IPv4 addresses
  lookupctl verify --fib fib.txt --updates updates.txt
  lookupctl verify --fib fib.txt --engine sail-l --json
  lookupctl verify --fib fib.txt --device gpu --exhaustive

The right answers come from the sorted prefixes as ranges of addresses, without any lookup.
Exit status 1 says that an engine is wrong; the first wrong answers are shown.";

pub(crate) fn run(options: Options) -> Result<Outcome> {
    let fleet = options.check.fleet::<V4>()?;
    stdin::at_most_one([("the table", Some(&*options.fib)), ("the updates", options.check.updates())])?;
    let loaded = options.read.load_one_of(&options.fib)?;
    match family::choose(options.family.wanted(), &loaded.fib) {
        Family::V4 => verify::<V4>(&options, fleet, loaded),
        Family::V6 => verify::<V6>(&options, fleet, loaded),
    }
}

fn verify<A: Addresses>(options: &Options, fleet: Option<Fleet>, loaded: Loaded) -> Result<Outcome> {
    let Loaded { mut fib, report, .. } = loaded;
    if options.exhaustive && A::BITS > 32 {
        bail!("--exhaustive is for IPv4: 2^{} addresses take too long", A::BITS);
    }
    let updates = match options.check.updates() {
        Some(updates) => options.read.updates(updates, &mut fib.next_hops, &[&report])?,
        None => {
            options.read.check(&[&report], None)?;
            Vec::new()
        }
    };
    let (rib, next_hops) = A::into_rib(fib);
    options.engine.check_strides(&rib, &options.table.build_options(1).strides)?;
    let engines = options.engine.engines::<A>(&rib)?;
    let asked = options.table.build_options(copies(&updates));
    let strides = if fleet.is_some() { asked.strides.clone().on_gpu() } else { asked.strides.clone() };
    let job = Job {
        before: State::of(&rib, options.exhaustive, &[]),
        after: (!updates.is_empty()).then(|| {
            let mut after = rib.clone();
            for update in &updates {
                after.apply(update);
            }
            State::of(&after, options.exhaustive, &updates)
        }),
        model: rib,
        updates: &updates,
        threads: options.check.threads(),
        build: BuildOptions { results: u32::try_from(next_hops.len()).unwrap_or(u32::MAX), strides, ..asked },
        wanted: (),
        fleet,
    };
    job.tell(&engines, options.check.json)
}

#[cfg(test)]
mod tests {
    use wirespeed::engine::EngineName;
    use wirespeed_fib::{NextHop, Prefix, Rib, Update};

    use super::*;
    use crate::check::check;
    use crate::check::subject::Subject;
    use crate::device::On;
    use crate::{on_host, tables};

    fn job<A: Addresses>(fleet: Fleet, updates: &[Update<A>]) -> Job<'_, A, State<A>> {
        let routes = [(0u128, 0u8), (1 << 20, 8), (1 << 20, 20), (77, A::BITS)];
        let of = |(address, len)| Prefix::around(A::from_u128_low(address), len);
        let rib: Rib<A> = routes.into_iter().map(of).zip((1..).map(NextHop)).collect();
        let mut after = rib.clone();
        updates.iter().for_each(|update| assert!(after.apply(update)));
        Job {
            before: State::of(&rib, false, &[]),
            after: (!updates.is_empty()).then(|| State::of(&after, false, updates)),
            model: rib,
            updates,
            wanted: (),
            fleet: Some(fleet),
            threads: 2,
            build: BuildOptions::default(),
        }
    }

    fn kernels_are_right<A: Addresses>() {
        let Some((fleet, _)) = on_host::fleet::<A>() else { return };
        let prefix = Prefix::around(A::from_u128_low(1 << 12), 24);
        let updates = [Update::announce(prefix, NextHop(300))];
        for engine in on_host::engines::<A>() {
            for updates in [&updates[..0], &updates[..]] {
                let reports = job::<A>(fleet.clone(), updates).check(engine).unwrap();
                let states = if updates.is_empty() { 1 } else { 2 };
                assert_eq!(reports.len(), states, "whole addresses only: there is a prefix of all bits");
                for report in reports {
                    assert_eq!((report.mismatches, report.device), (0, On::Gpu.name()), "{report:?}");
                    assert_eq!(report.key_bytes, Some(usize::from(A::BITS / 8)), "{report:?}");
                    assert!(report.counts.keys.1 > 90_000, "{report:?}");
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
        let Some((fleet, switch)) = on_host::fleet::<V4>() else { return };
        let job = job::<V4>(fleet.clone(), &[]);
        let mut other = job.model.clone();
        other.insert("10.0.0.0/8".parse().unwrap(), NextHop(9));
        let compiled = tables::compile::<V4>(EngineName::SailL, &other, &job.build).unwrap();
        let remote = compiled.table.upload(&fleet, 32).unwrap();
        let verdict = check(&job.before, Subject::on_gpu(&remote), 2, "sail-l").unwrap();
        assert!(verdict.mismatches > 0 && verdict.first.iter().all(|m| m.found == 9), "{verdict:?}");
        switch.store(true, std::sync::atomic::Ordering::Relaxed);
        let lost = check(&job.before, Subject::on_gpu(&remote), 2, "sail-l");
        assert!(lost.is_err(), "no answer is no right answer");
    }
}
