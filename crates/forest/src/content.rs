//! [`Content`]: the routes and children of a node, packed; and [`Draft`], a content that changes.
//!
//! ```text
//! counts    u8 × 2     routes and children, the lowest eight bits
//! widths    u8         bytes of a next hop, a child and a key, and the counts' ninth bits
//! keys      W × routes, ascending; a key: a 1 bit, then the route's bits in this node
//! next hops W × routes
//! slots     u8 × children, ascending
//! children  W × children
//! ```
//!
//! All are as narrow as the largest of the node needs. Most nodes have few routes and take about ten bytes.

/// The number of no node.
pub(crate) const NONE: u32 = 0;

/// The fewest bytes of a content that is not empty.
pub(crate) const LEAST: usize = 5;

/// The routes and children of a node. Equal contents have equal bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content<'c>(&'c [u8]);

/// The first three bytes of a content.
struct Header {
    routes: usize,
    children: usize,
    /// Bytes of a key, a next hop and a child.
    widths: [usize; 3],
}

/// The parts of a content.
#[derive(Clone, Copy, Default)]
struct Parts<'c> {
    keys: Column<'c>,
    next_hops: Column<'c>,
    slots: Column<'c>,
    children: Column<'c>,
}

/// Numbers of equally many bytes.
#[derive(Clone, Copy)]
struct Column<'c> {
    bytes: &'c [u8],
    width: usize,
}

impl<'c> Content<'c> {
    /// The content that bytes begin with. It is there whole.
    #[inline]
    pub(crate) fn at_start_of(bytes: &'c [u8]) -> Self {
        let header = bytes.first_chunk().expect("a content has a header");
        Self(&bytes[..Header::of(*header).bytes()])
    }

    /// Splits the content that bytes begin with off. `None` if no node of this stride has such a content, or
    /// none whose children are below `node`.
    pub(crate) fn split_off(bytes: &mut &'c [u8], stride: u8, node: u32) -> Option<Self> {
        let header = Header::of(*bytes.first_chunk()?);
        let (content, rest) = bytes.split_at_checked(header.bytes())?;
        *bytes = rest;
        let content = Self(content);
        let Parts { keys, slots, children, .. } = content.parts();
        let is_within = |numbers: Column<'_>, from: u32, to: u32| {
            numbers.iter().is_sorted_by(|a, b| a < b) && numbers.iter().all(|n| from <= n && n < to)
        };
        let is_valid = is_within(keys, 2, 2 << stride)
            && is_within(slots, 0, 1 << stride)
            && children.iter().all(|child| child != NONE && child < node);
        is_valid.then_some(content)
    }

    /// All bytes.
    pub(crate) fn bytes(self) -> &'c [u8] {
        self.0
    }

    /// The routes: key and next hop, shorter routes first.
    pub(crate) fn routes(self) -> impl Iterator<Item = (u32, u32)> + use<'c> {
        let Parts { keys, next_hops, .. } = self.parts();
        keys.iter().zip(next_hops.iter())
    }

    /// The children: slot and node, ascending.
    pub(crate) fn children(self) -> impl Iterator<Item = (u32, u32)> + use<'c> {
        let Parts { slots, children, .. } = self.parts();
        slots.iter().zip(children.iter())
    }

    /// The next hop of a route.
    pub(crate) fn route(self, key: u32) -> Option<u32> {
        let Parts { keys, next_hops, .. } = self.parts();
        Some(next_hops.get(keys.find(key)?))
    }

    /// The child at a slot, or [`NONE`].
    pub(crate) fn child(self, slot: u32) -> u32 {
        let Parts { slots, children, .. } = self.parts();
        slots.find(slot).map_or(NONE, |at| children.get(at))
    }

    /// A copy to change.
    pub(crate) fn draft(self) -> Draft {
        Draft {
            routes: self.routes().map(Into::into).collect(),
            children: self.children().map(Into::into).collect(),
        }
    }

    /// Writes route and child of each slot of the node: one more than the next hop, and the child; 0 for
    /// none.
    pub(crate) fn expand(self, stride: u8, cells: &mut Vec<(u32, u32)>) {
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
    pub(crate) fn is_leaf(self) -> bool {
        self.parts().slots.bytes.is_empty()
    }

    fn parts(self) -> Parts<'c> {
        let Some((header, mut rest)) = self.bytes().split_first_chunk() else { return Parts::default() };
        let Header { routes, children, widths: [key, next_hop, child] } = Header::of(*header);
        let mut column = |count: usize, width: usize| {
            let (bytes, behind) = rest.split_at(count * width);
            rest = behind;
            Column { bytes, width }
        };
        Parts {
            keys: column(routes, key),
            next_hops: column(routes, next_hop),
            slots: column(children, 1),
            children: column(children, child),
        }
    }
}

