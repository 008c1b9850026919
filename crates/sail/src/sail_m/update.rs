//! Updates of SAIL_M (section 4.3, "FIB Update") as patches.
//!
//! Routes of any FIB change in one way, and a FIB that comes or goes is all its routes changing. From level
//! to level only those elements are looked at that a changed prefix covers, or on the way to it:
//!
//! ```text
//! on the way    link or unlink a chunk, as any FIB has longer prefixes or none has any more: all FIBs' next hops change
//!               place with the level, and are read again from all Ribs
//! covered       the one FIB's next hop, on whatever level the overlay has it: another array, the old one with this
//!               next hop changed, which may be there already
//! ```
//!
//! Values come from the Ribs as they are after all changes, so the order of changes does not matter. Which
//! chunks there are is decided on the way alone: every prefix by which that may change is in the list of
//! changes, and so is on its own way. A chunk that is no longer needed goes back to its pool; what it holds
//! is unreachable and left as it is.

use wirespeed_fib::rib::Cursor;
use wirespeed_fib::{Address, NextHop, Outgrown, Prefix};
use wirespeed_image::Patch;

use super::build::SailM;
use super::log::Log;
use super::overlay::Overlay;
use crate::sail_l::element;

/// A prefix that changed, and where.
#[derive(Clone, Copy)]
struct Change<A> {
    slot: usize,
    prefix: Prefix<A>,
    /// Whether the elements that it covers have their values: a prefix around it did that, and only what is
    /// on the way to it is left to see to.
    settled: bool,
}

impl SailM {
    pub(super) fn patch_overlay<A: Address>(
        &mut self,
        overlay: &Overlay<'_, A>,
        changed: impl Iterator<Item = (usize, Prefix<A>)>,
    ) -> Result<Patch, Outgrown> {
        let mut log = Log::on::<A>(self.leaf, self.arrays.capacity() as u64);
        // Of a FIB that was removed, in table order, the outermost prefixes cover all there is to empty.
        let mut emptied: Option<(usize, Prefix<A>)> = None;
        for (slot, prefix) in changed {
            if slot >= self.slots {
                return Err(Outgrown("room for FIBs"));
            }
            let rib = overlay.rib(slot);
            let now = rib.and_then(|rib| rib.get(prefix)).unwrap_or(NextHop::NONE);
            if now.0 > self.widest {
                return Err(Outgrown("entry width"));
            }
            self.results = self.results.max(now.0);
            let settled = emptied.is_some_and(|(of, outer)| of == slot && outer.covers(prefix));
            if rib.is_none() && !settled {
                emptied = Some((slot, prefix));
            }
            let change = Change { slot, prefix, settled };
            let root = rib.map(wirespeed_fib::Rib::cursor);
            for octet in prefix.octets(0) {
                let best = root.and_then(|root| root.best(octet));
                if prefix.is_hidden_by(best) {
                    continue;
                }
                let inherited = best.map_or(NextHop::NONE, |(_, next_hop)| next_hop);
                let cursor = root.and_then(|root| root.child(octet));
                self.touch(overlay, change, (0, u32::from(octet)), cursor, inherited, &mut log)?;
            }
        }
        Ok(log.finish((overlay.routes(), u64::from(self.results))))
    }

    /// Brings the elements of a chunk, given by its level and id, up to date that the change covers or that
    /// lead to it.
    fn touch<A: Address>(
        &mut self,
        overlay: &Overlay<'_, A>,
        change: Change<A>,
        (level, chunk): (usize, u32),
        cursor: Option<Cursor<'_, A>>,
        inherited: NextHop,
        log: &mut Log,
    ) -> Result<(), Outgrown> {
        let Change { slot, prefix, settled } = change;
        // Octets of an element of this level.
        let octets = level + 2;
        let is_on_the_way = usize::from(prefix.len()) > 8 * octets;
        if settled && !is_on_the_way {
            return Ok(());
        }
        for octet in prefix.octets(level + 1) {
            let best = cursor.and_then(|cursor| cursor.best(octet));
            if prefix.is_hidden_by(best) {
                continue;
            }
            let next_hop = best.map_or(inherited, |(_, next_hop)| next_hop);
            let element = element(chunk, octet);
            let child = cursor.and_then(|cursor| cursor.child(octet));
            let beneath = self.beneath[level].get(&element).copied();
            let needed = match is_on_the_way {
                true => child.is_some() || overlay.reaches(prefix.address(), octets),
                false => beneath.is_some(),
            };
            match (needed, beneath) {
                (true, Some(id)) => self.touch(overlay, change, (level + 1, id), child, next_hop, log)?,
                (true, None) => {
                    let id = self.link(level, element, log)?;
                    let row = overlay.row(prefix.address(), octets, self.slots);
                    self.fill(level + 1, id, &overlay.along(prefix.address(), octets), &row, log)?;
                }
                (false, Some(id)) => {
                    self.beneath[level].remove(&element);
                    self.reclaim(level + 1, id);
                    let row = overlay.row(prefix.address(), octets, self.slots);
                    self.hold(level, element, &row, log)?;
                }
                (false, None) => self.set_next_hop(level, element, slot, next_hop, log)?,
            }
        }
        Ok(())
    }

    /// Gives an element another next hop in one FIB.
    fn set_next_hop(
        &mut self,
        level: usize,
        element: u64,
        slot: usize,
        next_hop: NextHop,
        log: &mut Log,
    ) -> Result<(), Outgrown> {
        let array = self.arrays.array(self.held(level, element));
        if array[slot] == next_hop {
            return Ok(());
        }
        let mut array = array.to_vec();
        array[slot] = next_hop;
        self.hold(level, element, &array, log)
    }

    /// Gives back a chunk and all beneath it.
    fn reclaim(&mut self, level: usize, chunk: u32) {
        self.pools[level].give_back(chunk);
        for octet in 0..=u8::MAX {
            let element = element(chunk, octet);
            self.set_held(level, element, 0);
            if let Some(id) = self.beneath[level].remove(&element) {
                self.reclaim(level + 1, id);
            }
        }
    }
}
