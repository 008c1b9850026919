//! Data about nodes: whether they are in buckets, and their states.

use wirespeed_image::HugeVec;

use super::layout::{State, TURNS};
use crate::fetch::prefetch;
use crate::table::{NameTable, Node, NodeId};

/// Which nodes are in buckets, by id, and the states of nodes with children, by their
/// [families](Node::family): few nodes have one.
#[derive(Debug, Default)]
pub(super) struct OfNodes {
    placed: HugeVec<u64>,
    states: HugeVec<u32>,
}

/// Nodes of an element of bits.
const NODES: usize = u64::BITS as usize;
/// The value for a family without a state.
const NONE: u32 = u32::MAX;

impl OfNodes {
    /// Makes room for the nodes and families of a table.
    pub(super) fn reach(&mut self, names: &NameTable) {
        fn reach<T: Copy>(elements: &mut HugeVec<T>, len: usize, element: T) {
            elements.make_room(len.saturating_sub(elements.len()));
            elements.resize(len.max(elements.len()), element);
        }
        reach(&mut self.placed, names.id_bound().div_ceil(NODES), 0);
        reach(&mut self.states, names.family_bound(), NONE);
    }

    /// Whether a node lies in a bucket.
    #[inline]
    pub(super) fn is_placed(&self, id: NodeId) -> bool {
        self.placed[id.index() / NODES] >> (id.index() % NODES) & 1 != 0
    }

    /// A node lies in a bucket from now on, or does no longer.
    #[inline]
    pub(super) fn set_placed(&mut self, id: NodeId, is_placed: bool) {
        let (word, bit) = (&mut self.placed[id.index() / NODES], 1 << (id.index() % NODES));
        *word = *word & !bit | if is_placed { bit } else { 0 };
    }

    /// The state of a node, where it has one.
    #[inline]
    pub(super) fn of(&self, node: Node<'_>) -> Option<State> {
        node.family().and_then(|family| self.of_family(family))
    }

    /// The state of a family, where it has one: whoever has children has one, and keeps it until these are
    /// cut out.
    #[inline]
    pub(super) fn of_family(&self, family: u32) -> Option<State> {
        Some(self.states[family as usize]).filter(|&state| state != NONE).map(State)
    }

    /// Asks for what is known of a node.
    #[inline]
    pub(super) fn fetch(&self, id: NodeId) {
        prefetch(&self.placed, id.index() / NODES);
    }

    /// Gives a family a state.
    pub(super) fn set(&mut self, family: u32, state: State) {
        self.states[family as usize] = state.0;
    }

    /// Takes a family's state away, and returns it.
    pub(super) fn take(&mut self, family: u32) -> Option<State> {
        let state = self.of_family(family);
        self.states[family as usize] = NONE;
        state
    }

    /// Bytes held.
    pub(super) const fn memory_usage(&self) -> usize {
        self.placed.capacity() * size_of::<u64>() + self.states.capacity() * size_of::<u32>()
    }
}

/// Which states are in use.
#[derive(Debug)]
pub(super) struct States {
    buckets: u32,
    /// The distance between two consecutive states of one turn.
    stride: u32,
    /// States from this one on were never used.
    fresh: u64,
    free: Vec<State>,
}

impl States {
    pub(super) fn new(buckets: u32) -> Self {
        let about = (u64::from(buckets) * 618 / 1000).max(1);
        let stride = (about..).find(|&stride| coprime(stride, u64::from(buckets)));
        let stride = u32::try_from(stride.unwrap_or(1)).expect("below twice the buckets");
        Self { buckets, stride, fresh: 0, free: Vec::new() }
    }

    /// A state that is not in use, `None` where there is none.
    pub(super) fn take(&mut self) -> Option<State> {
        if let Some(state) = self.free.pop() {
            return Some(state);
        }
        let buckets = u64::from(self.buckets);
        let turn = u32::try_from(self.fresh / buckets).ok().filter(|&turn| turn < TURNS)?;
        let base = self.fresh % buckets * u64::from(self.stride) % buckets;
        self.fresh += 1;
        Some(State::new(u32::try_from(base).ok()?, turn))
    }

    /// Takes a state back.
    pub(super) fn take_back(&mut self, state: State) {
        self.free.push(state);
    }

    /// States for all nodes that have children; `None` where there are too few.
    pub(super) fn of_all(&mut self, names: &NameTable) -> Option<OfNodes> {
        let mut states = OfNodes::default();
        states.reach(names);
        for node in names.nodes() {
            states.set_placed(node.id(), true);
            if let Some(family) = node.family().filter(|_| node.has_children()) {
                states.set(family, self.take()?);
            }
        }
        Some(states)
    }

    /// Bytes held.
    pub(super) const fn memory_usage(&self) -> usize {
        self.free.capacity() * size_of::<State>()
    }
}

fn coprime(a: u64, b: u64) -> bool {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a == 1
}
