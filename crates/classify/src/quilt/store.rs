//! [`Store`]: what the control plane knows of the arrays of a table, and where a cell goes.
//!
//! ```text
//! cell ─► known: its layer ─► layers: mask, directory ─► directories: slot ─► buckets: cells, ranks
//!                       └───► scan: cells that no bucket takes
//! ```
//!
//! While a table is built the parts hold its slots and groups. From then on these lie in the table alone, and
//! the parts hold what the update at hand changes: it reads the rest from the table before it ([`Base`]).

use wirespeed_image::{At, PatchBuilder};
use wirespeed_table::sort_by_number;

use super::base::Base;
use super::buckets::{Buckets, MOST_CELLS, has_more};
use super::cell::{Cell, Form};
use super::directories::Directories;
use super::full::Full;
use super::hash::{Seeds, filter_bits};
use super::known::{Entry, Known};
use super::layers::{Fits, Layers};
use super::layout::{Directory, LANES, MOST_BITS, Slot, height};
use super::plan;
use super::scan::Scan;
use super::step::Step;
use crate::rank::Rank;
use crate::seeded::Seeded;
use crate::tuple::Tuple;

#[derive(Clone, Debug)]
pub(super) struct Store<T: Tuple> {
    pub(super) seeds: Seeds,
    /// See `layout`: heights of ranks are without so many bits.
    pub(super) shift: u32,
    /// Cells that a bucket should have at most.
    pub(super) roomy: usize,
    /// Layers that cells may make there be: those of further masks are scanned.
    most_layers: usize,
    pub(super) layers: Layers<T>,
    pub(super) directories: Directories,
    pub(super) buckets: Buckets<T>,
    pub(super) scan: Scan<T>,
    pub(super) known: Known<T>,
    /// Memory for those of an update.
    pub(super) steps: Vec<Step<T>>,
    /// Where steps led holds while there were so many layers.
    pub(super) led_until: u64,
}

/// Where a cell can go.
#[derive(Clone, Copy, Debug)]
struct Spot {
    layer: u32,
    /// The slot.
    at: usize,
    hash: u32,
    /// A lane of the bucket that there is which has no cell.
    free: Option<usize>,
}

/// Where a cell is.
#[derive(Clone, Copy, Debug)]
struct Place {
    layer: u32,
    /// The slot.
    at: usize,
    lane: usize,
}

/// The logarithm of the slots of a layer that comes.
const FIRST_BITS: u32 = 2;
/// How often a layer's directory is doubled for one cell, at most.
const MOST_DOUBLINGS: usize = 8;
/// The layer of cells that are scanned, and in none.
const SCANNED: u32 = u32::MAX >> 1;

impl<T: Tuple> Store<T> {
    /// Nothing yet, with room for as much as an image can hold.
    pub(super) fn new(seed: u64, shift: u32, roomy: usize, most_layers: usize) -> Self {
        let keys = Seeds::of(!seed).keys;
        let seeded = Seeded(u64::from(keys[0]) << 32 | u64::from(keys[1]));
        Self {
            seeds: Seeds::of(seed),
            shift,
            roomy,
            most_layers,
            layers: Layers::new(seeded),
            directories: Directories::new(),
            buckets: Buckets::new(),
            scan: Scan::new(),
            known: Known::new(seeded),
            steps: Vec::new(),
            led_until: 0,
        }
    }

    /// Limits layers, slots, groups and scanned groups to so many, and notes changes from now on.
    pub(super) fn set_limits(&mut self, layers: usize, slots: u32, groups: u32, scan: usize) {
        self.most_layers = plan::MOST_LAYERS.min(layers);
        self.layers.set_limit(layers);
        self.directories.set_limit(slots);
        self.buckets.set_limit(groups);
        self.scan.set_limit(scan);
    }

    /// The table has all slots and groups from now on.
    pub(super) fn settle(&mut self) {
        self.directories.settle();
        self.buckets.settle();
    }

