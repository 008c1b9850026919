//! [`Layers`]: masks and directories in the order in which lookups try them, and which of them a rule may be
//! in.

use wirespeed_image::{At, Index, PatchBuilder};
use wirespeed_table::sort_by_number;

use super::cell::Form;
use super::dirty::Dirty;
use super::full::Full;
use super::layout::{COUNT_AT, Directory, HEAD, LAYERS, blocks, record_len, words};
use crate::rank::Rank;
use crate::seeded::{Pairs, Seeded};
use crate::tuple::Tuple;

/// All layers. Each has an id that stays; its place is another one when layers go.
#[derive(Clone, Debug)]
pub(super) struct Layers<T> {
    /// Layers by id. Ids of layers that went are used again.
    all: Vec<Layer<T>>,
    idle: Vec<u32>,
    /// Ids by place: the order in which lookups try them.
    order: Vec<u32>,
    most: usize,
    /// How many there ever were.
    added: u64,
    /// The numbers of lists by the hash of a rule's mask and form.
    fits: Index,
    lists: Vec<List<T>>,
    pairs: Pairs,
    /// Places whose records may be others than in the image.
    dirty: Dirty,
    /// Layers in use, as in the image.
    written: usize,
}

/// The layers that rules of some mask and form may be in, the most specific first.
#[derive(Clone, Debug)]
struct List<T> {
    fixed: T,
    form: Form,
    layers: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct Layer<T> {
    pub(super) mask: T,
    pub(super) form: Form,
    place: usize,
    pub(super) directory: Directory,
    /// Slots that have a bucket.
    pub(super) taken: u32,
    pub(super) cells: u32,
    /// The best that it ever had.
    pub(super) best: Rank,
    /// The highest rank of this layer and of later ones, as the record has it.
    pub(super) rest: Rank,
}

/// The number of a list of layers that rules of some mask may be in.
pub(super) type Fits = u32;

/// The most layers.
const MOST_LAYERS: usize = 1 << 20;

impl<T: Tuple> Layers<T> {
    /// None yet, with room for as many as there can be.
    pub(super) fn new(seeded: Seeded) -> Self {
        Self {
            all: Vec::new(),
            idle: Vec::new(),
            order: Vec::new(),
            most: MOST_LAYERS,
            added: 0,
            fits: Index::sparse(),
            lists: Vec::new(),
            pairs: Pairs::new(seeded),
            dirty: Dirty::default(),
            written: 0,
        }
    }

    /// Limits layers to so many, and notes changes from now on.
    pub(super) fn set_limit(&mut self, layers: usize) {
        self.most = layers;
        self.written = self.order.len();
        self.dirty.start();
    }

    /// Layers in use.
    pub(super) const fn len(&self) -> usize {
        self.order.len()
    }

    /// How many there ever were: while that stays, so does what an id stands for.
    pub(super) const fn added(&self) -> u64 {
        self.added
    }

    /// The layers in use, in the order of lookups.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (u32, &Layer<T>)> {
        self.order.iter().map(|&id| (id, self.layer(id)))
    }

    /// One more than the largest id.
    pub(super) const fn ids(&self) -> usize {
        self.all.len()
    }

    #[inline]
    pub(super) fn layer(&self, id: u32) -> &Layer<T> {
        &self.all[id as usize]
    }

    #[inline]
    pub(super) fn layer_mut(&mut self, id: u32) -> &mut Layer<T> {
        &mut self.all[id as usize]
    }

    /// A layer more, the last one, with a directory of empty slots.
    pub(super) fn add(&mut self, mask: T, form: Form, directory: Directory) -> Result<u32, Full> {
        if self.order.len() == self.most {
            return Err(Full("masks"));
        }
        let place = self.order.len();
        let layer =
            Layer { mask, form, place, directory, taken: 0, cells: 0, best: Rank::NONE, rest: Rank::NONE };
        let id = match self.idle.pop() {
            Some(id) => {
                self.all[id as usize] = layer;
                id
            }
            None => {
                self.all.push(layer);
                u32::try_from(self.all.len() - 1).expect("as many as masks")
            }
        };
        self.added += 1;
        self.order.push(id);
        self.note(place);
        let (all, ones) = (&self.all, mask.ones());
        for List { fixed, form: of, layers } in &mut self.lists {
            if *of == form && mask.and(fixed) == mask {
                layers.insert(layers.partition_point(|&other| all[other as usize].mask.ones() >= ones), id);
            }
        }
        Ok(id)
    }

