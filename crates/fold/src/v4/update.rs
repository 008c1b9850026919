//! Updates as patches.
//!
//! For each changed prefix the elements that it covers, or that lead to it, take their value from the Rib as
//! it is after all changes; an element that a longer prefix decides is passed over. The slot then gets the
//! chunk of its new content: one that is there already, its own changed in place where nobody else has it, or
//! a free one. Only words that became different are written.
//!
//! Changes come in bursts of neighbours: in batches of 256 changes of a real day each slot is reached twice.
//! So a slot keeps its new content until a change reaches another slot, and only then gets a chunk.

use wirespeed_fib::rib::Cursor;
use wirespeed_fib::{Address, NextHop, Outgrown, Prefix, Rib, V4};
use wirespeed_image::{Changes, Image, Patch};

use super::build::FoldV4;
use super::content::Content;
use super::form::{QUARTERS, SHORT_WORDS};
use super::layout::{SHORT, SLOT_BITS, mark};
use super::walk::{below_16, changed_16};

/// The slot that changes reach, with a content that has no chunk yet.
struct Open {
    slot: Option<u32>,
    content: Content<SHORT_WORDS>,
    is_changed: bool,
}

/// The distance, in changes, of prefetches of chunks.
const AHEAD: usize = 8;

/// A cursor at the routes of a /16 that are longer, and the next hop where there are none.
type Below<'r> = (Option<Cursor<'r, V4>>, NextHop);

impl FoldV4 {
    pub(super) fn patch(
        &mut self,
        table: &Image,
        rib: &Rib<V4>,
        changed: &[Prefix<V4>],
    ) -> Result<Patch, Outgrown> {
        self.form.settle();
        let mut changes = Changes::to(table);
        let mut open = Open { slot: None, content: Content::new(self.form.width), is_changed: false };
        let mut last = None;
        for (at, &prefix) in changed.iter().enumerate() {
            if let Some(ahead) = changed.get(at + AHEAD) {
                self.form.fetch(slot_of(*ahead), &changes);
            }
            if prefix.len() > 24 {
                // The others are admitted where they decide an element.
                self.admit(rib.get(prefix).unwrap_or(NextHop::NONE))?;
            }
            let octets = u32::from(prefix.address().first_16());
            if prefix.len() > 16 {
                let (_, below) = *last
                    .filter(|&(of, _)| of == octets)
                    .get_or_insert_with(|| (octets, below_16(rib, prefix.address())));
                last = Some((octets, below));
                self.touch(octets, below, prefix, &mut open, &mut changes)?;
                continue;
            }
            // Slots before the one at hand have what they will have, so a chunk that one of them got stays in
            // use.
            let mut even = None;
            changed_16(rib, prefix, |octets, cursor, inherited| {
                self.close(&mut open, &mut changes)?;
                if cursor.is_none() {
                    self.admit(inherited)?;
                    return self.form.make_even(octets, inherited, &mut even, &mut changes);
                }
                self.touch(octets, (cursor, inherited), prefix, &mut open, &mut changes)
            })?;
        }
        self.close(&mut open, &mut changes)?;
        Ok(changes.finish((rib.len() as u64, u64::from(self.results))))
    }

    /// Brings the slots under two octets up to date, as far as `prefix` reaches. The last one stays open.
    fn touch(
        &mut self,
        octets: u32,
        (cursor, inherited): Below<'_>,
        prefix: Prefix<V4>,
        open: &mut Open,
        changes: &mut Changes<'_>,
    ) -> Result<(), Outgrown> {
        let covered = prefix.octets(2);
        let (from, to) = (usize::from(*covered.start()), usize::from(*covered.end()));
        for quarter in from / SHORT..=to / SHORT {
            let slot = octets * QUARTERS + u32::try_from(quarter).unwrap_or(0);
            self.open(slot, open, changes)?;
            let Open { content, is_changed, .. } = open;
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
                *is_changed |= match cursor.and_then(|cursor| cursor.child(octet)) {
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
        }
        Ok(())
    }

    /// Opens a slot, and closes another one.
    fn open(&mut self, slot: u32, open: &mut Open, changes: &mut Changes<'_>) -> Result<(), Outgrown> {
        if open.slot != Some(slot) {
            self.close(open, changes)?;
            self.form.load(slot, &mut open.content, changes);
            open.slot = Some(slot);
        }
        Ok(())
    }

    /// Gives the open slot, if there is one, its chunk.
    fn close(&mut self, open: &mut Open, changes: &mut Changes<'_>) -> Result<(), Outgrown> {
        let slot = open.slot.take();
        match slot.filter(|_| std::mem::take(&mut open.is_changed)) {
            Some(slot) => self.form.place(slot, &open.content, changes),
            None => Ok(()),
        }
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

/// The first slot that a route reaches.
fn slot_of(prefix: Prefix<V4>) -> u32 {
    prefix.address().0 >> (u32::BITS - SLOT_BITS)
}