    /// Moves directories and buckets together, before there is an image.
    pub(super) fn pack(&mut self) {
        let (ids, mut all): (Vec<u32>, Vec<Directory>) =
            self.layers.in_order().map(|(id, layer)| (id, layer.directory)).unzip();
        self.directories.pack(&mut all);
        ids.into_iter().zip(all).for_each(|(id, directory)| self.layers.set_directory(id, directory));
        self.buckets.pack(&mut self.directories.taken());
    }

    /// Makes layers, and puts cells in; some are to be scanned. Before there is an image.
    pub(super) fn fill(
        &mut self,
        cells: &[(Cell<T>, Rank)],
        scanned: &[(Cell<T>, Rank)],
        masks: &[(T, Form)],
    ) -> Result<(), Full> {
        for &(mask, form) in masks {
            self.add_layer(mask, form)?;
        }
        let base = Base::default();
        for (cell, rank) in scanned {
            let step = Step::of(*cell, self.known.hash(cell), *rank);
            match self.find(&step, None, base) {
                Ok((entry, place)) => self.add_rank(&step, entry, place, *rank, base),
                Err(at) => {
                    self.scan.insert(step.hash, cell, *rank)?;
                    self.known.insert(at, step.hash, SCANNED);
                }
            }
        }
        // Those that fit few layers first.
        let mut order: Vec<_> = cells.iter().map(|(cell, rank)| (cell.fixed().ones(), cell, rank)).collect();
        sort_by_number(&mut order, |&(ones, ..)| ones.into());
        order.into_iter().try_for_each(|(_, cell, &rank)| {
            let hash = self.known.hash(cell);
            self.insert(&Step::of(*cell, hash, rank), rank, base)
        })
    }

    /// Adds a rule's cell.
    pub(super) fn insert(&mut self, step: &Step<T>, rank: Rank, base: Base<'_>) -> Result<(), Full> {
        let cell = &step.cell;
        let (entry, place) = match self.find(step, None, base) {
            Ok(found) => found,
            Err(at) => {
                let fits = step.fits.unwrap_or_else(|| self.layers.fits(&cell.fixed(), cell.form));
                let layer = self.put_somewhere(step, rank, fits, base)?;
                self.known.insert(at, step.hash, layer);
                return Ok(());
            }
        };
        self.add_rank(step, entry, place, rank, base);
        Ok(())
    }

    /// One more rule is a cell that is there.
    fn add_rank(&mut self, step: &Step<T>, entry: Entry, place: Place, rank: Rank, base: Base<'_>) {
        let before = self.rank(place, base);
        self.known.add_other(entry, &step.cell, rank.min(before));
        if rank > before {
            self.replace(place, before, rank, base);
        }
    }

    /// The rank of a cell.
    #[inline(always)]
    fn rank(&self, Place { layer, lane, .. }: Place, base: Base<'_>) -> Rank {
        if layer == SCANNED { self.scan.rank(lane) } else { self.buckets.rank(lane, base) }
    }

    /// Takes a rule's cell out.
    pub(super) fn remove(&mut self, step: &Step<T>, rank: Rank, base: Base<'_>) -> Result<(), Full> {
        let Ok((entry, place)) = self.find(step, Some(rank), base) else {
            debug_assert!(false, "what a rule had is there");
            return Ok(());
        };
        let best = self.rank(place, base);
        if !entry.is_shared() {
            debug_assert_eq!(best, rank, "the rank of the one rule");
            self.known.remove(entry);
            return self.take_out(place, rank, base);
        }
        let left = self.known.remove_one(entry, rank, best);
        if left != best {
            self.replace(place, best, left, base);
        }
        Ok(())
    }

    /// Gives a rule's cell another rank.
    pub(super) fn rerank(
        &mut self,
        step: &Step<T>,
        before: Rank,
        now: Rank,
        base: Base<'_>,
    ) -> Result<(), Full> {
        match self.find(step, Some(before), base) {
            Ok((entry, place)) if !entry.is_shared() => {
                self.replace(place, before, now, base);
                Ok(())
            }
            _ => {
                // First in, so that the cell stays where it is.
                self.insert(step, now, base)?;
                self.remove(step, before, base)
            }
        }
    }

