//! Updates as patches: both engines first change their form and note bubbles, then fetch the values.

use wirespeed_fib::{Address, NextHop, Outgrown, Prefix, Rib};
use wirespeed_image::{Patch, PatchBuilder};

use crate::build::{GamtS, GamtT};
use crate::layout::next_hops;
use crate::trie::{Leaf, Trie};

/// Withdrawn prefixes whose nodes may be kept, at least.
const LAZY: usize = 1_024;

impl<A: Address> GamtT<A> {
    pub(crate) fn patch(&mut self, rib: &Rib<A>, changed: &[Prefix<A>]) -> Result<Patch, Outgrown> {
        for &prefix in changed {
            match rib.get(prefix) {
                Some(next_hop) => self.announce(prefix, next_hop)?,
                None => {
                    self.trie.withdraw(prefix, cover(rib, prefix));
                    self.withdrawn.push(prefix);
                }
            }
        }
        if self.withdrawn.len() > LAZY + rib.len() / 8 {
            self.collapse();
        }
        let mut patch = PatchBuilder::new();
        self.trie.fetch(&mut patch);
        Ok(finish(patch, rib, self.results))
    }

    fn announce(&mut self, prefix: Prefix<A>, next_hop: NextHop) -> Result<(), Outgrown> {
        if next_hop.0 > self.widest {
            return Err(Outgrown("unit width"));
        }
        self.results = self.results.max(next_hop.0);
        self.trie.announce(prefix, next_hop.0).or_else(|_| {
            self.collapse();
            self.trie.announce(prefix, next_hop.0)
        })
    }

    /// Frees the nodes that withdrawn prefixes have left empty.
    fn collapse(&mut self) {
        collapse(&mut self.trie, &mut self.withdrawn);
    }
}

impl<A: Address> GamtS<A> {
    pub(crate) fn patch(&mut self, rib: &Rib<A>, changed: &[Prefix<A>]) -> Result<Patch, Outgrown> {
        // First what has slots, so that room for the others is made of all the ghosts there are.
        let mut fresh = Vec::new();
        for &prefix in changed {
            // Leaves lie close together where prefixes do, slots by prefix do not.
            let slot = self.trie.find(prefix).or_else(|| self.slots.of(prefix));
            match (rib.get(prefix), slot) {
                (Some(next_hop), Some(slot)) => {
                    self.results = self.results.max(next_hop.0);
                    self.slots.set(slot, next_hop)?;
                    self.slots.revive(prefix, slot);
                }
                (Some(next_hop), None) => fresh.push((prefix, next_hop)),
                (None, Some(slot)) => {
                    self.slots.set(slot, NextHop(cover(rib, prefix).value))?;
                    self.slots.bury(prefix, slot);
                }
                // It came and went within one set of updates.
                (None, None) => {}
            }
            if self.slots.may_have_ghosts(prefix) {
                self.follow(prefix, rib)?;
            }
        }
        for (prefix, next_hop) in fresh {
            self.results = self.results.max(next_hop.0);
            self.insert(rib, prefix, next_hop)?;
        }
        let mut patch = PatchBuilder::new();
        self.trie.fetch(&mut patch);
        self.slots.fetch(next_hops(self.trie.levels()), &mut patch);
        Ok(finish(patch, rib, self.results))
    }

    /// Gives the ghosts beneath a changed prefix the next hops of what covers them now. Those without a leaf,
    /// which nothing leads to, are left as they are.
    fn follow(&mut self, prefix: Prefix<A>, rib: &Rib<A>) -> Result<(), Outgrown> {
        let Self { trie, slots, .. } = self;
        let mut done = Ok(());
        // A ghost's leaves lie side by side, as far as longer prefixes let them.
        let mut last = 0;
        trie.each_beneath(prefix, |ghost, slot| {
            if slot != last && slots.is_ghost(slot) && done.is_ok() {
                last = slot;
                done = slots.set(slot, NextHop(cover(rib, ghost).value));
            }
        });
        done
    }

    /// Puts in a prefix that has no slot, unless it was repeated and has by now.
    fn insert(&mut self, rib: &Rib<A>, prefix: Prefix<A>, next_hop: NextHop) -> Result<(), Outgrown> {
        let slot = match self.slots.of(prefix) {
            Some(slot) => slot,
            None => self.slots.add(prefix).or_else(|_| {
                self.banish(rib);
                self.slots.add(prefix)
            })?,
        };
        self.slots.set(slot, next_hop)?;
        self.trie.announce(prefix, slot).or_else(|_| {
            self.banish(rib);
            self.trie.announce(prefix, slot)
        })
    }

