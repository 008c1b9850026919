//! `classify verify`: compares engines of rules with an independent method.

mod aside;
mod truth;

use std::ffi::OsString;
use std::fmt;

use anyhow::Result;
use aside::Aside;
use clap::Args;
use serde::Serialize;
use truth::Truth;
use wirespeed::classify::Facts;
use wirespeed::classify::tuple_name::{TupleVisitor, visit};
use wirespeed::engine::{RuleTuple, TupleKeys};
use wirespeed_classify::Ipv4Tuple;
use wirespeed_classify::read::RuleFile;
use wirespeed_commands::rules::{Raw, ReadArguments};

use super::source::{self, BuildArguments};
use super::trace;
use crate::Outcome;
use crate::check::subject::{OfTuples, Subject};
use crate::check::{self, CheckArguments, Job, copies, updated, verdict};
use crate::stdin::at_most_one;

/// Compares engines of rules with an independent method: at the edges of rules, near them, at random, and on
/// a trace
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    /// The rules; - is standard input
    #[arg(long, value_name = "FILE")]
    rules: OsString,

    /// Trace to check in addition to the generated tuples
    #[arg(long, value_name = "FILE")]
    trace: Option<OsString>,

    #[command(flatten)]
    check: CheckArguments<Ipv4Tuple>,

    #[command(flatten)]
    build: BuildArguments,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl classify verify --rules acl.rules --trace acl.trace
  lookupctl classify verify --rules acl.rules --updates updates.txt
  lookupctl classify verify --rules flows.txt --engine bloom --json
  lookupctl classify verify --rules flows.txt --device gpu

Each tuple is looked up alone, in a small batch and in a large batch; on a GPU in small and large batches. The right answers come from a \
map for each mask, and for some tuples from a scan of all rules, too.
If --lenient left rules out, every engine can be right and the firewall can still act differently: verify counts the answers that a \
rule that was left out could change. It also counts answers by a rule that is wider than its file says: a ClassBench filter with TCP flags.
Exit status 1 says that an engine is wrong; the first wrong answers are shown. An engine that can't hold the rules is reported, and not \
counted as wrong.";

pub(super) fn run(options: &Options) -> Result<Outcome> {
    at_most_one([
        ("the rules", Some(options.rules.as_os_str())),
        ("the sets", options.read.ipset.as_deref()),
        ("the trace", options.trace.as_deref()),
        ("the updates", options.check.updates()),
    ])?;
    let raw = options.read.open(&options.rules)?;
    visit(raw.tuple(), Verify { options, raw })
}

struct Verify<'a> {
    options: &'a Options,
    raw: Raw,
}

impl TupleVisitor for Verify<'_> {
    type Output = Result<Outcome>;

    fn visit<T: RuleTuple>(self) -> Result<Outcome> {
        let Self { options, raw } = self;
        let fleet = options.check.fleet::<T>()?;
        let RuleFile { rules, doubts, .. } = raw.load::<T>(&options.read)?;
        let updates = match options.check.updates() {
            Some(updates) => source::updates(&options.read, updates, &rules)?,
            None => Vec::new(),
        };
        let trace = match &options.trace {
            Some(trace) => trace::file(trace, &options.read)?,
            None => Vec::new(),
        };
        let threads = options.check.threads();
        let after = updated(&rules, &updates, |rules, update| Ok(rules.apply(update).map(drop)?))?;
        let truth = |rules| Truth::of(rules, &doubts, &trace, threads);
        let job = Job {
            before: truth(&rules)?,
            after: after.as_ref().map(truth).transpose()?,
            build: options.build.options(copies(&updates), None),
            model: rules,
            updates: &updates,
            wanted: Facts::None,
            fleet,
            threads,
        };
        let engines = options.check.engine.engines::<T>(&job.model)?;
        job.tell(&engines, options.check.json)
    }
}

/// A wrong answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Mismatch {
    tuple: String,
    right: u32,
    found: u32,
    /// The kind of lookup: in a batch, or single.
    lookup: &'static str,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tuple, right, found, lookup } = self;
        write!(f, "{tuple}: rule {found}, right is {right} ({lookup})")
    }
}

/// The result of a check.
type Verdict = verdict::Verdict<Mismatch>;

impl<T: RuleTuple> check::Truth<T> for Truth<T> {
    type Lookups = OfTuples;
    type Mismatch = Mismatch;
    type Scratch = Vec<u32>;
    type Aside = Aside;

