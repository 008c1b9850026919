//! [`NameTable`]: the names that the user owns, with results: insert, remove, iterate, look up.
//!
//! A trie of components, from the children up:
//!
//! ```text
//! node      family of its parent | result, or its own family | component        9 bytes and the component
//! family    hash of the name | number of children | result | node              16 bytes a node with children
//! index     tag and id of each node, by the hash of its name                   4.7 to 6 bytes a node
//! ```
//!
//! A node knows its parent, and the index knows its children by their components. Who wants the list of them
//! makes [`Children`], or has the table keep it ([`keep_children`](NameTable::keep_children)). With lists in
//! the nodes, nodes in lines of 64 bytes and hashes in the index, a name took 118 bytes here instead of 33.
//!
//! A node's [`NodeId`] is valid as long as the node exists, so engines keep their data about nodes in their
//! own arrays. While changes are tracked ([`track`](NameTable::track)), removed nodes stay readable until the
//! engine has seen their removal ([`forget_gone`](NameTable::forget_gone)).

mod changes;
mod children;
mod family;
mod index;
mod node;
mod nodes;
#[cfg(test)]
mod tests;
mod way;

use std::borrow::Cow;

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::fetch::same;
use crate::found::Match;
use crate::name::{Name, NameBuf};
use crate::update::NameUpdate;

pub use children::Children;
use family::{Families, Family};
use index::Index;
use node::{Changed, Changes, NONE};
pub use node::{Node, NodeId};
use nodes::{FAMILY, GONE, LISTED, Nodes, Record};
use way::{Ahead, Step, Walk, Way};

/// The distance, in nodes, of prefetches of changed nodes.
const AHEAD: usize = 16;

/// Additional nodes that the index has room for when it grows, in hundredths, if changes are tracked.
const MORE: usize = 20;
/// Additional nodes while a table is filled.
const MORE_IN_FILLING: usize = 100;

/// Nodes that are hashed at once.
const PART: usize = 1 << 14;

