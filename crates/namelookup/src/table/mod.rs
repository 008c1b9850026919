//! [`NameTable`]: the names that the user owns, with results: insert, remove, iterate, look up.
//!
//! A trie of components. Nodes are in one array, with their components if these are short. Long components
//! are in another array. An index finds a node by the hash of all its name's components. A node knows its
//! parent, its first child and its siblings. A node takes a cache line of 64 bytes, 11 to 21 bytes in the
//! index, and the bytes of its component if it is over 23 bytes.
//!
//! A node's [`NodeId`] is valid as long as the node exists, so engines keep their data about nodes in their
//! own arrays. While changes are tracked ([`track`](NameTable::track)), removed nodes stay readable until the
//! engine has seen their removal ([`forget_gone`](NameTable::forget_gone)).

mod node;
#[cfg(test)]
mod tests;
mod way;

use wirespeed_image::{HugeVec, Index};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::fetch::{prefetch, same};
use crate::found::Match;
use crate::name::{Name, NameBuf};
use crate::update::NameUpdate;

use node::{Changed, Inner, NONE};
pub use node::{Node, NodeId};
use way::{Ahead, Step, Way};

/// The distance, in nodes, of prefetches of changed nodes.
const AHEAD: usize = 16;

/// Names with results.
#[derive(Clone, Debug)]
pub struct NameTable {
    nodes: HugeVec<Inner>,
    /// Free nodes.
    free: Vec<u32>,
    /// The long components of all nodes, and of removed nodes.
    text: HugeVec<u8>,
    /// Bytes of `text` that belong to no node.
    garbage: usize,
    index: Index,
    /// A secret seed: someone who chooses the names must not be able to choose their hashes.
    seed: u64,
    entries: usize,
    results: u32,
    /// The changes since they were last taken, if they are tracked.
    changed: Option<Changes>,
}

/// Tracked changes.
#[derive(Clone, Debug, Default)]
struct Changes {
    /// The changed nodes, each once, in order of first change. Nodes store their old state.
    nodes: Vec<NodeId>,
    /// The largest result before the changes.
    results: u32,
}

impl Default for NameTable {
    fn default() -> Self {
        Self::new()
    }
}

impl NameTable {
    /// Makes an empty table.
    pub fn new() -> Self {
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        let mut nodes = HugeVec::new();
        nodes.push(Inner::ROOT);
        Self {
            nodes,
            free: Vec::new(),
            text: HugeVec::new(),
            garbage: 0,
            index: Index::new(),
            seed,
            entries: 0,
            results: 0,
            changed: None,
        }
    }

    /// Reserves memory for `nodes` more nodes, which saves about a third of the time of inserting many names.
    pub fn reserve(&mut self, nodes: usize) {
        self.nodes.reserve_exact(nodes);
        self.index.reserve(nodes);
    }

    /// Sets the memory to what `nodes` more nodes need, and makes the system allocate it now, so that no
    /// insertion waits for it.
    pub fn prepare(&mut self, nodes: usize) {
        self.nodes.fit(nodes);
        self.text.fit(self.text.len() * nodes / self.nodes.len());
        self.index.reserve(nodes);
        self.nodes.populate();
    }

    /// Gives a name a result, 1 or more. Returns its old result, or 0. O(length) expected. Panics if the
    /// result is 0.
    pub fn insert(&mut self, name: &Name, result: u32) -> u32 {
        self.insert_by(&[], name, result)
    }

    /// Removes a name. Returns its result, or 0. O(length) expected.
    pub fn remove(&mut self, name: &Name) -> u32 {
        self.remove_by(&[], name)
    }

    /// Makes a change. Returns whether the table changed.
    pub fn apply(&mut self, update: &NameUpdate) -> bool {
        self.apply_by(&[], update)
    }

