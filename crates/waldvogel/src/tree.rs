//! [`Tree`]: the lengths that are tried at each place, and the markers for them.
//!
//! A node is a region of the first arrays, or a key of the hash tables beneath which there are longer ones.
//! Its [`Rope`] says in which order lengths are tried there; what is found at one of these is a key of that
//! length, with lengths between its own and the one tried before it left for its own rope. So each key
//! belongs to one node, and a route is found by way of the markers on the path to it: its first bits at each
//! length of a rope that it is longer than.
//!
//! The paper's search halves the lengths. Here the length tried first is the one with the most routes in the
//! region (its section 5.2, asymmetric search, made a habit): most routes of the real IPv6 table are found
//! with the first try, and the shorter ones beneath need no marker. It is only chosen where what is left on
//! both sides can still be searched in the tries that are left, so that no lookup takes more than seven;
//! halving needs as many at worst, and 2.25 instead of 1.63 on average of that table from bit 24 on.
//!
//! An update adds a length at the end of a rope, or a marker and a rope beneath a key that is there; nothing
//! is rearranged. A length that no key of the node has any more is taken out of its rope. Where a rope would
//! need more lengths than it holds, or a search more tries than it may take, the region is planned anew.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use wirespeed_fib::{Address, Family, Prefix, Rib};

use crate::layout::{CHUNK_BITS, MOST_TRIES, ROOT_BITS};
use crate::rope::{MOST, Rope};

/// Tries in which every region can be searched: 7 for the 112 lengths of IPv6 that are left after the first
/// 16 bits.
const TRIES: u32 = 7;
/// Routes beneath an element of the root from which on it has a chunk.
const CHUNK_FROM: usize = 64;
/// Routes in each region of its chunk on average, at least. Real tables have three and more wherever there
/// are 64.
const ROUTES_A_REGION: usize = 2;

/// The search trees of all regions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree<A: Address> {
    nodes: FxHashMap<Prefix<A>, Node>,
    /// Nodes that are no routes, regions aside: their values depend on shorter routes.
    markers: BTreeSet<Prefix<A>>,
}

/// What is beneath a key or a region.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    rope: Rope,
    /// The number of keys of each length of the rope.
    keys: [u32; MOST],
}

/// One try of a search for a prefix.
#[derive(Clone, Copy)]
pub(crate) struct Try<A> {
    /// The node of the rope.
    pub(crate) node: Prefix<A>,
    /// Place in the rope.
    pub(crate) at: usize,
    /// The key that should be found.
    pub(crate) key: Prefix<A>,
}

/// One try on the path to a route that was put in.
#[derive(Clone, Copy)]
pub(crate) struct Step<A> {
    /// The node of the rope.
    pub(crate) node: Prefix<A>,
    /// The key that is found.
    pub(crate) key: Prefix<A>,
    /// Whether the key was not there before.
    pub(crate) new_key: bool,
    /// Whether the rope had not this length before.
    pub(crate) new_length: bool,
}

impl<A: Address> Tree<A> {
    /// The tree of a Rib, and which elements of the root have a chunk.
    pub(crate) fn of(rib: &Rib<A>) -> (Self, Vec<u16>) {
        let mut tree = Self { nodes: FxHashMap::default(), markers: BTreeSet::new() };
        let mut chunked = Vec::new();
        let mut routes =
            rib.iter().map(|(prefix, _)| prefix).filter(|prefix| prefix.len() > ROOT_BITS).peekable();
        // One element of the root after another, as all routes together would take 32 bytes each.
        let mut here = Vec::new();
        while let Some(route) = routes.next() {
            let element = route.address().first_16();
            here.push(route);
            if routes.peek().is_some_and(|next| next.address().first_16() == element) {
                continue;
            }
            if is_chunked(&here) {
                chunked.push(element);
                let end = ROOT_BITS + CHUNK_BITS;
                let longer: Vec<_> = here.iter().copied().filter(|route| route.len() > end).collect();
                for routes in longer.chunk_by(|a, b| a.address().keep(end) == b.address().keep(end)) {
                    tree.plan(Prefix::around(routes[0].address(), end), routes, TRIES);
                }
            } else {
                tree.plan(Prefix::around(route.address(), ROOT_BITS), &here, TRIES);
            }
            here.clear();
        }
        (tree, chunked)
    }

