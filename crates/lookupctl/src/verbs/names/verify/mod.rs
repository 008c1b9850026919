//! `names verify`: compares engines of names with an independent method.

mod list;
mod mismatch;
mod truth;

use std::ffi::OsString;

use anyhow::{Result, bail};
use clap::Args;
use list::{Entries, ListTruth};
use mismatch::{Mismatch, Nothing, hold};
use truth::Truth;
use wirespeed::Fleet;
use wirespeed::engine::NameKeys;
use wirespeed::names::read::NameFib;
use wirespeed::names::{Match, NameRib, NameUpdate};
use wirespeed_namelookup::{NameDomain, NameModel};

use super::engines::engines;
use super::source::{BuildArguments, NOT_AGGREGATED, ReadArguments};
use crate::Outcome;
use crate::check::subject::{OfNames, Subject};
use crate::check::{self, CheckArguments, Job, copies, updated, verdict};
use crate::stdin;

/// Compares engines of names with an independent method: at every entry, at names near it, and at random
/// names
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    /// The table; - is standard input
    #[arg(long, value_name = "FILE")]
    table: OsString,

    #[command(flatten)]
    check: CheckArguments<NameDomain>,

    #[command(flatten)]
    build: BuildArguments,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl names verify --table domains.txt.zst
  lookupctl names verify --table fib.txt --updates updates.txt
  lookupctl names verify --table fib.txt --engine mata --json
  lookupctl names verify --table fib.txt --updates updates.txt --aggregate
  lookupctl names verify --table fib.txt --device gpu

Each name is looked up alone, in a batch, and in a batch that gives the matched length; on a GPU in large and small batches, with the \
length and without. The right answers come from the sorted names, without any lookup; with --aggregate the right results are those of \
all names, and the right lengths are those of the names that are left. For a list of domains, the table that engines compile is \
checked, and so are the list's own answers: the entry that wins among all that cover a name is right. For the Public Suffix List, the suffix \
and the registrable domain are checked by its rules.
Exit status 1 says that an engine is wrong; the first wrong answers are shown. An engine that can't hold the table is reported, and \
not counted as wrong.";

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let fleet = options.check.fleet::<NameDomain>()?;
    stdin::at_most_one([("the table", Some(&*options.table)), ("the updates", options.check.updates())])?;
    let is_aggregated = options.build.aggregate;
    let mut entries = Entries::default();
    let loaded = options.read.load_any_with(&options.table, |list| entries = Entries::new(list.iter()))?;
    let Some(list) = loaded.list else {
        let NameFib { names, mut labels } = loaded.fib;
        let updates = match options.check.updates() {
            Some(updates) => options.read.updates(updates, &mut labels)?,
            None => Vec::new(),
        };
        let after = updated(&names, &updates, |names, update| {
            names.apply(update);
            Ok(())
        })?;
        let truths = (Truth::of(&names, is_aggregated), after.map(|after| Truth::of(&after, is_aggregated)));
        return tell(options, fleet, names, labels.len(), &updates, truths);
    };
    if options.check.updates().is_some() {
        bail!("{}: a list takes no updates", loaded.report.parts().0);
    }
    if is_aggregated {
        bail!(NOT_AGGREGATED);
    }
    let NameFib { names, labels } = loaded.fib;
    let results = labels.len();
    let truth = ListTruth::new(entries, Truth::of(&names, false), list.answers, labels);
    tell(options, fleet, names, results, &[], (truth, None))
}

/// Checks the engines, and tells what each came to.
fn tell<T: check::Truth<NameDomain>>(
    options: &Options,
    fleet: Option<Fleet>,
    names: NameRib,
    results: usize,
    updates: &[NameUpdate],
    (before, after): (T, Option<T>),
) -> Result<Outcome> {
    let job: Job<'_, NameDomain, T> = Job {
        before,
        after,
        model: NameModel::new(names, options.build.aggregate),
        updates,
        wanted: (),
        threads: options.check.threads(),
        build: options.build.options(copies(updates), results),
        fleet,
    };
    let engines = engines(options.check.engine, job.model.names())?;
    job.tell(&engines, options.check.json)
}

/// The result of a check.
type Verdict = verdict::Verdict<Mismatch>;

impl check::Truth<NameDomain> for Truth {
    type Lookups = OfNames;
    type Mismatch = Mismatch;
    type Scratch = Vec<Match>;
    type Aside = Nothing;

