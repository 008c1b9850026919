//! [`Form`]: the control plane's copy of a table, and how each value in it follows from the Rib and the
//! search tree.

use std::collections::BTreeSet;

use wirespeed_fib::{Address, NextHop, Outgrown, Prefix, Rib};
use wirespeed_image::{Placed, SharedPool};

use crate::buckets::{Edit, Words};
use crate::hash::Seed;
use crate::keys::Keys;
use crate::layout::{CHUNK, CHUNK_BITS, CHUNKS, MISSES, ROOT, ROOT_BITS, ROPES, Sizes};
use crate::rope::{self, Rope};
use crate::tree::{Step, Tree};
use crate::value::{Says, Value};

/// All that an update has to know.
#[derive(Clone, Debug)]
pub(crate) struct Form<A: Address> {
    pub(crate) root: Vec<Value>,
    pub(crate) chunks: Vec<Value>,
    /// A best match and a rope each.
    pub(crate) records: SharedPool<u64>,
    pub(crate) keys: Keys,
    tree: Tree<A>,
}

impl<A: Address> Form<A> {
    /// No values yet; for the chunks of some elements of the root.
    pub(crate) fn new(tree: Tree<A>, chunked: &[u16], sizes: Sizes, seed: Seed) -> Self {
        let mut root = vec![Value::default(); 1 << ROOT_BITS];
        for (chunk, &element) in (0..).zip(chunked) {
            root[usize::from(element)] = Value::of_chunk(chunk);
        }
        Self {
            root,
            chunks: vec![Value::default(); chunked.len() * CHUNK],
            records: SharedPool::new(ROPES, 2, sizes.pieces),
            keys: Keys::new(sizes, seed),
            tree,
        }
    }

    /// Fills in everything.
    pub(crate) fn fill(&mut self, rib: &Rib<A>, edit: &mut Edit<'_>) -> Result<(), Outgrown> {
        self.refresh_arrays(rib, Prefix::DEFAULT, edit)?;
        for (route, next_hop) in rib {
            if route.len() > self.region(route.address()).len() {
                self.put(route, next_hop, edit)?;
            }
        }
        for marker in self.tree.markers().iter().copied().collect::<Vec<_>>() {
            self.put(marker, best(rib, marker), edit)?;
        }
        Ok(())
    }

    /// Brings the table up to date with the prefixes of the Rib that changed.
    pub(crate) fn refresh_all(
        &mut self,
        rib: &Rib<A>,
        changed: &[Prefix<A>],
        edit: &mut Edit<'_>,
    ) -> Result<(), Outgrown> {
        let mut crowded = BTreeSet::new();
        for &route in changed {
            let region = self.region(route.address());
            if route.len() > region.len() && crowded.contains(&region) {
                continue;
            }
            if !self.refresh(rib, region, route, edit)? {
                crowded.insert(region);
            }
        }
        crowded.into_iter().try_for_each(|region| self.replan(rib, region, changed, edit))
    }

    /// Brings the table up to date with one prefix of the Rib. Whether that could be done: if not, the region
    /// it is in has to be planned anew.
    fn refresh(
        &mut self,
        rib: &Rib<A>,
        region: Prefix<A>,
        route: Prefix<A>,
        edit: &mut Edit<'_>,
    ) -> Result<bool, Outgrown> {
        let now = rib.get(route);
        if route.len() <= region.len() {
            self.refresh_arrays(rib, route, edit)?;
        } else {
            let was = self.is_key(route, &edit.wide) && !self.tree.is_marker(route);
            match (was, now) {
                (false, None) => return Ok(true),
                (true, None) => self.remove(rib, region, route, edit)?,
                (true, Some(next_hop)) => self.set(route, next_hop, edit)?,
                (false, Some(_)) => {
                    if !self.insert(rib, region, route, edit)? {
                        return Ok(false);
                    }
                }
            }
        }
        // What is beneath only there for longer routes may have this one as its best match.
        let beneath: Vec<_> = self.tree.markers_beneath(route).filter(|&marker| marker != route).collect();
        for marker in beneath {
            self.set(marker, best(rib, marker), edit)?;
        }
        Ok(true)
    }

    /// Plans the search in a region anew, whatever part of the changes the tree has seen.
    fn replan(
        &mut self,
        rib: &Rib<A>,
        region: Prefix<A>,
        changed: &[Prefix<A>],
        edit: &mut Edit<'_>,
    ) -> Result<(), Outgrown> {
        let gone =
            |key: &Prefix<A>| region.covers(*key) && key.len() > region.len() && rib.get(*key).is_none();
        let gone: Vec<_> = changed.iter().copied().filter(gone).collect();
        for &key in self.tree.markers_of(region).iter().chain(&gone) {
            // A marker of a route that has come since stays as the route.
            if rib.get(key).is_none() {
                self.take_out(key, edit);
            }
        }
        let routes: Vec<_> =
            rib.covered(region).map(|(route, _)| route).filter(|route| route.len() > region.len()).collect();
        self.tree.replan(region, &routes, routes.iter().chain(&gone).copied());
        for &key in routes.iter().chain(&self.tree.markers_of(region)) {
            match self.is_key(key, &edit.wide) {
                true => self.set(key, best(rib, key), edit)?,
                false => self.put(key, best(rib, key), edit)?,
            }
        }
        self.refresh_node(rib, region, region, edit)
    }

