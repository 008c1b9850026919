//! [`Content`]: the routes and children of a node, packed; and [`Draft`], a content that changes.
//!
//! ```text
//! counts  routes + children × 2^16
//! routes  (key, next hop) …          ascending; key: a 1 bit, then the route's bits in this node
//! children (slot, node) …            ascending
//! ```

/// The number of no node.
pub(crate) const NONE: u32 = 0;

/// The routes and children of a node. Equal contents have equal words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content(Box<[u32]>);

impl Content {
    /// The words.
    pub(crate) fn words(&self) -> &[u32] {
        &self.0
    }

    /// The routes: key and next hop, shorter routes first.
    pub(crate) fn routes(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.pairs().0.iter().map(|&[key, next_hop]| (key, next_hop))
    }

    /// The children: slot and node, ascending.
    pub(crate) fn children(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.pairs().1.iter().map(|&[slot, node]| (slot, node))
    }

    /// The next hop of a route.
    pub(crate) fn route(&self, key: u32) -> Option<u32> {
        find(self.pairs().0, key)
    }

    /// The child at a slot, or [`NONE`].
    pub(crate) fn child(&self, slot: u32) -> u32 {
        find(self.pairs().1, slot).unwrap_or(NONE)
    }

    /// A copy to change.
    pub(crate) fn draft(&self) -> Draft {
        let (routes, children) = self.pairs();
        Draft { routes: routes.to_vec(), children: children.to_vec() }
    }

    /// Writes route and child of each slot of the node: one more than the next hop, and the child; 0 for
    /// none.
    pub(crate) fn expand(&self, stride: u8, cells: &mut Vec<(u32, u32)>) {
        cells.clear();
        cells.resize(1 << stride, (0, NONE));
        // Shorter routes come first, so longer ones overwrite them.
        for (key, next_hop) in self.routes() {
            let (first, len) = key_range(key, stride);
            let covered = first as usize..first as usize + (1 << (stride - len));
            cells[covered].iter_mut().for_each(|cell| cell.0 = next_hop + 1);
        }
        for (slot, child) in self.children() {
            cells[slot as usize].1 = child;
        }
    }

    /// Whether there is no child.
    pub(crate) fn is_leaf(&self) -> bool {
        self.pairs().1.is_empty()
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    fn pairs(&self) -> (&[[u32; 2]], &[[u32; 2]]) {
        let Some((&counts, words)) = self.0.split_first() else { return (&[], &[]) };
        let (pairs, _) = words.as_chunks();
        pairs.split_at(counts as usize & 0xffff)
    }
}

fn find(pairs: &[[u32; 2]], wanted: u32) -> Option<u32> {
    pairs.binary_search_by_key(&wanted, |&[name, _]| name).ok().map(|at| pairs[at][1])
}

/// A content that changes. A node has at most 510 routes and 256 children.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    routes: Vec<[u32; 2]>,
    children: Vec<[u32; 2]>,
}

impl Draft {
    /// Whether there is neither a route nor a child.
    pub(crate) fn is_empty(&self) -> bool {
        self.routes.is_empty() && self.children.is_empty()
    }

    /// Sets or removes a route.
    pub(crate) fn set_route(&mut self, key: u32, next_hop: Option<u32>) {
        set(&mut self.routes, key, next_hop);
    }

    /// The child at a slot, or [`NONE`].
    pub(crate) fn child(&self, slot: u32) -> u32 {
        find(&self.children, slot).unwrap_or(NONE)
    }

    /// Sets the child at a slot, or removes it.
    pub(crate) fn set_child(&mut self, slot: u32, child: u32) {
        set(&mut self.children, slot, (child != NONE).then_some(child));
    }

    /// The children.
    pub(crate) fn children(&self) -> impl Iterator<Item = u32> + '_ {
        self.children.iter().map(|&[_, child]| child)
    }

    /// The content.
    pub(crate) fn finish(self) -> Content {
        let Self { routes, children } = self;
        #[allow(clippy::cast_possible_truncation)] // few hundred
        let counts = (routes.len() | children.len() << 16) as u32;
        let pairs = routes.iter().chain(&children).flatten().copied();
        Content(std::iter::once(counts).chain(pairs).collect())
    }
}

fn set(pairs: &mut Vec<[u32; 2]>, name: u32, value: Option<u32>) {
    match (pairs.binary_search_by_key(&name, |&[name, _]| name), value) {
        (Ok(at), Some(value)) => pairs[at][1] = value,
        (Ok(at), None) => drop(pairs.remove(at)),
        (Err(at), Some(value)) => pairs.insert(at, [name, value]),
        (Err(_), None) => {}
    }
}

/// The first slot of a route's key, and the length of the route in the node.
pub(crate) fn key_range(key: u32, stride: u8) -> (u32, u8) {
    #[allow(clippy::cast_possible_truncation)] // at most 31
    let len = key.ilog2() as u8;
    ((key ^ 1 << len) << (stride - len), len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_slots() {
        assert_eq!(key_range(0b1_1, 4), (8, 1));
        assert_eq!(key_range(0b1_0101, 4), (5, 4));
        assert_eq!(key_range(0b1_0000_0001, 8), (1, 8));
    }
}