    /// The rope of a node, empty where nothing is beneath.
    #[inline]
    pub(crate) fn rope(&self, node: Prefix<A>) -> Rope {
        self.nodes.get(&node).map_or_else(Rope::default, |node| node.rope)
    }

    /// Whether a key is there for longer ones only.
    pub(crate) fn is_marker(&self, key: Prefix<A>) -> bool {
        self.markers.contains(&key)
    }

    /// All such keys.
    pub(crate) fn markers(&self) -> &BTreeSet<Prefix<A>> {
        &self.markers
    }

    /// The markers that a prefix covers.
    pub(crate) fn markers_beneath(&self, prefix: Prefix<A>) -> impl Iterator<Item = Prefix<A>> + '_ {
        self.markers.range(prefix..=Prefix::host(prefix.last())).copied()
    }

    /// Makes a key that is there a route, or a marker again.
    pub(crate) fn set_route(&mut self, key: Prefix<A>, is_route: bool) {
        if is_route {
            self.markers.remove(&key);
        } else {
            self.markers.insert(key);
        }
    }

    /// Plans a region anew for the routes beneath it, in order; the nodes of `keys` and all markers are
    /// forgotten.
    pub(crate) fn replan(
        &mut self,
        region: Prefix<A>,
        routes: &[Prefix<A>],
        keys: impl Iterator<Item = Prefix<A>>,
    ) {
        for node in self.markers_of(region).into_iter().chain(keys).chain([region]) {
            self.nodes.remove(&node);
            self.markers.remove(&node);
        }
        if !routes.is_empty() {
            self.plan(region, routes, TRIES);
        }
    }

    /// The markers beneath a region.
    pub(crate) fn markers_of(&self, region: Prefix<A>) -> Vec<Prefix<A>> {
        self.markers_beneath(region).collect()
    }

    /// The path to a route, made where it is missing: for each try whether its key is new, and whether its
    /// node's rope is. `None` where it would be too long: then the region has to be planned anew.
    pub(crate) fn path_to(
        &mut self,
        region: Prefix<A>,
        route: Prefix<A>,
        is_there: impl Fn(Prefix<A>) -> bool,
    ) -> Option<Vec<Step<A>>> {
        let (mut at_node, mut tries, mut path) = (region, 0, Vec::new());
        loop {
            let node = self.nodes.entry(at_node).or_default();
            let (at, new_length) = match node.rope.lengths().position(|len| len <= route.len()) {
                Some(at) => (at, false),
                None => {
                    node.rope = node.rope.with(route.len())?;
                    (node.rope.lengths().count() - 1, true)
                }
            };
            tries += at + 1;
            if tries > MOST_TRIES as usize {
                return None;
            }
            let len = node.rope.lengths().nth(at).expect("a place in the rope");
            let key = Prefix::around(route.address(), len);
            let new_key = !is_there(key);
            if new_key {
                node.keys[at] += 1;
                if key != route {
                    self.markers.insert(key);
                }
            }
            path.push(Step { node: at_node, key, new_key, new_length });
            if key == route {
                return Some(path);
            }
            at_node = key;
        }
    }

    /// The path to a route that is there.
    pub(crate) fn path_of(&self, region: Prefix<A>, route: Prefix<A>) -> Vec<Try<A>> {
        let mut path = Vec::new();
        let mut node = region;
        while node != route {
            let rope = self.rope(node);
            let Some((at, len)) = rope.lengths().enumerate().find(|&(_, len)| len <= route.len()) else {
                break;
            };
            let key = Prefix::around(route.address(), len);
            path.push(Try { node, at, key });
            node = key;
        }
        path
    }

    /// Forgets the key of a try; whether the node's rope is another one with that.
    pub(crate) fn remove(&mut self, Try { node, at, key }: Try<A>) -> bool {
        self.markers.remove(&key);
        let Some(entry) = self.nodes.get_mut(&node) else { return false };
        entry.keys[at] -= 1;
        if entry.keys[at] > 0 {
            return false;
        }
        entry.rope = entry.rope.without(at);
        entry.keys.copy_within(at + 1.., at);
        entry.keys[MOST - 1] = 0;
        if entry.rope.is_empty() {
            self.nodes.remove(&node);
        }
        true
    }

    /// Bytes held.
    pub(crate) fn memory_usage(&self) -> u64 {
        let nodes = self.nodes.capacity() * (size_of::<Prefix<A>>() + size_of::<Node>() + 1);
        (nodes + self.markers.len() * size_of::<Prefix<A>>() * 3 / 2) as u64
    }

    /// Plans the search in a node with so many tries: `routes` are those beneath it, in order.
    fn plan(&mut self, prefix: Prefix<A>, routes: &[Prefix<A>], tries: u32) {
        let mut node = Node::default();
        let mut left = routes.to_vec();
        let mut tries = tries;
        for at in 0.. {
            if left.is_empty() {
                break;
            }
            let len = choose(&left, tries);
            tries -= 1;
            node.rope = node.rope.with(len).expect("as many lengths as tries at most");
            let longer: Vec<_> = left.iter().copied().filter(|route| route.len() >= len).collect();
            left.retain(|route| route.len() < len);
            for routes in longer.chunk_by(|a, b| a.address().keep(len) == b.address().keep(len)) {
                node.keys[at] += 1;
                let key = Prefix::around(routes[0].address(), len);
                // In order a route comes before what it covers.
                let is_route = routes[0] == key;
                if !is_route {
                    self.markers.insert(key);
                }
                let beneath = &routes[usize::from(is_route)..];
                if !beneath.is_empty() {
                    self.plan(key, beneath, tries);
                }
            }
        }
        self.nodes.insert(prefix, node);
    }
}

