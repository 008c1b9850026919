//! Updates: changes of the buckets of changed nodes, and of the buckets to which entries move.
//!
//! States are assigned first, because a new node needs its parent's state. Then removed nodes are cut out, so
//! that a name that returns at once is not found as the removed one. Then new and changed nodes are put in.
//! Only after that states of nodes without children become free. A patch holds the words of touched buckets
//! that differ.

use wirespeed_image::{Image, Patch, PatchBuilder};
use wirespeed_table::Outgrown;

use super::build::{Acta, bytes_of, gives, root};
use super::layout::{BUCKET_WORDS, BUCKETS, HEAD, HEADER_BYTES, LONG, ROOT_STATE_AT, State};
use super::place::{Form, Full, Key};
use super::states::{OfNodes, States};
use crate::table::{NameTable, Node, NodeId};

/// How many nodes ahead the first buckets are fetched; the second ones half as many.
const AHEAD: usize = 24;
/// How many nodes ahead they are while they are sorted.
const NODES_AHEAD: usize = 16;

/// The root's state and result.
const ROOT_WRITES: usize = 2;

/// A node of an update, with what it is found by.
struct One<'n> {
    node: Node<'n>,
    key: Key,
    /// Whether it lay in a bucket before.
    was_placed: bool,
}

/// The nodes of an update, all but the root.
struct Sorted<'n> {
    /// Nodes that went.
    gone: Vec<One<'n>>,
    /// Nodes that came or give something else.
    there: Vec<One<'n>>,
    /// Families with states whose nodes have no children any more.
    leaving: Vec<u32>,
}

impl From<Full> for Outgrown {
    fn from(Full: Full) -> Self {
        Self("buckets")
    }
}

/// An update to a table.
struct Update<'a, 't> {
    form: Form<'t>,
    states: &'a mut OfNodes,
    pool: &'a mut States,
}

impl Acta {
    pub(super) fn patch_of(
        &mut self,
        table: &Image,
        names: &NameTable,
        changed: &[NodeId],
    ) -> Result<Patch, Outgrown> {
        if bytes_of(names.results()) > self.form.width {
            return Err(Outgrown("result width"));
        }
        self.results = self.results.max(names.results());
        let (buckets, _) = table.section::<u64>(BUCKETS).as_chunks();
        let (states, pool) = (&mut self.states, &mut self.pool);
        let mut update = Update { form: self.form.over(buckets), states, pool };
        // After an error nobody asks for the form.
        update.make(names, changed)?;
        let patch = update.finish(names, self.results);
        self.form = update.form.over(&[]);
        Ok(patch)
    }
}

impl Update<'_, '_> {
    /// Makes the changes.
    fn make(&mut self, names: &NameTable, changed: &[NodeId]) -> Result<(), Outgrown> {
        let Sorted { gone, there, leaving } = self.sort(names, changed)?;
        for (at, one) in gone.iter().enumerate() {
            self.fetch(&gone, at, 0);
            if let Some((bucket, slot)) = self.form.find(&one.key, one.node.component()) {
                self.form.remove(&one.key, bucket, slot);
            }
        }
        for (at, one) in there.iter().enumerate() {
            self.fetch(&there, at, HEADER_BYTES + self.form.width);
            self.put(one)?;
        }
        self.form.settle_waiting()?;
        for family in leaving {
            self.states.take(family).into_iter().for_each(|state| self.pool.take_back(state));
        }
        Ok(())
    }

    /// Gives states to nodes that have children now, and says what is to be done with each node.
    fn sort<'n>(&mut self, names: &'n NameTable, changed: &[NodeId]) -> Result<Sorted<'n>, Outgrown> {
        self.states.reach(names);
        let mut sorted = Sorted {
            gone: Vec::with_capacity(changed.len()),
            there: Vec::with_capacity(changed.len()),
            leaving: Vec::new(),
        };
        for (at, &id) in changed.iter().enumerate() {
            if let Some(&ahead) = changed.get(at + NODES_AHEAD) {
                names.fetch_node(ahead);
                self.states.fetch(ahead);
            }
            let node = names.node(id);
            if let Some(family) = node.family() {
                if !node.is_gone() && node.has_children() {
                    self.state_of(family)?;
                } else if self.states.of_family(family).is_some() {
                    sorted.leaving.push(family);
                }
            }
            let Some(above) = node.above() else { continue };
            let component = node.component();
            let state = self.state_of(above)?;
            let key = Key::new(state, self.form.seeds.hash(component), component.len(), self.form.count());
            let one = One { node, key, was_placed: self.states.is_placed(id) };
            let nodes = if node.is_gone() { &mut sorted.gone } else { &mut sorted.there };
            nodes.push(one);
            self.states.set_placed(id, !node.is_gone());
        }
        Ok(sorted)
    }

    /// The state of the family of a node that has children, or had some before this update.
    #[inline]
    fn state_of(&mut self, family: u32) -> Result<State, Outgrown> {
        if let Some(state) = self.states.of_family(family) {
            return Ok(state);
        }
        let state = self.pool.take().ok_or(Outgrown("states"))?;
        self.states.set(family, state);
        Ok(state)
    }

    /// Asks for what the nodes some way behind this one read; `size` is what those that go in take beside
    /// their components.
    #[inline]
    fn fetch(&self, nodes: &[One<'_>], at: usize, size: usize) {
        if let Some(One { key, .. }) = nodes.get(at + AHEAD) {
            self.form.fetch(key);
        }
        if let Some(One { key, was_placed, .. }) = nodes.get(at + AHEAD / 2) {
            let size = if size == 0 { 0 } else { size + key.wanted.component_bytes() };
            self.form.fetch_second(key, *was_placed, size);
        }
    }

    /// Makes a node's transition give what it does now.
    fn put(&mut self, &One { node, ref key, was_placed }: &One<'_>) -> Result<(), Outgrown> {
        let mut gives = gives(node, self.states);
        if !node.has_children() {
            gives.state = None;
        }
        if was_placed && let Some((bucket, slot)) = self.form.find(key, node.component()) {
            if self.form.replace(bucket, slot, gives) {
                return Ok(());
            }
            self.form.remove(key, bucket, slot);
        }
        Ok(self.form.insert_or_wait(key, node.component(), gives)?)
    }

    /// The patch.
    fn finish(&mut self, names: &NameTable, results: u32) -> Patch {
        let mut patch = PatchBuilder::with_capacity(BUCKET_WORDS * self.form.touched() + ROOT_WRITES);
        self.form.each_touched(|at, before, now| {
            let first = u64::from(at) * BUCKET_WORDS as u64;
            // Which words differ can't be foreseen; one jump a word that does is less than one each.
            let differs = |word: usize| u8::from(now[word] != before[word]) << word;
            let mut different = (0..BUCKET_WORDS).fold(0, |all, word| all | differs(word));
            while different != 0 {
                let word = different.trailing_zeros();
                patch.set(BUCKETS, first + u64::from(word), now[word as usize]);
                different &= different - 1;
            }
        });
        for (at, len) in self.form.long.take_fresh() {
            let words = &self.form.long.words()[at as usize..][..len];
            (u64::from(at)..).zip(words).for_each(|(index, &word)| patch.set(LONG, index, word));
        }
        (ROOT_STATE_AT as u64..)
            .zip(root(names, self.states))
            .for_each(|(index, value)| patch.set(HEAD, index, value));
        patch.finish(Some((names.len() as u64, u64::from(results))))
    }
}