    /// Finds a cell: its entry and its place. With a rank it has to be there with that rank, if its rule has
    /// no other cell.
    #[inline(always)]
    fn find(&self, step: &Step<T>, rank: Option<Rank>, base: Base<'_>) -> Result<(Entry, Place), At> {
        let first = self.known.first(step.hash)?;
        if first.is_shared() || self.known.is_more(step.hash, first) {
            return self.find_among(step, rank, base);
        }
        match self.place_in(self.known.layer(first), step, rank.filter(|_| step.is_only), base) {
            Some(place) => Ok((first, place)),
            None => self.find_among(step, rank, base),
        }
    }

    /// Goes on with [`find`](Self::find) where a hash has more than one cell, or another one.
    #[cold]
    fn find_among(&self, step: &Step<T>, rank: Option<Rank>, base: Base<'_>) -> Result<(Entry, Place), At> {
        // No other cell has the rank of a rule's only one, which so is found without a look at cells.
        let rank = rank.filter(|_| step.is_only);
        let place_in = |layer, is_shared: bool| self.place_in(layer, step, rank.filter(|_| !is_shared), base);
        self.known.find(step.hash, &step.cell, place_in)
    }

    /// Writes that [`write`](Self::write) makes at most, but for those of layers.
    pub(super) fn writes(&self) -> usize {
        self.directories.writes() + self.buckets.writes() + self.scan.writes()
    }

    /// Adds to a patch what the table hasn't.
    pub(super) fn write(&mut self, patch: &mut PatchBuilder, base: Base<'_>) {
        self.layers.write(patch);
        self.directories.write(patch, base);
        self.buckets.write(patch, base);
        self.scan.write(patch);
    }

    /// The slot that a hash leads to in a layer.
    #[inline]
    pub(super) fn slot_at(&self, layer: u32, hash: u32) -> usize {
        let directory = self.layers.layer(layer).directory;
        directory.base as usize + self.seeds.slot(hash, directory.bits)
    }

    /// The hash of a cell in a layer.
    #[inline]
    pub(super) fn hash_in(&self, layer: u32, cell: &Cell<T>) -> u32 {
        self.seeds.hash(&cell.a, &self.layers.layer(layer).mask)
    }

    /// The hash of a step's cell in a layer; the step may know it already.
    #[inline]
    fn hash_of(&self, layer: u32, step: &Step<T>) -> u32 {
        match self.led_until == self.layers.added() {
            true if step.led.layer == layer => step.led.hash,
            true if step.led_on.layer == layer => step.led_on.hash,
            _ => self.hash_in(layer, &step.cell),
        }
    }

    /// Where a layer has a cell, or what has its rank, if that is said.
    #[inline(always)]
    fn place_in(&self, layer: u32, step: &Step<T>, rank: Option<Rank>, base: Base<'_>) -> Option<Place> {
        if layer == SCANNED {
            return self.scan.find(step.hash, &step.cell).map(|lane| Place { layer, at: 0, lane });
        }
        let at = self.slot_at(layer, self.hash_of(layer, step));
        let slot = self.directories.slot(at, base);
        if slot.is_empty() || slot.form() != step.cell.form {
            return None;
        }
        let lane = match rank {
            Some(rank) => self.buckets.find_rank(slot, rank, base),
            None => self.buckets.find(slot, &step.cell, base),
        };
        lane.map(|lane| Place { layer, at, lane })
    }

