//! [`Store`]: the control plane's own copy of the arrays, and where a cell goes.
//!
//! Every change is made here and told to [`Changes`]; building is the same without anyone who listens.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher};

use rustc_hash::FxHashMap;
use wirespeed_image::Changes;

use super::cell::{Cell, Form};
use super::hash::{Seeds, filter_bits};
use super::layout::{
    B_AFTER, BLOCK, CELLS, COUNT_AT, Directory, GROUPS, HEAD, LANES, LAYERS, LAYERS_AT_ONCE, MOST_BITS,
    MOST_GROUPS, RANKS, REST_AT, SLOTS, Slot, blocks, cell_at, group_len, height, record_len,
};
use super::plan;
use super::space::Space;
use super::tune::Tally;
use crate::rank::Rank;
use crate::tuple::Tuple;

/// What ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full(pub(super) &'static str);

#[derive(Clone, Debug)]
pub(super) struct Store<T: Tuple> {
    pub(super) seeds: Seeds,
    /// By id. Ids of layers that went are used again.
    layers: Vec<Layer<T>>,
    idle: Vec<u32>,
    /// Ids by place: the order in which lookups try them.
    order: Vec<u32>,
    most_layers: usize,
    pub(super) slots: Vec<u64>,
    /// See `layout`: heights of ranks are without so many bits.
    pub(super) shift: u32,
    /// Cells that a bucket should have at most.
    roomy: usize,
    pub(super) slot_space: Space,
    pub(super) cells: Vec<u64>,
    pub(super) ranks: Vec<u64>,
    pub(super) group_space: Space,
    /// Of each cell the layer that it is in and its best rank.
    known: std::collections::HashMap<Cell<T>, Known, Seeded>,
    /// The other ranks of cells that several rules are.
    others: std::collections::HashMap<Cell<T>, BTreeSet<Rank>, Seeded>,
    /// By mask and form the layers that a cell may be in, the most specific first.
    fitting: FxHashMap<(T, Form), Vec<u32>>,
}

#[derive(Clone, Debug)]
struct Layer<T> {
    mask: T,
    form: Form,
    place: usize,
    directory: Directory,
    /// Slots that have a bucket.
    taken: u32,
    cells: u32,
    /// The best that it ever had.
    best: Rank,
    /// As the record has it.
    rest: Rank,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    layer: u32,
    best: Rank,
}

/// A bucket, in full.
type Contents<T> = Vec<(Cell<T>, Rank)>;

/// Cells that a bucket may have.
const MOST_CELLS: usize = MOST_GROUPS * LANES;
/// The logarithm of the slots of a layer that comes.
const FIRST_BITS: u32 = 2;

impl<T: Tuple> Store<T> {
    /// Nothing yet, with room for as much as an image can hold.
    pub(super) fn new(seed: u64, shift: u32, roomy: usize) -> Self {
        let hasher = Seeded::of(seed);
        Self {
            seeds: Seeds::of(seed),
            layers: Vec::new(),
            idle: Vec::new(),
            order: Vec::new(),
            most_layers: MOST_LAYERS,
            slots: Vec::new(),
            shift,
            roomy,
            slot_space: Space::new(u32::MAX >> 1),
            cells: Vec::new(),
            ranks: Vec::new(),
            group_space: Space::new(GROUPS),
            known: std::collections::HashMap::with_hasher(hasher),
            others: std::collections::HashMap::with_hasher(hasher),
            fitting: FxHashMap::default(),
        }
    }

    /// From now on there are no more than these.
    pub(super) fn set_limits(&mut self, layers: usize, slots: u32, groups: u32) {
        self.most_layers = layers;
        self.slot_space.set_limit(slots);
        self.slots.resize(slots as usize, 0);
        self.group_space.set_limit(groups);
        self.cells.resize(groups as usize * group_len::<T>(), 0);
        self.ranks.resize(groups as usize * LANES, 0);
    }

    /// Layers in use.
    pub(super) const fn layers(&self) -> usize {
        self.order.len()
    }

    /// Cells in buckets.
    pub(super) fn cells_len(&self) -> usize {
        self.known.len()
    }