    /// Bytes held.
    pub(crate) fn memory_usage(&self) -> u64 {
        let arrays = (self.root.capacity() + self.chunks.capacity()) * size_of::<Value>();
        arrays as u64 + self.keys.memory_usage() + self.records.memory_usage() + self.tree.memory_usage()
    }

    /// The element of the arrays that decides where the search for an address begins, as a prefix.
    fn region(&self, address: A) -> Prefix<A> {
        let chunk = matches!(self.root[usize::from(address.first_16())].says(), Says::Chunk(_));
        Prefix::around(address, if chunk { ROOT_BITS + CHUNK_BITS } else { ROOT_BITS })
    }

    /// Puts in a route. Whether there was a way to it that is not too long.
    fn insert(
        &mut self,
        rib: &Rib<A>,
        region: Prefix<A>,
        route: Prefix<A>,
        edit: &mut Edit<'_>,
    ) -> Result<bool, Outgrown> {
        if self.tree.is_marker(route) {
            self.tree.set_route(route, true);
            self.set(route, best(rib, route), edit)?;
            return Ok(true);
        }
        let (keys, words) = (&self.keys, &edit.wide);
        let is_there = |key: Prefix<A>| keys.value(key, words).is_some();
        let Some(path) = self.tree.path_to(region, route, is_there) else { return Ok(false) };
        // The whole path is in the tree now: ropes are what they will be.
        for Step { node, key, new_key, new_length } in path {
            if new_length {
                self.refresh_node(rib, region, node, edit)?;
            }
            if new_key {
                self.put(key, best(rib, key), edit)?;
            }
        }
        Ok(true)
    }

    fn remove(
        &mut self,
        rib: &Rib<A>,
        region: Prefix<A>,
        route: Prefix<A>,
        edit: &mut Edit<'_>,
    ) -> Result<(), Outgrown> {
        if !self.tree.rope(route).is_empty() {
            self.tree.set_route(route, false);
            return self.set(route, best(rib, route), edit);
        }
        // A node that leads nowhere any more and is no route itself goes with its last key.
        for step in self.tree.path_of(region, route).into_iter().rev() {
            self.take_out(step.key, edit);
            if !self.tree.remove(step) {
                return Ok(());
            }
            let is_done = !self.tree.rope(step.node).is_empty() || !self.tree.is_marker(step.node);
            if is_done {
                return self.refresh_node(rib, region, step.node, edit);
            }
        }
        Ok(())
    }

    /// Brings the elements of the arrays up to date that a route reaches.
    fn refresh_arrays(
        &mut self,
        rib: &Rib<A>,
        route: Prefix<A>,
        edit: &mut Edit<'_>,
    ) -> Result<(), Outgrown> {
        for element in route.address().first_16()..=route.last().first_16() {
            let address = A::from_u128_low(u128::from(element) << (A::BITS - ROOT_BITS));
            match self.root[usize::from(element)].says() {
                Says::Chunk(chunk) => {
                    let octets = if route.len() > ROOT_BITS { route.octets(2) } else { 0..=u8::MAX };
                    for octet in octets {
                        let region = Prefix::around(address.with_octet(2, octet), ROOT_BITS + CHUNK_BITS);
                        self.refresh_chunk_element(rib, chunk, region, edit)?;
                    }
                }
                _ => self.refresh_root_element(rib, Prefix::around(address, ROOT_BITS), edit)?,
            }
        }
        Ok(())
    }

    /// Brings the value of a node, a region or a key, up to date.
    fn refresh_node(
        &mut self,
        rib: &Rib<A>,
        region: Prefix<A>,
        node: Prefix<A>,
        edit: &mut Edit<'_>,
    ) -> Result<(), Outgrown> {
        if node != region {
            return self.set(node, best(rib, node), edit);
        }
        match self.root[usize::from(node.address().first_16())].says() {
            Says::Chunk(chunk) => self.refresh_chunk_element(rib, chunk, node, edit),
            _ => self.refresh_root_element(rib, node, edit),
        }
    }

    fn refresh_root_element(
        &mut self,
        rib: &Rib<A>,
        region: Prefix<A>,
        edit: &mut Edit<'_>,
    ) -> Result<(), Outgrown> {
        let at = usize::from(region.address().first_16());
        let old = self.root[at];
        let new = self.value_for(old, best(rib, region), self.tree.rope(region), edit)?;
        if new != old {
            self.root[at] = new;
            edit.set(ROOT, at as u64, new.0.into());
        }
        Ok(())
    }