    /// Puts a cell into a layer that has room for it, into a new one, or among those that are scanned; which.
    fn put_somewhere(&mut self, step: &Step<T>, rank: Rank, fits: Fits, base: Base<'_>) -> Result<u32, Full> {
        let cell = &step.cell;
        if cell.form.is_mixed() {
            return self.put_scanned(step, rank);
        }
        for limit in [self.roomy, MOST_CELLS] {
            for nth in 0..self.layers.fitting(fits).len() {
                let layer = self.layers.fitting(fits)[nth];
                if let Some(spot) = self.spot(layer, step, limit, base) {
                    self.put(spot, cell, rank, base)?;
                    return Ok(layer);
                }
            }
        }
        let fixed = cell.fixed();
        let layer = match self.layer_of(&fixed, cell.form) {
            Some(own) => own,
            None if self.layers.len() >= self.most_layers => return self.put_scanned(step, rank),
            // Where the bucket of a coarser mask is full that of a finer one is not.
            None => {
                let coarse = plan::coarser(&fixed);
                let is_there = self.layer_of(&coarse, cell.form).is_some();
                self.add_layer(if is_there { fixed } else { coarse }, cell.form)?
            }
        };
        match self.put_into(layer, step, rank, base)? {
            true => Ok(layer),
            false => self.put_scanned(step, rank),
        }
    }

    #[cold]
    fn put_scanned(&mut self, step: &Step<T>, rank: Rank) -> Result<u32, Full> {
        self.scan.insert(step.hash, &step.cell, rank)?;
        Ok(SCANNED)
    }

    /// Puts a cell into a layer, which is given more slots where it has no room; whether that helped.
    #[cold]
    fn put_into(&mut self, layer: u32, step: &Step<T>, rank: Rank, base: Base<'_>) -> Result<bool, Full> {
        for _ in 0..MOST_DOUBLINGS {
            if let Some(spot) = self.spot(layer, step, MOST_CELLS, base) {
                return self.put(spot, &step.cell, rank, base).map(|()| true);
            }
            if self.is_of_one_key(layer, step, base) {
                break;
            }
            self.double(layer, base)?;
        }
        Ok(false)
    }

    /// Whether all cells of a bucket have the key of one that is to go there: no more slots will tell them
    /// apart. Ranges that fix the same bits may have one.
    fn is_of_one_key(&self, layer: u32, step: &Step<T>, base: Base<'_>) -> bool {
        let mask = &self.layers.layer(layer).mask;
        let slot = self.directories.slot(self.slot_at(layer, self.hash_of(layer, step)), base);
        let key = step.cell.a.and(mask);
        self.buckets.contents(slot, base).iter().all(|(cell, _)| cell.a.and(mask) == key)
    }

    /// Whether it is one, and not what stands for cells that are scanned.
    #[inline]
    pub(super) const fn is_layer(&self, layer: u32) -> bool {
        layer != SCANNED
    }

    /// The layer of a mask.
    fn layer_of(&self, mask: &T, form: Form) -> Option<u32> {
        let mut layers = self.layers.in_order();
        layers.find(|(_, layer)| (&layer.mask, layer.form) == (mask, form)).map(|(id, _)| id)
    }

    pub(super) fn add_layer(&mut self, mask: T, form: Form) -> Result<u32, Full> {
        let directory = self.directories.take(FIRST_BITS)?;
        self.layers.add(mask, form, directory)
    }

    pub(super) fn drop_layer(&mut self, layer: u32) {
        self.directories.give(self.layers.layer(layer).directory);
        self.layers.drop(layer);
    }

    /// Where a cell can go in a layer, if its bucket has fewer cells than so many.
    #[inline(always)]
    fn spot(&self, layer: u32, step: &Step<T>, limit: usize, base: Base<'_>) -> Option<Spot> {
        let hash = self.hash_of(layer, step);
        let at = self.slot_at(layer, hash);
        let slot = self.directories.slot(at, base);
        if slot.is_empty() {
            return Some(Spot { layer, at, hash, free: None });
        }
        let (taken, free) = self.buckets.taken(slot, base);
        (taken < limit).then_some(Spot { layer, at, hash, free })
    }

