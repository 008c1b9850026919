//! Updates: what rules are before and after as cells that go and come.
//!
//! What many changes read is asked for together, stage by stage, so that their cache misses overlap: what rules hold beside themselves,
//! where cells are, slots, buckets. What is found on the way is a hint at what to ask for and nothing else: each change looks anew in its
//! turn, as those before it may have moved what it is about.

use wirespeed_image::{Patch, PatchBuilder};

use super::cell::Cell;
use super::layers::Fits;
use super::store::{Full, Store};
use crate::rank::{Rank, RuleNumber};
use crate::rule::Rule;
use crate::rules::{Changed, RuleSet};
use crate::tuple::Tuple;

/// Changes that are asked for together.
const TOGETHER: usize = 32;

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
        for changed in changed.chunks(TOGETHER) {
            steps.clear();
            self.steps(rules, changed, &mut steps);
            self.fetch(&mut steps);
            steps.iter().try_for_each(|step| self.take(step))?;
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
            steps.push(Step { cell, hash, what, at: None, fits: None });
            Ok::<_, std::convert::Infallible>(())
        });
    }

    /// Asks for all that steps will read.
    fn fetch(&mut self, steps: &mut [Step<T>]) {
        steps.iter().for_each(|step| self.known.fetch(step.hash));
        let mut come = 0;
        for step in &mut *steps {
            let layer = match step.what {
                What::Goes(_) | What::Changes(..) => self.known.seems(step.hash),
                What::Comes(_) => {
                    come += 1;
                    let fits = self.layers.fits(&step.cell.fixed(), step.cell.form);
                    step.fits = Some(fits);
                    self.layers.fitting(fits).first().copied()
                }
            };
            step.at = layer.map(|layer| self.slot_at(layer, self.hash_in(layer, &step.cell)));
            step.at.into_iter().for_each(|at| self.directories.fetch(at));
        }
        for slot in steps.iter().filter_map(|step| step.at).map(|at| self.directories.slot(at)) {
            if !slot.is_empty() {
                (0..slot.groups()).for_each(|more| self.buckets.fetch(slot.group() + more));
            }
        }
        self.buckets.fetch_free(come);
    }

    fn take(&mut self, Step { cell, hash, what, fits, .. }: &Step<T>) -> Result<(), Full> {
        match *what {
            What::Goes(rank) => self.remove(cell, *hash, rank),
            What::Comes(rank) => self.insert_fitting(cell, *hash, rank, *fits),
            What::Changes(before, now) => self.rerank(cell, *hash, before, now),
        }
    }
}
