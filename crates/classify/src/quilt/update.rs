//! Updates: what rules are before and after as cells that go and come.
//!
//! What many changes read is asked for ahead of their turn, stage by stage, so that their cache misses overlap with one another and with
//! work: where cells are, slots, buckets. What is found on the way is a hint at what to ask for and nothing else: each change looks anew
//! in its turn, as those before it may have moved what it is about.

use wirespeed_image::{Patch, PatchBuilder};

use super::cell::Cell;
use super::layers::Fits;
use super::layout::Slot;
use super::store::{Full, Store};
use crate::rank::Rank;
use crate::rule::Rule;
use crate::rules::{Changed, RuleSet};
use crate::tuple::Tuple;

/// Changes that are looked through together.
const TOGETHER: usize = 64;
/// A bucket is asked for so many steps before.
const AHEAD: usize = 16;

/// What becomes of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<T> {
    pub(super) cell: Cell<T>,
    /// The one that it is known by.
    pub(super) hash: u32,
    /// Whether its rule has no other cell.
    pub(super) is_only: bool,
    /// Its rank until now; none of one that comes.
    before: Rank,
    /// Its rank from now on; none of one that goes.
    now: Rank,
    /// The slot that it is about, by the look of it.
    at: Option<usize>,
    /// The layer of that slot, and the hash that led there.
    pub(super) led: Option<(u32, u32)>,
    /// The layers that it may be in, of one that comes.
    pub(super) fits: Option<Fits>,
}

impl<T: Tuple> Store<T> {
    /// Makes the cells of rules that changed those that they have now.
    pub(super) fn take_in(&mut self, rules: &RuleSet<T>, changed: &[Changed<T>]) -> Result<(), Full> {
        self.layers.tidy();
        let mut steps = std::mem::take(&mut self.steps);
        let taken = changed.chunks(TOGETHER).try_for_each(|changed| {
            steps.clear();
            self.put_steps(rules, changed, &mut steps);
            self.fetch_slots(&mut steps);
            self.take_all(&steps)
        });
        self.steps = steps;
        taken
    }

    /// The patch of what was taken in.
    pub(super) fn patch(&mut self, rules: &RuleSet<T>) -> Patch {
        let mut patch = PatchBuilder::with_capacity(self.writes());
        self.write(&mut patch);
        patch.finish(Some((rules.len() as u64, rules.last_number().into())))
    }

    /// What becomes of which cells.
    fn put_steps(&self, rules: &RuleSet<T>, changed: &[Changed<T>], steps: &mut Vec<Step<T>>) {
        for changed in changed {
            let (number, before, now) = (changed.number, changed.before.as_ref(), rules.now(changed));
            let rank = |rule: Option<&Rule<T>>| rule.map_or(Rank::NONE, |rule| Rank::new(rule.priority(), number));
            let ranks = (rank(before), rank(now));
            if let (Some(before), Some(now)) = (before, now)
                && before.has_patterns_of(now)
            {
                if ranks.0 != ranks.1 {
                    self.put_cells(now, ranks, steps);
                }
                continue;
            }
            before.into_iter().for_each(|rule| self.put_cells(rule, (ranks.0, Rank::NONE), steps));
            now.into_iter().for_each(|rule| self.put_cells(rule, (Rank::NONE, ranks.1), steps));
        }
    }

    /// The cells of a rule with the ranks that they have and get.
    #[inline]
    fn put_cells(&self, rule: &Rule<T>, (before, now): (Rank, Rank), steps: &mut Vec<Step<T>>) {
        let mut put = |cell: Cell<T>, is_only| {
            let hash = self.known.hash(&cell);
            self.known.fetch(hash);
            steps.push(Step { cell, hash, is_only, before, now, at: None, led: None, fits: None });
        };
        match Cell::of(rule) {
            Some(cell) => put(cell, true),
            None => {
                let patterns = rule.patterns();
                patterns.iter().for_each(|pattern| put(Cell::of_pattern(pattern), patterns.len() == 1));
            }
        }
    }

    /// Asks for the slots that steps are about.
    fn fetch_slots(&mut self, steps: &mut [Step<T>]) {
        self.led_until = self.layers.added();
        for step in steps {
            let known = self.known.seems(step.hash);
            let layer = known.or_else(|| {
                (step.before == Rank::NONE).then(|| {
                    let fits = self.layers.fits(&step.cell.fixed(), step.cell.form);
                    step.fits = Some(fits);
                    self.layers.fitting(fits).first().copied()
                })?
            });
            if let Some(layer) = layer {
                let hash = self.hash_in(layer, &step.cell);
                let at = self.slot_at(layer, hash);
                self.directories.fetch(at);
                (step.at, step.led) = (Some(at), Some((layer, hash)));
            }
        }
    }

    /// Asks for the bucket that a step is about.
    #[inline]
    fn fetch_bucket(&self, step: &Step<T>) {
        let slot = step.at.map_or(Slot(0), |at| self.directories.slot(at));
        let goes = step.before != Rank::NONE;
        if !slot.is_empty() {
            // What is found by its rank alone need not be compared.
            self.buckets.fetch(slot, !(goes && step.is_only));
        } else if !goes {
            self.buckets.fetch_free(AHEAD);
        }
    }

    fn take_all(&mut self, steps: &[Step<T>]) -> Result<(), Full> {
        steps.iter().take(AHEAD).for_each(|step| self.fetch_bucket(step));
        steps.iter().enumerate().try_for_each(|(at, step)| {
            steps.get(at + AHEAD).into_iter().for_each(|step| self.fetch_bucket(step));
            match (step.before, step.now) {
                (Rank::NONE, now) => self.insert(step, now),
                (before, Rank::NONE) => self.remove(step, before),
                (before, now) => self.rerank(step, before, now),
            }
        })
    }
}

impl<T> Step<T> {
    /// Of a cell that comes.
    pub(super) const fn of(cell: Cell<T>, hash: u32, now: Rank) -> Self {
        Self { cell, hash, is_only: false, before: Rank::NONE, now, at: None, led: None, fits: None }
    }
}
