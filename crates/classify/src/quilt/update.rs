//! Updates: what rules are before and after as cells that go and come.
//!
//! What many changes read is asked for ahead of their turn, stage by stage, so that their cache misses
//! overlap with one another and with work: where cells are, slots, buckets. A find on the way is a hint at
//! what to ask for and nothing else. Each change looks anew in its turn, as those before it may have moved
//! its cell.

use wirespeed_image::{Patch, PatchBuilder};

use super::base::Base;
use super::buckets::Buckets;
use super::cell::Cell;
use super::full::Full;
use super::layout::Slot;
use super::step::{Led, Step};
use super::store::Store;
use crate::rank::Rank;
use crate::rule::Rule;
use crate::rules::{Changed, RuleSet};
use crate::tuple::Tuple;

/// Changes that are looked through together.
const TOGETHER: usize = 64;
/// A bucket is asked for so many steps before.
const AHEAD: usize = 24;
/// So many steps before it is known whether it has room, and another slot is asked for where it has none.
const LATER: usize = 16;
/// So many steps before that slot's bucket is asked for.
const LAST: usize = 8;

impl<T: Tuple> Store<T> {
    /// Makes the cells of rules that changed those that they have now.
    pub(super) fn take_in(
        &mut self,
        base: Base<'_>,
        rules: &RuleSet<T>,
        changed: &[Changed<T>],
    ) -> Result<(), Full> {
        self.layers.tidy();
        let mut steps = std::mem::take(&mut self.steps);
        let taken = changed.chunks(TOGETHER).try_for_each(|changed| {
            steps.clear();
            self.put_steps(rules, changed, &mut steps);
            self.fetch_slots(&mut steps, base);
            self.take_all(&mut steps, base)
        });
        self.steps = steps;
        taken
    }

    /// The patch of what was taken in.
    pub(super) fn patch(&mut self, base: Base<'_>, rules: &RuleSet<T>) -> Patch {
        let mut patch = PatchBuilder::with_capacity(self.writes());
        self.write(&mut patch, base);
        patch.finish(Some((rules.len() as u64, rules.last_number().into())))
    }

    /// What becomes of which cells.
    #[inline(never)]
    fn put_steps(&self, rules: &RuleSet<T>, changed: &[Changed<T>], steps: &mut Vec<Step<T>>) {
        for changed in changed {
            let (number, before, now) = (changed.number, changed.before.as_ref(), rules.now(changed));
            let rank =
                |rule: Option<&Rule<T>>| rule.map_or(Rank::NONE, |rule| Rank::new(rule.priority(), number));
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
    fn put_cells(&self, rule: &Rule<T>, ranks: (Rank, Rank), steps: &mut Vec<Step<T>>) {
        match Cell::of(rule) {
            Some(cell) => self.put_cell(cell, true, ranks, steps),
            None => self.put_several(rule, ranks, steps),
        }
    }

    #[cold]
    fn put_several(&self, rule: &Rule<T>, ranks: (Rank, Rank), steps: &mut Vec<Step<T>>) {
        let cells = Cell::several(rule);
        let is_only = cells.len() == 1;
        cells.into_iter().for_each(|cell| self.put_cell(cell, is_only, ranks, steps));
    }

    #[inline(always)]
    fn put_cell(&self, cell: Cell<T>, is_only: bool, (before, now): (Rank, Rank), steps: &mut Vec<Step<T>>) {
        let hash = self.known.hash(&cell);
        self.known.fetch(hash);
        let (led, led_on) = (Led::NOWHERE, Led::NOWHERE);
        steps.push(Step { cell, hash, is_only, before, now, fits: None, led, led_on });
    }

    /// Asks for the slots that steps are about.
    #[inline(never)]
    fn fetch_slots(&mut self, steps: &mut [Step<T>], base: Base<'_>) {
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
            if let Some(layer) = layer.filter(|&layer| self.is_layer(layer)) {
                step.led = self.lead(layer, &step.cell, base);
            }
        }
    }

    /// Asks for the slot that a cell would have in a layer.
    #[inline]
    fn lead(&self, layer: u32, cell: &Cell<T>, base: Base<'_>) -> Led {
        let hash = self.hash_in(layer, cell);
        let at = self.slot_at(layer, hash);
        base.fetch_slot(at);
        Led { layer, hash, at }
    }

    /// Asks for the bucket that a step is about.
    #[inline]
    fn fetch_bucket(&self, step: &Step<T>, led: Led, free: &mut usize, base: Base<'_>) {
        if !led.is_anywhere() {
            return;
        }
        let slot = Slot(base.slot(led.at));
        if !slot.is_empty() {
            // What is found by its rank alone need not be compared.
            let with_cells = step.fits.is_none() && !(step.is_only && step.before != Rank::NONE);
            Buckets::<T>::fetch(slot, with_cells, base);
        } else if step.before == Rank::NONE {
            self.buckets.fetch_free(*free, base);
            *free += 1;
        }
    }

    /// Asks for the slot of the next layer where the bucket of a cell which comes is full.
    #[inline]
    fn fetch_room(&self, step: &mut Step<T>, base: Base<'_>) {
        let Some(fits) = step.fits.filter(|_| step.led.is_anywhere()) else { return };
        let slot = Slot(base.slot(step.led.at));
        if slot.is_empty() || Buckets::<T>::taken_before(slot, base) < self.roomy {
            return;
        }
        if let Some(&layer) = self.layers.fitting(fits).get(1) {
            step.led_on = self.lead(layer, &step.cell, base);
        }
    }

    #[inline(never)]
    fn take_all(&mut self, steps: &mut [Step<T>], base: Base<'_>) -> Result<(), Full> {
        // The next bucket that is to be asked for.
        let mut free = self.buckets.ever_taken();
        steps.iter().take(AHEAD).for_each(|step| self.fetch_bucket(step, step.led, &mut free, base));
        steps.iter_mut().take(LATER).for_each(|step| self.fetch_room(step, base));
        for at in 0..steps.len() {
            steps
                .get(at + AHEAD)
                .into_iter()
                .for_each(|step| self.fetch_bucket(step, step.led, &mut free, base));
            steps.get_mut(at + LATER).into_iter().for_each(|step| self.fetch_room(step, base));
            steps
                .get(at + LAST)
                .into_iter()
                .for_each(|step| self.fetch_bucket(step, step.led_on, &mut free, base));
            let step = &steps[at];
            match (step.before, step.now) {
                (Rank::NONE, now) => self.insert(step, now, base),
                (before, Rank::NONE) => self.remove(step, before, base),
                (before, now) => self.rerank(step, before, now, base),
            }?;
        }
        Ok(())
    }
}
