//! Patches of linear search: the lanes that entries came to, went from, or moved between.

use wirespeed_image::{Patch, PatchBuilder};
use wirespeed_table::Outgrown;

use super::build::{Linear, words_of};
use super::layout::{ENTRIES, GROUPS_AT, HEAD, LANES, NUMBERS, PRIORITIES, value_at};
use super::order::{Full, Held, Key};
use crate::limits::take_entries;
use crate::rank::{Rank, RuleNumber};
use crate::rule::Rule;
use crate::rules::{Changed, RuleSet};
use crate::tuple::Tuple;

impl<T: Tuple> Linear<T> {
    pub(super) fn take_in(&mut self, rules: &RuleSet<T>, changed: &[Changed<T>]) -> Result<(), Outgrown> {
        take_entries(rules)?;
        for changed in changed {
            self.change(changed.number, changed.before.as_ref(), rules.now(changed))
                .map_err(|Full| Outgrown("room for entries"))?;
        }
        Ok(())
    }

    pub(super) fn patch_of(&mut self, rules: &RuleSet<T>) -> Patch {
        self.writes().finish(Some((rules.len() as u64, rules.last_number().into())))
    }

    /// Takes the entries of a rule out and puts those in that it has now; what has the same key is written
    /// over.
    fn change(
        &mut self,
        number: RuleNumber,
        before: Option<&Rule<T>>,
        now: Option<&Rule<T>>,
    ) -> Result<(), Full> {
        let rank = |rule: &Rule<T>| Rank::new(rule.priority(), number);
        let stays = match (before, now) {
            (Some(before), Some(now)) if rank(before) == rank(now) => now.patterns_len(),
            _ => 0,
        };
        if let Some(before) = before {
            for (place, _) in (0u32..).zip(0..before.patterns_len()).skip(stays) {
                let found = self.order.remove(Key::new(rank(before), place));
                debug_assert!(found, "what a rule had is there");
            }
        }
        if let Some(now) = now {
            for (place, pattern) in (0u32..).zip(now.patterns()) {
                self.order.put(Held { key: Key::new(rank(now), place), pattern })?;
            }
        }
        Ok(())
    }

    /// The writes of the patch.
    fn writes(&mut self) -> PatchBuilder {
        let mut patch = PatchBuilder::new();
        let used = self.order.used();
        if used != self.used {
            patch.set(HEAD, GROUPS_AT as u64, used as u64);
            self.used = used;
        }
        for (group, lanes) in self.order.take_dirty() {
            for lane in (0..LANES).filter(|lane| lanes >> lane & 1 == 1) {
                let held = self.order.groups()[group].get(lane);
                for word in 0..T::WORDS {
                    let at = value_at(T::WORDS, group, word, lane);
                    let (value, mask) = words_of(held, word);
                    patch.set(ENTRIES, at as u64, value.into());
                    patch.set(ENTRIES, (at + LANES) as u64, mask.into());
                }
                let (at, rank) =
                    ((group * LANES + lane) as u64, held.map_or(Rank::NONE, |held| held.key.rank()));
                patch.set(NUMBERS, at, rank.result().into());
                patch.set(PRIORITIES, at, rank.priority().into());
            }
        }
        patch
    }
}