    /// Adds a rule's cell.
    pub(super) fn insert(&mut self, cell: Cell<T>, rank: Rank, changes: &mut Changes) -> Result<(), Full> {
        let Some(known) = self.known.get_mut(&cell) else {
            let layer = self.place(&cell, rank, changes)?;
            self.known.insert(cell, Known { layer, best: rank });
            return Ok(());
        };
        let Known { layer, best: before } = *known;
        known.best = rank.max(before);
        self.others.entry(cell).or_default().insert(rank.min(before));
        if rank > before {
            self.replace(layer, &cell, before, rank, changes);
        }
        Ok(())
    }

    /// Takes a rule's cell out.
    pub(super) fn remove(&mut self, cell: &Cell<T>, rank: Rank, changes: &mut Changes) -> Result<(), Full> {
        let Some(&Known { layer, best }) = self.known.get(cell) else {
            debug_assert!(false, "what a rule had is there");
            return Ok(());
        };
        let next = match self.others.get_mut(cell) {
            Some(others) if rank != best => {
                others.remove(&rank);
                best
            }
            Some(others) => others.pop_last().unwrap_or(Rank::NONE),
            None => Rank::NONE,
        };
        if self.others.get(cell).is_some_and(BTreeSet::is_empty) {
            self.others.remove(cell);
        }
        if next == Rank::NONE {
            self.known.remove(cell);
            self.take_out(layer, cell, best, changes)
        } else {
            self.known.insert(*cell, Known { layer, best: next });
            if next != best {
                self.replace(layer, cell, best, next, changes);
            }
            Ok(())
        }
    }

    /// Makes layers, and puts cells in. Before there is an image.
    pub(super) fn fill(&mut self, cells: &[(Cell<T>, Rank)], masks: &[(T, Form)]) -> Result<(), Full> {
        let changes = &mut Changes::none();
        for &(mask, form) in masks {
            self.add_layer(mask, form, changes)?;
        }
        // Those that fit few layers first.
        let mut order: Vec<_> = cells.iter().map(|(cell, rank)| (cell.fixed().ones(), cell, rank)).collect();
        order.sort_by_key(|&(ones, ..)| ones);
        order.into_iter().try_for_each(|(_, cell, &rank)| self.insert(*cell, rank, changes))
    }

    /// What lookups of tuples read.
    pub(super) fn tally(&self, tuples: &[T]) -> Tally {
        let mut tally = Tally { wins: vec![0; self.layers.len()], ..Tally::default() };
        for tuple in tuples {
            let (mut best, mut winner) = (0, None);
            for (place, &id) in self.order.iter().enumerate() {
                let layer = &self.layers[id as usize];
                if place % LAYERS_AT_ONCE == 0 && best != 0 && best >= layer.rest.bits() {
                    break;
                }
                tally.layers += 1;
                let hash = self.seeds.hash(tuple, &layer.mask);
                let slot = Slot(self.slots[self.slot_at(id, hash)]);
                if slot.filter() & filter_bits(hash) != filter_bits(hash)
                    || slot.top() < height(best, self.shift)
                {
                    continue;
                }
                tally.buckets += 1;
                tally.groups += slot.groups() as u64;
                for (cell, rank) in self.contents(slot) {
                    if rank.bits() > best && cell.matches(tuple) {
                        (best, winner) = (rank.bits(), Some(id));
                    }
                }
            }
            if let Some(winner) = winner {
                tally.wins[winner as usize] += 1;
            }
        }
        tally
    }

    /// Puts the layers that win most first, and of these those of the best rules. Before there is an image.
    pub(super) fn sort_layers(&mut self, wins: &[u64]) {
        let empty: Vec<_> =
            self.order.iter().copied().filter(|&id| self.layers[id as usize].cells == 0).collect();
        empty.into_iter().for_each(|id| self.drop_layer(id, &mut Changes::none()));
        let mut order = std::mem::take(&mut self.order);
        order.sort_by_cached_key(|&id| std::cmp::Reverse((wins[id as usize], self.middle(id))));
        let mut rest = Rank::NONE;
        for (place, &id) in order.iter().enumerate().rev() {
            let layer = &mut self.layers[id as usize];
            rest = rest.max(layer.best);
            (layer.place, layer.rest) = (place, rest);
        }
        self.order = order;
    }

