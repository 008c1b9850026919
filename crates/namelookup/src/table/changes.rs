//! Changes of a table that are tracked: taken by an engine, kept, or undone.

use super::AHEAD;
use super::NameTable;
use super::node::{Changed, Changes, NodeId};
use super::nodes::GONE;

/// Changes whose memory is kept.
const MUCH: usize = 1 << 14;

impl NameTable {
    /// Tracks changed nodes from now on, for an engine that was built from the current names.
    pub fn track(&mut self) {
        self.settle();
        self.changed = Some(Changes { nodes: Vec::new(), results: self.results });
    }

    /// The nodes that changed since the last call, for [`Engine::patch`](crate::Engine::patch): new and
    /// removed nodes, nodes with another result, and nodes that got their first child or lost their last one;
    /// each once. Give the removed ones to [`forget_gone`](Self::forget_gone) afterwards.
    pub fn take_changed(&mut self) -> Vec<NodeId> {
        let Some(changes) = self.changed.take() else { return Vec::new() };
        let mut news = Vec::with_capacity(changes.nodes.len());
        self.each_ahead(&changes.nodes, |names, id, before| {
            names.nodes.unlist(id.0);
            match before.differs(names.node(id)) {
                true => news.push(id),
                // No engine has to see it: such as a node that was new and is removed again.
                false => names.release(id),
            }
        });
        self.changed = Some(changes.emptied(self.results));
        news
    }

    /// Appends the nodes that [`take_changed`](Self::take_changed) gives, without taking them:
    /// [`settle`](Self::settle) or [`undo`](Self::undo) follows.
    pub(crate) fn news(&mut self, news: &mut Vec<NodeId>) {
        let Some(changes) = self.changed.take() else { return };
        news.reserve(changes.nodes.len());
        self.each_ahead(&changes.nodes, |names, id, before| {
            if before.differs(names.node(id)) {
                news.push(id);
            }
        });
        self.changed = Some(changes);
    }

    /// Keeps all changes: they can't be undone any more, and memory of removed nodes is freed.
    pub(crate) fn settle(&mut self) {
        let Some(changes) = self.changed.take() else { return };
        self.each_ahead(&changes.nodes, |names, id, _| {
            if names.nodes.unlist(id.0) {
                names.release(id);
            }
        });
        self.changed = Some(changes.emptied(self.results));
        self.nodes.compact();
    }

    /// Takes back all changes since tracking began, or since they were last taken or settled. The same nodes
    /// exist again, with the same ids.
    pub(crate) fn undo(&mut self) {
        // Changes made here are not tracked.
        let Some(changes) = self.changed.take() else { return };
        // New nodes are removed. A node is newer than its parent, and so is removed first.
        for &(id, _) in changes.nodes.iter().rev().filter(|(_, before)| before.came) {
            self.nodes.unlist(id.0);
            if !self.node(id).is_gone() {
                self.set_result(id, 0);
                self.take_out(id, self.hash_of(id));
            }
            self.release(id);
        }
        // Removed nodes are restored.
        let old = || changes.nodes.iter().filter(|(_, before)| !before.came);
        for &(id, before) in old() {
            self.nodes.unlist(id.0);
            if self.node(id).is_gone() {
                self.nodes.flag(id.0, GONE, false);
                self.link(id, self.nodes.record(id.0).above(), self.hash_of(id));
            }
            self.set_result(id, before.result);
        }
        // Only now is it known who has children.
        old().for_each(|&(id, _)| self.release(id));
        self.results = changes.results;
        self.changed = Some(changes.emptied(self.results));
    }

    /// Calls `act` for nodes in order, and prefetches each some turns before.
    fn each_ahead(&mut self, nodes: &[(NodeId, Changed)], mut act: impl FnMut(&mut Self, NodeId, Changed)) {
        for (turn, &(id, before)) in nodes.iter().enumerate() {
            if let Some(&(ahead, _)) = nodes.get(turn + AHEAD) {
                self.fetch_node(ahead);
            }
            act(self, id, before);
        }
    }

    /// Frees the memory of removed nodes.
    pub fn forget_gone(&mut self, changed: impl IntoIterator<Item = NodeId>) {
        for id in changed {
            self.release(id);
        }
        self.nodes.compact();
    }
}

impl Changes {
    /// Empties the table and keeps its memory.
    fn emptied(mut self, results: u32) -> Self {
        self.nodes.clear();
        self.nodes.shrink_to(MUCH);
        Self { results, ..self }
    }
}
