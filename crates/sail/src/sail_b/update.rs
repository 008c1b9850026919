//! Updates of SAIL_B (section 3.3) and SAIL_U (section 4.1, "FIB Update") as patches.
//!
//! A prefix of up to 24 bits owns elements of one level: itself, or in SAIL_U all of its expansion that no
//! longer prefix of the same step owns. Their bits lie in one word, which is in the patch where it changes;
//! their next hops lie side by side. Chunks beneath it hold the next hop that they inherit, and take the new
//! one. A prefix longer than 24 bits owns elements of one chunk.
//!
//! Values come from the Rib as it is after all changes, so the order of changes does not matter. A chunk that
//! is no longer needed goes back to the pool.

use wirespeed_fib::rib::Cursor;
use wirespeed_fib::{Address, NextHop, Outgrown, Prefix, Rib, V4};
use wirespeed_image::{Patch, PatchBuilder, SectionId};

use super::build::{Sink, Split};
use super::layout::{Levels, PIVOT, bits, long, next_hops, pivot};
use crate::sail_l::{CHUNK, element};

impl<L: Levels> Split<L> {
    pub(crate) fn patch(&mut self, rib: &Rib<V4>, changed: &[Prefix<V4>]) -> Result<Patch, Outgrown> {
        let mut patch = PatchBuilder::new();
        for &prefix in changed {
            let now = rib.get(prefix).unwrap_or(NextHop::NONE);
            if now.0 > self.widest {
                return Err(Outgrown("entry width"));
            }
            self.results = self.results.max(now.0);
            self.touch(rib, prefix, &mut patch)?;
        }
        Ok(patch.finish(Some((rib.len() as u64, u64::from(self.results)))))
    }

    /// Brings every element up to date that `prefix` decides.
    pub(crate) fn touch(
        &mut self,
        rib: &Rib<V4>,
        prefix: Prefix<V4>,
        sink: &mut impl Sink,
    ) -> Result<(), Outgrown> {
        if prefix.len() > PIVOT {
            return self.touch_long(rib, prefix, sink);
        }
        let at = L::LEVELS.partition_point(|&level| level < prefix.len());
        if at == pivot::<L>() {
            return self.touch_pivot(rib, prefix, sink);
        }
        let shortest = at.checked_sub(1).map_or(0, |before| L::LEVELS[before] + 1);
        let lengths = shortest..=prefix.len();
        let next_hop = lengths.rev().find_map(|len| rib.get(Prefix::around(prefix.address(), len)));
        self.paint(rib, at, prefix, next_hop, sink);
        self.touch_chunks(rib, prefix, sink);
        Ok(())
    }

    /// Expands a prefix to a level above the pivot, around the longer prefixes of the step.
    fn paint(
        &mut self,
        rib: &Rib<V4>,
        at: usize,
        prefix: Prefix<V4>,
        next_hop: Option<NextHop>,
        sink: &mut impl Sink,
    ) {
        let level = L::LEVELS[at];
        if prefix.len() == level {
            let index = prefix.address().0.checked_shr((32 - level).into()).unwrap_or(0);
            return self.set(at, index, next_hop, sink);
        }
        let lower = Prefix::around(prefix.address(), prefix.len() + 1);
        let upper = Prefix::around(prefix.last(), prefix.len() + 1);
        for half in [lower, upper] {
            if rib.get(half).is_none() {
                self.paint(rib, at, half, next_hop, sink);
            }
        }
    }

    /// Sets the bit of an element and its next hop, or clears the bit.
    fn set(&mut self, at: usize, index: u32, next_hop: Option<NextHop>, sink: &mut impl Sink) {
        self.mark(at, index, next_hop.is_some(), sink);
        if let Some(next_hop) = next_hop {
            sink.put(next_hops::<L>(at), index.into(), next_hop.0.into());
        }
    }

    /// Sets or clears a bit.
    fn mark(&mut self, at: usize, index: u32, set: bool, sink: &mut impl Sink) {
        let word = &mut self.bits[at][index as usize / 64];
        let bit = 1u64 << (index % 64);
        let marked = if set { *word | bit } else { *word & !bit };
        if marked != *word {
            *word = marked;
            sink.put(bits(at), u64::from(index / 64), marked);
        }
    }

