//! [`Way`]: the way of a change through the trie, walked before its turn.
//!
//! The ways of many changes are walked together, level by level, so that their cache misses overlap. What was found is a hint to
//! the change: by its turn others may have made nodes come and go, so each step is checked where it is taken. That spares it the
//! hashes and most of the index.

use super::node::NONE;
use super::{NameTable, NodeId};
use crate::fetch::prefetch;
use crate::live::NameUpdate;
use crate::name::{Components, Name};

/// How many ways are walked together.
pub(crate) const TOGETHER: usize = 32;
/// How many components of a name are walked ahead.
const LEVELS: usize = 8;

/// From a node to its child by a component.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) parent: u32,
    /// Of the parent and the component.
    pub(super) hash: u32,
    /// What seemed to be the child, [`NONE`] where nothing did.
    pub(super) child: u32,
}

/// A change and the steps that it will take.
#[derive(Clone, Debug)]
pub(super) struct Way<'u> {
    pub(super) update: &'u NameUpdate,
    rest: Components<'u>,
    steps: [Step; LEVELS],
    len: usize,
    /// Where it has come to.
    at: NodeId,
    /// Whether the last step is still to be taken.
    asks: bool,
}

impl<'u> Way<'u> {
    pub(super) fn new(update: &'u NameUpdate) -> Self {
        let steps = [Step { parent: NONE, hash: 0, child: NONE }; LEVELS];
        Self { update, rest: update.name().components(), steps, len: 0, at: NodeId::ROOT, asks: false }
    }

    /// Walks ways as far as there are nodes, and asks for all that the changes will read.
    pub(super) fn walk_all(ways: &mut [Self], names: &NameTable) {
        for _ in 0..LEVELS {
            let mut asking = 0;
            ways.iter_mut().for_each(|way| asking += usize::from(way.ask(names)));
            if asking == 0 {
                break;
            }
            ways.iter_mut().filter(|way| way.asks).for_each(|way| way.go(names));
        }
        ways.iter().for_each(|way| way.fetch_around(names));
        names.free.iter().rev().take(ways.len()).for_each(|&id| prefetch(&names.nodes, id as usize));
    }

    /// The steps that were walked.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps[..self.len]
    }

    /// Asks for where the next node may be found; whether there is more of the name.
    fn ask(&mut self, names: &NameTable) -> bool {
        let component = self.rest.next();
        self.asks = component.is_some();
        let Some(component) = component else { return false };
        let hash = names.hash(self.at.0, component);
        names.index.fetch(hash);
        self.steps[self.len] = Step { parent: self.at.0, hash, child: NONE };
        self.len += 1;
        true
    }

    /// Goes there. Takes the hash's word for what it is.
    fn go(&mut self, names: &NameTable) {
        let step = &mut self.steps[self.len - 1];
        match names.index.find(step.hash, |_| true) {
            Some(id) => {
                prefetch(&names.nodes, id as usize);
                step.child = id;
                self.at = NodeId(id);
            }
            // What is beneath is not there either.
            None => self.rest = Name::ROOT.components(),
        }
    }

    /// Asks for what is linked to where it ends.
    fn fetch_around(&self, names: &NameTable) {
        let node = names.inner(self.at);
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
}