    /// The mean of a layer's ranks, of the best of each bucket.
    fn middle(&self, id: u32) -> u128 {
        let Directory { base, bits } = self.layers[id as usize].directory;
        let slots = &self.slots[base as usize..base as usize + (1 << bits)];
        let tops = || slots.iter().filter(|&&slot| slot != 0).map(|&slot| u128::from(Slot(slot).top()));
        tops().sum::<u128>() * 256 / tops().count().max(1) as u128
    }

    /// A layer's record as it is in the image.
    pub(super) fn record(&self, place: usize) -> impl Iterator<Item = u64> {
        let layer = &self.layers[self.order[place] as usize];
        let mask = (0..blocks::<T>()).flat_map(|block| words(&layer.mask, block));
        [layer.directory.element(), layer.rest.bits()].into_iter().chain(mask)
    }

    /// A layer for a cell, and the cell in it.
    fn place(&mut self, cell: &Cell<T>, rank: Rank, changes: &mut Changes) -> Result<u32, Full> {
        let fixed = cell.fixed();
        let key = (fixed, cell.form);
        if !self.fitting.contains_key(&key) {
            let list = self.fitting_of(&fixed, cell.form);
            self.fitting.insert(key, list);
        }
        let mut own = None;
        for limit in [self.roomy, MOST_CELLS] {
            let list = &self.fitting[&key];
            for at in 0..list.len() {
                let layer = self.fitting[&key][at];
                own = own.or_else(|| (self.layers[layer as usize].mask == fixed).then_some(layer));
                if self.put(layer, cell, rank, limit, changes)? {
                    return Ok(layer);
                }
            }
        }
        // Where the bucket of a coarser mask is full that of a finer one is not.
        let coarse = plan::coarser(&fixed);
        let is_there = self.order.iter().any(|&id| {
            let layer = &self.layers[id as usize];
            (layer.mask, layer.form) == (coarse, cell.form)
        });
        let layer = match own {
            Some(own) => own,
            None => self.add_layer(if is_there { fixed } else { coarse }, cell.form, changes)?,
        };
        // More than a bucket holds of one slot: only of cells with one key under their own mask, which ranges may have.
        for _ in 0..MOST_DOUBLINGS {
            if self.put(layer, cell, rank, MOST_CELLS, changes)? {
                return Ok(layer);
            }
            self.double(layer, changes)?;
        }
        Err(Full("places under one key"))
    }

    fn fitting_of(&self, fixed: &T, form: Form) -> Vec<u32> {
        let mut list: Vec<u32> = Vec::new();
        for &id in &self.order {
            let layer = &self.layers[id as usize];
            if layer.form == form && layer.mask.and(fixed) == layer.mask {
                list.push(id);
            }
        }
        list.sort_by_key(|&id| std::cmp::Reverse(self.layers[id as usize].mask.ones()));
        list
    }

    fn add_layer(&mut self, mask: T, form: Form, changes: &mut Changes) -> Result<u32, Full> {
        if self.order.len() == self.most_layers {
            return Err(Full("masks"));
        }
        let base = self.take_slots(FIRST_BITS)?;
        let directory = Directory { base, bits: FIRST_BITS };
        let place = self.order.len();
        let layer =
            Layer { mask, form, place, directory, taken: 0, cells: 0, best: Rank::NONE, rest: Rank::NONE };
        let id = match self.idle.pop() {
            Some(id) => {
                self.layers[id as usize] = layer;
                id
            }
            None => {
                self.layers.push(layer);
                u32::try_from(self.layers.len() - 1).expect("as many as masks")
            }
        };
        self.order.push(id);
        self.write_record(place, changes);
        changes.set(HEAD, COUNT_AT as u64, self.order.len() as u64);
        let layers = &self.layers;
        for ((fixed, of), list) in &mut self.fitting {
            if *of == form && mask.and(fixed) == mask {
                let ones = mask.ones();
                let at = list.partition_point(|&other| layers[other as usize].mask.ones() >= ones);
                list.insert(at, id);
            }
        }
        Ok(id)
    }