    /// Puts a cell there.
    #[inline(always)]
    fn put(
        &mut self,
        Spot { layer, at, hash, free }: Spot,
        cell: &Cell<T>,
        rank: Rank,
        base: Base<'_>,
    ) -> Result<(), Full> {
        let slot = self.directories.slot(at, base);
        let filter = slot.filter() | filter_bits(hash);
        let top = slot.top().max(height(rank.bits(), self.shift));
        let (groups, group, lane) = if slot.is_empty() {
            let group = self.buckets.take(1, base)?;
            self.layers.layer_mut(layer).taken += 1;
            (1, group, group as usize * LANES)
        } else if let Some(lane) = free {
            (slot.groups(), to_u32(slot.group()), lane)
        } else {
            let (group, lanes) = (self.lengthen(slot, base)?, slot.groups() * LANES);
            (slot.groups() + 1, group, group as usize * LANES + lanes)
        };
        self.buckets.put(lane, cell, rank, base);
        self.directories.set(at, Slot::new(top, filter, cell.form, groups, group), base);
        self.layers.raise(layer, rank);
        let of = self.layers.layer_mut(layer);
        of.cells += 1;
        if of.taken << 1 > 1 << of.directory.bits && of.directory.bits < MOST_BITS {
            self.double(layer, base)?;
        }
        Ok(())
    }

    /// Makes a bucket a group longer; its first group.
    fn lengthen(&mut self, slot: Slot, base: Base<'_>) -> Result<u32, Full> {
        let groups = slot.groups();
        if has_more(groups) {
            self.buckets.clear(slot.group() + groups, base);
            return Ok(to_u32(slot.group()));
        }
        let group = self.buckets.take(groups + 1, base)?;
        for lane in 0..groups * LANES {
            let from = slot.group() * LANES + lane;
            let (cell, rank) = (self.buckets.cell(from, slot.form(), base), self.buckets.rank(from, base));
            self.buckets.put(group as usize * LANES + lane, &cell, rank, base);
        }
        self.buckets.give(slot);
        Ok(group)
    }

    #[inline(always)]
    fn take_out(&mut self, Place { layer, at, lane }: Place, rank: Rank, base: Base<'_>) -> Result<(), Full> {
        if layer == SCANNED {
            self.scan.remove(lane);
            return Ok(());
        }
        self.buckets.set_rank(lane, Rank::NONE, base);
        let slot = self.directories.slot(at, base);
        let (left, _) = self.buckets.taken(slot, base);
        if left == 0 {
            self.buckets.give(slot);
            self.directories.set(at, Slot(0), base);
            self.layers.layer_mut(layer).taken -= 1;
        } else if slot.groups() > 1 && left <= slot.groups() * LANES / 2 {
            self.shorten(layer, at, base)?;
        } else {
            self.lower(at, rank, base);
        }
        let of = self.layers.layer_mut(layer);
        of.cells -= 1;
        if of.cells == 0 {
            self.drop_layer(layer);
        }
        Ok(())
    }

    /// Gives a bucket as few groups as its cells take, and the filter that they make.
    fn shorten(&mut self, layer: u32, at: usize, base: Base<'_>) -> Result<(), Full> {
        let slot = self.directories.slot(at, base);
        let contents = self.buckets.contents(slot, base);
        self.buckets.give(slot);
        let filter =
            contents.iter().fold(0, |filter, (cell, _)| filter | filter_bits(self.hash_in(layer, cell)));
        let fresh = self.bucket(slot.form(), filter, contents.iter(), base)?;
        self.directories.set(at, fresh, base);
        Ok(())
    }

