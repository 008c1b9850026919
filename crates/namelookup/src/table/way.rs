//! [`Way`]: the way of a change through the trie, walked before its turn.
//!
//! What changes read is asked for some changes ahead, in three steps. The steps follow each other a few
//! changes apart, so that the reads of one step have come by then, and those that it asks for come while
//! others work:
//!
//! ```text
//! changes   … n          n + 8          n + 16         n + 24
//!             applied    siblings       nodes          slots of the index
//! ```
//!
//! A node's hash follows from its name alone, so all slots of a name are asked for at once. What was found is
//! a hint to the change: by its turn others may have made nodes come and go, so each node is checked where
//! the change takes it. That spares it the hashes and most of the index.
//!
//! With hashes of a parent's id and a component, ways were walked level by level, 32 of them together, and
//! what came beneath a new node was not asked for at all.

use std::iter::Fuse;

use super::NameTable;
use super::node::NONE;
use crate::fetch::prefetch;
use crate::update::NameUpdate;

/// How many components of a name are walked ahead.
const LEVELS: usize = 6;
/// How many changes one step is ahead of the next.
const APART: usize = 8;
/// How many ways are there at once: those that are being walked, and the one whose turn it is.
const WAYS: usize = 4 * APART;

/// A step to a node from the one above it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The hash of all components up to here.
    pub(super) hash: u32,
    /// What seemed to be the node, [`NONE`] where nothing did.
    pub(super) child: u32,
}

/// A change and the steps that it will take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way<'u> {
    /// None yet, of a place that was not taken.
    update: Option<&'u NameUpdate>,
    steps: [Step; LEVELS],
    len: usize,
}

impl<'u> Way<'u> {
    const NONE: Self = Self { update: None, steps: [Step { hash: 0, child: NONE }; LEVELS], len: 0 };

    /// The first step, for another change: asks for where the nodes may be found.
    #[inline]
    fn start(&mut self, update: &'u NameUpdate, names: &NameTable) {
        (self.update, self.len) = (Some(update), 0);
        let mut hash = names.root_hash();
        for (step, component) in self.steps.iter_mut().zip(update.name().components()) {
            hash = names.hash(hash, component);
            names.index.fetch(hash);
            *step = Step { hash, child: NONE };
            self.len += 1;
        }
    }

    /// The second step: asks for the nodes. Takes the hash's word for what they are.
    #[inline]
    fn go(&mut self, names: &NameTable) {
        for step in &mut self.steps[..self.len] {
            // What is beneath is not there either.
            let Some(id) = names.index.find(step.hash, |_| true) else { break };
            prefetch(&names.nodes, id as usize);
            step.child = id;
        }
    }

    /// The third step: asks for what is linked to where it ends.
    #[inline]
    fn look_around(&self, names: &NameTable) {
        let Some(last) = self.steps[..self.len].iter().rev().find(|step| step.child != NONE) else { return };
        let node = &names.nodes[last.child as usize];
        if node.is_long() {
            prefetch(&names.text, node.text());
        }
        match self.update {
            Some(NameUpdate::Remove(_)) => {
                [node.next, node.previous].into_iter().for_each(|id| prefetch(&names.nodes, id as usize));
            }
            _ => prefetch(&names.nodes, node.first as usize),
        }
    }

    /// The steps that were walked.
    #[inline]
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps[..self.len]
    }

    /// Walks some ways and leaves it at that.
    pub(super) fn walk_all(updates: &[&'u NameUpdate], names: &NameTable) {
        let mut ways = vec![Self::NONE; updates.len()];
        ways.iter_mut().zip(updates).for_each(|(way, update)| way.start(update, names));
        ways.iter_mut().for_each(|way| way.go(names));
        ways.iter().for_each(|way| way.look_around(names));
    }
}

/// Changes that are walked ahead.
pub(super) struct Ahead<'u, U> {
    updates: Fuse<U>,
    /// Ways by the number of the change, around.
    ways: [Way<'u>; WAYS],
    /// Changes that have a way.
    begun: usize,
    /// The change that is to be begun next, where there is one.
    turn: usize,
}

impl<'u, U: Iterator<Item = &'u NameUpdate>> Ahead<'u, U> {
    pub(super) fn new(updates: U) -> Self {
        Self { updates: updates.fuse(), ways: [Way::NONE; WAYS], begun: 0, turn: 0 }
    }

    /// The next change with the steps that were walked; `None` after the last.
    #[inline]
    pub(super) fn next(&mut self, names: &NameTable) -> Option<(&'u NameUpdate, &[Step])> {
        let now = loop {
            if let Some(update) = self.updates.next() {
                self.ways[self.turn % WAYS].start(update, names);
                self.begun += 1;
            }
            if let Some(way) = self.place(1) {
                self.ways[way].go(names);
            }
            if let Some(way) = self.place(2) {
                self.ways[way].look_around(names);
            }
            names.fetch_free(2 * APART);
            let now = self.place(3);
            self.turn += 1;
            if now.is_some() || self.turn > self.begun + 3 * APART {
                break now;
            }
        };
        let way = &self.ways[now?];
        Some((way.update?, way.steps()))
    }

    /// Where the way is that is so many steps behind, where there is one.
    #[inline]
    fn place(&self, steps: usize) -> Option<usize> {
        let change = self.turn.checked_sub(steps * APART)?;
        (change < self.begun).then_some(change % WAYS)
    }
}