    const ENTRIES: [&'static str; 2] = ["rule", "rule"];
    const KEYS: &'static str = "tuple";

    fn entries(&self) -> usize {
        self.rules
    }

    fn parts(&self) -> usize {
        Self::parts(self)
    }

    fn check(&self, part: usize, table: &Subject<'_, T>, found: &mut Vec<u32>, verdict: &mut Verdict) {
        let (tuples, right) = self.part(part);
        found.resize(tuples.len(), 0);
        verdict.checked += tuples.len() as u64;
        for pass in table.passes::<OfTuples>() {
            table.look_up::<OfTuples>(pass, tuples, found);
            for ((tuple, &right), &found) in tuples.iter().zip(right).zip(&*found) {
                if right != found {
                    let (tuple, lookup) = (|| tuple.to_string(), pass.name);
                    verdict.wrong(|| Mismatch { tuple: tuple(), right, found, lookup });
                }
            }
        }
    }

    fn sample(&self) -> TupleKeys<T> {
        TupleKeys::default()
    }

    fn aside(&self) -> Aside {
        self.aside.clone()
    }
}

#[cfg(test)]
mod tests {
    use wirespeed::Fleet;
    use wirespeed::engine::EngineName;
    use wirespeed_classify::generate::{Kind, churn, classbench};
    use wirespeed_classify::read::Doubts;
    use wirespeed_classify::{Ipv6Tuple, Lookup, OpenFlowTuple, RuleSet, RuleUpdate, Step};

    use super::*;
    use crate::device::On;
    use crate::{on_host, tables};

    /// A table that is right but for one rule, and there in one way of looking up.
    struct Wrong<'a>(&'a dyn Lookup<Ipv4Tuple>, u32, bool);

    impl Lookup<Ipv4Tuple> for Wrong<'_> {
        fn lookup(&self, tuple: &Ipv4Tuple) -> u32 {
            let right = self.0.lookup(tuple);
            if right == self.1 && !self.2 { right + 1 } else { right }
        }

        fn lookup_batch(&self, tuples: &[Ipv4Tuple], results: &mut [u32]) {
            self.0.lookup_batch(tuples, results);
            results.iter_mut().filter(|right| self.2 && **right == self.1).for_each(|right| *right = 0);
        }

        fn explain(&self, _: &Ipv4Tuple) -> Vec<Step> {
            Vec::new()
        }
    }

    fn job<T: RuleTuple>(fleet: Option<Fleet>, updates: &[RuleUpdate<T>]) -> Job<'_, T, Truth<T>> {
        let rules = classbench::<T>(Kind::Firewall, 60, 1);
        let after = updated(&rules, updates, |rules, update| Ok(rules.apply(update).map(drop)?)).unwrap();
        let truth = |rules| Truth::of(rules, &Doubts::none(), &[], 2).unwrap();
        let states = (truth(&rules), after.as_ref().map(truth));
        Job::of_test(rules, updates, states, Facts::None, fleet)
    }

    #[test]
    fn one_wrong_answer_is_found() {
        let job = job::<Ipv4Tuple>(None, &[]);
        let compiled = tables::compile::<Ipv4Tuple>(EngineName::Quilt, &job.model, &job.build).unwrap();
        let check = |table: &dyn Lookup<Ipv4Tuple>| {
            check::check(&job.before, Subject::Cpu(table), 2, "quilt").unwrap()
        };
        for in_batches in [false, true] {
            let verdict = check(&Wrong(&*compiled.table, 7, in_batches));
            assert!(verdict.mismatches > 0 && verdict.first.len() <= verdict::SHOWN, "{verdict:?}");
            assert!(verdict.first.iter().all(|wrong| wrong.right == 7), "{verdict:?}");
            assert!(
                verdict.first.iter().all(|wrong| (wrong.lookup != "single") == in_batches),
                "{verdict:?}"
            );
        }
        assert_eq!(check(&*compiled.table).mismatches, 0);
    }

    fn kernels_are_right_for<T: RuleTuple>(fleet: &Fleet) {
        let updates = churn(&classbench::<T>(Kind::Firewall, 60, 1), 40, 2);
        for engine in on_host::engines::<T>() {
            for report in job::<T>(Some(fleet.clone()), &updates).check(engine).unwrap() {
                assert_eq!((report.mismatches, report.device), (0, On::Gpu.name()), "{report:?}");
                assert!(report.counts.keys.1 > 5_000, "{report:?}");
            }
        }
    }

    #[test]
    fn kernels_are_right() {
        let Some((fleet, switch)) = on_host::fleet::<Ipv6Tuple>() else { return };
        kernels_are_right_for::<OpenFlowTuple>(&fleet);
        let job = job::<OpenFlowTuple>(Some(fleet.clone()), &[]);
        let none = RuleSet::<OpenFlowTuple>::new();
        let other = tables::compile::<OpenFlowTuple>(EngineName::Bloom, &none, &job.build).unwrap();
        let remote = other.table.upload(&fleet, &[]).unwrap();
        let wrong = check::found_out::<OpenFlowTuple, _>(&job.before, &remote, &switch);
        assert!(wrong.iter().all(|wrong| wrong.found == 0), "{wrong:?}");
    }
}