    /// Takes an empty layer away; the last one takes its place.
    fn drop_layer(&mut self, id: u32, changes: &mut Changes) {
        let Layer { place, directory, .. } = self.layers[id as usize];
        self.slot_space.give(directory.base, directory.bits as usize);
        self.fitting.values_mut().for_each(|list| list.retain(|&other| other != id));
        self.idle.push(id);
        let rest = self.layers[id as usize].rest;
        self.order.swap_remove(place);
        if let Some(&moved) = self.order.get(place) {
            let moved = &mut self.layers[moved as usize];
            (moved.place, moved.rest) = (place, rest);
            self.write_record(place, changes);
        }
        changes.set(HEAD, COUNT_AT as u64, self.order.len() as u64);
        if self.order.is_empty() {
            self.fitting.clear();
        }
    }

    fn write_record(&self, place: usize, changes: &mut Changes) {
        let first = (place * record_len::<T>()) as u64;
        (first..).zip(self.record(place)).for_each(|(at, element)| changes.set(LAYERS, at, element));
    }

    /// Layers up to this one may have a rule of this rank.
    fn raise(&mut self, id: u32, rank: Rank, changes: &mut Changes) {
        let layer = &mut self.layers[id as usize];
        layer.best = layer.best.max(rank);
        for place in (0..=layer.place).rev() {
            let layer = &mut self.layers[self.order[place] as usize];
            if layer.rest >= rank {
                break;
            }
            layer.rest = rank;
            changes.set(LAYERS, (place * record_len::<T>() + REST_AT) as u64, rank.bits());
        }
    }

    /// Puts a cell into a layer, unless its bucket has so many.
    fn put(
        &mut self,
        id: u32,
        cell: &Cell<T>,
        rank: Rank,
        limit: usize,
        changes: &mut Changes,
    ) -> Result<bool, Full> {
        let layer = &self.layers[id as usize];
        let hash = self.seeds.hash(&cell.a, &layer.mask);
        let at = self.slot_at(id, hash);
        let slot = Slot(self.slots[at]);
        let filter = slot.filter() | filter_bits(hash);
        let top = slot.top().max(height(rank.bits(), self.shift));
        let fresh = if slot.is_empty() {
            let group = self.take_groups(1, changes)?;
            self.layers[id as usize].taken += 1;
            self.write_cell(group as usize * LANES, cell, rank, changes);
            Slot::new(top, filter, cell.form, 1, group)
        } else {
            let ranks = &self.ranks[slot.group() * LANES..][..slot.groups() * LANES];
            if ranks.iter().filter(|&&rank| rank != 0).count() >= limit {
                return Ok(false);
            }
            let free = ranks.iter().position(|&rank| rank == 0);
            let groups = slot.groups();
            let (slot, lane) = match free {
                Some(lane) => (Slot::new(top, filter, cell.form, groups, to_u32(slot.group())), lane),
                None => (self.longer(slot, (top, filter), changes)?, groups * LANES),
            };
            self.write_cell(slot.group() * LANES + lane, cell, rank, changes);
            slot
        };
        if fresh != slot {
            self.set_slot(at, fresh, changes);
        }
        self.layers[id as usize].cells += 1;
        self.raise(id, rank, changes);
        let layer = &self.layers[id as usize];
        if layer.taken << 1 > 1 << layer.directory.bits && layer.directory.bits < MOST_BITS {
            self.double(id, changes)?;
        }
        Ok(true)
    }

    /// The bucket with a group more.
    fn longer(&mut self, slot: Slot, (top, filter): (u32, u8), changes: &mut Changes) -> Result<Slot, Full> {
        let (groups, form) = (slot.groups(), slot.form());
        if order_of(groups + 1) == order_of(groups) {
            self.clear_group(slot.group() + groups, changes);
            return Ok(Slot::new(top, filter, form, groups + 1, to_u32(slot.group())));
        }
        let group = self.take_groups(groups + 1, changes)?;
        for lane in 0..groups * LANES {
            let from = slot.group() * LANES + lane;
            let (cell, rank) = (self.cell(from, form), Rank::from_bits(self.ranks[from]));
            self.write_cell(group as usize * LANES + lane, &cell, rank, changes);
        }
        self.group_space.give(to_u32(slot.group()), order_of(groups));
        Ok(Slot::new(top, filter, form, groups + 1, group))
    }

