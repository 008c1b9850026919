//! Updates as patches, after GALE (as GAMT, sections 2.3 and 5.3, describes it).
//!
//! An entry is written only where the length beside it lets the change take it:
//!
//! - a prefix *P* was announced: entries in its range whose length is at most *P*'s take *P*'s next hop and
//!   length;
//! - it was withdrawn: entries whose length is *P*'s take those of the longest prefix that still covers *P*.
//!
//! GALE must make changes in the order in which they came. A patch is made from many, and their order is of
//! no consequence, because both rules take next hop and length from the Rib as it is after all the changes.
//! Take one entry; let *L* be the longest prefix that covers it afterwards, *l* its length and *o* the
//! entry's length before.
//!
//! 1. An entry only ever gets the length of a prefix that is there afterwards and covers it, so at most *l*.
//!    Its length is past *l* only as long as it is the *o* it began with; the prefix of that length is gone
//!    then, and so it is among the changes.
//! 2. When that one's turn comes the entry gets the longest that still covers it, which is *L*: nothing
//!    longer is there, and *L* covers it as both cover the entry and *L* is shorter.
//! 3. If *o* is at most *l* and not *L*'s own, *L* is among the changes, and takes the entry in its turn.
//! 4. Once the entry is *L*'s it stays so: to take it an announced prefix would have to be as long, which is
//!    *L* itself, and the only prefix of that length to withdraw from here is *L*, which is there.
//!
//! Chunks come and go before that, in the order of their slots, those that go first. A new one is filled with
//! what it has afterwards, so the above holds for it from the start. What a patch writes is which words have
//! another value than before it.

use std::ops::Range;

use wirespeed_fib::rib::Cursor;
use wirespeed_fib::{Address, NextHop, Outgrown, Prefix, Rib, V4};
use wirespeed_image::{Element, Patch, PatchBuilder, SectionId};

use super::build::{Dir24, LEN8, LEN24, OWN, entries_mut, entry, leads_to, within};
use super::layout::{CHUNK, TBL8, TBL24, WORD, chunk_bit, slot};

/// A prefix that has changed, as it is now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) prefix: Prefix<V4>,
    /// The longest prefix that covers it, which it is itself unless it was withdrawn: what entries take.
    owner: Owner,
}

/// What an entry has its next hop from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    len: u8,
    next_hop: NextHop,
}

impl Owner {
    const NONE: Self = Self { len: 0, next_hop: NextHop::NONE };

    fn new((len, next_hop): (u8, NextHop)) -> Self {
        Self { len, next_hop }
    }

    /// The longest prefix of the Rib that covers one.
    fn of(rib: &Rib<V4>, prefix: Prefix<V4>) -> Self {
        let mut best = None;
        let mut cursor = Some(rib.cursor());
        for index in 0..V4::OCTETS {
            let Some(here) = cursor else { break };
            let octet = prefix.address().octet(index);
            let bits = prefix.len() - 8 * here.depth();
            if bits <= 8 {
                best = here.best_within(octet, bits).or(best);
                break;
            }
            best = here.best(octet).or(best);
            cursor = here.child(octet);
        }
        best.map_or(Self::NONE, Self::new)
    }
}

impl Change {
    pub(super) fn of(rib: &Rib<V4>, prefix: Prefix<V4>) -> Self {
        Self { prefix, owner: Owner::of(rib, prefix) }
    }

    /// Whether it takes an entry whose next hop is from a prefix of that length.
    #[inline]
    pub(super) fn takes(&self, len: u8) -> bool {
        let least = if self.owner.len == self.prefix.len() { 0 } else { self.prefix.len() };
        (least..=self.prefix.len()).contains(&len)
    }
}

impl Dir24 {
    pub(super) fn patch<W: Element>(
        &mut self,
        rib: &Rib<V4>,
        changed: &[Prefix<V4>],
    ) -> Result<Patch, Outgrown> {
        let mut old = OldWords::default();
        self.settle_chunks::<W>(rib, changed, &mut old)?;
        for &prefix in changed {
            let change = Change::of(rib, prefix);
            self.admit::<W>(change.owner.next_hop)?;
            self.settle::<W>(&change, &mut old);
        }
        let counts = (rib.len() as u64, self.table.results());
        self.table.set_counts(counts.0, counts.1);
        Ok(old.patch(&self.table, counts))
    }

