//! [`Fibs`]: the routes of all tables, as the tries of a forest; and [`InFibs`], lookups in them as a
//! [`Domain`].

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use wirespeed_fib::{Address, BuildError, Lookup, NextHop, Prefix, Rib, Update};
use wirespeed_table::{Domain, Keys, Model, Undone};

use crate::content::NONE;
use crate::nodes::Nodes;

/// The number of a table: of a VRF or virtual router. Small numbers take less memory: a compiled forest has
/// 4 or 8 bytes for each number up to the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct FibId(pub u32);

impl FibId {
    /// The largest number: 20 bits, as in an MPLS label.
    pub const MAX: Self = Self((1 << 20) - 1);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for FibId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A change of the tables.
#[derive(Clone, Debug)]
pub enum FibsUpdate<A: Address> {
    /// The table has these routes from now on, whether it was there or not.
    Set(FibId, Box<Rib<A>>),
    /// The table ends.
    Remove(FibId),
    /// A route of a table that is there changes.
    Route(FibId, Update<A>),
}

/// The reason why tables can't be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FibsError {
    /// The compiled tables can't be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// There is no table of this number.
    #[error("there is no table {0}")]
    NoFib(FibId),
    /// The number is too large.
    #[error("a table has number {0}, the largest is {max}", max = FibId::MAX)]
    TooLarge(FibId),
}

/// A table: its default route and its trie.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fib {
    /// The next hop + 1 of the default route, 0 for none.
    pub(crate) default: u32,
    pub(crate) root: u32,
    pub(crate) routes: usize,
}

/// The routes of any number of tables. Equal parts of tables are stored once.
#[derive(Clone, Debug)]
pub struct Fibs<A: Address> {
    pub(crate) nodes: Nodes,
    fibs: Vec<Option<Fib>>,
    routes: usize,
    /// The largest next hop that a route ever had.
    pub(crate) results: u32,
    /// What takes back the changes since the last `settle`, in order. An old trie is linked from here.
    undo: Vec<Undo<A>>,
    /// Tables whose root changed.
    changed: Vec<FibId>,
    family: PhantomData<A>,
}

#[derive(Clone, Copy, Debug)]
enum Undo<A: Address> {
    /// The table as it was.
    Fib(FibId, Option<Fib>),
    /// The next hop of a route as it was.
    Route(FibId, Prefix<A>, Option<NextHop>),
}

/// A change of the compiled tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// The chunk of a node.
    Node(u32),
    /// The root of a table.
    Root(FibId),
}

impl Change {
    /// The node.
    pub(crate) fn node(&self) -> Option<u32> {
        match *self {
            Self::Node(node) => Some(node),
            Self::Root(_) => None,
        }
    }

    /// The table.
    pub(crate) fn root(&self) -> Option<FibId> {
        match *self {
            Self::Node(_) => None,
            Self::Root(id) => Some(id),
        }
    }
}

impl<A: Address> Default for Fibs<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Address> Fibs<A> {
    /// The stride that suits many tables: chunks of 4 bits are small, and more of them are equal.
    const STRIDE: u8 = 4;

    /// Makes a forest without tables.
    pub fn new() -> Self {
        Self::with_stride(Self::STRIDE)
    }

    pub(crate) fn with_stride(stride: u8) -> Self {
        Self {
            nodes: Nodes::new(stride),
            fibs: Vec::new(),
            routes: 0,
            results: 0,
            undo: Vec::new(),
            changed: Vec::new(),
            family: PhantomData,
        }
    }

    /// Gives a table these routes, whether it was there or not. O(routes).
    pub fn set(&mut self, id: FibId, routes: &Rib<A>) -> Result<(), FibsError> {
        if id > FibId::MAX {
            return Err(FibsError::TooLarge(id));
        }
        self.put(id, routes);
        self.settle();
        Ok(())
    }

    /// The next hop of exactly this prefix in a table.
    pub fn get(&self, id: FibId, prefix: Prefix<A>) -> Option<NextHop> {
        let fib = self.fib(id)?;
        match prefix.len() {
            0 => fib.default.checked_sub(1).map(NextHop),
            _ => self.nodes.get(fib.root, prefix),
        }
    }

    /// Calls `route` with each route of a table, in order of the prefixes. Returns whether there is such a
    /// table.
    pub fn visit(&self, id: FibId, mut route: impl FnMut(Prefix<A>, NextHop)) -> bool {
        let Some(fib) = self.fib(id) else { return false };
        if let Some(next_hop) = fib.default.checked_sub(1) {
            route(Prefix::DEFAULT, NextHop(next_hop));
        }
        self.nodes.visit(fib.root, A::MIN, 0, &mut route);
        true
    }