    fn take_out(&mut self, id: u32, cell: &Cell<T>, rank: Rank, changes: &mut Changes) -> Result<(), Full> {
        let (at, slot, lane) = self.find(id, cell, rank);
        self.set_rank(lane, Rank::NONE, changes);
        let ranks = &self.ranks[slot.group() * LANES..][..slot.groups() * LANES];
        let left = ranks.iter().filter(|&&rank| rank != 0).count();
        if left == 0 {
            self.group_space.give(to_u32(slot.group()), order_of(slot.groups()));
            self.set_slot(at, Slot(0), changes);
            self.layers[id as usize].taken -= 1;
        } else if slot.groups() > 1 && left <= slot.groups() * LANES / 2 {
            let contents = self.contents(slot);
            self.group_space.give(to_u32(slot.group()), order_of(slot.groups()));
            let (groups, mask) = (left.div_ceil(LANES), self.layers[id as usize].mask);
            let group = self.take_groups(groups, changes)?;
            let mut filter = 0;
            for (lane, (cell, rank)) in contents.iter().enumerate() {
                filter |= filter_bits(self.seeds.hash(&cell.a, &mask));
                self.write_cell(group as usize * LANES + lane, cell, *rank, changes);
            }
            let top = self.top(contents.iter().map(|(_, rank)| rank.bits()));
            self.set_slot(at, Slot::new(top, filter, slot.form(), groups, group), changes);
        } else {
            self.lower(at, rank, changes);
        }
        self.layers[id as usize].cells -= 1;
        if self.layers[id as usize].cells == 0 {
            self.drop_layer(id, changes);
        }
        Ok(())
    }

    fn replace(&mut self, id: u32, cell: &Cell<T>, before: Rank, now: Rank, changes: &mut Changes) {
        let (at, slot, lane) = self.find(id, cell, before);
        self.set_rank(lane, now, changes);
        if slot.top() < height(now.bits(), self.shift) {
            self.set_top(at, height(now.bits(), self.shift), changes);
        }
        self.lower(at, before, changes);
        self.raise(id, now, changes);
    }

    /// The height of the best of ranks.
    fn top(&self, ranks: impl Iterator<Item = u64>) -> u32 {
        height(ranks.max().unwrap_or(0), self.shift)
    }

    /// A bucket no longer has a rank.
    fn lower(&mut self, at: usize, gone: Rank, changes: &mut Changes) {
        let slot = Slot(self.slots[at]);
        if slot.top() == height(gone.bits(), self.shift) {
            let ranks = &self.ranks[slot.group() * LANES..][..slot.groups() * LANES];
            self.set_top(at, self.top(ranks.iter().copied()), changes);
        }
    }

    fn set_top(&mut self, at: usize, top: u32, changes: &mut Changes) {
        let slot = Slot(self.slots[at]);
        if slot.top() != top {
            let fresh = Slot::new(top, slot.filter(), slot.form(), slot.groups(), to_u32(slot.group()));
            self.set_slot(at, fresh, changes);
        }
    }

    /// The slot and the lane of a cell that is in a layer. A rank is in no other cell of the bucket but of the same rule.
    fn find(&self, id: u32, cell: &Cell<T>, rank: Rank) -> (usize, Slot, usize) {
        let at = self.slot_at(id, self.seeds.hash(&cell.a, &self.layers[id as usize].mask));
        let slot = Slot(self.slots[at]);
        let lanes = slot.group() * LANES..(slot.group() + slot.groups()) * LANES;
        let lane = lanes
            .into_iter()
            .find(|&lane| self.ranks[lane] == rank.bits() && self.cell(lane, cell.form) == *cell)
            .expect("a known cell is in its layer");
        (at, slot, lane)
    }

