//! Updates as patches.
//!
//! For each changed prefix the elements that it covers, or that lead to it, take their value from the Rib as
//! it is after all changes; an element that a longer prefix decides is passed over. The slot then gets the
//! chunk of its new content: one that is there already, its own changed in place where nobody else has it, or
//! a free one. Only words that became different are written.

use wirespeed_fib::rib::Cursor;
use wirespeed_fib::{NextHop, Outgrown, Prefix, Rib, V4};
use wirespeed_image::{Changes, Patch};

use super::build::FoldV4;
use super::form::QUARTERS;
use super::layout::{SHORT, mark};
use super::walk::changed_16;

impl FoldV4 {
    pub(super) fn patch(&mut self, rib: &Rib<V4>, changed: &[Prefix<V4>]) -> Result<Patch, Outgrown> {
        let mut changes = Changes::collected();
        for &prefix in changed {
            if prefix.len() > 24 {
                // The others are admitted where they decide an element.
                self.admit(rib.get(prefix).unwrap_or(NextHop::NONE))?;
            }
            // Slots before the one at hand have what they will have, so a chunk that one of them got stays in
            // use.
            let mut even = None;
            changed_16(rib, prefix, |octets, cursor, inherited| {
                if cursor.is_none() && prefix.len() <= 16 {
                    self.admit(inherited)?;
                    self.form.make_even(octets, inherited, &mut even, &mut changes)
                } else {
                    self.touch(octets, cursor, inherited, prefix, &mut changes)
                }
            })?;
        }
        Ok(changes.finish((rib.len() as u64, u64::from(self.results))))
    }

    /// Brings the slots under two octets up to date, as far as `prefix` reaches.
    fn touch(
        &mut self,
        octets: u32,
        cursor: Option<Cursor<'_, V4>>,
        inherited: NextHop,
        prefix: Prefix<V4>,
        changes: &mut Changes,
    ) -> Result<(), Outgrown> {
        let covered = prefix.octets(2);
        let (from, to) = (usize::from(*covered.start()), usize::from(*covered.end()));
        for quarter in from / SHORT..=to / SHORT {
            let slot = octets * QUARTERS + u32::try_from(quarter).unwrap_or(0);
            let mut content = self.form.content(slot);
            let mut changed = false;
            for at in from.max(quarter * SHORT)..=to.min(quarter * SHORT + SHORT - 1) {
                let octet = u8::try_from(at).unwrap_or(u8::MAX);
                let best = cursor.and_then(|cursor| cursor.best(octet));
                if prefix.is_hidden_by(best) {
                    continue;
                }
                let next_hop = best.map_or(inherited, |(_, next_hop)| next_hop);
                let element = at % SHORT;
                self.admit(next_hop)?;
                let form = &mut self.form;
                changed |= match cursor.and_then(|cursor| cursor.child(octet)) {
                    Some(child) => {
                        form.long.lead_on(slot, element, child, next_hop, changes)?;
                        content.set(element, mark(form.width))
                    }
                    None => {
                        form.long.end_here(slot, element, changes);
                        content.set(element, next_hop.0)
                    }
                };
            }
            if changed {
                self.form.place(slot, &content, changes)?;
            }
        }
        Ok(())
    }

    /// Counts a next hop in, if an element holds it.
    fn admit(&mut self, next_hop: NextHop) -> Result<(), Outgrown> {
        if next_hop.0 >= mark(self.form.width) {
            return Err(Outgrown("entry width"));
        }
        self.results = self.results.max(next_hop.0);
        Ok(())
    }
}