    /// Makes changes in order. Returns how many changed the table. Faster than single changes, because data
    /// for many changes is prefetched together.
    pub fn apply_all<'u>(&mut self, updates: impl IntoIterator<Item = &'u NameUpdate>) -> usize {
        let mut ahead = Ahead::new(updates.into_iter());
        let mut changes = 0;
        while let Some((update, steps)) = ahead.next(self) {
            changes += usize::from(self.apply_by(steps, update));
        }
        changes
    }

    /// Prefetches a node.
    #[inline]
    pub(crate) fn fetch_node(&self, at: NodeId) {
        prefetch(&self.nodes, at.index());
    }

    /// Prefetches the data that these changes will read.
    pub(crate) fn fetch(&self, updates: &[&NameUpdate]) {
        Way::walk_all(updates, self);
    }

    /// Prefetches the free node that will be taken after `after` others.
    #[inline]
    fn fetch_free(&self, after: usize) {
        if let Some(&id) = self.free.len().checked_sub(after + 1).and_then(|at| self.free.get(at)) {
            prefetch(&self.nodes, id as usize);
        }
    }

    /// The result of exactly this name, or 0.
    pub fn result(&self, name: &Name) -> u32 {
        self.find(name).map_or(0, |at| self.inner(at).result)
    }

    /// The longest prefix of a name in the table. O(length) expected.
    pub fn lookup(&self, name: &Name) -> Match {
        let (mut at, mut length) = (NodeId::ROOT, 0);
        let mut found = Match { result: self.inner(at).result, length: 0 };
        for component in name.components() {
            let Some(child) = self.child(at, component) else { break };
            at = child;
            length += 1 + component.len();
            if self.inner(at).result != 0 {
                found = Match::new(self.inner(at).result, length);
            }
        }
        found
    }

    /// Every name of the table that is a prefix of `name`, with its result, shortest first. The last one is
    /// the longest match. O(components²).
    pub fn matching<'n>(&self, name: &'n Name) -> Vec<(&'n Name, u32)> {
        let found = name.prefixes().map(|prefix| (prefix, self.result(prefix)));
        let mut found: Vec<_> = found.filter(|&(_, result)| result != 0).collect();
        found.reverse();
        found
    }

    /// The node of a name.
    pub fn find(&self, name: &Name) -> Option<NodeId> {
        self.find_by(&[], name)
    }

    /// A node's child with this component.
    pub fn child(&self, at: NodeId, component: &[u8]) -> Option<NodeId> {
        self.take(at, Step { hash: self.hash(self.inner(at).hash, component), child: NONE }, component)
    }

    /// The node with an id. Panics if there is none.
    pub fn node(&self, at: NodeId) -> Node<'_> {
        Node { names: self, inner: self.inner(at), id: at }
    }

    /// The node of the root, which always exists.
    pub fn root(&self) -> Node<'_> {
        self.node(NodeId::ROOT)
    }

    /// All nodes, a node before the nodes beneath it. Siblings are in no particular order.
    pub fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        let mut stack = vec![NodeId::ROOT];
        std::iter::from_fn(move || {
            let node = self.node(stack.pop()?);
            stack.extend(node.children().map(|child| child.id()));
            Some(node)
        })
    }

    /// The nodes with ids in a range, in order. Faster than [`nodes`](Self::nodes), and possible in parts.
    /// There are no ids from [`id_bound`](Self::id_bound) on.
    pub fn nodes_of(&self, ids: std::ops::Range<usize>) -> impl Iterator<Item = Node<'_>> {
        let ids = ids.start..ids.end.min(self.nodes.len());
        ids.map(|at| self.node(NodeId::from_index(at))).filter(|node| !node.is_gone())
    }

    /// All entries with their results, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (NameBuf, u32)> + '_ {
        self.nodes().filter(|node| node.result() != 0).map(|node| (node.name(), node.result()))
    }

    /// Number of entries.
    pub const fn len(&self) -> usize {
        self.entries
    }

    /// Whether there is no entry.
    pub const fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Number of nodes, the root included.
    pub fn node_count(&self) -> usize {
        self.index.len() + 1
    }

    /// The bound of node ids: all are below it.
    pub fn id_bound(&self) -> usize {
        self.nodes.len()
    }

    /// The largest result since the table was last empty.
    pub const fn results(&self) -> u32 {
        self.results
    }

    /// Bytes held.
    pub fn memory_usage(&self) -> u64 {
        let nodes = self.nodes.capacity() * size_of::<Inner>() + self.free.capacity() * size_of::<u32>();
        let index = self.index.memory_usage();
        let changed =
            self.changed.as_ref().map_or(0, |changes| changes.nodes.capacity() * size_of::<NodeId>());
        (nodes + index + self.text.capacity() + changed) as u64
    }

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
        self.each_ahead(&changes.nodes, |names, id| {
            let node = &mut names.nodes[id.index()];
            let before = node.changed.take().expect("what is listed has changed");
            if node.is_other_than(before) {
                news.push(id);
            } else if node.is_gone {
                // The node was new and is removed again, so no engine has to see it.
                names.recycle(id);
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
        self.each_ahead(&changes.nodes, |names, id| {
            let node = &names.nodes[id.index()];
            let before = node.changed.expect("what is listed has changed");
            news.extend(node.is_other_than(before).then_some(id));
        });
        self.changed = Some(changes);
    }

    /// Keeps all changes: they can't be undone any more, and memory of removed nodes is freed.
    pub(crate) fn settle(&mut self) {
        let Some(changes) = self.changed.take() else { return };
        self.each_ahead(&changes.nodes, |names, id| {
            let node = &mut names.nodes[id.index()];
            node.changed = None;
            if node.is_gone {
                names.recycle(id);
            }
        });
        self.changed = Some(changes.emptied(self.results));
        self.compact();
    }

    /// Takes back all changes since tracking began, or since they were last taken or settled. The same nodes
    /// exist again, with the same ids.
    pub(crate) fn undo(&mut self) {
        // Changes made here are not tracked.
        let Some(changes) = self.changed.take() else { return };
        // New nodes are removed. A node is newer than its parent, and so is removed first.
        for &id in changes.nodes.iter().rev() {
            let node = &mut self.nodes[id.index()];
            if !node.changed.is_some_and(|before| before.came) {
                continue;
            }
            node.changed = None;
            if node.is_gone {
                self.recycle(id);
            } else {
                self.set_result(id, 0);
                self.take_out(id);
            }
        }
        // Removed nodes are restored.
        for &id in &changes.nodes {
            let node = &mut self.nodes[id.index()];
            let Some(before) = node.changed.take() else { continue };
            if node.is_gone {
                self.put_back(id);
            }
            self.set_result(id, before.result);
        }
        self.results = changes.results;
        self.changed = Some(changes.emptied(self.results));
    }

    /// Calls `act` for nodes in order, and prefetches each some turns before.
    fn each_ahead(&mut self, ids: &[NodeId], mut act: impl FnMut(&mut Self, NodeId)) {
        for (turn, &id) in ids.iter().enumerate() {
            if let Some(&ahead) = ids.get(turn + AHEAD) {
                self.fetch_node(ahead);
            }
            act(self, id);
        }
    }

    /// Frees the memory of removed nodes.
    pub fn forget_gone(&mut self, changed: impl IntoIterator<Item = NodeId>) {
        for id in changed {
            if self.inner(id).is_gone {
                self.recycle(id);
            }
        }
        self.compact();
    }

    /// Makes a change like [`apply`](Self::apply), with steps that were walked ahead.
    fn apply_by(&mut self, steps: &[Step], update: &NameUpdate) -> bool {
        match update {
            NameUpdate::Insert(name, result) => self.insert_by(steps, name, *result) != *result,
            NameUpdate::Remove(name) => self.remove_by(steps, name) != 0,
        }
    }

    fn insert_by(&mut self, steps: &[Step], name: &Name, result: u32) -> u32 {
        assert!(result != 0, "0 says that there is no result");
        let (mut at, mut hash) = (NodeId::ROOT, self.root_hash());
        for (level, component) in name.components().enumerate() {
            let step = self.step(steps.get(level), hash, component);
            at = self.take(at, step, component).unwrap_or_else(|| self.add(at, component, step.hash));
            hash = step.hash;
        }
        self.results = self.results.max(result);
        self.set_result(at, result)
    }

    fn remove_by(&mut self, steps: &[Step], name: &Name) -> u32 {
        let Some(mut at) = self.find_by(steps, name) else { return 0 };
        let had = self.set_result(at, 0);
        while at != NodeId::ROOT && self.inner(at).result == 0 && self.inner(at).children == 0 {
            let parent = NodeId(self.inner(at).parent);
            self.take_out(at);
            at = parent;
        }
        had
    }

    fn find_by(&self, steps: &[Step], name: &Name) -> Option<NodeId> {
        let (mut at, mut hash) = (NodeId::ROOT, self.root_hash());
        for (level, component) in name.components().enumerate() {
            let step = self.step(steps.get(level), hash, component);
            at = self.take(at, step, component)?;
            hash = step.hash;
        }
        Some(at)
    }

    /// A step that was walked ahead, or a step without a hint.
    #[inline]
    fn step(&self, hint: Option<&Step>, above: u32, component: &[u8]) -> Step {
        hint.copied().unwrap_or_else(|| Step { hash: self.hash(above, component), child: NONE })
    }

    /// The child that a step from a node leads to.
    #[inline]
    fn take(&self, at: NodeId, step: Step, component: &[u8]) -> Option<NodeId> {
        let is_it = |other: u32| {
            let other = &self.nodes[other as usize];
            other.parent == at.0 && !other.is_gone && same(other.component(&self.text), component)
        };
        if step.child != NONE && is_it(step.child) {
            return Some(NodeId(step.child));
        }
        self.index.find(step.hash, is_it).map(NodeId)
    }

    fn inner(&self, at: NodeId) -> &Inner {
        &self.nodes[at.0 as usize]
    }

    /// The hash of a node, from its parent's hash and its component. So it depends on the name alone. Nodes
    /// with equal hashes are told apart by their content.
    #[allow(clippy::cast_possible_truncation)] // of 64 bits, 32 are as good as any
    #[inline]
    fn hash(&self, above: u32, component: &[u8]) -> u32 {
        let above = u64::from(above).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        xxh3_64_with_seed(component, self.seed.wrapping_add(above)) as u32
    }

    /// The root's.
    #[inline]
    const fn root_hash(&self) -> u32 {
        Inner::ROOT.hash
    }

    fn set_result(&mut self, at: NodeId, result: u32) -> u32 {
        let had = self.inner(at).result;
        if had != result {
            self.note(at);
            self.entries = self.entries + usize::from(result != 0) - usize::from(had != 0);
            self.nodes[at.0 as usize].result = result;
            if self.entries == 0 {
                self.results = 0;
            }
        }
        had
    }

    /// Stores a node's state before it changes.
    fn note(&mut self, at: NodeId) {
        let Some(changes) = &mut self.changed else { return };
        let node = &mut self.nodes[at.0 as usize];
        if node.changed.is_none() {
            node.changed =
                Some(Changed { result: node.result, had_children: node.children > 0, came: false });
            changes.nodes.push(at);
        }
    }

    fn add(&mut self, parent: NodeId, component: &[u8], hash: u32) -> NodeId {
        self.note(parent);
        let mut node = Inner { parent: parent.0, hash, ..Inner::ROOT };
        node.set_component(component, &mut self.text);
        let id = match self.free.pop() {
            Some(id) => {
                self.nodes[id as usize] = node;
                NodeId(id)
            }
            None => {
                let id = NodeId::from_index(self.nodes.len());
                self.nodes.push(node);
                id
            }
        };
        if let Some(changes) = &mut self.changed {
            self.nodes[id.0 as usize].changed = Some(Changed { result: 0, had_children: false, came: true });
            changes.nodes.push(id);
        }
        self.link(id);
        id
    }

    /// Makes a node the first child of its parent, and adds it to the index.
    fn link(&mut self, id: NodeId) {
        let Inner { parent, hash, .. } = self.nodes[id.0 as usize];
        let above = &mut self.nodes[parent as usize];
        above.children += 1;
        let next = std::mem::replace(&mut above.first, id.0);
        if next != NONE {
            self.nodes[next as usize].previous = id.0;
        }
        let node = &mut self.nodes[id.0 as usize];
        (node.next, node.previous) = (next, NONE);
        self.index.insert(hash, id.0);
    }

    /// Restores a node that was removed and not forgotten.
    fn put_back(&mut self, id: NodeId) {
        self.nodes[id.0 as usize].is_gone = false;
        self.link(id);
    }

    /// Removes a node without children from the trie.
    fn take_out(&mut self, at: NodeId) {
        self.note(at);
        let node = &mut self.nodes[at.0 as usize];
        node.is_gone = true;
        let &mut Inner { hash, parent, previous, next, .. } = node;
        self.index.remove(hash, at.0);
        self.note(NodeId(parent));
        let above = &mut self.nodes[parent as usize];
        above.children -= 1;
        match previous {
            NONE => above.first = next,
            previous => self.nodes[previous as usize].next = next,
        }
        if next != NONE {
            self.nodes[next as usize].previous = previous;
        }
        if self.changed.is_none() {
            self.recycle(at);
            self.compact();
        }
    }

    fn recycle(&mut self, id: NodeId) {
        let node = &mut self.nodes[id.0 as usize];
        if node.is_long() {
            self.garbage += node.len as usize;
        }
        node.len = 0;
        self.free.push(id.0);
    }

    /// Compacts the text when most of it is garbage.
    fn compact(&mut self) {
        if self.garbage < 1 << 16 || self.garbage < self.text.len() / 2 {
            return;
        }
        let mut text = HugeVec::with_capacity(self.text.len() - self.garbage);
        for node in self.nodes.iter_mut().filter(|node| node.is_long()) {
            let at = text.len();
            text.extend_from_slice(node.component(&self.text));
            node.set_text(at);
        }
        self.text = text;
        self.garbage = 0;
    }
}

impl Changes {
    /// Empties the table and keeps its memory.
    fn emptied(mut self, results: u32) -> Self {
        self.nodes.clear();
        Self { results, ..self }
    }
}

impl<N: AsRef<Name>> FromIterator<(N, u32)> for NameTable {
    fn from_iter<I: IntoIterator<Item = (N, u32)>>(entries: I) -> Self {
        let mut names = Self::new();
        for (name, result) in entries {
            names.insert(name.as_ref(), result);
        }
        names
    }
}