    /// Gives a layer a directory of twice the slots.
    fn double(&mut self, id: u32, changes: &mut Changes) -> Result<(), Full> {
        let Layer { mask, directory, .. } = self.layers[id as usize];
        let bits = directory.bits + 1;
        if bits > MOST_BITS {
            return Err(Full("slots of a mask"));
        }
        let base = self.take_slots(bits)?;
        self.layers[id as usize].directory = Directory { base, bits };
        self.layers[id as usize].taken = 0;
        for at in 0..1 << directory.bits {
            let slot = Slot(self.slots[directory.base as usize + at]);
            if slot.is_empty() {
                continue;
            }
            let contents = self.contents(slot);
            self.set_slot(directory.base as usize + at, Slot(0), changes);
            let new = |cell: &Cell<T>| {
                let hash = self.seeds.hash(&cell.a, &mask);
                (self.slot_at(id, hash), filter_bits(hash))
            };
            let homes: Vec<_> = contents.iter().map(|(cell, _)| new(cell)).collect();
            let first = homes[0].0;
            if homes.iter().all(|home| home.0 == first) {
                let filter = homes.iter().fold(0, |filter, home| filter | home.1);
                let slot = Slot::new(slot.top(), filter, slot.form(), slot.groups(), to_u32(slot.group()));
                self.set_slot(first, slot, changes);
                self.layers[id as usize].taken += 1;
                continue;
            }
            self.group_space.give(to_u32(slot.group()), order_of(slot.groups()));
            let second = homes.iter().map(|home| home.0).find(|&home| home != first).unwrap_or(first);
            for side in [first, second] {
                let those = || homes.iter().zip(&contents).filter(|(home, _)| home.0 == side);
                let groups = those().count().div_ceil(LANES);
                let group = self.take_groups(groups, changes)?;
                let filter = those().fold(0, |filter, (home, _)| filter | home.1);
                for (lane, (_, (cell, rank))) in those().enumerate() {
                    self.write_cell(group as usize * LANES + lane, cell, *rank, changes);
                }
                let top = self.top(those().map(|(_, (_, rank))| rank.bits()));
                self.set_slot(side, Slot::new(top, filter, slot.form(), groups, group), changes);
                self.layers[id as usize].taken += 1;
            }
        }
        self.slot_space.give(directory.base, directory.bits as usize);
        self.write_record(self.layers[id as usize].place, changes);
        Ok(())
    }

    fn contents(&self, slot: Slot) -> Contents<T> {
        let lanes = slot.group() * LANES..(slot.group() + slot.groups()) * LANES;
        let taken = lanes.filter(|&lane| self.ranks[lane] != 0);
        taken.map(|lane| (self.cell(lane, slot.form()), Rank::from_bits(self.ranks[lane]))).collect()
    }

    fn slot_at(&self, id: u32, hash: u32) -> usize {
        let Directory { base, bits } = self.layers[id as usize].directory;
        base as usize + self.seeds.slot(hash, bits)
    }

    fn cell(&self, lane: usize, form: Form) -> Cell<T> {
        let (mut a, mut b) = (T::default(), T::default());
        for word in 0..T::WORDS {
            let at = cell_at::<T>(lane / LANES, word / BLOCK, lane % LANES) + word % BLOCK / 2;
            #[allow(clippy::cast_possible_truncation)] // the half is what is wanted
            let of = |element: u64| (element >> (word % 2 * 32)) as u32;
            a.words_mut()[word] = of(self.cells[at]);
            b.words_mut()[word] = of(self.cells[at + B_AFTER]);
        }
        Cell { a, b, form }
    }

    fn write_cell(&mut self, lane: usize, cell: &Cell<T>, rank: Rank, changes: &mut Changes) {
        for block in 0..blocks::<T>() {
            let at = cell_at::<T>(lane / LANES, block, lane % LANES);
            for (from, tuple) in [(at, &cell.a), (at + B_AFTER, &cell.b)] {
                for (at, element) in (from..).zip(words(tuple, block)) {
                    if self.cells[at] != element {
                        self.cells[at] = element;
                        changes.set(CELLS, at as u64, element);
                    }
                }
            }
        }
        self.set_rank(lane, rank, changes);
    }

    fn set_rank(&mut self, lane: usize, rank: Rank, changes: &mut Changes) {
        if self.ranks[lane] != rank.bits() {
            self.ranks[lane] = rank.bits();
            changes.set(RANKS, lane as u64, rank.bits());
        }
    }

    fn set_slot(&mut self, at: usize, slot: Slot, changes: &mut Changes) {
        self.slots[at] = slot.0;
        changes.set(SLOTS, at as u64, slot.0);
    }