    /// A slot with a bucket for some cells.
    fn bucket<'c>(
        &mut self,
        form: Form,
        filter: u8,
        cells: impl Iterator<Item = &'c (Cell<T>, Rank)> + Clone,
        base: Base<'_>,
    ) -> Result<Slot, Full> {
        let groups = cells.clone().count().div_ceil(LANES);
        let group = self.buckets.take(groups, base)?;
        let mut best = Rank::NONE;
        for (lane, (cell, rank)) in cells.enumerate() {
            self.buckets.put(group as usize * LANES + lane, cell, *rank, base);
            best = best.max(*rank);
        }
        Ok(Slot::new(height(best.bits(), self.shift), filter, form, groups, group))
    }

    /// A cell has another rank.
    #[inline]
    fn replace(&mut self, Place { layer, at, lane }: Place, before: Rank, now: Rank, base: Base<'_>) {
        if layer == SCANNED {
            return self.scan.set_rank(lane, now);
        }
        self.buckets.set_rank(lane, now, base);
        let slot = self.directories.slot(at, base);
        self.set_top(at, slot.top().max(height(now.bits(), self.shift)), base);
        self.lower(at, before, base);
        self.layers.raise(layer, now);
    }

    /// A bucket no longer has a rank.
    fn lower(&mut self, at: usize, gone: Rank, base: Base<'_>) {
        let slot = self.directories.slot(at, base);
        if slot.top() == height(gone.bits(), self.shift) {
            let best = self.buckets.best(slot, base);
            self.set_top(at, height(best.bits(), self.shift), base);
        }
    }

    fn set_top(&mut self, at: usize, top: u32, base: Base<'_>) {
        let slot = self.directories.slot(at, base);
        let fresh = Slot::new(top, slot.filter(), slot.form(), slot.groups(), to_u32(slot.group()));
        self.directories.set(at, fresh, base);
    }

    /// Gives a layer a directory of twice the slots.
    fn double(&mut self, layer: u32, base: Base<'_>) -> Result<(), Full> {
        let directory = self.layers.layer(layer).directory;
        let bits = directory.bits + 1;
        if bits > MOST_BITS {
            return Err(Full("slots of a mask"));
        }
        let fresh = self.directories.take(bits)?;
        self.layers.set_directory(layer, fresh);
        self.layers.layer_mut(layer).taken = 0;
        for at in directory.base as usize..directory.base as usize + (1 << directory.bits) {
            let slot = self.directories.slot(at, base);
            if !slot.is_empty() {
                self.directories.set(at, Slot(0), base);
                self.divide(layer, slot, base)?;
            }
        }
        self.directories.give(directory);
        Ok(())
    }

    /// Puts a bucket of a layer's directory of half the slots under one slot or two.
    fn divide(&mut self, layer: u32, slot: Slot, base: Base<'_>) -> Result<(), Full> {
        let contents = self.buckets.contents(slot, base);
        let hashes: Vec<u32> = contents.iter().map(|(cell, _)| self.hash_in(layer, cell)).collect();
        let homes: Vec<usize> = hashes.iter().map(|&hash| self.slot_at(layer, hash)).collect();
        let first = homes[0];
        let filter = |side| {
            let those = homes.iter().zip(&hashes).filter(move |(home, _)| **home == side);
            those.fold(0, |filter, (_, &hash)| filter | filter_bits(hash))
        };
        let Some(&second) = homes.iter().find(|&&home| home != first) else {
            let group = to_u32(slot.group());
            let slot = Slot::new(slot.top(), filter(first), slot.form(), slot.groups(), group);
            self.directories.set(first, slot, base);
            self.layers.layer_mut(layer).taken += 1;
            return Ok(());
        };
        self.buckets.give(slot);
        for side in [first, second] {
            let those = homes.iter().zip(&contents).filter(|(home, _)| **home == side);
            let fresh = self.bucket(slot.form(), filter(side), those.map(|(_, cell)| cell), base)?;
            self.directories.set(side, fresh, base);
            self.layers.layer_mut(layer).taken += 1;
        }
        Ok(())
    }

    pub(super) fn memory_usage(&self) -> u64 {
        self.layers.memory_usage()
            + self.directories.memory_usage()
            + self.buckets.memory_usage()
            + self.scan.memory_usage()
            + self.known.memory_usage()
    }
}

fn to_u32(group: usize) -> u32 {
    u32::try_from(group).expect("a group's index has 21 bits")
}