    /// Gives the chunks that inherit from a prefix above the pivot's step their next hop.
    fn touch_chunks(&self, rib: &Rib<V4>, prefix: Prefix<V4>, sink: &mut impl Sink) {
        let beneath = prefix.address().0 >> 8..=prefix.last().0 >> 8;
        for (&index, &chunk) in self.chunks.range(beneath) {
            let address = V4(index << 8);
            let inherited = inherited(rib, address);
            // Where nothing is longer than the pivot any more, that change is to come, and takes the chunk
            // back.
            if !prefix.is_hidden_by(inherited)
                && let Some(cursor) = descend(rib, address, 3)
            {
                inherit::<L>(chunk, cursor, inherited, sink);
            }
        }
    }

    /// Brings the elements of the pivot level up to date that a prefix of its step decides.
    fn touch_pivot(
        &mut self,
        rib: &Rib<V4>,
        prefix: Prefix<V4>,
        sink: &mut impl Sink,
    ) -> Result<(), Outgrown> {
        let cursor = descend(rib, prefix.address(), 2);
        for octet in prefix.octets(2) {
            let best = cursor.and_then(|cursor| cursor.best(octet));
            if !prefix.is_hidden_by(best) {
                let cursor = cursor.and_then(|cursor| cursor.child(octet));
                self.set_pivot(rib, prefix.address().with_octet(2, octet), best, cursor, sink)?;
            }
        }
        Ok(())
    }

    /// Sets one element of the pivot level, and its chunk. `best` is the longest route that ends in its
    /// octet, `cursor` leads to the routes that are longer.
    fn set_pivot(
        &mut self,
        rib: &Rib<V4>,
        address: V4,
        best: Option<(u8, NextHop)>,
        cursor: Option<Cursor<'_, V4>>,
        sink: &mut impl Sink,
    ) -> Result<(), Outgrown> {
        let at = pivot::<L>();
        let index = address.0 >> 8;
        match (cursor, self.chunks.get(&index).copied()) {
            (Some(cursor), Some(chunk)) => inherit::<L>(chunk, cursor, inherited(rib, address), sink),
            (Some(cursor), None) => {
                let chunk = self.pool.take().ok_or(Outgrown("room for chunks"))?;
                self.chunks.insert(index, chunk);
                self.mark(at, index, true, sink);
                let (section, value) = self.link(chunk);
                sink.put(section, index.into(), value);
                let mut next_hops = [NextHop::NONE; CHUNK];
                cursor.expand(next_hop_of(inherited(rib, address)), &mut next_hops);
                for (octet, &next_hop) in (0..=u8::MAX).zip(&next_hops) {
                    put_long::<L>(chunk, octet, next_hop, sink);
                }
            }
            (None, chunk) => {
                if let Some(chunk) = chunk {
                    self.chunks.remove(&index);
                    self.pool.give_back(chunk);
                }
                // A route that ends in the octet may belong to the level before the pivot.
                let own = best.filter(|&(len, _)| len > L::LEVELS[at - 1]);
                self.set(at, index, own.map(|(_, next_hop)| next_hop), sink);
            }
        }
        Ok(())
    }

    /// Brings the elements of a chunk up to date that a prefix longer than the pivot decides, or what led to
    /// it.
    fn touch_long(
        &mut self,
        rib: &Rib<V4>,
        prefix: Prefix<V4>,
        sink: &mut impl Sink,
    ) -> Result<(), Outgrown> {
        let address = prefix.address().keep(PIVOT);
        let above = descend(rib, address, 2);
        let cursor = above.and_then(|above| above.child(address.octet(2)));
        let (Some(cursor), Some(&chunk)) = (cursor, self.chunks.get(&(address.0 >> 8))) else {
            let best = above.and_then(|above| above.best(address.octet(2)));
            return self.set_pivot(rib, address, best, cursor, sink);
        };
        let inherited = inherited(rib, address);
        for octet in prefix.octets(3) {
            let best = cursor.best(octet);
            if !prefix.is_hidden_by(best) {
                put_long::<L>(chunk, octet, next_hop_of(best.or(inherited)), sink);
            }
        }
        Ok(())
    }
}

impl Sink for PatchBuilder {
    fn put(&mut self, section: SectionId, index: u64, value: u64) {
        self.set(section, index, value);
    }
}

