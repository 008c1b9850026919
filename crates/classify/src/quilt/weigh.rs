//! What lookups read of a store, and its layers in the order that this says. Before there is an image.

use super::base::Base;
use super::hash::filter_bits;
use super::layout::LAYERS_AT_ONCE;
use super::layout::{Slot, height};
use super::store::Store;
use crate::tuple::Tuple;

/// The part of the table that lookups read.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) layers: u64,
    pub(super) buckets: u64,
    pub(super) groups: u64,
    /// Lookups of a store that has scanned cells.
    pub(super) scans: u64,
    /// Lookups that each group of scanned cells may be better for.
    opened: Vec<u64>,
    /// How often each layer had the answer, by the layer's id.
    pub(super) wins: Vec<u64>,
}

/// Tuples that a group of scanned cells is read for at once, if it may be better for one of them.
const TOGETHER: u64 = 8;

impl Tally {
    /// Groups of scanned cells that lookups read: each for as many tuples as are together with one that it
    /// may be better for, and for all of them where that is more.
    pub(super) fn scanned(&self) -> u64 {
        self.opened.iter().map(|&opened| self.scans.min(TOGETHER * opened)).sum()
    }
}

impl<T: Tuple> Store<T> {
    /// What lookups of tuples read.
    pub(super) fn tally(&self, tuples: &[T]) -> Tally {
        let mut tally = Tally { wins: vec![0; self.layers.ids()], ..Tally::default() };
        tuples.iter().for_each(|tuple| self.count(tuple, &mut tally));
        tally
    }

    fn count(&self, tuple: &T, tally: &mut Tally) {
        let (mut best, mut winner) = (0, None);
        for (place, (id, layer)) in self.layers.in_order().enumerate() {
            if place % LAYERS_AT_ONCE == 0 && best != 0 && best >= layer.rest.bits() {
                break;
            }
            tally.layers += 1;
            let hash = self.seeds.hash(tuple, &layer.mask);
            let slot = self.directories.slot(self.slot_at(id, hash), Base::default());
            let bits = filter_bits(hash);
            if slot.filter() & bits != bits || slot.top() < height(best, self.shift) {
                continue;
            }
            tally.buckets += 1;
            tally.groups += slot.groups() as u64;
            for (cell, rank) in self.buckets.contents(slot, Base::default()) {
                if rank.bits() > best && cell.matches(tuple) {
                    (best, winner) = (rank.bits(), Some(id));
                }
            }
        }
        let tops = self.scan.tops();
        tally.scans += u64::from(!tops.is_empty());
        tally.opened.resize(tops.len(), 0);
        for (group, top) in tops.iter().enumerate() {
            if top.bits() <= best {
                continue;
            }
            tally.opened[group] += 1;
            for (cell, rank) in self.scan.group(group) {
                if rank.bits() > best && cell.matches(tuple) {
                    (best, winner) = (rank.bits(), None);
                }
            }
        }
        if let Some(winner) = winner {
            tally.wins[winner as usize] += 1;
        }
    }

    /// Puts the layers that win most first, and of these those of the best rules; and the best of what is
    /// scanned.
    pub(super) fn sort_layers(&mut self, wins: &[u64]) {
        let empty: Vec<u32> =
            self.layers.in_order().filter(|(_, layer)| layer.cells == 0).map(|(id, _)| id).collect();
        empty.into_iter().for_each(|id| self.drop_layer(id));
        let mut order: Vec<u32> = self.layers.in_order().map(|(id, _)| id).collect();
        order.sort_by_cached_key(|&id| std::cmp::Reverse((wins[id as usize], self.middle(id))));
        self.layers.sort(order);
        self.scan.sort();
    }

    /// The mean of a layer's ranks, of the best of each bucket.
    fn middle(&self, id: u32) -> u128 {
        let slots = self.directories.of(self.layers.layer(id).directory);
        let tops = || slots.iter().filter(|&&slot| slot != 0).map(|&slot| u128::from(Slot(slot).top()));
        tops().sum::<u128>() * 256 / tops().count().max(1) as u128
    }
}
