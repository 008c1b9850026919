//! [`Node`]: a node of a table of names, read-only.

use wirespeed_image::HugeVec;

use super::NameTable;
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

/// The most bytes of a component that is stored in its node.
pub(super) const INLINE: usize = 23;

/// The data of a node: a cache line that contains most components, so that reading a node is one miss.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Inner {
    pub(super) parent: u32,
    pub(super) first: u32,
    pub(super) next: u32,
    pub(super) previous: u32,
    pub(super) children: u32,
    pub(super) result: u32,
    /// The hash of its components, from the first on.
    pub(super) hash: u32,
    /// Bytes of its component.
    pub(super) len: u32,
    /// The component, or its start in the table's text.
    pub(super) bytes: [u8; INLINE],
    pub(super) is_gone: bool,
    /// The state when changes were last taken, if the node has changed since.
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
        hash: 0,
        len: 0,
        bytes: [0; INLINE],
        is_gone: false,
        changed: None,
    };

    /// Sets the component. A long one is appended to the text.
    pub(super) fn set_component(&mut self, component: &[u8], text: &mut HugeVec<u8>) {
        self.len = u32::try_from(component.len()).expect("a name's length");
        if self.is_long() {
            self.set_text(text.len());
            text.extend_from_slice(component);
        } else {
            self.bytes[..component.len()].copy_from_slice(component);
        }
    }

    /// The component; long ones are in the text of the table.
    #[inline]
    pub(super) fn component<'t>(&'t self, text: &'t [u8]) -> &'t [u8] {
        let (bytes, from) = if self.is_long() { (text, self.text()) } else { (&self.bytes[..], 0) };
        &bytes[from..][..self.len as usize]
    }

    /// Whether it differs for an engine from its old state.
    #[inline]
    pub(super) fn is_other_than(&self, before: Changed) -> bool {
        let now = (!self.is_gone).then_some((self.result, self.children > 0));
        now != (!before.came).then_some((before.result, before.had_children))
    }

    /// Whether its component is in the table's text.
    #[inline]
    pub(super) const fn is_long(&self) -> bool {
        self.len as usize > INLINE
    }

    /// The start of a long component in the text.
    #[inline]
    pub(super) fn text(&self) -> usize {
        let (at, _) = self.bytes.split_first_chunk().expect("at least 8 bytes");
        usize::from_le_bytes(*at)
    }

    pub(super) fn set_text(&mut self, at: usize) {
        self.bytes[..size_of::<usize>()].copy_from_slice(&at.to_le_bytes());
    }
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

    /// The parent; `None` for the root. A removed node keeps it.
    pub fn parent(&self) -> Option<Node<'t>> {
        self.parent_id().map(|parent| self.names.node(parent))
    }

    /// The id of the parent, without reading the parent.
    pub(crate) fn parent_id(&self) -> Option<NodeId> {
        (self.inner.parent != NONE).then_some(NodeId(self.inner.parent))
    }

    /// Its component, empty for the root. A removed node keeps it until it is forgotten.
    pub fn component(&self) -> &'t [u8] {
        self.inner.component(&self.names.text)
    }

    /// Its result, or 0 if it is no entry.
    pub const fn result(&self) -> u32 {
        self.inner.result
    }

    /// Whether it was removed.
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