/// Names with results.
#[derive(Clone, Debug)]
pub struct NameTable {
    nodes: Nodes,
    families: Families,
    index: Index,
    /// A secret seed: someone who chooses the names must not be able to choose their hashes.
    seed: u64,
    entries: usize,
    results: u32,
    /// The changes since they were last taken, if they are tracked.
    changed: Option<Changes>,
    /// The children of all nodes, if they are kept.
    children: Option<Children>,
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
        let mut nodes = Nodes::default();
        let root = nodes.add(NONE, &[], 0);
        let mut families = Families::new();
        let family = families.add(Family { hash: ROOT_HASH, children: 0, result: 0, node: root });
        debug_assert_eq!((root, family), (NodeId::ROOT.0, ROOT_FAMILY));
        nodes.set_value(root, family);
        nodes.flag(root, FAMILY, true);
        Self {
            nodes,
            families,
            index: Index::with_room(0, 1),
            seed,
            entries: 0,
            results: 0,
            changed: None,
            children: None,
        }
    }

    /// Reserves memory for `nodes` more nodes, which saves about a third of the time of inserting many names.
    pub fn reserve(&mut self, nodes: usize) {
        self.nodes.reserve(nodes);
        // Who counts names forgets the nodes above them.
        let room = (self.index.len() + nodes) * (100 + MORE) / 100;
        if !self.index.has_room(room) {
            self.index_anew(room);
        }
    }

    /// Sets the memory to what the nodes and `more` others need, so that few insertions wait for it.
    pub fn prepare(&mut self, more: usize) {
        self.nodes.fit();
        self.families.fit();
        if !self.index.suits(self.index.len() + more / 2, self.index.len() + more) {
            self.index_anew(self.index.len() + more);
        }
    }

    /// Keeps the [children](Self::children) of all nodes from now on, in 12 bytes a node.
    pub fn keep_children(&mut self) {
        if self.children.is_none() {
            self.children = Some(Children::of(self));
        }
    }

    /// The children of all nodes. O(nodes), unless they are [kept](Self::keep_children).
    pub fn children(&self) -> Cow<'_, Children> {
        self.children.as_ref().map_or_else(|| Cow::Owned(Children::of(self)), Cow::Borrowed)
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
        self.nodes.fetch(at.0);
    }

    /// Prefetches the data that these changes will read.
    pub(crate) fn fetch(&self, updates: &[&NameUpdate]) {
        Way::walk_all(updates, self);
    }

    /// The result of exactly this name, or 0.
    pub fn result(&self, name: &Name) -> u32 {
        self.find(name).map_or(0, |at| self.node(at).result())
    }

    /// The longest prefix of a name in the table. O(length) expected.
    pub fn lookup(&self, name: &Name) -> Match {
        let (mut at, mut length) = (self.root(), 0);
        let mut found = Match { result: at.result(), length: 0 };
        for component in name.components() {
            let Some(child) = self.child(at.id(), component) else { break };
            at = self.node(child);
            length += 1 + component.len();
            if at.result() != 0 {
                found = Match::new(at.result(), length);
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
        self.find_by(&[], name).map(|(at, _)| at)
    }

    /// A node's child with this component.
    pub fn child(&self, at: NodeId, component: &[u8]) -> Option<NodeId> {
        let family = self.node(at).family()?;
        let hash = self.hash(self.families.of(family).hash, component);
        self.take(family, Step::to(hash), component).map(|(child, _)| child)
    }

    /// The node with an id. Panics if there is none.
    #[inline]
    pub fn node(&self, at: NodeId) -> Node<'_> {
        Node { names: self, record: self.nodes.record(at.0), id: at }
    }

    /// The node of the root, which always exists.
    pub fn root(&self) -> Node<'_> {
        self.node(NodeId::ROOT)
    }

    /// All nodes, in order of their ids.
    pub fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        self.nodes_of(0..self.id_bound())
    }

    /// The nodes with ids in a range, in order. There are no ids from [`id_bound`](Self::id_bound) on.
    pub fn nodes_of(&self, ids: std::ops::Range<usize>) -> impl Iterator<Item = Node<'_>> {
        let ids = ids.start..ids.end.min(self.id_bound());
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
        self.nodes.bound()
    }

    /// The bound of [families](Node::family): all numbers are below it.
    pub(crate) fn family_bound(&self) -> usize {
        self.families.bound()
    }

    /// The largest result since the table was last empty.
    pub const fn results(&self) -> u32 {
        self.results
    }

    /// Bytes held.
    pub fn memory_usage(&self) -> u64 {
        let changed = self.changed.as_ref().map_or(0, |changes| changes.nodes.capacity());
        let trie = self.nodes.memory_usage() + self.families.memory_usage() + self.index.memory_usage();
        let children = self.children.as_ref().map_or(0, Children::memory_usage);
        (trie + children + changed * size_of::<(NodeId, Changed)>()) as u64
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
        let (mut at, mut hash, mut family) = (NodeId::ROOT, ROOT_HASH, Some(ROOT_FAMILY));
        let mut walk = Walk::new(steps, name);
        while let Some((step, component)) = walk.next(self, hash) {
            (at, family) = match family.and_then(|family| self.take(family, step, component)) {
                Some((child, record)) => (child, record.family()),
                None => (self.add(at, family, component, step.hash), None),
            };
            hash = step.hash;
        }
        self.results = self.results.max(result);
        self.set_result(at, result)
    }

    fn remove_by(&mut self, steps: &[Step], name: &Name) -> u32 {
        let Some((mut at, mut level)) = self.find_by(steps, name) else { return 0 };
        let had = self.set_result(at, 0);
        while level > 0 {
            let record = self.nodes.record(at.0);
            let is_needed = match record.family().map(|family| self.families.of(family)) {
                Some(&Family { children, result, .. }) => children > 0 || result != 0,
                None => record.value() != 0,
            };
            if is_needed {
                break;
            }
            level -= 1;
            let hash = steps.get(level).map_or_else(|| self.hash_of(at), |step| step.hash);
            let parent = self.take_out(at, hash);
            if self.changed.is_none() {
                self.release(at);
                self.release(parent);
                self.nodes.compact();
            }
            at = parent;
        }
        had
    }

    /// The node of a name, and the number of its components.
    fn find_by(&self, steps: &[Step], name: &Name) -> Option<(NodeId, usize)> {
        let (mut at, mut hash, mut level) = (NodeId::ROOT, ROOT_HASH, 0);
        let mut family = Some(ROOT_FAMILY);
        let mut walk = Walk::new(steps, name);
        while let Some((step, component)) = walk.next(self, hash) {
            let (child, record) = self.take(family?, step, component)?;
            (at, family) = (child, record.family());
            (hash, level) = (step.hash, level + 1);
        }
        Some((at, level))
    }

    /// The node that a step leads to from the node with a family.
    #[inline]
    fn take(&self, family: u32, step: Step, component: &[u8]) -> Option<(NodeId, Record<'_>)> {
        let is_it = |record: Record<'_>| {
            record.above() == family && !record.is(GONE) && same(self.nodes.component(record), component)
        };
        if step.child != NONE {
            let record = self.nodes.record(step.child);
            if is_it(record) {
                return Some((NodeId(step.child), record));
            }
        }
        let found = self.index.find(step.hash, |other| is_it(self.nodes.record(other)))?;
        Some((NodeId(found), self.nodes.record(found)))
    }

    /// The hash of a node, from its parent's hash and its component. So it depends on the name alone. Nodes
    /// with equal hashes are told apart by their content.
    #[allow(clippy::cast_possible_truncation)] // of 64 bits, 32 are as good as any
    #[inline]
    fn hash(&self, above: u32, component: &[u8]) -> u32 {
        let above = u64::from(above).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        xxh3_64_with_seed(component, self.seed.wrapping_add(above)) as u32
    }

    /// The hash of a node other than the root.
    fn hash_of(&self, id: NodeId) -> u32 {
        let record = self.nodes.record(id.0);
        self.hash(self.families.of(record.above()).hash, self.nodes.component(record))
    }

    #[inline]
    fn set_result(&mut self, at: NodeId, result: u32) -> u32 {
        let record = self.nodes.record(at.0);
        let (is_listed, family) = (record.is(LISTED), record.family());
        let had = family.map_or_else(|| record.value(), |family| self.families.of(family).result);
        if had != result {
            if !is_listed {
                self.note(at);
            }
            self.entries = self.entries + usize::from(result != 0) - usize::from(had != 0);
            match family {
                Some(family) => self.families.of_mut(family).result = result,
                None => self.nodes.set_value(at.0, result),
            }
            if self.entries == 0 {
                self.results = 0;
            }
        }
        had
    }

    /// Stores a node's state before it changes.
    #[inline]
    fn note(&mut self, at: NodeId) {
        self.note_and(at, 0);
    }

    /// Stores a node's state before it gets a flag. Returns the family of its parent.
    #[inline]
    fn note_and(&mut self, at: NodeId, flag: u8) -> u32 {
        let Some(changes) = &mut self.changed else { return self.nodes.raise(at.0, flag).0.above() };
        let (record, is_listed) = self.nodes.raise(at.0, LISTED | flag);
        if !is_listed {
            let (result, had_children) = match record.family().map(|family| self.families.of(family)) {
                Some(family) => (family.result, family.children > 0),
                None => (record.value(), false),
            };
            changes.nodes.push((at, Changed { result, had_children, came: false }));
        }
        record.above()
    }

    /// Adds a child to a node with this family, or without one.
    #[inline]
    fn add(&mut self, parent: NodeId, family: Option<u32>, component: &[u8], hash: u32) -> NodeId {
        self.note(parent);
        let family = family.unwrap_or_else(|| self.found_family(parent));
        let flag = if self.changed.is_some() { LISTED } else { 0 };
        let id = NodeId(self.nodes.add(family, component, flag));
        if let Some(changes) = &mut self.changed {
            changes.nodes.push((id, Changed { result: 0, had_children: false, came: true }));
        }
        self.link(id, family, hash);
        id
    }

    /// Makes the family of a node that has none.
    fn found_family(&mut self, id: NodeId) -> u32 {
        let node = self.node(id);
        let family = Family { hash: self.hash_of(id), children: 0, result: node.result(), node: id.0 };
        let family = self.families.add(family);
        self.nodes.set_value(id.0, family);
        self.nodes.flag(id.0, FAMILY, true);
        family
    }

    /// Makes a node one of its parent's children, and adds it to the index.
    #[inline]
    fn link(&mut self, id: NodeId, family: u32, hash: u32) {
        let above = self.families.of_mut(family);
        above.children += 1;
        if let Some(children) = &mut self.children {
            children.add(NodeId(above.node), id);
        }
        match self.index.is_full_for(id.0) {
            // It is among the nodes of the new index.
            true => {
                let more = if self.changed.is_some() { MORE } else { MORE_IN_FILLING };
                self.index_anew((self.index.len() + 1) * (100 + more) / 100);
            }
            false => self.index.insert(hash, id.0),
        }
    }

    /// Removes a node without children from the trie. It can still be read. Returns its parent.
    #[inline]
    fn take_out(&mut self, at: NodeId, hash: u32) -> NodeId {
        let above = self.note_and(at, GONE);
        self.index.remove(hash, at.0);
        let parent = NodeId(self.families.of(above).node);
        self.note(parent);
        self.families.of_mut(above).children -= 1;
        if let Some(children) = &mut self.children {
            children.remove(parent, at);
        }
        parent
    }

    /// Frees a removed node, and the family of a node without children. Nobody may ask for them any more.
    fn release(&mut self, id: NodeId) {
        let node = self.node(id);
        let (is_gone, result) = (node.is_gone(), node.result());
        let family = node.family().filter(|_| id != NodeId::ROOT && !node.has_children());
        if let Some(family) = family {
            self.families.remove(family);
            self.nodes.flag(id.0, FAMILY, false);
            self.nodes.set_value(id.0, result);
        }
        if is_gone {
            self.nodes.free(id.0);
        }
    }

    /// Makes the index anew, with room for so many nodes.
    #[cold]
    fn index_anew(&mut self, room: usize) {
        // As many ids as nodes, and as many as there may soon be.
        let bound = self.id_bound().max(room) + self.id_bound() / 8;
        let mut index = Index::with_room(room, bound);
        let hashed = |part: usize| -> Vec<(u32, u32)> {
            let nodes =
                self.nodes_of(part * PART..(part + 1) * PART).filter(|node| node.id() != NodeId::ROOT);
            nodes.map(|node| (self.hash_of(node.id()), node.id().0)).collect()
        };
        // Some parts at a time, so that few hashes are in memory.
        let parts: Vec<_> = (0..self.id_bound().div_ceil(PART)).collect();
        for parts in parts.chunks(4 * rayon::current_num_threads()) {
            let hashes: Vec<_> = parts.par_iter().map(|&part| hashed(part)).collect();
            for hashes in hashes {
                for (at, &(hash, id)) in hashes.iter().enumerate() {
                    if let Some(&(ahead, _)) = hashes.get(at + AHEAD) {
                        index.fetch(ahead);
                    }
                    index.insert(hash, id);
                }
            }
        }
        self.index = index;
    }
}

/// The hash of the name without components.
const ROOT_HASH: u32 = 0;
/// The root's family, which it always has.
const ROOT_FAMILY: u32 = 0;

impl<N: AsRef<Name>> FromIterator<(N, u32)> for NameTable {
    fn from_iter<I: IntoIterator<Item = (N, u32)>>(entries: I) -> Self {
        let mut names = Self::new();
        for (name, result) in entries {
            names.insert(name.as_ref(), result);
        }
        names
    }
}