    /// Takes the ghosts out of the trie, with the nodes that this leaves empty.
    fn banish(&mut self, rib: &Rib<A>) {
        let mut ghosts = Vec::new();
        for (ghost, slot, len) in self.slots.banish(rib) {
            self.trie.withdraw(ghost, Leaf { value: slot, len });
            ghosts.push(ghost);
        }
        collapse(&mut self.trie, &mut ghosts);
    }
}

/// Frees the nodes that withdrawn prefixes have left empty, the longest first, so that what is above is free
/// when its turn comes.
fn collapse<A: Address>(trie: &mut Trie, withdrawn: &mut Vec<Prefix<A>>) {
    withdrawn.sort_unstable_by_key(|prefix| std::cmp::Reverse(prefix.len()));
    for prefix in withdrawn.drain(..) {
        trie.collapse(prefix);
    }
}

/// The leaf that decides where `prefix` did.
fn cover<A: Address>(rib: &Rib<A>, prefix: Prefix<A>) -> Leaf {
    rib.cover(prefix).map_or(Leaf::NONE, |(cover, next_hop)| Leaf { value: next_hop.0, len: cover.len() })
}

/// The patch, with the table's counts after it.
fn finish<A: Address>(patch: PatchBuilder, rib: &Rib<A>, results: u32) -> Patch {
    patch.finish(Some((rib.len() as u64, results.into())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wirespeed_fib::conformance::tables;
    use wirespeed_fib::{BuildOptions, Engine, Strides, Update, V4, V6};
    use wirespeed_image::{Image, Table};

    use super::*;
    use crate::build::write_next_hops;

    /// What an engine's form compiles to.
    trait Form<A: Address>: Engine<A> {
        fn write(&self, image: &mut Image);
    }

    impl<A: Address> Form<A> for GamtT<A> {
        fn write(&self, image: &mut Image) {
            self.trie.write(image).unwrap();
        }
    }

    impl<A: Address> Form<A> for GamtS<A> {
        fn write(&self, image: &mut Image) {
            self.trie.write(image).unwrap();
            write_next_hops(&self.slots, image, self.trie.levels()).unwrap();
        }
    }

    fn bytes(image: &Image) -> Vec<u8> {
        let mut bytes = Vec::new();
        image.write(&mut bytes).unwrap();
        bytes
    }

    /// After every patch the table is, to the last byte, what the writer's form compiles to: no change of the
    /// form goes without a bubble.
    fn patched_is_compiled<A: Address, E: Form<A>>(
        mut rib: Rib<A>,
        updates: &[Update<A>],
        step: usize,
        strides: Strides,
    ) -> Result<(), TestCaseError> {
        let options = BuildOptions { strides, ..BuildOptions::default() };
        let (mut engine, mut table) = E::build(&rib, &options).unwrap();
        for updates in updates.chunks(step) {
            let changed: Vec<_> = updates.iter().filter(|u| rib.apply(u)).map(Update::prefix).collect();
            match engine.update(&table, &rib, &changed) {
                Ok(patch) => table.apply(&patch).unwrap(),
                Err(_) => (engine, table) = E::build(&rib, &options).unwrap(),
            }
            let mut compiled = table.image().clone();
            engine.write(&mut compiled);
            prop_assert!(bytes(&compiled) == bytes(table.image()), "the table is another one");
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: wirespeed_image::rounds::cases(32), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_form_is_what_its_table_is(
            rib in tables::random::<V4>(0..60),
            updates in tables::random_updates::<V4>(1..60),
            step in 1..12usize,
        ) {
            // Wide levels leave room for a node or two beside those in use: much is collapsed and banished.
            for strides in [Strides::Fastest, Strides::Given(vec![8, 15, 9])] {
                patched_is_compiled::<V4, GamtT<V4>>(rib.clone(), &updates, step, strides.clone())?;
                patched_is_compiled::<V4, GamtS<V4>>(rib.clone(), &updates, step, strides)?;
            }
        }

        #[test]
        fn the_form_is_what_its_table_is_in_ipv6(
            rib in tables::random::<V6>(0..30),
            updates in tables::random_updates::<V6>(1..30),
            step in 1..12usize,
        ) {
            patched_is_compiled::<V6, GamtT<V6>>(rib.clone(), &updates, step, Strides::Fastest)?;
            patched_is_compiled::<V6, GamtS<V6>>(rib, &updates, step, Strides::Fastest)?;
        }
    }
}
