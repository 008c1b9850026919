//! [`Way`]: the path of a change through the trie, walked ahead of the change.
//!
//! The data that changes read is prefetched some changes ahead, in three steps. The steps are a few changes
//! apart, so that the reads of one step have arrived, and the prefetches of a step finish while other changes
//! work:
//!
//! ```text
//! changes   … n          n + 8              n + 16         n + 24
//!             applied    long components    nodes          lines of the index
//! ```
//!
//! A node's hash depends on its name only, so all lines of a name are prefetched at once. The nodes that are
//! found are hints for the change: other changes may have added or removed nodes before its turn, so the
//! change checks each node. Hints save the change the hashes and most of the index.
//!
//! Before, hashes used a parent's id and a component. Then paths were walked level by level, 32 together, and
//! nodes beneath a new node were not prefetched at all.

use std::iter::Fuse;

use super::node::NONE;
use super::{NameTable, ROOT_HASH};
use crate::update::NameUpdate;

/// The number of components of a name that are walked ahead.
const LEVELS: usize = 6;
/// The distance between the steps, in changes.
const APART: usize = 8;
/// The number of paths at once: those that are being walked, and the current one.
const WAYS: usize = 4 * APART;

/// A step from a node to a child.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The hash of all components up to here.
    pub(super) hash: u32,
    /// The probable node, or [`NONE`].
    pub(super) child: u32,
}

/// A change and its steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way<'u> {
    /// `None` for an unused element.
    update: Option<&'u NameUpdate>,
    steps: [Step; LEVELS],
    len: usize,
}

impl<'u> Way<'u> {
    const NONE: Self = Self { update: None, steps: [Step { hash: 0, child: NONE }; LEVELS], len: 0 };

    /// The first step, for another change: prefetches the lines of the index.
    #[inline]
    fn start(&mut self, update: &'u NameUpdate, names: &NameTable) {
        (self.update, self.len) = (Some(update), 0);
        let mut hash = ROOT_HASH;
        for (step, component) in self.steps.iter_mut().zip(update.name().components()) {
            hash = names.hash(hash, component);
            names.index.fetch(hash);
            *step = Step { hash, child: NONE };
            self.len += 1;
        }
    }

    /// The second step: prefetches the nodes. Trusts the tags of the index.
    #[inline]
    fn go(&mut self, names: &NameTable) {
        let Some(update) = self.update else { return };
        for (step, component) in self.steps[..self.len].iter_mut().zip(update.name().components()) {
            let Some(id) = names.index.find(step.hash, |_| true) else {
                // Nodes beneath a missing node are missing, too.
                names.nodes.fetch_free(component.len());
                break;
            };
            names.nodes.fetch(id);
            step.child = id;
        }
    }

    /// The third step: prefetches a long component at its end.
    #[inline]
    fn look_around(&self, names: &NameTable) {
        let last = self.steps[..self.len].iter().rev().find(|step| step.child != NONE);
        last.into_iter().for_each(|last| names.nodes.fetch_text(last.child));
    }

    /// The steps that were walked.
    #[inline]
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps[..self.len]
    }

    /// Walks some paths without making the changes.
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
    /// Paths by the number of the change, as a ring.
    ways: [Way<'u>; WAYS],
    /// The number of changes with a path.
    begun: usize,
    /// The path of the change that starts next, if there is one.
    turn: usize,
}

impl<'u, U: Iterator<Item = &'u NameUpdate>> Ahead<'u, U> {
    pub(super) fn new(updates: U) -> Self {
        Self { updates: updates.fuse(), ways: [Way::NONE; WAYS], begun: 0, turn: 0 }
    }

    /// The next change with its steps. `None` after the last.
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
            let now = self.place(3);
            self.turn += 1;
            if now.is_some() || self.turn > self.begun + 3 * APART {
                break now;
            }
        };
        let way = &self.ways[now?];
        Some((way.update?, way.steps()))
    }

    /// The index of the path that is `steps` behind, if there is one.
    #[inline]
    fn place(&self, steps: usize) -> Option<usize> {
        let change = self.turn.checked_sub(steps * APART)?;
        (change < self.begun).then_some(change % WAYS)
    }
}