    /// The number of routes of a table. `None` if there is no such table.
    pub fn routes_of(&self, id: FibId) -> Option<usize> {
        self.fib(id).map(|fib| fib.routes)
    }

    /// The numbers of the tables, ascending.
    pub fn ids(&self) -> impl Iterator<Item = FibId> + '_ {
        (0..).map(FibId).zip(&self.fibs).filter_map(|(id, fib)| fib.map(|_| id))
    }

    /// One past the largest number of a table.
    pub(crate) fn end(&self) -> usize {
        self.fibs.len()
    }

    pub(crate) fn fib(&self, id: FibId) -> Option<Fib> {
        self.fibs.get(id.index()).copied().flatten()
    }

    /// The largest next hop that a route ever had.
    pub(crate) fn results(&self) -> u32 {
        self.results
    }

    /// The number of routes of all tables.
    pub(crate) fn routes(&self) -> usize {
        self.routes
    }

    /// Sets the next hop of a route of a table that is there, or removes the route.
    pub(crate) fn exchange(&mut self, id: FibId, prefix: Prefix<A>, next_hop: Option<NextHop>) {
        let before = self.get(id, prefix);
        if before != next_hop {
            self.undo.push(Undo::Route(id, prefix, before));
            self.route(id, prefix, before, next_hop);
        }
    }

    /// Replaces the next hop of a route by another one.
    fn route(&mut self, id: FibId, prefix: Prefix<A>, before: Option<NextHop>, next_hop: Option<NextHop>) {
        let mut fib = self.fib(id).unwrap_or_default();
        let number = next_hop.map(|next_hop| next_hop.0);
        self.results = self.results.max(number.unwrap_or(0));
        match prefix.len() {
            0 => fib.default = number.map_or(0, |number| number.saturating_add(1)),
            _ => fib.root = self.nodes.set(fib.root, prefix, 0, number),
        }
        fib.routes += usize::from(before.is_none());
        fib.routes -= usize::from(next_hop.is_none());
        self.store(id, Some(fib));
    }

    /// The way to the prefix of an update, from the root of its table.
    fn way(&self, update: &FibsUpdate<A>) -> Option<(u32, Prefix<A>)> {
        let FibsUpdate::Route(id, update) = update else { return None };
        Some((self.fib(*id)?.root, update.prefix()))
    }

    /// Gives a table these routes.
    pub(crate) fn put(&mut self, id: FibId, rib: &Rib<A>) {
        let mut routes: Vec<_> = rib.iter().collect();
        let default = rib.get(Prefix::DEFAULT).map_or(0, |next_hop| next_hop.0.saturating_add(1));
        routes.retain(|(prefix, _)| prefix.len() > 0);
        let root = self.nodes.grow(&routes, 0);
        self.results = self.results.max(rib.max_next_hop().0);
        self.undo.push(Undo::Fib(id, self.fib(id)));
        self.store(id, Some(Fib { default, root, routes: rib.len() }));
    }

    /// Ends a table.
    fn remove(&mut self, id: FibId) {
        self.undo.push(Undo::Fib(id, self.fib(id)));
        self.store(id, None);
    }

    /// Stores a table whose trie is there, and links to it.
    pub(crate) fn adopt(&mut self, id: FibId, fib: Fib) {
        self.nodes.link(fib.root);
        self.store(id, Some(fib));
    }

    /// Stores a table without a change of links.
    fn store(&mut self, id: FibId, fib: Option<Fib>) {
        if self.fibs.len() <= id.index() {
            self.fibs.resize(id.index() + 1, None);
        }
        let routes = |fib: Option<Fib>| fib.map_or(0, |fib| fib.routes);
        self.routes = self.routes + routes(fib) - routes(self.fibs[id.index()]);
        self.fibs[id.index()] = fib;
        self.changed.push(id);
    }
}

impl<A: Address> Model<InFibs<A>> for Fibs<A> {
    fn source(&self) -> &Self {
        self
    }

    fn len(&self) -> usize {
        self.routes
    }

    fn memory_usage(&self) -> u64 {
        self.nodes.memory_usage() + (self.fibs.capacity() * size_of::<Option<Fib>>()) as u64
    }

    fn start(&mut self) {
        self.nodes.take_touched(&mut Vec::new());
        self.changed.clear();
    }

