//! The overlay trie (section 4.3): the tries of all FIBs laid one over the other and walked together, an
//! octet a step.
//!
//! It is never built. A position in it is a cursor into each FIB that has routes beneath. It has a child if
//! any of the cursors has one. This comes to the paper's stretching of all tries to one structure.

use wirespeed_fib::rib::Cursor;
use wirespeed_fib::{Address, NextHop, Rib};

use super::fibs::Fibs;
use crate::sail_l::CHUNK;

/// The FIBs that are overlaid, by slot.
pub(super) struct Overlay<'a, A: Address> {
    ribs: Vec<Option<&'a Rib<A>>>,
}

impl<'a, A: Address> Overlay<'a, A> {
    /// An overlay of all FIBs.
    pub(super) fn of(fibs: &'a Fibs<A>) -> Self {
        let mut ribs = vec![None; fibs.slots()];
        for (id, rib) in fibs.iter() {
            ribs[id.index()] = Some(rib);
        }
        Self { ribs }
    }

    /// An overlay of one FIB.
    pub(super) fn single(rib: &'a Rib<A>) -> Self {
        Self { ribs: vec![Some(rib)] }
    }

    /// The FIB of a slot.
    pub(super) fn rib(&self, slot: usize) -> Option<&'a Rib<A>> {
        self.ribs.get(slot).copied().flatten()
    }

    fn ribs(&self) -> impl Iterator<Item = &'a Rib<A>> + '_ {
        self.ribs.iter().copied().flatten()
    }

    /// Routes of all FIBs.
    pub(super) fn routes(&self) -> u64 {
        self.ribs().map(|rib| rib.len() as u64).sum()
    }

    /// The largest next hop of any FIB.
    pub(super) fn max_next_hop(&self) -> NextHop {
        self.ribs().map(Rib::max_next_hop).max().unwrap_or_default()
    }

    /// The position at the first octet.
    pub(super) fn root(&self) -> Position<'a, A> {
        let cursors = self.ribs.iter().enumerate().filter_map(|(slot, rib)| Some((slot, (*rib)?.cursor())));
        Position { cursors: cursors.collect() }
    }

    /// The position after so many octets of an address.
    pub(super) fn along(&self, address: A, octets: usize) -> Position<'a, A> {
        let cursors = self.ribs.iter().enumerate();
        Position {
            cursors: cursors
                .filter_map(|(slot, rib)| Some((slot, along((*rib)?, address, octets)?)))
                .collect(),
        }
    }

    /// Whether any FIB has routes of more than so many octets there.
    pub(super) fn reaches(&self, address: A, octets: usize) -> bool {
        self.ribs().any(|rib| along(rib, address, octets).is_some())
    }

    /// The next hop of each slot: that of the longest route of at most so many octets that covers the
    /// address. (The paper's array N of an element.)
    pub(super) fn row(&self, address: A, octets: usize, slots: usize) -> Vec<NextHop> {
        let row = |slot| self.rib(slot).map_or(NextHop::NONE, |rib| longest(rib, address, octets));
        (0..slots).map(row).collect()
    }
}

fn along<A: Address>(rib: &Rib<A>, address: A, octets: usize) -> Option<Cursor<'_, A>> {
    (0..octets).try_fold(rib.cursor(), |cursor, at| cursor.child(address.octet(at)))
}

fn longest<A: Address>(rib: &Rib<A>, address: A, octets: usize) -> NextHop {
    let mut found = NextHop::NONE;
    let mut cursor = Some(rib.cursor());
    for octet in (0..octets).map(|at| address.octet(at)) {
        let Some(here) = cursor else { break };
        found = here.best(octet).map_or(found, |(_, next_hop)| next_hop);
        cursor = here.child(octet);
    }
    found
}

/// A path of whole octets, with a cursor for each FIB that has routes beneath it.
#[derive(Clone, Debug)]
pub(super) struct Position<'a, A: Address> {
    cursors: Vec<(usize, Cursor<'a, A>)>,
}

impl<'a, A: Address> Position<'a, A> {
    /// The path one octet further; of no FIB at all where no route is longer than that.
    pub(super) fn child(&self, octet: u8) -> Self {
        let children = self.cursors.iter().filter_map(|&(slot, cursor)| Some((slot, cursor.child(octet)?)));
        Self { cursors: children.collect() }
    }

    /// The octets that have a child in any FIB.
    pub(super) fn octets(&self) -> Octets {
        let mut octets = Octets::default();
        for octet in self.cursors.iter().flat_map(|(_, cursor)| cursor.octets()) {
            octets.0[usize::from(octet / 32)] |= 1 << (octet % 32);
        }
        octets
    }

    /// The array of next hops of each of the 256 octets, by the routes that end in this octet; what is
    /// `inherited` where there is none. (Leaf pushing of one stride, for all FIBs.)
    pub(super) fn expand(&self, inherited: &[NextHop]) -> Vec<NextHop> {
        let slots = inherited.len();
        let mut rows = inherited.repeat(CHUNK);
        let mut column = [NextHop::NONE; CHUNK];
        for &(slot, cursor) in &self.cursors {
            // A FIB past the slots has no routes as far as the table goes.
            let Some(&inherited) = inherited.get(slot) else { continue };
            cursor.expand(inherited, &mut column);
            for (row, &next_hop) in rows.chunks_exact_mut(slots).zip(&column) {
                row[slot] = next_hop;
            }
        }
        rows
    }
}

/// A set of octets, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Octets([u32; 8]);

impl Octets {
    /// Whether an octet is among them.
    pub(super) fn contains(self, octet: u8) -> bool {
        self.0[usize::from(octet / 32)] >> (octet % 32) & 1 == 1
    }

    /// The octets, ascending.
    pub(super) fn iter(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |&octet| self.contains(octet))
    }
}
