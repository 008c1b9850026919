//! Updates of SAIL_L (section 4.2, "FIB Update") as patches.
//!
//! From level to level only those elements are looked at that a changed prefix covers, or on the way to it.
//! Their values come from the Rib as it is after all changes, so the order of changes does not matter, and
//! elements that a longer prefix decides are passed over with all beneath them. A chunk that is no longer
//! needed goes back to its pool; what it holds is unreachable and left as it is.

use wirespeed_fib::rib::Cursor;
use wirespeed_fib::{Address, NextHop, Outgrown, Prefix, Rib};
use wirespeed_image::{Patch, PatchBuilder};

use super::build::{SailL, Sink, element, leaf_value};
use super::layout::{BCN16, LEAF, chunk_ids, levels, next_hops};

impl SailL {
    pub(crate) fn patch<A: Address>(
        &mut self,
        rib: &Rib<A>,
        changed: &[Prefix<A>],
    ) -> Result<Patch, Outgrown> {
        let mut sink = Patcher { patch: PatchBuilder::new(), last: levels::<A>() - 1 };
        let root = rib.cursor();
        for &prefix in changed {
            let now = rib.get(prefix).unwrap_or(NextHop::NONE);
            if now.0 > self.widest {
                return Err(Outgrown("entry width"));
            }
            self.results = self.results.max(now.0);
            for octet in prefix.octets(0) {
                let best = root.best(octet);
                if prefix.is_hidden_by(best) {
                    continue;
                }
                let inherited = best.map_or(NextHop::NONE, |(_, next_hop)| next_hop);
                self.touch(0, u32::from(octet), root.child(octet), inherited, prefix, &mut sink)?;
            }
        }
        Ok(sink.patch.finish(Some((rib.len() as u64, u64::from(self.results)))))
    }

    /// Brings the elements of a chunk up to date that `prefix` covers or that lead to it.
    fn touch<A: Address>(
        &mut self,
        level: usize,
        chunk: u32,
        cursor: Option<Cursor<'_, A>>,
        inherited: NextHop,
        prefix: Prefix<A>,
        sink: &mut Patcher,
    ) -> Result<(), Outgrown> {
        for octet in prefix.octets(level + 1) {
            let best = cursor.and_then(|cursor| cursor.best(octet));
            if prefix.is_hidden_by(best) {
                continue;
            }
            let next_hop = best.map_or(inherited, |(_, next_hop)| next_hop);
            let element = element(chunk, octet);
            let beneath = self.beneath[level].get(&element).copied();
            match (cursor.and_then(|cursor| cursor.child(octet)), beneath) {
                (Some(child), Some(id)) => self.touch(level + 1, id, Some(child), next_hop, prefix, sink)?,
                (Some(child), None) => {
                    let id = self.link(level, element, sink)?;
                    self.fill(level + 1, id, Some(child), next_hop, sink)?;
                }
                (None, Some(id)) => {
                    self.beneath[level].remove(&element);
                    self.reclaim(level + 1, id);
                    sink.leaf(level, element, next_hop);
                }
                (None, None) => sink.leaf(level, element, next_hop),
            }
        }
        Ok(())
    }

    /// Gives back a chunk and all beneath it.
    fn reclaim(&mut self, level: usize, chunk: u32) {
        self.pools[level].give_back(chunk);
        if level + 1 == self.beneath.len() {
            return;
        }
        for octet in 0..=u8::MAX {
            if let Some(id) = self.beneath[level].remove(&element(chunk, octet)) {
                self.reclaim(level + 1, id);
            }
        }
    }
}

/// Collects the elements of a patch.
struct Patcher {
    patch: PatchBuilder,
    last: usize,
}

impl Sink for Patcher {
    fn leaf(&mut self, level: usize, element: u64, next_hop: NextHop) {
        match level {
            0 => self.patch.set(BCN16, element, u64::from(LEAF | next_hop.0)),
            _ => self.patch.set(next_hops(level), element, leaf_value(level, self.last, next_hop)),
        }
    }

    fn link(&mut self, level: usize, element: u64, chunk: u32) {
        let chunk = u64::from(chunk);
        match level {
            0 => self.patch.set(BCN16, element, chunk),
            _ => {
                self.patch.set(next_hops(level), element, 0);
                self.patch.set(chunk_ids(level), element, chunk);
            }
        }
    }
}