/// Whether an element of the root has a chunk, so that the search begins eight bits further on, by the routes
/// beneath it, in order.
fn is_chunked<A: Address>(routes: &[Prefix<A>]) -> bool {
    // An IPv4 table has routes nearly everywhere and would be pushed down to bit 24 as a whole.
    if A::FAMILY == Family::V4 || routes.len() < CHUNK_FROM {
        return false;
    }
    let end = ROOT_BITS + CHUNK_BITS;
    let regions = routes.chunk_by(|a, b| a.address().keep(end) == b.address().keep(end)).count();
    // Where routes are scattered each would have a region of its own, with a node of 80 bytes; and where all
    // are of one length, one try finds them from any region.
    routes.len() >= ROUTES_A_REGION * regions && routes.iter().any(|route| route.len() != routes[0].len())
}

/// The length to try first: the one with the most routes, of those that leave few enough lengths on both
/// sides.
fn choose<A: Address>(routes: &[Prefix<A>], tries: u32) -> u8 {
    let mut by_length = [0u32; 129];
    for route in routes {
        by_length[usize::from(route.len())] += 1;
    }
    let lengths = || (0..=A::BITS).filter(|&len| by_length[usize::from(len)] > 0);
    let count = lengths().count();
    let most_left = (1usize << (tries - 1)) - 1;
    lengths()
        .enumerate()
        .filter(|&(shorter, _)| shorter <= most_left && count - 1 - shorter <= most_left)
        .map(|(_, len)| len)
        .max_by_key(|&len| (by_length[usize::from(len)], len))
        .expect("half of the lengths fit in the tries that are left")
}