/// Gives the elements of a chunk that no longer prefix decides the next hop that they inherit.
fn inherit<L: Levels>(
    chunk: u32,
    cursor: Cursor<'_, V4>,
    inherited: Option<(u8, NextHop)>,
    sink: &mut impl Sink,
) {
    for octet in 0..=u8::MAX {
        if cursor.best(octet).is_none() {
            put_long::<L>(chunk, octet, next_hop_of(inherited), sink);
        }
    }
}

fn put_long<L: Levels>(chunk: u32, octet: u8, next_hop: NextHop, sink: &mut impl Sink) {
    sink.put(long::<L>(), element(chunk, octet), next_hop.0.into());
}

fn next_hop_of(route: Option<(u8, NextHop)>) -> NextHop {
    route.map_or(NextHop::NONE, |(_, next_hop)| next_hop)
}

/// The longest route of up to 24 bits that covers an address.
fn inherited(rib: &Rib<V4>, address: V4) -> Option<(u8, NextHop)> {
    let mut cursor = Some(rib.cursor());
    let mut best = None;
    for octet in (0..3).map(|at| address.octet(at)) {
        let Some(here) = cursor else { break };
        best = here.best(octet).or(best);
        cursor = here.child(octet);
    }
    best
}

/// The path of the first octets of an address, where routes are longer than that.
fn descend(rib: &Rib<V4>, address: V4, octets: usize) -> Option<Cursor<'_, V4>> {
    (0..octets).try_fold(rib.cursor(), |cursor, at| cursor.child(address.octet(at)))
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::conformance::scattered;
    use wirespeed_fib::{BuildOptions, Engine};
    use wirespeed_image::Table;

    use super::super::layout::is_on_chip;
    use super::*;
    use crate::{EverySixth, SailU};

    /// The word of a bit map of SAIL_U that has the bits of a prefix, by the definition: its section, its
    /// index and its value.
    fn word_around(rib: &Rib<V4>, prefix: Prefix<V4>) -> (SectionId, u64, u64) {
        let level = prefix.len().max(1).next_multiple_of(6);
        let step = if level == 6 { 0..=6 } else { level - 5..=level };
        let first = prefix.address().keep(level - 6);
        let set = |bit: u32| {
            let element = Prefix::around(V4(first.0 | bit << (32 - level)), level);
            rib.covering(element).any(|(route, _)| step.contains(&route.len()))
                || level == PIVOT && rib.covered(element).next().is_some()
        };
        let word = (0..64).filter(|&bit| set(bit)).fold(0, |word, bit| word | 1 << bit);
        (bits(usize::from(level / 6) - 1), u64::from(first.0 >> (32 - level)) / 64, word)
    }

    #[test]
    fn an_update_changes_one_word_on_the_chip_of_sail_u_at_most() {
        // Long prefixes and short ones, so that updates meet bits that others hold.
        let background = scattered::<V4>(600).into_iter().zip((0..=32).cycle());
        let mut rib: Rib<V4> =
            background.map(|(address, len)| (Prefix::around(address, len), NextHop(1))).collect();
        let options = BuildOptions { results: 200, ..BuildOptions::default() };
        let (mut engine, mut table) = SailU::build(&rib, &options).unwrap();
        let mut changed_by_len = [0; 25];
        for (round, address) in (0u32..).zip(scattered::<V4>(6_000)) {
            // Few distinct addresses: prefixes come and go, nest, and share words.
            let address = V4(address.0 & 0xc8_3f_0f_ff);
            let prefix = Prefix::around(address, (round % 25).to_le_bytes()[0]);
            let before = word_around(&rib, prefix);
            if rib.get(prefix).is_some() && round % 3 != 0 {
                rib.remove(prefix);
            } else {
                rib.insert(prefix, NextHop(round % 200));
            }
            let after = word_around(&rib, prefix);
            let patch = engine.update(&table, &rib, &[prefix]).unwrap();
            table.apply(&patch).unwrap();
            let on_chip: Vec<_> = patch
                .writes()
                .iter()
                .filter(|write| is_on_chip::<EverySixth>(write.section()))
                .map(|write| (write.section(), write.index(), write.value))
                .collect();
            // One where a bit changes, none where all stay as they are.
            let right: Vec<_> = (before != after).then_some(after).into_iter().collect();
            assert_eq!(on_chip, right, "{prefix}");
            changed_by_len[usize::from(prefix.len())] += right.len();
        }
        assert!(changed_by_len.iter().all(|&changed| changed > 0), "{changed_by_len:?}");
    }
}
