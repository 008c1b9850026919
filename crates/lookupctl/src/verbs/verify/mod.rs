//! `verify`: compares engines with the oracle.

mod truth;

use std::ffi::OsString;

use anyhow::{Context, Result, bail};
use clap::Args;
use truth::State;
use wirespeed::Fleet;
use wirespeed::engine::{Addresses, EngineName};
use wirespeed_fib::read::ReadReport;
use wirespeed_fib::{Address, BuildOptions, Family, Fib, InFib, Rib, Update, V4, V6};

use crate::Outcome;
use crate::check::{CheckArguments, Job, copies, updated};
use crate::engine::BothFamilies;
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

    /// Walk all 2^32 IPv4 addresses. Of a table of both families, IPv6 is checked like without this option
    #[arg(long)]
    exhaustive: bool,

    #[command(flatten)]
    check: CheckArguments<BothFamilies>,

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
    let Loaded { fib, report, .. } = options.read.load_one_of(&options.fib)?;
    let tables = &[&report];
    if options.check.updates().is_none() {
        options.read.check(tables, None)?;
    }
    match family::wanted(options.family.wanted(), &fib) {
        Some(Family::V4) => options.one_family::<V4>(fleet, fib, tables),
        Some(Family::V6) if options.exhaustive => {
            bail!("--exhaustive is for IPv4: 2^{} addresses take too long", V6::BITS)
        }
        Some(Family::V6) => options.one_family::<V6>(fleet, fib, tables),
        None => options.both_families(fleet, fib, tables),
    }
}

impl Options {
    fn one_family<A: Addresses>(
        &self,
        fleet: Option<Fleet>,
        mut fib: Fib,
        tables: &[&ReadReport],
    ) -> Result<Outcome> {
        let updates = match self.check.updates() {
            Some(from) => self.read.updates::<A>(from, &mut fib.next_hops, tables)?,
            None => Vec::new(),
        };
        let (rib, next_hops) = A::into_rib(fib);
        let engines = self.engines(&rib)?;
        verify(self, fleet, &engines, (rib, next_hops.len()), &updates)
    }

    fn both_families(&self, fleet: Option<Fleet>, mut fib: Fib, tables: &[&ReadReport]) -> Result<Outcome> {
        family::tell_both(fib.v4.len(), fib.v6.len());
        if self.exhaustive {
            eprintln!(
                "--exhaustive is for IPv4: of IPv6 the ends of prefixes and random addresses are checked"
            );
        }
        let updates = match self.check.updates() {
            Some(from) => self.read.updates_of_both(from, &mut fib.next_hops, tables)?,
            None => Vec::new(),
        };
        let (v4, v6): (Vec<_>, Vec<_>) = (
            updates.iter().filter_map(V4::update).collect(),
            updates.iter().filter_map(V6::update).collect(),
        );
        let next_hops = fib.next_hops.len();
        // Both lists, before anything is checked.
        let hint = "the table has both families, and --family takes one";
        let engines = (self.engines(&fib.v4).context(hint)?, self.engines(&fib.v6).context(hint)?);
        let first = verify(self, fleet.clone(), &engines.0, (fib.v4, next_hops), &v4)?;
        let second = verify(self, fleet, &engines.1, (fib.v6, next_hops), &v6)?;
        Ok(if first == Outcome::Done { second } else { first })
    }

    /// The engines to check.
    fn engines<A: Addresses>(&self, rib: &Rib<A>) -> Result<Vec<EngineName>> {
        self.check.engine.check_strides(rib, &self.table.build_options(1).strides)?;
        self.check.engine.engines::<A>(rib)
    }
}

fn verify<A: Addresses>(
    options: &Options,
    fleet: Option<Fleet>,
    engines: &[EngineName],
    (rib, next_hops): (Rib<A>, usize),
    updates: &[Update<A>],
) -> Result<Outcome> {
    let is_exhaustive = options.exhaustive && A::BITS == 32;
    let asked = options.table.build_options(copies(updates));
    let strides = if fleet.is_some() { asked.strides.clone().on_gpu() } else { asked.strides.clone() };
    let after = updated(&rib, updates, |rib, update| {
        rib.apply(update);
        Ok(())
    })?;
    let job = Job {
        before: State::of(&rib, is_exhaustive, &[]),
        after: after.map(|after| State::of(&after, is_exhaustive, updates)),
        model: rib,
        updates,
        threads: options.check.threads(),
        build: BuildOptions { results: u32::try_from(next_hops).unwrap_or(u32::MAX), strides, ..asked },
        wanted: (),
        fleet,
    };
    job.tell(engines, options.check.json)
}

#[cfg(test)]
mod tests {
    use anyhow::ensure;
    use wirespeed_fib::{NextHop, Prefix};

    use super::*;
    use crate::check::found_out;
    use crate::device::On;
    use crate::{on_host, tables};

    fn job<A: Addresses>(fleet: Fleet, updates: &[Update<A>]) -> Job<'_, A, State<A>> {
        let routes = [(0u128, 0u8), (1 << 20, 8), (1 << 20, 20), (77, A::BITS)];
        let of = |(address, len)| Prefix::around(A::from_u128_low(address), len);
        let rib: Rib<A> = routes.into_iter().map(of).zip((1..).map(NextHop)).collect();
        let after = updated(&rib, updates, |rib, update| {
            ensure!(rib.apply(update));
            Ok(())
        })
        .unwrap();
        let after = after.map(|after| State::of(&after, false, updates));
        let states = (State::of(&rib, false, &[]), after);
        Job::of_test(rib, updates, states, (), Some(fleet))
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
                    assert!(report.counts.keys.1 > 9_000, "{report:?}");
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
        let remote = compiled.table.upload(&fleet, (32, &[])).unwrap();
        let wrong = found_out::<V4, _>(&job.before, &remote, &switch);
        assert!(wrong.iter().all(|wrong| wrong.found == 9), "{wrong:?}");
    }
}
