//! Updates: the buckets that the changed nodes lie in, and those that entries are moved to for room.
//!
//! States come first, as a node that came needs its parent's; then what went is cut out, so that a name that comes back at once is
//! not found as the one that went; then what came or gives something else is put in. States of nodes that have no children any more
//! are free only after that. A patch has those words of a touched bucket that differ.

use wirespeed_image::{Patch, PatchBuilder};

use super::build::{Acta, NONE, bytes_of, gives};
use super::layout::{BUCKET_WORDS, BUCKETS, HEAD, HEADER_BYTES, LONG, ROOT_STATE_AT, State};
use super::place::{Full, Key};
use crate::fetch::prefetch;
use crate::lookup::Outgrown;
use crate::table::{NameTable, NodeId};

/// How many nodes ahead the first buckets are fetched; the second ones half as many.
const AHEAD: usize = 24;
/// How many nodes ahead states are.
const STATES_AHEAD: usize = 32;

impl From<Full> for Outgrown {
    fn from(Full: Full) -> Self {
        Self("buckets")
    }
}

impl Acta {
    pub(super) fn patch(&mut self, names: &NameTable, changed: &[NodeId]) -> Result<Patch, Outgrown> {
        if bytes_of(names.results()) > self.form.width {
            return Err(Outgrown("result width"));
        }
        self.results = self.results.max(names.results());
        let leaving = self.renew_states(names, changed)?;
        let is_gone = |id: &&NodeId| names.node(**id).is_gone();
        let gone = self.keyed(names, changed.iter().filter(is_gone));
        for (at, (id, key)) in gone.iter().enumerate() {
            self.fetch(names, &gone, at, 0);
            if let Some((bucket, slot)) = self.form.find(key, names.node(*id).component()) {
                self.form.remove(key, bucket, slot);
            }
        }
        let there = self.keyed(names, changed.iter().filter(|id| !is_gone(id)));
        for (at, (id, key)) in there.iter().enumerate() {
            self.fetch(names, &there, at, HEADER_BYTES + self.form.width);
            self.put(names, *id, key)?;
        }
        let freed = leaving.iter().map(|id| std::mem::replace(&mut self.states[id.index()], NONE));
        self.pool.take_back(freed);
        Ok(self.finish(names))
    }

    /// Gives states to nodes that have children now; the nodes that have none any more.
    fn renew_states(&mut self, names: &NameTable, changed: &[NodeId]) -> Result<Vec<NodeId>, Outgrown> {
        self.states.resize(names.id_bound(), NONE);
        let mut leaving = Vec::new();
        for (at, &id) in changed.iter().enumerate() {
            if let Some(ahead) = changed.get(at + STATES_AHEAD) {
                prefetch(&self.states, ahead.index());
            }
            let node = names.node(id);
            let state = &mut self.states[id.index()];
            match (!node.is_gone() && node.has_children(), *state != NONE) {
                (true, false) => *state = self.pool.take().ok_or(Outgrown("states"))?.0,
                (false, true) => leaving.push(id),
                _ => {}
            }
        }
        Ok(leaving)
    }

    /// Nodes with what they are found by, but for the root.
    fn keyed<'c>(&self, names: &NameTable, nodes: impl Iterator<Item = &'c NodeId>) -> Vec<(NodeId, Key)> {
        let count = self.form.count();
        let key = |&id: &NodeId| {
            let node = names.node(id);
            let state = State(self.states[node.parent()?.id().index()]);
            let component = node.component();
            Some((id, Key::new(state, self.form.seeds.hash(component), component.len(), count)))
        };
        nodes.filter_map(key).collect()
    }

    /// Asks for what the nodes some way behind this one read; `size` is what those that go in take beside their components.
    #[inline]
    fn fetch(&self, names: &NameTable, nodes: &[(NodeId, Key)], at: usize, size: usize) {
        if let Some((id, key)) = nodes.get(at + AHEAD) {
            names.fetch_node(*id);
            self.form.fetch(key);
        }
        if let Some((_, key)) = nodes.get(at + AHEAD / 2) {
            let size = if size == 0 { 0 } else { size + key.wanted.component_bytes() };
            self.form.fetch_second(key, size);
        }
    }

    /// Makes a node's transition give what it does now.
    fn put(&mut self, names: &NameTable, id: NodeId, key: &Key) -> Result<(), Outgrown> {
        let node = names.node(id);
        let mut gives = gives(node, &self.states);
        if !node.has_children() {
            gives.state = None;
        }
        if let Some((bucket, slot)) = self.form.find(key, node.component()) {
            if self.form.replace(bucket, slot, gives) {
                return Ok(());
            }
            self.form.remove(key, bucket, slot);
        }
        Ok(self.form.insert(key, node.component(), gives)?)
    }

    fn finish(&mut self, names: &NameTable) -> Patch {
        let mut patch = PatchBuilder::new();
        self.form.each_touched(|at, before, now| {
            let first = u64::from(at) * BUCKET_WORDS as u64;
            // Which words differ can't be foreseen; one jump a word that does is less than one each.
            let differs = |word: usize| u8::from(now.0[word] != before.0[word]) << word;
            let mut different = (0..BUCKET_WORDS).fold(0, |all, word| all | differs(word));
            while different != 0 {
                let word = different.trailing_zeros();
                patch.set(BUCKETS, first + u64::from(word), now.0[word as usize]);
                different &= different - 1;
            }
        });
        for (at, len) in self.form.long.take_fresh() {
            let words = &self.form.long.words()[at as usize..][..len];
            (u64::from(at)..).zip(words).for_each(|(index, &word)| patch.set(LONG, index, word));
        }
        (ROOT_STATE_AT as u64..)
            .zip(self.root(names))
            .for_each(|(index, value)| patch.set(HEAD, index, value));
        patch.finish(Some((names.len() as u64, u64::from(self.results))))
    }
}
