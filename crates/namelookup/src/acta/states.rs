//! Data about nodes: whether they are in buckets, and their states.

use wirespeed_image::HugeVec;

use super::layout::{State, TURNS};
use crate::fetch::prefetch;
use crate::table::{NameTable, NodeId};

/// Data about nodes by id: which are in buckets, and the states of nodes with children.
///
/// Two bits of a node say whether it is in a bucket and whether it has a state. Most nodes have no state, and
/// the bits of all nodes are small.
#[derive(Debug, Default)]
pub(super) struct OfNodes {
    bits: HugeVec<u64>,
    states: HugeVec<u32>,
}

/// Nodes of an element of bits.
const NODES: usize = 32;
/// Set of a node that lies in a bucket.
const PLACED: u64 = 1;
/// Set of a node that has a state.
const HAS: u64 = 2;

impl OfNodes {
    /// Makes room for nodes whose ids are below this.
    pub(super) fn reach(&mut self, ids: usize) {
        self.bits.resize(ids.div_ceil(NODES), 0);
        self.states.resize(ids, 0);
    }

    /// Sees to the memory for so many more nodes.
    pub(super) fn reserve(&mut self, ids: usize) {
        self.bits.reserve_exact(ids.div_ceil(NODES));
        self.states.reserve_exact(ids);
        self.states.populate();
    }

    /// Whether a node lies in a bucket.
    #[inline]
    pub(super) fn is_placed(&self, id: NodeId) -> bool {
        self.is(id, PLACED)
    }

    /// A node lies in a bucket from now on, or does no longer.
    #[inline]
    pub(super) fn set_placed(&mut self, id: NodeId, is_placed: bool) {
        self.make(id, PLACED, is_placed);
    }

    /// The state of a node, where it has one.
    #[inline]
    pub(super) fn of(&self, id: NodeId) -> Option<State> {
        self.has(id).then(|| State(self.states[id.index()]))
    }

    /// The state of a node that is or was another's parent.
    #[inline]
    pub(super) fn of_parent(&self, id: NodeId) -> State {
        self.of(id).expect("who has children has a state, and keeps it until these are cut out")
    }

    /// Whether a node has one.
    #[inline]
    pub(super) fn has(&self, id: NodeId) -> bool {
        self.is(id, HAS)
    }

    /// Asks for what is known of a node.
    #[inline]
    pub(super) fn fetch(&self, id: NodeId) {
        prefetch(&self.bits, id.index() / NODES);
    }

    /// Asks for the state of a node, too.
    #[inline]
    pub(super) fn fetch_state(&self, id: NodeId) {
        self.fetch(id);
        prefetch(&self.states, id.index());
    }

    /// Gives a node a state.
    pub(super) fn set(&mut self, id: NodeId, state: State) {
        self.make(id, HAS, true);
        self.states[id.index()] = state.0;
    }

    /// Takes a node's state away; which it was.
    pub(super) fn take(&mut self, id: NodeId) -> Option<State> {
        let state = self.of(id);
        self.make(id, HAS, false);
        state
    }

    /// Bytes held.
    pub(super) const fn memory_usage(&self) -> usize {
        self.bits.capacity() * size_of::<u64>() + self.states.capacity() * size_of::<u32>()
    }

    #[inline]
    fn is(&self, id: NodeId, bit: u64) -> bool {
        self.bits[id.index() / NODES] >> (id.index() % NODES * 2) & bit != 0
    }

    #[inline]
    fn make(&mut self, id: NodeId, bit: u64, to: bool) {
        let (word, bit) = (&mut self.bits[id.index() / NODES], bit << (id.index() % NODES * 2));
        *word = *word & !bit | if to { bit } else { 0 };
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
        states.reach(names.id_bound());
        for node in names.nodes_of(0..names.id_bound()) {
            states.set_placed(node.id(), true);
            if node.has_children() {
                states.set(node.id(), self.take()?);
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