    /// Gives a chunk to each slot that needs one now, and takes it from those that don't any more.
    fn settle_chunks<W: Element>(
        &mut self,
        rib: &Rib<V4>,
        changed: &[Prefix<V4>],
        old: &mut OldWords,
    ) -> Result<(), Outgrown> {
        let mut slots: Vec<_> = changed
            .iter()
            .filter(|prefix| prefix.len() > 24)
            .map(|prefix| prefix.address().keep(24))
            .collect();
        slots.sort_unstable();
        slots.dedup();
        for &address in &slots {
            if let (Some(chunk), None) = (self.chunk_of::<W>(slot(address)), beneath(rib, address)) {
                self.chunks.give_back(chunk);
                let owner = Owner::of(rib, Prefix::around(address, 24));
                self.admit::<W>(owner.next_hop)?;
                self.set_slot(slot(address), entry::<W>(owner.next_hop.0), owner.len, old);
            }
        }
        for &address in &slots {
            if let (None, Some(beneath)) = (self.chunk_of::<W>(slot(address)), beneath(rib, address)) {
                let owner = Owner::of(rib, Prefix::around(address, 24));
                let chunk = self.chunks.take().ok_or(Outgrown("room for chunks"))?;
                self.fill_chunk::<W>(chunk, beneath, owner, old)?;
                self.set_slot(slot(address), entry::<W>(chunk | chunk_bit(self.width)), owner.len, old);
            }
        }
        Ok(())
    }

    fn set_slot<W: Element>(&mut self, slot: usize, entry: W, len: u8, old: &mut OldWords) {
        let word = slot / (WORD / size_of::<W>());
        old.keep(TBL24, word, self.table.section::<u64>(TBL24)[word]);
        entries_mut::<W>(&mut self.table, TBL24)[slot] = entry;
        self.lengths.section_mut::<u8>(LEN24).expect(OWN)[slot] = len;
    }

    /// Fills a chunk with what the Rib has for it, where `owner` covers all of it.
    fn fill_chunk<W: Element>(
        &mut self,
        chunk: u32,
        beneath: Cursor<'_, V4>,
        owner: Owner,
        old: &mut OldWords,
    ) -> Result<(), Outgrown> {
        let first = chunk as usize * CHUNK;
        for word in first * size_of::<W>() / WORD..(first + CHUNK) * size_of::<W>() / WORD {
            old.keep(TBL8, word, self.table.section::<u64>(TBL8)[word]);
        }
        for octet in 0..=u8::MAX {
            let owner = beneath.best(octet).map_or(owner, Owner::new);
            self.admit::<W>(owner.next_hop)?;
            let at = first + usize::from(octet);
            entries_mut::<W>(&mut self.table, TBL8)[at] = entry(owner.next_hop.0);
            self.lengths.section_mut::<u8>(LEN8).expect(OWN)[at] = owner.len;
        }
        Ok(())
    }

    /// Lets a change take the entries that are its own.
    fn settle<W: Element>(&mut self, change: &Change, old: &mut OldWords) {
        let prefix = change.prefix;
        if prefix.len() <= 24 {
            let mut chunks = Vec::new();
            let slots = slot(prefix.address())..slot(prefix.last()) + 1;
            self.take::<W>(change, TBL24, slots, &mut chunks, old);
            for chunk in chunks {
                let first = chunk as usize * CHUNK;
                self.take::<W>(change, TBL8, first..first + CHUNK, &mut Vec::new(), old);
            }
        } else if let Some(chunk) = self.chunk_of::<W>(slot(prefix.address())) {
            self.take::<W>(change, TBL8, within(chunk, prefix), &mut Vec::new(), old);
        }
    }

    /// Lets a change take the entries that are its own, of a range of a section; `chunks` are those that such
    /// an entry leads to.
    fn take<W: Element>(
        &mut self,
        change: &Change,
        section: SectionId,
        range: Range<usize>,
        chunks: &mut Vec<u32>,
        old: &mut OldWords,
    ) {
        let per_word = WORD / size_of::<W>();
        let next_hop = entry::<W>(change.owner.next_hop.0);
        let words = self.table.section_mut::<u64>(section).expect(OWN);
        let of_lengths = if section == TBL24 { LEN24 } else { LEN8 };
        let lengths = self.lengths.section_mut::<u8>(of_lengths).expect(OWN);
        let of_range = range.start / per_word..range.end.div_ceil(per_word);
        for (at, word) in of_range.clone().zip(&mut words[of_range]) {
            let before = *word;
            let first = at * per_word;
            let covered = range.start.max(first)..range.end.min(first + per_word);
            let entries = bytemuck::cast_slice_mut::<u64, W>(std::slice::from_mut(word));
            let entries = &mut entries[covered.start - first..covered.end - first];
            for (entry, len) in entries.iter_mut().zip(&mut lengths[covered]) {
                if change.takes(*len) {
                    *len = change.owner.len;
                    match leads_to(*entry) {
                        Some(chunk) => chunks.push(chunk),
                        None => *entry = next_hop,
                    }
                }
            }
            if *word != before {
                old.keep(section, at, before);
            }
        }
    }

