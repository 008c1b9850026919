//! Updates as patches.
//!
//! For each changed prefix the elements that it covers, or that lead to it, take their value from the Rib as
//! it is after all changes; an element that a longer prefix decides is passed over. The slot then gets its
//! new content: a next hop, a chunk that is there already, its own changed in place where nobody else has it,
//! or a free one. Only words that became different are written. The hot block of a chunk that changed keeps
//! its boundaries and has its values taken anew, a word at most; a chunk that gets a number with a block
//! takes over the boundaries.

use wirespeed_fib::rib::Cursor;
use wirespeed_fib::{NextHop, Outgrown, Prefix, Rib, V4};
use wirespeed_image::{Changes, Image, Patch};

use super::build::FoldHot;
use super::layout::mark;
use crate::v4::walk::changed_16;

impl FoldHot {
    pub(super) fn patch(
        &mut self,
        table: &Image,
        rib: &Rib<V4>,
        changed: &[Prefix<V4>],
    ) -> Result<Patch, Outgrown> {
        self.form.settle();
        let mut changes = Changes::to(table);
        for &prefix in changed {
            if prefix.len() > 24 {
                // The others are admitted where they decide an element.
                self.admit(rib.get(prefix).unwrap_or(NextHop::NONE))?;
            }
            changed_16(rib, prefix, |slot, cursor, inherited| {
                if cursor.is_none() && prefix.len() <= 16 {
                    self.admit(inherited)?;
                    self.form.make_even(slot, inherited, &mut changes);
                    Ok(())
                } else {
                    self.touch(slot, cursor, inherited, prefix, &mut changes)
                }
            })?;
        }
        Ok(changes.finish((rib.len() as u64, u64::from(self.results))))
    }

    /// Brings a slot up to date, as far as `prefix` reaches.
    fn touch(
        &mut self,
        slot: u32,
        cursor: Option<Cursor<'_, V4>>,
        inherited: NextHop,
        prefix: Prefix<V4>,
        changes: &mut Changes<'_>,
    ) -> Result<(), Outgrown> {
        let mut content = self.form.content(slot, changes);
        let mut changed = false;
        for octet in prefix.octets(2) {
            let best = cursor.and_then(|cursor| cursor.best(octet));
            if prefix.is_hidden_by(best) {
                continue;
            }
            let next_hop = best.map_or(inherited, |(_, next_hop)| next_hop);
            self.admit(next_hop)?;
            let element = usize::from(octet);
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
        Ok(())
    }

    /// Counts a next hop in, if an element holds it.
    fn admit(&mut self, next_hop: NextHop) -> Result<(), Outgrown> {
        if next_hop.0 >= mark(self.form.width).min(self.form.base) {
            return Err(Outgrown("entry width"));
        }
        self.results = self.results.max(next_hop.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::test_runner::{Config, TestRunner};
    use wirespeed_fib::conformance::tables;
    use wirespeed_fib::{BuildOptions, Engine, Update};
    use wirespeed_image::{Table, rounds};

    use super::super::FoldHotTable;
    use super::super::block::{Block, ESCAPE};
    use super::super::layout::{C16, HOT, N24, SHORT};
    use super::*;

    /// Holds every block of a chunk in use against the chunk: what it says of an element is the element, and
    /// it says so wherever all elements of the run are alike. How many elements it tells of.
    fn check(table: &FoldHotTable) -> usize {
        let image = table.image();
        let chunks: &[u8] = bytemuck::cast_slice(image.section::<u64>(N24));
        let blocks = image.section::<u64>(HOT);
        let mut told = 0;
        for &slot in image.section::<u16>(C16) {
            let Some(chunk) = u32::from(slot).checked_sub(table.base()) else { continue };
            let Some(&block) = blocks.get(chunk as usize) else { continue };
            let chunk = &chunks[chunk as usize * SHORT..][..SHORT];
            let [b1, b2, b3, _, values @ ..] = block.to_le_bytes();
            for (value, (from, to)) in values.into_iter().zip([(0, b1), (b1, b2), (b2, b3)]) {
                told += agree(value, &chunk[from.into()..to.into()]);
            }
            told += agree(values[3], &chunk[b3.into()..]);
            for (element, &right) in (0..=u8::MAX).zip(chunk) {
                let value = Block(block).value(element);
                assert!(value == right || value == ESCAPE, "{block:#x}: {element}");
            }
        }
        told
    }

    fn agree(value: u8, run: &[u8]) -> usize {
        let Some(&first) = run.first() else { return 0 };
        let alike = run.iter().all(|&element| element == first);
        assert_eq!(value, if alike { first } else { ESCAPE });
        if value == ESCAPE { 0 } else { run.len() }
    }

    #[test]
    fn every_hot_block_agrees_with_its_chunk() {
        let told = Cell::new(0);
        let strategy = (tables::random::<V4>(0..200), tables::random_updates::<V4>(0..200));
        let (cases, least) = if rounds::is_plain() { (50, 100) } else { (100, 10_000) };
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let done = TestRunner::new(config).run(&strategy, |(mut rib, updates)| {
            let build = |rib: &Rib<V4>| FoldHot::build(rib, &BuildOptions::default()).unwrap();
            let (mut engine, mut table) = build(&rib);
            // Of nothing first, which leaves the table as it was built.
            for updates in std::iter::once(&[][..]).chain(updates.chunks(7)) {
                let changed: Vec<_> =
                    updates.iter().filter(|update| rib.apply(update)).map(Update::prefix).collect();
                match engine.update(&table, &rib, &changed) {
                    Ok(patch) => table.apply(&patch).unwrap(),
                    Err(_) => (engine, table) = build(&rib),
                }
                if table.hot() > 0 {
                    told.set(told.get() + check(&table));
                }
            }
            Ok(())
        });
        done.unwrap();
        assert!(told.get() > least, "blocks that tell of elements were met: {}", told.get());
    }
}
