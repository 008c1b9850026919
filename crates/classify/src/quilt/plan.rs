//! Which masks the layers of a set have.
//!
//! Greedy: of the masks that could be a layer's the one that takes most rules comes first, then that which
//! takes most of the others, until all are in one. A bucket takes few cells, and those past the first group
//! count less, as comparing them takes time; see [`tune`](super::tune).

use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::cell::{Cell, Form};
use super::hash::Seeds;
use super::layout::LANES;
use crate::tuple::{Field, Tuple};

/// What decides between many layers and many cells a bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Cells that a bucket takes.
    pub(super) full: u8,
    /// What a cell past a bucket's first group counts, in hundredths.
    pub(super) further: u32,
    /// Cells that a bucket should have at most when they are put in.
    pub(super) roomy: usize,
    /// The fewest cells of first groups that a layer has to take. Cells of masks that take less are scanned.
    pub(super) least: u32,
}

/// Layers that are made, whatever they take: real sets have about ten.
pub(super) const SOME_LAYERS: usize = 32;
/// What one more has to take, as cells of first groups: going through a layer takes as long as scanning six.
const LEAST: u32 = 8;
/// Layers that are made at most; those of updates among them.
pub(super) const MOST_LAYERS: usize = 128;
/// Masks that are tried at most.
const MOST_CANDIDATES: usize = 320;
/// Masks of rules, those of the most, that these are made of and weighed by.
const MOST_MASKS: usize = 256;
/// Fields wider than this are cut to parts, others are in a mask or not.
const NARROW: u16 = 16;

/// What plans of a set start from, by form.
pub(super) struct Draft<T> {
    forms: [Part<T>; 2],
}

struct Part<T> {
    form: Form,
    /// What cells have fixed and their value, each once.
    cells: Vec<(T, T)>,
    /// The masks that could be a layer's.
    masks: Vec<T>,
}

impl<T: Tuple> Draft<T> {
    /// A draft for cells.
    pub(super) fn of(cells: impl Iterator<Item = Cell<T>> + Clone) -> Self {
        let forms = [Form::RANGES, Form::MASKS].map(|form| {
            let of_form = cells.clone().filter(|cell| cell.form == form);
            let mut cells: Vec<(T, T)> = of_form.map(|cell| (cell.fixed(), cell.a)).collect();
            cells.sort_unstable();
            cells.dedup();
            let masks = candidates(&cells);
            Part { form, cells, masks }
        });
        Self { forms }
    }

    /// The layers that cells should have. What a mask takes of fewer cells is no more than what it took of
    /// all; so only those are weighed anew that could still be the best.
    pub(super) fn layers(&self, seeds: &Seeds, shape: &Shape) -> Vec<(T, Form)> {
        let mut layers = Vec::new();
        for Part { form, cells, masks } in &self.forms {
            let mut left = by_mask(cells);
            let mut counts = Counts::for_cells(cells.len(), *shape);
            // By score; which layer it was weighed for.
            let mut weighed: BinaryHeap<_> =
                masks.iter().map(|mask| (counts.score(&left, mask, seeds), mask.ones(), mask, 0)).collect();
            let mut layer = 0;
            while !left.is_empty() {
                let Some((score @ 1.., ones, best, weighed_for)) = weighed.pop() else { break };
                if weighed_for < layer {
                    weighed.push((counts.score(&left, best, seeds), ones, best, layer));
                    continue;
                }
                let least = if layers.len() < SOME_LAYERS { shape.least } else { shape.least.max(LEAST) };
                if score < 100 * least || layers.len() == MOST_LAYERS {
                    break;
                }
                layers.push((*best, *form));
                layer += 1;
                counts.clear();
                for (fixed, values) in &mut left {
                    if best.and(fixed) == *best {
                        values.retain(|value| counts.count(value, best, seeds).is_none());
                    }
                }
                left.retain(|(_, values)| !values.is_empty());
                weighed.push((score, ones, best, 0));
            }
        }
        layers
    }
}

/// Values by what they have fixed, of cells in order.
fn by_mask<T: Tuple>(cells: &[(T, T)]) -> Vec<(T, Vec<T>)> {
    let classes = cells.chunk_by(|a, b| a.0 == b.0);
    classes.map(|class| (class[0].0, class.iter().map(|&(_, value)| value).collect())).collect()
}

/// A mask for what a rule's mask doesn't fit: the same with prefixes cut to whole bytes, of wide fields, and
/// without what narrow ones have in part.
pub(super) fn coarser<T: Tuple>(mask: &T) -> T {
    T::FIELDS.iter().fold(T::default(), |coarse, field| {
        let bits = mask.field(field);
        coarse.with(field, cut(field, bits, 8))
    })
}