    /// Takes an empty layer away; the last one takes its place.
    pub(super) fn drop(&mut self, id: u32) {
        let Layer { place, rest, .. } = *self.layer(id);
        self.lists.iter_mut().for_each(|list| list.layers.retain(|&other| other != id));
        self.idle.push(id);
        self.order.swap_remove(place);
        if let Some(&moved) = self.order.get(place) {
            let moved = self.layer_mut(moved);
            (moved.place, moved.rest) = (place, rest);
            self.note(place);
        }
    }

    /// Puts layers into another order.
    pub(super) fn sort(&mut self, order: Vec<u32>) {
        let mut rest = Rank::NONE;
        for (place, &id) in order.iter().enumerate().rev() {
            let layer = self.layer_mut(id);
            rest = rest.max(layer.best);
            (layer.place, layer.rest) = (place, rest);
        }
        self.order = order;
    }

    /// A layer has another directory.
    pub(super) fn set_directory(&mut self, id: u32, directory: Directory) {
        let layer = self.layer_mut(id);
        layer.directory = directory;
        let place = layer.place;
        self.note(place);
    }

    /// Layers up to this one may have a rule of this rank.
    #[inline]
    pub(super) fn raise(&mut self, id: u32, rank: Rank) {
        let layer = self.layer_mut(id);
        layer.best = layer.best.max(rank);
        for place in (0..=layer.place).rev() {
            let layer = &mut self.all[self.order[place] as usize];
            if layer.rest >= rank {
                break;
            }
            layer.rest = rank;
            self.note(place);
        }
    }

    /// The list of layers that a rule may be in.
    #[inline(always)]
    pub(super) fn fits(&mut self, fixed: &T, form: Form) -> Fits {
        let pairs = (0..blocks::<T>()).map(|block| words(fixed, block));
        #[allow(clippy::cast_possible_truncation)] // 32 bits are left
        let hash = (self.pairs.hash(pairs) >> 32) as u32 ^ u32::from(form == Form::MASKS);
        let is_it = |_, fits: u32| {
            let list = &self.lists[fits as usize];
            (&list.fixed, list.form) == (fixed, form)
        };
        match self.fits.look(hash, is_it) {
            Ok((_, fits)) => fits,
            Err(at) => self.add_fits(at, hash, fixed, form),
        }
    }

    #[cold]
    fn add_fits(&mut self, at: At, hash: u32, fixed: &T, form: Form) -> Fits {
        let is_fit = |layer: &Layer<T>| layer.form == form && layer.mask.and(fixed) == layer.mask;
        let mut layers: Vec<u32> =
            self.in_order().filter(|(_, layer)| is_fit(layer)).map(|(id, _)| id).collect();
        sort_by_number(&mut layers, |&id| (!self.layer(id).mask.ones()).into());
        let fits = u32::try_from(self.lists.len()).expect("as many as masks of rules");
        self.lists.push(List { fixed: *fixed, form, layers });
        self.fits.insert_at(at, hash, fits);
        fits
    }

    /// A list's layers, the most specific first.
    #[inline]
    pub(super) fn fitting(&self, fits: Fits) -> &[u32] {
        &self.lists[fits as usize].layers
    }

    /// Forgets all lists, if there is no layer.
    pub(super) fn tidy(&mut self) {
        if self.order.is_empty() {
            self.fits = Index::sparse();
            self.lists.clear();
        }
    }

    /// A layer's record as it is in the image.
    pub(super) fn record(&self, place: usize) -> impl Iterator<Item = u64> {
        let layer = self.layer(self.order[place]);
        let mask = (0..blocks::<T>()).flat_map(|block| words(&layer.mask, block));
        [layer.directory.element(), layer.rest.bits()].into_iter().chain(mask)
    }

    fn note(&mut self, place: usize) {
        self.dirty.note(u32::try_from(place).expect("as many as masks"));
    }

    /// Adds to a patch what the image hasn't.
    pub(super) fn write(&mut self, patch: &mut PatchBuilder) {
        if self.written != self.order.len() {
            self.written = self.order.len();
            patch.set(HEAD, COUNT_AT as u64, self.written as u64);
        }
        let mut dirty = std::mem::take(&mut self.dirty);
        for &place in dirty.take().iter().take_while(|&&place| (place as usize) < self.order.len()) {
            let first = place as usize * record_len::<T>();
            (first as u64..)
                .zip(self.record(place as usize))
                .for_each(|(at, element)| patch.set(LAYERS, at, element));
        }
        self.dirty = dirty;
    }

    pub(super) fn memory_usage(&self) -> u64 {
        let lists: usize =
            self.lists.iter().map(|list| size_of::<List<T>>() + list.layers.capacity() * 4).sum();
        let layers = self.all.capacity() * size_of::<Layer<T>>() + self.order.capacity() * 4;
        (lists + layers + self.fits.memory_usage()) as u64 + self.dirty.memory_usage()
    }
}