    const ENTRIES: [&'static str; 2] = ["entry", "entry"];
    const KEYS: &'static str = "name";

    fn entries(&self) -> usize {
        self.len()
    }

    fn parts(&self) -> usize {
        Self::parts(self)
    }

    fn check(
        &self,
        part: usize,
        table: &Subject<'_, NameDomain>,
        found: &mut Vec<Match>,
        verdict: &mut Verdict,
    ) {
        let (batch, right) = self.part(part);
        hold(table, batch.names(), &right, found, verdict, |wrong| wrong);
    }

    fn sample(&self) -> NameKeys {
        self.part(0).0.into()
    }

    fn aside(&self) -> Nothing {
        Nothing {}
    }
}

#[cfg(test)]
mod tests {
    use anyhow::ensure;
    use wirespeed::engine::EngineName;
    use wirespeed::names::generate::{TableSpec, table};
    use wirespeed::names::{Name, NameBuf, Names};
    use wirespeed_fib::Step;
    use wirespeed_namelookup::Lookup;

    use super::*;
    use crate::device::On;
    use crate::{on_host, tables};

    /// A table that is right but for one name, and there in one way of looking up.
    struct Wrong<'a>(&'a NameRib, NameBuf, &'static str);

    impl Wrong<'_> {
        fn find(&self, name: &Name, lookup: &'static str) -> Match {
            let right = self.0.lookup(name);
            match *name == *self.1 && lookup == self.2 {
                true => Match { result: right.result ^ 1, ..right },
                false => right,
            }
        }
    }

    impl Lookup<NameDomain> for Wrong<'_> {
        fn lookup(&self, name: &Name) -> Match {
            self.find(name, "single")
        }

        fn lookup_batch(&self, names: Names<'_>, results: &mut [u32]) {
            names.iter().zip(results).for_each(|(name, to)| *to = self.find(name, "batch").result);
        }

        fn match_batch(&self, names: Names<'_>, matches: &mut [Match]) {
            names.iter().zip(matches).for_each(|(name, to)| *to = self.find(name, "match batch"));
        }

        fn explain(&self, _: &Name) -> Vec<Step> {
            Vec::new()
        }
    }

    fn job(fleet: Fleet, updates: &[NameUpdate], aggregate: bool) -> Job<'_, NameDomain, Truth> {
        let names = table(&TableSpec { names: 300, results: 3, seed: 1 }).unwrap().names;
        let after = updated(&names, updates, |names, update| {
            ensure!(names.apply(update));
            Ok(())
        })
        .unwrap();
        let states = (Truth::of(&names, aggregate), after.map(|after| Truth::of(&after, aggregate)));
        Job::of_test(NameModel::new(names, aggregate), updates, states, (), Some(fleet))
    }

    #[test]
    fn kernels_are_right() {
        let Some((fleet, _)) = on_host::fleet::<NameDomain>() else { return };
        let name = |text: &str| NameBuf::new(text).unwrap();
        let updates =
            [("/com/parc", 7), ("/com", 300), ("/", 2)].map(|(at, to)| NameUpdate::Insert(name(at), to));
        for engine in on_host::engines::<NameDomain>() {
            for (updates, aggregate) in [(&updates[..0], true), (&updates[..], engine == EngineName::Acta)] {
                let reports = job(fleet.clone(), updates, aggregate).check(engine).unwrap();
                assert_eq!(reports.len(), if updates.is_empty() { 1 } else { 2 });
                for report in reports {
                    assert_eq!((report.mismatches, report.device), (0, On::Gpu.name()), "{report:?}");
                    assert!(report.counts.keys.1 > 20_000, "{report:?}");
                }
            }
        }
    }

    #[test]
    fn a_table_of_other_names_is_found_out() {
        let Some((fleet, switch)) = on_host::fleet::<NameDomain>() else { return };
        let job = job(fleet.clone(), &[], false);
        let mut other = job.model.names().clone();
        other.insert(Name::new("/com").unwrap(), 9);
        let compiled = tables::compile::<NameDomain>(EngineName::Acta, &other, &job.build).unwrap();
        let remote = compiled.table.upload(&fleet, job.before.part(0).0.names()).unwrap();
        let wrong = check::found_out::<NameDomain, _>(&job.before, &remote, &switch);
        assert!(wrong.iter().all(|wrong| wrong.found == 9), "{wrong:?}");
    }

    #[test]
    fn one_wrong_answer_is_found() {
        if wirespeed_image::rounds::leaves_to_ci() {
            return;
        }
        let mut names = table(&TableSpec { names: 300, results: 9, seed: 1 }).unwrap().names;
        names.insert(Name::new("/com/parc").unwrap(), 3);
        let truth = Truth::of(&names, false);
        for (name, lookups) in
            [("/com/parc", 1), ("/com/parc/x", 1), ("/com/parcx", 1), ("/com/nothing/like/it", 0)]
        {
            for lookup in ["single", "batch", "match batch"] {
                let wrong = Wrong(&names, NameBuf::new(name).unwrap(), lookup);
                let verdict = check::check(&truth, Subject::Cpu(&wrong), 2, "wrong").unwrap();
                assert_eq!(verdict.mismatches, lookups, "{name}: {verdict:?}");
                assert!(verdict.first.iter().all(|wrong| wrong.name == name && wrong.lookup == lookup));
            }
        }
    }
}