    /// Counts a next hop in, if an entry holds it.
    fn admit<W: Element>(&mut self, next_hop: NextHop) -> Result<(), Outgrown> {
        if next_hop.0 >= chunk_bit(size_of::<W>()) {
            return Err(Outgrown("entry width"));
        }
        let results = self.table.results().max(next_hop.0.into());
        self.table.set_counts(self.table.entries(), results);
        Ok(())
    }
}

/// The prefixes longer than 24 bits in the slot of an address.
pub(super) fn beneath(rib: &Rib<V4>, address: V4) -> Option<Cursor<'_, V4>> {
    (0..3).try_fold(rib.cursor(), |cursor, index| cursor.child(address.octet(index)))
}

/// Words that were written to, with what they had before; one that is here twice had the first.
#[derive(Debug, Default)]
struct OldWords(Vec<(SectionId, u64, u64)>);

impl OldWords {
    fn keep(&mut self, section: SectionId, word: usize, before: u64) {
        self.0.push((section, word as u64, before));
    }

    /// The patch of what is another value now.
    fn patch(mut self, table: &wirespeed_image::Image, counts: (u64, u64)) -> Patch {
        // Stable, so that the oldest comes first.
        self.0.sort_by_key(|&(section, word, _)| (section, word));
        self.0.dedup_by_key(|&mut (section, word, _)| (section, word));
        let mut patch = PatchBuilder::new();
        for (section, word, before) in self.0 {
            let index = usize::try_from(word).expect("an index in memory");
            let now = table.section::<u64>(section)[index];
            if now != before {
                patch.set(section, word, now);
            }
        }
        patch.finish(Some(counts))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wirespeed_fib::conformance::{rounds, tables};
    use wirespeed_fib::{BuildOptions, Engine, Update};
    use wirespeed_image::{Image, Table};

    use super::*;

    fn written(image: &Image) -> Vec<u8> {
        let mut bytes = Vec::new();
        image.write(&mut bytes).unwrap();
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: u32::try_from(rounds::fewer(36)).unwrap(),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// After every patch the writer's own image is that of its table to the last byte, and lengths are
        /// those of a form that is filled with the same routes.
        #[test]
        fn the_form_is_what_its_table_is(
            rib in tables::random::<V4>(0..60),
            updates in tables::random_updates::<V4>(1..60),
            step in 1..12usize,
        ) {
            let mut rib = rib;
            let (mut engine, mut table) = Dir24::build(&rib, &BuildOptions::default()).unwrap();
            for updates in updates.chunks(step) {
                let changed: Vec<_> = updates.iter().filter(|u| rib.apply(u)).map(Update::prefix).collect();
                let Ok(patch) = engine.update(&table, &rib, &changed) else { return Ok(()) };
                table.apply(&patch).unwrap();
            }
            prop_assert!(written(&engine.table) == written(table.image()), "the table is another one");
            let (filled, _) = Dir24::build(&rib, &BuildOptions::default()).unwrap();
            prop_assert!(engine.lengths.section::<u8>(LEN24) == filled.lengths.section::<u8>(LEN24));
            for slot in 0..1 << 24 {
                let chunks = (engine.leads_on(slot), filled.leads_on(slot));
                if let (Some(patched), Some(filled_chunk)) = chunks {
                    let of = |engine: &Dir24, chunk: u32| {
                        engine.lengths.section::<u8>(LEN8)[chunk as usize * CHUNK..][..CHUNK].to_vec()
                    };
                    prop_assert_eq!(of(&engine, patched), of(&filled, filled_chunk));
                } else {
                    prop_assert_eq!(chunks, (None, None));
                }
            }
        }
    }
}
