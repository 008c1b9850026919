//! Updates: what rules are before and after as cells that go and come.
//!
//! What many changes read is asked for ahead of their turn, stage by stage, so that their cache misses overlap with one another and with
//! work: what rules hold beside themselves, where cells are, slots, buckets. What is found on the way is a hint at what to ask for and
//! nothing else: each change looks anew in its turn, as those before it may have moved what it is about.

use wirespeed_image::{Patch, PatchBuilder};

use super::cell::Cell;
use super::layers::Fits;
use super::layout::Slot;
use super::store::{Full, Store};
use crate::rank::{Rank, RuleNumber};
use crate::rule::Rule;
use crate::rules::{Changed, RuleSet};
use crate::tuple::Tuple;

/// Changes that are looked through together.
const TOGETHER: usize = 64;
/// A bucket is asked for so many steps before.
const AHEAD: usize = 16;

/// What becomes of a cell.
#[derive(Clone, Copy, Debug)]
struct Step<T> {
    cell: Cell<T>,
    hash: u32,
    what: What,
    /// The slot that it is about, by the look of it.
    at: Option<usize>,
    /// The layers that it may be in, of one that comes.
    fits: Option<Fits>,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Goes(Rank),
    Comes(Rank),
    Changes(Rank, Rank),
}

/// A rule before and after.
type Both<'r, T> = (RuleNumber, Option<&'r Rule<T>>, Option<&'r Rule<T>>);

impl<T: Tuple> Store<T> {
    /// Makes the cells of rules that changed those that they have now. The patch that does it to the image.
    pub(super) fn update(&mut self, rules: &RuleSet<T>, changed: &[Changed<T>]) -> Result<Patch, Full> {
        self.layers.tidy();
        let mut steps = Vec::new();
        for (at, changed_here) in (0..).step_by(TOGETHER).zip(changed.chunks(TOGETHER)) {
            steps.clear();
            self.steps(rules, changed_here, &mut steps);
            let next = changed.iter().skip(at + TOGETHER).take(TOGETHER).map(|changed| changed.number.get());
            next.clone().for_each(|number| rules.fetch_number(number));
            self.fetch_slots(&mut steps);
            self.take_all(&steps)?;
            next.for_each(|number| rules.fetch_rule(number));
        }
        let mut patch = PatchBuilder::with_capacity(self.writes());
        self.write(&mut patch);
        Ok(patch.finish(Some((rules.len() as u64, rules.last_number().into()))))
    }

    /// What becomes of which cells.
    fn steps(&self, rules: &RuleSet<T>, changed: &[Changed<T>], steps: &mut Vec<Step<T>>) {
        let mut all: [Option<Both<'_, T>>; TOGETHER] = [None; TOGETHER];
        for (to, Changed { number, before }) in all.iter_mut().zip(changed) {
            *to = Some((*number, before.as_ref(), rules.rule(number.get())));
        }
        let of_all = || all.iter().flatten().flat_map(|(_, before, now)| before.iter().chain(now));
        of_all().for_each(|rule| rule.fetch());
        of_all().for_each(|rule| rule.fetch_ranges());
        for &(number, before, now) in all.iter().flatten() {
            let rank = |rule: &Rule<T>| Rank::new(rule.priority(), number);
            if let (Some(before), Some(now)) = (before, now)
                && before.has_patterns_of(now)
            {
                if rank(before) != rank(now) {
                    self.add_steps(now, What::Changes(rank(before), rank(now)), steps);
                }
                continue;
            }
            before.into_iter().for_each(|rule| self.add_steps(rule, What::Goes(rank(rule)), steps));
            now.into_iter().for_each(|rule| self.add_steps(rule, What::Comes(rank(rule)), steps));
        }
    }

    #[inline]
    fn add_steps(&self, rule: &Rule<T>, what: What, steps: &mut Vec<Step<T>>) {
        let Ok(()) = Cell::each(rule, |cell| {
            let hash = self.known.hash(&cell);
            self.known.fetch(hash);
            steps.push(Step { cell, hash, what, at: None, fits: None });
            Ok::<_, std::convert::Infallible>(())
        });
    }

    /// Asks for the slots that steps are about.
    fn fetch_slots(&mut self, steps: &mut [Step<T>]) {
        for step in steps {
            let known = self.known.seems(step.hash);
            let layer = known.or_else(|| match step.what {
                What::Comes(_) => {
                    let fits = self.layers.fits(&step.cell.fixed(), step.cell.form);
                    step.fits = Some(fits);
                    self.layers.fitting(fits).first().copied()
                }
                What::Goes(_) | What::Changes(..) => None,
            });
            step.at = layer.map(|layer| self.slot_at(layer, self.hash_in(layer, &step.cell)));
            step.at.into_iter().for_each(|at| self.directories.fetch(at));
        }
    }

    /// Asks for the bucket that a step is about.
    fn fetch_bucket(&self, step: &Step<T>) {
        let slot = step.at.map_or(Slot(0), |at| self.directories.slot(at));
        if !slot.is_empty() {
            (0..slot.groups()).for_each(|more| self.buckets.fetch(slot.group() + more));
        } else if let What::Comes(_) = step.what {
            self.buckets.fetch_free(AHEAD);
        }
    }

    fn take_all(&mut self, steps: &[Step<T>]) -> Result<(), Full> {
        steps.iter().take(AHEAD).for_each(|step| self.fetch_bucket(step));
        steps.iter().enumerate().try_for_each(|(at, step)| {
            steps.get(at + AHEAD).into_iter().for_each(|step| self.fetch_bucket(step));
            self.take(step)
        })
    }

    fn take(&mut self, Step { cell, hash, what, fits, .. }: &Step<T>) -> Result<(), Full> {
        match *what {
            What::Goes(rank) => self.remove(cell, *hash, rank),
            What::Comes(rank) => self.insert_fitting(cell, *hash, rank, *fits),
            What::Changes(before, now) => self.rerank(cell, *hash, before, now),
        }
    }
}