    fn refresh_chunk_element(
        &mut self,
        rib: &Rib<A>,
        chunk: u32,
        region: Prefix<A>,
        edit: &mut Edit<'_>,
    ) -> Result<(), Outgrown> {
        let at = chunk as usize * CHUNK + usize::from(region.address().octet(2));
        let old = self.chunks[at];
        let new = self.value_for(old, best(rib, region), self.tree.rope(region), edit)?;
        if new != old {
            self.chunks[at] = new;
            edit.set(CHUNKS, at as u64, new.0.into());
        }
        Ok(())
    }

    fn is_key(&self, key: Prefix<A>, words: &Words<'_>) -> bool {
        self.keys.value(key, words).is_some()
    }

    /// Puts in a key that is not there.
    fn put(&mut self, key: Prefix<A>, best: NextHop, edit: &mut Edit<'_>) -> Result<(), Outgrown> {
        let value = self.value_for(Value::default(), best, self.tree.rope(key), edit)?;
        self.keys.insert(key, value, edit)
    }

    /// Gives a key that is there the value that goes with its best match and its rope.
    fn set(&mut self, key: Prefix<A>, best: NextHop, edit: &mut Edit<'_>) -> Result<(), Outgrown> {
        let Some(old) = self.keys.value(key, &edit.wide) else { return Ok(()) };
        let new = self.value_for(old, best, self.tree.rope(key), edit)?;
        if new != old {
            self.keys.set_value(key, new, edit);
        }
        Ok(())
    }

    /// Takes out a key that has nothing beneath.
    fn take_out(&mut self, key: Prefix<A>, edit: &mut Edit<'_>) {
        if let Some(record) = self.keys.value(key, &edit.wide).and_then(Value::record) {
            self.records.unlink(record / STEPS);
        }
        self.keys.remove(key, edit);
    }

    /// The value for a best match and a rope. Takes the link to a record that the old value is, and gives
    /// one.
    fn value_for(
        &mut self,
        old: Value,
        best: NextHop,
        rope: Rope,
        edit: &mut Edit<'_>,
    ) -> Result<Value, Outgrown> {
        let content = [u64::from(best.0), rope.0];
        let placed = match (old.record().map(|record| record / STEPS), rope.is_empty()) {
            (None, true) => return Ok(Value::of_next_hop(best)),
            (Some(record), true) => {
                self.records.unlink(record);
                return Ok(Value::of_next_hop(best));
            }
            (Some(record), false) if self.records.content(record, &edit.changes) == content => {
                return Ok(old);
            }
            (Some(record), false) => self.records.relink(record, &content, &edit.changes),
            (None, false) => self.records.link(&content, &edit.changes),
        }
        .ok_or(Outgrown("room for ropes"))?;
        if let Placed::Fresh(piece) = placed {
            edit.set(ROPES, piece.into(), rope.0);
            for (at, miss) in (piece * STEPS..).zip(misses(piece, best, rope)) {
                edit.set(MISSES, at.into(), miss.0.into());
            }
        }
        Ok(try_of(placed.piece(), rope, 0).unwrap_or_else(|| Value::of_next_hop(best)))
    }
}

/// Records of a piece: one for each length that a rope can have.
pub const STEPS: u32 = 8;
const _: () = assert!(STEPS as usize == rope::MOST, "a record for each length");

/// What to do where the lengths of a rope are in vain, one after another: try the next one, or take the best
/// match so far.
pub(crate) fn misses(piece: u32, best: NextHop, rope: Rope) -> [Value; rope::MOST] {
    std::array::from_fn(|at| try_of(piece, rope, at + 1).unwrap_or_else(|| Value::of_next_hop(best)))
}

/// The value that says to try the length at a place of a rope.
fn try_of(piece: u32, rope: Rope, at: usize) -> Option<Value> {
    let len = rope.lengths().nth(at)?;
    let at = u32::try_from(at).expect("a place in a rope");
    Some(Value::of_try(len, piece * STEPS + at))
}

/// The next hop of the longest route that covers a prefix, itself included.
fn best<A: Address>(rib: &Rib<A>, prefix: Prefix<A>) -> NextHop {
    let mut best = NextHop::NONE;
    let mut cursor = rib.cursor();
    let whole = prefix.len() / 8;
    for depth in 0..whole {
        let octet = prefix.address().octet(usize::from(depth));
        if let Some((_, next_hop)) = cursor.best(octet) {
            best = next_hop;
        }
        match cursor.child(octet) {
            Some(child) => cursor = child,
            None => return best,
        }
    }
    let bits = prefix.len() % 8;
    if bits > 0 || whole == 0 {
        let octet = prefix.address().octet(usize::from(whole));
        if let Some((_, next_hop)) = cursor.best_within(octet, bits) {
            best = next_hop;
        }
    }
    best
}
