//! [`Way`]: the way of a change through the trie, walked before its turn.
//!
//! What changes read is asked for some changes ahead, in three steps that follow each other a few changes apart, so that what one step
//! reads has come by then, and what it asks for comes while others work:
//!
//! ```text
//! changes   … n          n + 8          n + 16         n + 24
//!             applied    siblings       nodes          slots of the index
//! ```
//!
//! A node's hash follows from its name alone, so all slots of a name are asked for at once. What was found is a hint to the change: by
//! its turn others may have made nodes come and go, so each node is checked where the change takes it. That spares it the hashes and
//! most of the index.
//!
//! With hashes of a parent's id and a component, ways were walked level by level, 32 of them together, and what came beneath a new node
//! was not asked for at all.

use std::iter::Fuse;

use super::NameTable;
use super::node::NONE;
use crate::fetch::prefetch;
use crate::live::NameUpdate;

/// How many components of a name are walked ahead.
const LEVELS: usize = 6;
/// How many changes one step is ahead of the next.
const APART: usize = 8;
/// How many ways are there at once: those that are being walked, and the one whose turn it is.
const WAYS: usize = 4 * APART;

/// To a node from the one above it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Of all components up to here.
    pub(super) hash: u32,
    /// What seemed to be the node, [`NONE`] where nothing did.
    pub(super) child: u32,
}

/// A change and the steps that it will take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way<'u> {
    pub(super) update: &'u NameUpdate,
    steps: [Step; LEVELS],
    len: usize,
}

impl<'u> Way<'u> {
    /// The first step: asks for where the nodes may be found.
    #[inline]
    pub(super) fn new(update: &'u NameUpdate, names: &NameTable) -> Self {
        let mut way = Self { update, steps: [Step { hash: 0, child: NONE }; LEVELS], len: 0 };
        let mut hash = names.root_hash();
        for (step, component) in way.steps.iter_mut().zip(update.name().components()) {
            hash = names.hash(hash, component);
            names.index.fetch(hash);
            step.hash = hash;
            way.len += 1;
        }
        way
    }

    /// The second step: asks for the nodes. Takes the hash's word for what they are.
    #[inline]
    pub(super) fn go(&mut self, names: &NameTable) {
        for step in &mut self.steps[..self.len] {
            // What is beneath is not there either.
            let Some(id) = names.index.find(step.hash, |_| true) else { break };
            prefetch(&names.nodes, id as usize);
            step.child = id;
        }
    }

    /// The third step: asks for what is linked to where it ends.
    #[inline]
    pub(super) fn look_around(&self, names: &NameTable) {
        let Some(last) = self.steps[..self.len].iter().rev().find(|step| step.child != NONE) else { return };
        let node = &names.nodes[last.child as usize];
        if node.is_long() {
            prefetch(&names.text, node.text());
        }
        match self.update {
            NameUpdate::Insert(..) => prefetch(&names.nodes, node.first as usize),
            NameUpdate::Remove(_) => {
                [node.next, node.previous].into_iter().for_each(|id| prefetch(&names.nodes, id as usize));
            }
        }
    }

    /// The steps that were walked.
    #[inline]
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps[..self.len]
    }

    /// Walks some ways and leaves it at that.
    pub(super) fn walk_all(updates: &[&'u NameUpdate], names: &NameTable) {
        let mut ways: Vec<_> = updates.iter().map(|update| Self::new(update, names)).collect();
        ways.iter_mut().for_each(|way| way.go(names));
        ways.iter().for_each(|way| way.look_around(names));
    }
}

/// Changes that are walked ahead.
pub(super) struct Ahead<'u, U> {
    updates: Fuse<U>,
    ways: [Option<Way<'u>>; WAYS],
    /// How many steps of the kind have been taken, the first of which is of a way without a turn yet.
    turn: usize,
}

impl<'u, U: Iterator<Item = &'u NameUpdate>> Ahead<'u, U> {
    pub(super) fn new(updates: U) -> Self {
        Self { updates: updates.fuse(), ways: [None; WAYS], turn: 0 }
    }

    /// The next change, and all that it has to know before; `None` after the last.
    #[inline]
    pub(super) fn next(&mut self, names: &NameTable) -> Option<Way<'u>> {
        loop {
            let turn = self.turn;
            self.turn += 1;
            let at = |steps: usize| turn.wrapping_sub(steps * APART) % WAYS;
            self.ways[at(0)] = self.updates.next().map(|update| Way::new(update, names));
            if let Some(way) = &mut self.ways[at(1)] {
                way.go(names);
            }
            if let Some(way) = &self.ways[at(2)] {
                way.look_around(names);
            }
            names.fetch_free(2 * APART);
            let now = self.ways[at(3)].take();
            if now.is_some() || turn >= 3 * APART && self.ways.iter().all(Option::is_none) {
                return now;
            }
        }
    }
}