    fn clear_group(&mut self, group: usize, changes: &mut Changes) {
        (group * LANES..(group + 1) * LANES).for_each(|lane| self.set_rank(lane, Rank::NONE, changes));
    }

    /// A bucket of groups without cells.
    fn take_groups(&mut self, groups: usize, changes: &mut Changes) -> Result<u32, Full> {
        let group = self.group_space.take(order_of(groups)).ok_or(Full("groups of cells"))?;
        let end = self.group_space.end() as usize;
        if self.ranks.len() < end * LANES {
            self.cells.resize(end * group_len::<T>(), 0);
            self.ranks.resize(end * LANES, 0);
        }
        (0..groups).for_each(|more| self.clear_group(group as usize + more, changes));
        Ok(group)
    }

    /// A directory of empty slots.
    fn take_slots(&mut self, bits: u32) -> Result<u32, Full> {
        let base = self.slot_space.take(bits as usize).ok_or(Full("slots"))?;
        let end = self.slot_space.end() as usize;
        if self.slots.len() < end {
            self.slots.resize(end, 0);
        }
        Ok(base)
    }

    pub(super) fn memory_usage(&self) -> u64 {
        let arrays = (self.slots.capacity() + self.cells.capacity() + self.ranks.capacity()) * 8;
        let known = self.known.capacity() * (size_of::<(Cell<T>, Known)>() + 1);
        let others: usize = self.others.values().map(|others| 40 + others.len() * 16).sum();
        let lists: usize =
            self.fitting.values().map(|list| size_of::<(T, Form)>() + 24 + list.capacity() * 4).sum();
        let layers = self.layers.capacity() * size_of::<Layer<T>>();
        let spaces = self.slot_space.memory_usage() + self.group_space.memory_usage();
        (arrays + known + others + lists + layers) as u64 + spaces
    }
}

/// The most layers.
pub(super) const MOST_LAYERS: usize = 1 << 20;
/// So often a layer's directory is doubled for one cell.
const MOST_DOUBLINGS: usize = 8;

/// The words of a block, by two.
fn words<T: Tuple>(tuple: &T, block: usize) -> [u64; 2] {
    let word = |at: usize| u64::from(tuple.words().get(at).copied().unwrap_or(0));
    [0, 2].map(|at| word(block * BLOCK + at) | word(block * BLOCK + at + 1) << 32)
}

/// The logarithm of what is taken for so many groups.
const fn order_of(groups: usize) -> usize {
    groups.next_power_of_two().trailing_zeros() as usize
}

fn to_u32(group: usize) -> u32 {
    u32::try_from(group).expect("a group's index has 21 bits")
}

/// Hashes cells for the control plane, so that chosen ones don't collide: folded products with a seed.
#[derive(Clone, Copy, Debug)]
struct Seeded([u64; 2]);

impl Seeded {
    fn of(seed: u64) -> Self {
        let keys = Seeds::of(!seed).keys;
        let word = |at: usize| u64::from(keys[at]) << 32 | u64::from(keys[at + 1]);
        Self([word(0), word(2) | 1])
    }
}

impl BuildHasher for Seeded {
    type Hasher = Folded;

    fn build_hasher(&self) -> Folded {
        Folded { acc: self.0[0], key: self.0[1] }
    }
}

/// The state of [`Seeded`].
struct Folded {
    acc: u64,
    key: u64,
}

impl Folded {
    #[inline]
    fn add(&mut self, word: u64) {
        let product = u128::from(self.acc ^ word) * u128::from(self.key ^ word.rotate_left(32));
        #[allow(clippy::cast_possible_truncation)] // both halves
        let folded = product as u64 ^ (product >> 64) as u64;
        self.acc = self.acc.rotate_left(23) ^ folded;
    }
}

impl Hasher for Folded {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|&word| self.add(u64::from_le_bytes(word)));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.add(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_isize(&mut self, number: isize) {
        self.acc ^= number.cast_unsigned() as u64;
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.acc ^= number as u64;
    }

    #[inline]
    fn finish(&self) -> u64 {
        let product = u128::from(self.acc) * u128::from(self.key);
        #[allow(clippy::cast_possible_truncation)] // both halves
        let folded = product as u64 ^ (product >> 64) as u64;
        folded
    }
}
