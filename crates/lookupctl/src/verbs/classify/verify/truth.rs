//! The right answers, and the tuples that are checked: at the edges of rules, near them, of random rules,
//! random tuples, and tuples of a trace.
//!
//! The answers come from a map for each mask. Some answers are also compared with a scan of all rules, which
//! compares ranges as ranges.

use anyhow::{Result, bail};
use wirespeed::engine::RuleTuple;
use wirespeed_classify::generate::{around, tuples};
use wirespeed_classify::oracle::{Expected, Oracle, Right};
use wirespeed_classify::read::Doubts;
use wirespeed_classify::{Classes, RuleSet};

use super::super::uncertain;
use super::aside::Aside;
use crate::threads::share_out;

/// The number of tuples in a part.
const PART: usize = 1 << 12;
/// The most generated tuples.
const MOST: usize = 300_000;
/// The fewest generated tuples, even if a right answer takes long.
const LEAST: usize = 20_000;
/// The most queries of maps for all tuples.
const ASKED: usize = 200_000_000;
/// The most comparisons of rules in scans.
const SCANNED: usize = 40_000_000;

/// Tuples, and the right answer for each.
pub(super) struct Truth<T> {
    tuples: Vec<T>,
    right: Vec<u32>,
    pub(super) rules: usize,
    pub(super) aside: Aside,
}

impl<T: RuleTuple> Truth<T> {
    /// Makes the truth about a set and its doubts, for tuples generated from both and the tuples of a trace.
    pub(super) fn of(rules: &RuleSet<T>, doubts: &Doubts<T>, trace: &[T], threads: usize) -> Result<Self> {
        let most = (ASKED / Classes::sizes(rules).len().max(1)).clamp(LEAST, MOST);
        // A rule has six tuples around it, and a rule with ranges has more.
        let mut all = around(rules, most / 10);
        let few = usize::try_from(rules.entries_len()).unwrap_or(most).saturating_mul(40) + 5_000;
        all.extend(tuples(rules, few.min(most / 5), 1.0, 1));
        all.extend(tuples::<T>(&RuleSet::new(), few.min(most / 5) / 4, 1.0, 2));
        let in_doubt: RuleSet<T> =
            doubts.uncertain.iter().take(most / 60).map(|one| one.rule.clone()).collect();
        all.extend(around(&in_doubt, most / 10));
        all.extend(trace);
        let expected = Expected::of(rules);
        let mut truth = Self {
            right: vec![0; all.len()],
            tuples: all,
            rules: rules.len(),
            aside: Aside::of(doubts, 0, 0),
        };
        let parts = share_out(truth.parts(), threads, Vec::new, |answers: &mut Vec<_>, part| {
            let right: Vec<_> = truth.part(part).0.iter().map(|tuple| expected.right(tuple)).collect();
            answers.push((part, right));
        });
        for (part, right) in parts.into_iter().flatten() {
            truth.right[part * PART..][..right.len()].copy_from_slice(&right);
        }
        truth.scan(rules, threads)?;
        let uncertain = uncertain::count(doubts, rules, (&truth.tuples, &truth.right), threads);
        truth.aside = Aside::of(doubts, uncertain, truth.tuples.len() as u64);
        Ok(truth)
    }

    /// Compares some of the answers with a scan of all rules.
    fn scan(&self, rules: &RuleSet<T>, threads: usize) -> Result<()> {
        let oracle = Oracle::of(rules);
        let every = (self.tuples.len() / (SCANNED / rules.len().max(1)).max(1)).max(1);
        let differ = share_out(
            self.parts(),
            threads,
            || None,
            |first, part| {
                let (tuples, right) = self.part(part);
                let differs = |&(tuple, right): &(&T, &u32)| oracle.right(tuple) != *right;
                let from = (every - part * PART % every) % every;
                let mut some = tuples.iter().zip(right).skip(from).step_by(every);
                *first = first.or_else(|| some.find(differs).map(|(tuple, right)| (*tuple, *right)));
            },
        );
        if let Some((tuple, right)) = differ.into_iter().flatten().next() {
            bail!("{tuple}: rule {right} by a map for each mask, {} by a scan", oracle.right(&tuple));
        }
        Ok(())
    }

    /// The number of parts.
    pub(super) fn parts(&self) -> usize {
        self.tuples.len().div_ceil(PART)
    }

    /// The tuples of a part, and their right answers.
    pub(super) fn part(&self, part: usize) -> (&[T], &[u32]) {
        let part = part * PART..self.tuples.len().min((part + 1) * PART);
        (&self.tuples[part.clone()], &self.right[part])
    }
}
