//! [`Node`]: a node of a table of names, to read.

use super::NameTable;
use crate::name::{Name, NameBuf};

/// Which node. It stays as long as the node is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(super) u32);

impl NodeId {
    /// The root's.
    pub const ROOT: Self = Self(0);

    /// The number, for arrays of what is known of nodes; see [`NameTable::id_bound`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The id of a number.
    pub(crate) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer than 2^32 nodes"))
    }
}

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// What is kept of a node: a cache line, so that reading it is one miss.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Inner {
    pub(super) parent: u32,
    pub(super) first: u32,
    pub(super) next: u32,
    pub(super) previous: u32,
    pub(super) children: u32,
    pub(super) result: u32,
    /// Where its component starts.
    pub(super) text: usize,
    pub(super) len: u32,
    pub(super) is_gone: bool,
    /// What it was when changes were last asked for, where it was changed since.
    pub(super) changed: Option<Changed>,
}

const _: () = assert!(size_of::<Inner>() == 64);

#[derive(Clone, Copy, Debug)]
pub(super) struct Changed {
    pub(super) result: u32,
    pub(super) had_children: bool,
    pub(super) came: bool,
}

impl Inner {
    pub(super) const ROOT: Self = Self {
        parent: NONE,
        first: NONE,
        next: NONE,
        previous: NONE,
        children: 0,
        result: 0,
        text: 0,
        len: 0,
        is_gone: false,
        changed: None,
    };
}

/// A node of a [`NameTable`].
#[derive(Clone, Copy, Debug)]
pub struct Node<'t> {
    pub(super) names: &'t NameTable,
    pub(super) inner: &'t Inner,
    pub(super) id: NodeId,
}

impl<'t> Node<'t> {
    /// Its id.
    pub const fn id(&self) -> NodeId {
        self.id
    }

    /// The node above; the root has none. A node that went remembers it.
    pub fn parent(&self) -> Option<Node<'t>> {
        (self.inner.parent != NONE).then(|| self.names.node(NodeId(self.inner.parent)))
    }

    /// Its component, empty for the root. A node that went remembers it until it is forgotten.
    pub fn component(&self) -> &'t [u8] {
        self.names.component(self.inner)
    }

    /// Its result, 0 where it is no entry.
    pub const fn result(&self) -> u32 {
        self.inner.result
    }

    /// Whether it is no more.
    pub const fn is_gone(&self) -> bool {
        self.inner.is_gone
    }

    /// Number of its children.
    pub const fn child_count(&self) -> u32 {
        self.inner.children
    }

    /// Whether it has children.
    pub const fn has_children(&self) -> bool {
        self.inner.children > 0
    }

    /// Its children, in no particular order.
    pub fn children(&self) -> impl Iterator<Item = Node<'t>> + use<'t> {
        let names = self.names;
        let mut next = self.inner.first;
        std::iter::from_fn(move || {
            let node = (next != NONE).then(|| names.node(NodeId(next)))?;
            next = node.inner.next;
            Some(node)
        })
    }

    /// How many components its name has. O(depth).
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