    fn check(&self, updates: &[&FibsUpdate<A>]) -> Result<(), FibsError> {
        // Whether the tables are there that the call adds or ends.
        let mut there = HashMap::new();
        for update in updates {
            match update {
                FibsUpdate::Set(id, _) if *id > FibId::MAX => return Err(FibsError::TooLarge(*id)),
                FibsUpdate::Set(id, _) => drop(there.insert(*id, true)),
                FibsUpdate::Remove(id) | FibsUpdate::Route(id, _) => {
                    if !there.get(id).copied().unwrap_or_else(|| self.fib(*id).is_some()) {
                        return Err(FibsError::NoFib(*id));
                    }
                    if matches!(update, FibsUpdate::Remove(_)) {
                        there.insert(*id, false);
                    }
                }
            }
        }
        Ok(())
    }

    fn apply(&mut self, updates: &[&FibsUpdate<A>], range: Range<usize>) -> usize {
        /// Updates whose nodes are fetched together.
        const TOGETHER: usize = 16;
        let (before, mut ways) = (self.undo.len(), Vec::with_capacity(TOGETHER));
        for (at, update) in updates[range.clone()].iter().enumerate() {
            if at % TOGETHER == 0 {
                let next = &updates[range.clone()][at..];
                ways.clear();
                ways.extend(next.iter().take(TOGETHER).filter_map(|update| self.way(update)));
                self.nodes.fetch(&mut ways);
            }
            match update {
                FibsUpdate::Set(id, routes) => self.put(*id, routes),
                FibsUpdate::Remove(id) => self.remove(*id),
                FibsUpdate::Route(id, Update::Withdraw { prefix }) => self.exchange(*id, *prefix, None),
                FibsUpdate::Route(id, Update::Announce { prefix, next_hop }) => {
                    // As in a `Rib`: without a next hop the route keeps the one it has.
                    let next_hop = next_hop.or_else(|| self.get(*id, *prefix)).unwrap_or(NextHop(1));
                    self.exchange(*id, *prefix, Some(next_hop));
                }
            }
        }
        self.undo.len() - before
    }

    fn take_changed(&mut self, changed: &mut Vec<Change>) {
        let mut nodes = Vec::new();
        self.nodes.take_touched(&mut nodes);
        changed.extend(nodes.into_iter().map(Change::Node));
        changed.extend(self.changed.drain(..).map(Change::Root));
        changed.sort_unstable();
        changed.dedup();
    }

    fn settle(&mut self) {
        for undo in std::mem::take(&mut self.undo) {
            if let Undo::Fib(_, Some(old)) = undo {
                self.nodes.release(old.root);
            }
        }
        let there = self.fibs.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        self.fibs.truncate(there);
    }

    fn undo(&mut self, changed: &mut Vec<Change>) -> Undone {
        while let Some(undo) = self.undo.pop() {
            match undo {
                Undo::Fib(id, old) => {
                    let root = self.fib(id).map_or(NONE, |fib| fib.root);
                    self.store(id, old);
                    self.nodes.release(root);
                }
                Undo::Route(id, prefix, before) => self.route(id, prefix, self.get(id, prefix), before),
            }
        }
        self.take_changed(changed);
        Undone::Retold
    }

    fn reach(&self) -> u8 {
        A::BITS
    }
}

/// Lookups in the tables of a forest: each key has the number of its table.
#[derive(Debug)]
pub struct InFibs<A>(PhantomData<A>);

/// Addresses, each with the number of the table to look it up in.
#[derive(Clone, Copy, Debug)]
pub struct FibKeys<'k, A> {
    fibs: &'k [FibId],
    addresses: &'k [A],
}

impl<'k, A> FibKeys<'k, A> {
    /// Makes keys. Panics when the slices differ in length.
    pub fn new(fibs: &'k [FibId], addresses: &'k [A]) -> Self {
        assert_eq!(fibs.len(), addresses.len(), "a table for each address");
        Self { fibs, addresses }
    }

    /// The tables and the addresses.
    pub fn parts(self) -> (&'k [FibId], &'k [A]) {
        (self.fibs, self.addresses)
    }
}

impl<A: Address> Keys for FibKeys<'_, A> {
    fn len(&self) -> usize {
        self.addresses.len()
    }

    fn part(&self, range: Range<usize>) -> Self {
        Self { fibs: &self.fibs[range.clone()], addresses: &self.addresses[range] }
    }
}

impl<A: Address> Domain for InFibs<A> {
    type Key<'k> = (FibId, A);
    type Keys<'k> = FibKeys<'k, A>;
    type Found = NextHop;
    type Result = NextHop;
    type Source = Fibs<A>;
    type Model = Fibs<A>;
    type Update = FibsUpdate<A>;
    type Change = Change;
    type Error = FibsError;

    const LEAST_PART: usize = 2_048;

    fn match_each<L: Lookup<Self> + ?Sized>(table: &L, keys: FibKeys<'_, A>, found: &mut [NextHop]) {
        table.lookup_batch(keys, found);
    }
}