impl Header {
    #[inline]
    fn of([routes, children, widths]: [u8; 3]) -> Self {
        let bits = |from: u8, count: u8| usize::from(widths >> from & ((1 << count) - 1));
        Self {
            routes: usize::from(routes) | bits(4, 1) << 8,
            children: usize::from(children) | bits(5, 1) << 8,
            widths: [1 + bits(6, 1), 1 + bits(0, 2), 1 + bits(2, 2)],
        }
    }

    /// Bytes of the content, header included.
    fn bytes(&self) -> usize {
        let [key, next_hop, child] = self.widths;
        3 + self.routes * (key + next_hop) + self.children * (1 + child)
    }
}

impl Default for Column<'_> {
    fn default() -> Self {
        Self { bytes: &[], width: 1 }
    }
}

impl<'c> Column<'c> {
    fn len(self) -> usize {
        self.bytes.len() / self.width
    }

    fn get(self, at: usize) -> u32 {
        let mut number = [0; 4];
        number[..self.width].copy_from_slice(&self.bytes[at * self.width..][..self.width]);
        u32::from_le_bytes(number)
    }

    fn iter(self) -> impl Iterator<Item = u32> + use<'c> {
        (0..self.len()).map(move |at| self.get(at))
    }

    /// The position of a number in a column that ascends.
    fn find(self, wanted: u32) -> Option<usize> {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            match self.get(middle).cmp(&wanted) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        None
    }
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

    /// The bytes of the content.
    pub(crate) fn finish(self) -> Vec<u8> {
        let Self { routes, children } = self;
        let widest = |pairs: &[[u32; 2]], of: usize| {
            let most = pairs.iter().map(|pair| pair[of]).max().unwrap_or(0);
            (32 - most.leading_zeros()).div_ceil(8).max(1)
        };
        let (key, next_hop, child) = (widest(&routes, 0), widest(&routes, 1), widest(&children, 1));
        #[allow(clippy::cast_possible_truncation)] // few hundred, and at most 4
        let header = {
            let (routes, children) = (routes.len() as u32, children.len() as u32);
            let widths = (next_hop - 1) | (child - 1) << 2 | (key - 1) << 6;
            [routes as u8, children as u8, (widths | (routes >> 8) << 4 | (children >> 8) << 5) as u8]
        };
        let mut bytes = header.to_vec();
        for (pairs, of, width) in
            [(&routes, 0, key), (&routes, 1, next_hop), (&children, 0, 1), (&children, 1, child)]
        {
            pairs.iter().for_each(|pair| bytes.extend(&pair[of].to_le_bytes()[..width as usize]));
        }
        bytes
    }
}

fn find(pairs: &[[u32; 2]], wanted: u32) -> Option<u32> {
    pairs.binary_search_by_key(&wanted, |&[name, _]| name).ok().map(|at| pairs[at][1])
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
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Routes and children of all widths and counts come back as they were set, and equal contents have
        /// equal bytes.
        #[test]
        fn a_content_has_what_its_draft_had(
            routes in proptest::collection::btree_map(2..512u32, (any::<u32>(), 0..32u32), 0..510),
            children in proptest::collection::btree_map(0..256u32, (1..u32::MAX, 0..32u32), 0..=256),
            few in any::<bool>(),
        ) {
            let most = if few { 4 } else { usize::MAX };
            let narrow = |(name, (value, by)): (u32, (u32, u32))| (name, (value >> by).max(1));
            let routes: BTreeMap<_, _> = routes.into_iter().take(most).map(narrow).collect();
            let children: BTreeMap<_, _> = children.into_iter().take(most).map(narrow).collect();
            let mut draft = Draft::default();
            routes.iter().rev().for_each(|(&key, &next_hop)| draft.set_route(key, Some(next_hop)));
            children.iter().for_each(|(&slot, &child)| draft.set_child(slot, child));
            let bytes = draft.finish();
            let content = Content::at_start_of(&bytes);
            prop_assert_eq!(content.bytes(), &bytes[..]);
            prop_assert!(bytes.len() >= LEAST || routes.is_empty() && children.is_empty());
            prop_assert!(content.routes().eq(routes.iter().map(|(&key, &value)| (key, value))));
            prop_assert!(content.children().eq(children.iter().map(|(&slot, &value)| (slot, value))));
            for key in 0..514 {
                prop_assert_eq!(content.route(key), routes.get(&key).copied());
                prop_assert_eq!(content.child(key), children.get(&key).copied().unwrap_or(NONE));
            }
            prop_assert_eq!(content.is_leaf(), children.is_empty());
            prop_assert_eq!(&content.draft().finish(), &bytes);
        }
    }

    #[test]
    fn most_contents_are_short() {
        let mut draft = Draft::default();
        (2..5).for_each(|key| draft.set_route(key, Some(200)));
        assert_eq!(draft.finish().len(), 9);
        assert_eq!(Content::default().routes().count(), 0);
    }

    #[test]
    fn keys_name_slots() {
        assert_eq!(key_range(0b1_1, 4), (8, 1));
        assert_eq!(key_range(0b1_0101, 4), (5, 4));
        assert_eq!(key_range(0b1_0000_0001, 8), (1, 8));
    }
}
