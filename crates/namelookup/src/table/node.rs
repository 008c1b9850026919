//! [`Node`]: a node of a table of names, read-only.

use super::NameTable;
use super::nodes::{GONE, Record};
use crate::name::{Name, NameBuf};

/// The id of a node. It is valid as long as the node exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(super) u32);

impl NodeId {
    /// The root's.
    pub const ROOT: Self = Self(0);

    /// The number, for arrays with data about nodes; see [`NameTable::id_bound`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The id with a number. The largest number of 32 bits means no node.
    pub(crate) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).ok().filter(|&id| id != NONE).expect("fewer than 2^32 nodes"))
    }
}

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// The state of a node before changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Changed {
    pub(super) result: u32,
    pub(super) had_children: bool,
    pub(super) came: bool,
}

impl Changed {
    /// Whether it differs for an engine from the state of a node now.
    #[inline]
    pub(super) fn differs(self, node: Node<'_>) -> bool {
        match (self.came, node.is_gone()) {
            (true, is_gone) => !is_gone,
            (false, true) => true,
            (false, false) => (self.result, self.had_children) != (node.result(), node.has_children()),
        }
    }
}

/// Tracked changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    /// The changed nodes with their old state, each once, in order of first change.
    pub(super) nodes: Vec<(NodeId, Changed)>,
    /// The largest result before the changes.
    pub(super) results: u32,
}

/// A node of a [`NameTable`].
#[derive(Clone, Copy, Debug)]
pub struct Node<'t> {
    pub(super) names: &'t NameTable,
    pub(super) record: Record<'t>,
    pub(super) id: NodeId,
}

impl<'t> Node<'t> {
    /// Its id.
    pub const fn id(&self) -> NodeId {
        self.id
    }

    /// The parent; `None` for the root. A removed node keeps it.
    pub fn parent(&self) -> Option<Node<'t>> {
        self.above().map(|above| self.names.node(NodeId(self.names.families.of(above).node)))
    }

    /// The family of the parent, without reading the parent.
    #[inline]
    pub(crate) fn above(&self) -> Option<u32> {
        (self.id != NodeId::ROOT).then(|| self.record.above())
    }

    /// The number of its family, for data about nodes with children: a node has one as long as it has
    /// children, and until the changes that took them are settled. All numbers are below
    /// [`NameTable::family_bound`].
    #[inline]
    pub(crate) fn family(&self) -> Option<u32> {
        self.record.family()
    }

    /// Its component, empty for the root. A removed node keeps it until it is forgotten.
    #[inline]
    pub fn component(&self) -> &'t [u8] {
        self.names.nodes.component(self.record)
    }

    /// Its result, or 0 if it is no entry.
    #[inline]
    pub fn result(&self) -> u32 {
        self.record
            .family()
            .map_or_else(|| self.record.value(), |family| self.names.families.of(family).result)
    }

    /// Whether it was removed.
    #[inline]
    pub fn is_gone(&self) -> bool {
        self.record.is(GONE)
    }

    /// Number of its children.
    #[inline]
    pub fn child_count(&self) -> u32 {
        self.record.family().map_or(0, |family| self.names.families.of(family).children)
    }

    /// Whether it has children.
    #[inline]
    pub fn has_children(&self) -> bool {
        self.child_count() > 0
    }

    /// The number of components in its name. O(depth).
    pub fn depth(&self) -> usize {
        std::iter::successors(self.parent(), Node::parent).count()
    }

    /// Its name. O(length).
    pub fn name(&self) -> NameBuf {
        let up: Vec<_> =
            std::iter::successors(Some(*self), Node::parent).map(|node| node.component()).collect();
        let (_root, components) = up.split_last().expect("the node itself");
        let len = components.iter().map(|component| 1 + component.len()).sum();
        let mut bytes = Vec::with_capacity(len);
        for component in components.iter().rev() {
            bytes.push(b'/');
            bytes.extend_from_slice(component);
        }
        Name::new_unchecked(&bytes).to_owned()
    }
}
