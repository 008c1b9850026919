//! [`Children`]: the children of all nodes, for those who walk the trie downwards. Lookups and updates don't
//! need them.

use wirespeed_image::HugeVec;

use super::NameTable;
use super::node::{NONE, Node, NodeId};

/// A node's place among its siblings.
#[derive(Clone, Copy, Debug)]
struct Links {
    /// The first child.
    first: u32,
    next: u32,
    previous: u32,
}

const FREE: Links = Links { first: NONE, next: NONE, previous: NONE };

/// The children of all nodes of a table, as lists of siblings. 12 bytes a node.
#[derive(Clone, Debug)]
pub struct Children {
    links: HugeVec<Links>,
}

impl Children {
    /// Lists the children of a table as it is. O(nodes).
    pub fn of(names: &NameTable) -> Self {
        let mut children = Self { links: HugeVec::filled(FREE, names.id_bound()) };
        for node in names.nodes() {
            if let Some(parent) = node.parent() {
                children.add(parent.id(), node.id());
            }
        }
        children
    }

    /// The children of a node of that table, in no particular order.
    pub fn of_node<'t>(&self, node: Node<'t>) -> impl Iterator<Item = Node<'t>> {
        let links = |id: u32| self.links.get(id as usize).unwrap_or(&FREE);
        let mut next = links(node.id().0).first;
        std::iter::from_fn(move || {
            let child = (next != NONE).then(|| node.names.node(NodeId(next)))?;
            next = links(next).next;
            Some(child)
        })
    }

    /// Makes a node the first child of another.
    pub(super) fn add(&mut self, parent: NodeId, child: NodeId) {
        let ids = parent.index().max(child.index()) + 1;
        if self.links.len() < ids {
            self.links.resize(ids, FREE);
        }
        let next = std::mem::replace(&mut self.links[parent.index()].first, child.0);
        if next != NONE {
            self.links[next as usize].previous = child.0;
        }
        let links = &mut self.links[child.index()];
        (links.next, links.previous) = (next, NONE);
    }

    /// Takes a child, which has no children, from a node.
    pub(super) fn remove(&mut self, parent: NodeId, child: NodeId) {
        let Links { next, previous, .. } = std::mem::replace(&mut self.links[child.index()], FREE);
        match previous {
            NONE => self.links[parent.index()].first = next,
            previous => self.links[previous as usize].next = next,
        }
        if next != NONE {
            self.links[next as usize].previous = previous;
        }
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> usize {
        self.links.capacity() * size_of::<Links>()
    }
}