/// The bits of a field's mask, of a wide prefix so that its length is a multiple; of a narrow field all or
/// none; others as they are.
fn cut(field: &Field, bits: u128, step: u16) -> u128 {
    let length = u16::try_from(bits.count_ones()).expect("128 at most");
    match (bits == field.prefix(length), field.width > NARROW) {
        (true, true) => field.prefix(length / step * step),
        (true, false) if length < field.width => 0,
        _ => bits,
    }
}

/// Masks that many rules have more than, and those of the rules themselves.
fn candidates<T: Tuple>(cells: &[(T, T)]) -> Vec<T> {
    let mut weights: FxHashMap<T, usize> = FxHashMap::default();
    cells.iter().for_each(|(fixed, _)| *weights.entry(*fixed).or_default() += 1);
    let mut masks: Vec<(T, usize)> = weights.into_iter().collect();
    masks.sort_unstable_by_key(|&(mask, weight)| (std::cmp::Reverse(weight), mask));
    let mut found: FxHashSet<T> = FxHashSet::default();
    found.insert(T::default());
    let heavy = &masks[..masks.len().min(MOST_MASKS)];
    for (mask, _) in heavy {
        found.extend(cuts(mask));
    }
    // The own masks of the largest classes, and what pairs of these have in common.
    let largest = &masks[..masks.len().min(24)];
    for (at, (mask, _)) in largest.iter().enumerate() {
        found.extend(largest[at..].iter().map(|(other, _)| mask.and(other)));
    }
    let fits = |mask: &T| {
        heavy.iter().filter(|(fixed, _)| mask.and(fixed) == *mask).map(|(_, weight)| weight).sum::<usize>()
    };
    let mut found: Vec<(usize, T)> =
        found.into_iter().map(|mask| (fits(&mask) * (8 + mask.ones() as usize), mask)).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.truncate(MOST_CANDIDATES);
    // In the end each has its own.
    let own = masks.iter().take(MOST_CANDIDATES).map(|&(mask, _)| mask);
    let mut all: Vec<T> = found.into_iter().map(|(_, mask)| mask).chain(own).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Coarser masks: each wide field in steps or not at all, narrow ones all or not.
fn cuts<T: Tuple>(mask: &T) -> Vec<T> {
    let mut all = vec![T::default()];
    let wide: Vec<&Field> = T::FIELDS.iter().filter(|field| field.width > NARROW).collect();
    for field in &wide {
        let bits = mask.field(field);
        let mut choices = vec![0, cut(field, bits, 8)];
        if wide.len() <= 2 {
            choices.extend([cut(field, bits, 4), cut(field, bits, 16)]);
        }
        choices.sort_unstable();
        choices.dedup();
        all = all.iter().flat_map(|mask| choices.iter().map(|&bits| mask.with(field, bits))).collect();
    }
    let narrow: Vec<&Field> = T::FIELDS.iter().filter(|field| field.width <= NARROW).collect();
    let full = |field: &Field| cut(field, mask.field(field), 8);
    let with_all = narrow.iter().fold(T::default(), |with, field| with.with(field, full(field)));
    let mut parts = vec![T::default(), with_all];
    for field in &narrow {
        parts.push(T::default().with(field, full(field)));
        parts.push(with_all.with(field, 0));
    }
    parts.sort_unstable();
    parts.dedup();
    all.iter().flat_map(|mask| parts.iter().map(|part| mask.or(part))).collect()
}

/// Cells by buckets.
struct Counts {
    counts: Vec<u8>,
    bits: u32,
    shape: Shape,
}

impl Counts {
    fn for_cells(cells: usize, shape: Shape) -> Self {
        let bits = (2 * cells.max(8)).next_power_of_two().trailing_zeros();
        Self { counts: vec![0; 1 << bits], bits, shape }
    }

    fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// How much a mask would take.
    fn score<T: Tuple>(&mut self, cells: &[(T, Vec<T>)], mask: &T, seeds: &Seeds) -> u32 {
        self.clear();
        let mut score = 0;
        for value in cells.iter().filter(|(fixed, _)| mask.and(fixed) == *mask).flat_map(|(_, values)| values)
        {
            score += match self.count(value, mask, seeds) {
                None => 0,
                Some(count) if usize::from(count) < LANES => 100,
                Some(_) => self.shape.further,
            };
        }
        score
    }

    /// The cells of a value's bucket before it, if it takes it.
    fn count<T: Tuple>(&mut self, value: &T, mask: &T, seeds: &Seeds) -> Option<u8> {
        let count = &mut self.counts[seeds.slot(seeds.hash(value, mask), self.bits)];
        let before = *count;
        *count = before.saturating_add(1).min(self.shape.full);
        (before < self.shape.full).then_some(before)
    }
}
