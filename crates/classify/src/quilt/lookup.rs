//! Lookups: layers by four, and what they come to.

use wirespeed_table::{Load, Lookup, Step};

use super::cell::is_in;
use super::hash::{Seeds, filter_bits};
use super::layout::{
    B_AFTER, BLOCK, Directory, LANES, LAYERS_AT_ONCE, MASK_AT, QuiltTable, REST_AT, SCAN_LANES, ScanView,
    Slot, View, blocks, cell_at, height, record_len, scan_len,
};
use crate::rank::Rank;
use crate::spans::halves;
use crate::tuple::Tuple;

impl<T: Tuple> Lookup<T> for QuiltTable<T> {
    fn lookup(&self, tuple: &T) -> u32 {
        let view = self.view();
        best(view, &view.seeds(), tuple, &mut |_| ()).result()
    }

    fn lookup_batch(&self, tuples: &[T], results: &mut [u32]) {
        assert_eq!(tuples.len(), results.len(), "a result for each tuple");
        #[cfg(target_arch = "x86_64")]
        if super::simd::batch(self.view(), tuples, results) {
            return;
        }
        portable(self.view(), tuples, results);
    }

    fn shape(&self) -> Option<String> {
        let loads = self.loads();
        let (slots, lanes) = (loads[0], loads[1]);
        let (layers, scanned) = (self.layers(), loads[2].taken);
        let also = if scanned > 0 { format!(", {scanned} scanned") } else { String::new() };
        Some(format!("{layers} layers, {} buckets, {} cells{also}", slots.taken, lanes.taken))
    }

    fn loads(&self) -> Vec<Load> {
        let view = self.view();
        let taken = |elements: &[u64]| elements.iter().filter(|&&element| element != 0).count() as u64;
        let scanned = self.scanned_room() as u64;
        vec![
            Load { what: "slots", places: view.slots.len() as u64, taken: taken(view.slots) },
            Load { what: "cells", places: view.ranks.len() as u64, taken: taken(view.ranks) },
            Load { what: "scanned cells", places: scanned, taken: taken(view.scan.ranks) },
        ]
    }

    fn explain(&self, tuple: &T) -> Vec<Step> {
        let view = self.view();
        let mut steps = Vec::new();
        let best = best(view, &view.seeds(), tuple, &mut |read| steps.push(read.step(view)));
        let (count, result) = (view.head[1], best.result());
        let meaning = match result {
            0 => "no match".to_owned(),
            _ => format!("result {result}, of priority {}", best.priority()),
        };
        steps.push(Step { section: "head", index: 1, value: count, meaning });
        steps
    }
}

/// What a lookup reads, for people.
enum Read {
    Bound { record: usize, best: Rank },
    Slot { layer: usize, at: usize, passes: bool },
    Rank { lane: usize },
    Scanned { lane: usize },
}

impl Read {
    fn step(self, view: View<'_>) -> Step {
        let step =
            |section, at: usize, value: u64, meaning| Step { section, index: at as u64, value, meaning };
        match self {
            Self::Bound { record, best } => {
                let value = view.layers[record + REST_AT];
                let meaning = format!("no rule from here on is better than number {}", best.result());
                step("layers", record + REST_AT, value, meaning)
            }
            Self::Slot { layer, at, passes } => {
                let slot = Slot(view.slots[at]);
                let meaning = match passes {
                    true => {
                        format!("layer {layer}: bucket of {} groups from {}", slot.groups(), slot.group())
                    }
                    false => format!("layer {layer}: nothing"),
                };
                step("slots", at, slot.0, meaning)
            }
            Self::Rank { lane } => {
                let rank = Rank::from_bits(view.ranks[lane]);
                let meaning =
                    format!("cell {lane} matches, number {} of priority {}", rank.result(), rank.priority());
                step("ranks", lane, rank.bits(), meaning)
            }
            Self::Scanned { lane } => {
                let rank = Rank::from_bits(view.scan.ranks[lane]);
                let (number, priority) = (rank.result(), rank.priority());
                let meaning = format!("scanned cell {lane} matches, number {number} of priority {priority}");
                step("scan_ranks", lane, rank.bits(), meaning)
            }
        }
    }
}

/// The best rank of the cells that match.
#[inline(always)]
fn best<T: Tuple>(view: View<'_>, seeds: &Seeds, tuple: &T, seen: &mut impl FnMut(Read)) -> Rank {
    let (mut best, shift) = (0, view.shift());
    for layer in 0..view.count() {
        let record = layer * record_len::<T>();
        if layer % LAYERS_AT_ONCE == 0 && best >= view.layers[record + REST_AT] && best != 0 {
            seen(Read::Bound { record, best: Rank::from_bits(best) });
            break;
        }
        let directory = Directory::of(view.layers[record]);
        let hash = seeds.hash(tuple, &mask_of(&view.layers[record + MASK_AT..]));
        let at = directory.base as usize + seeds.slot(hash, directory.bits);
        let slot = Slot(view.slots[at]);
        let bits = filter_bits(hash);
        // No cell of a lower bucket is better than what was found.
        let passes = slot.filter() & bits == bits && slot.top() >= height(best, shift);
        seen(Read::Slot { layer, at, passes });
        if passes {
            for lane in slot.group() * LANES..(slot.group() + slot.groups()) * LANES {
                if is_match(view, lane, slot, tuple) && view.ranks[lane] != 0 {
                    seen(Read::Rank { lane });
                    best = best.max(view.ranks[lane]);
                }
            }
        }
    }
    Rank::from_bits(scanned(view.scan, tuple, best, seen))
}

/// The best of what was found and the scanned cells that match.
#[inline(always)]
fn scanned<T: Tuple>(scan: ScanView<'_>, tuple: &T, mut best: u64, seen: &mut impl FnMut(Read)) -> u64 {
    let groups = scan.cells.chunks_exact(scan_len(T::WORDS)).zip(scan.ranks.chunks_exact(SCAN_LANES));
    for (group, (&[top, rest], (cells, ranks))) in scan.tops.iter().zip(groups).enumerate() {
        if rest <= best {
            break;
        }
        if top <= best {
            continue;
        }
        let differ = differing(cells, tuple);
        for (lane, &rank) in ranks.iter().enumerate() {
            if differ[lane] == 0 && rank != 0 {
                seen(Read::Scanned { lane: group * SCAN_LANES + lane });
                best = best.max(rank);
            }
        }
    }
    best
}

/// Compares a tuple with each cell of a group: 0 where it matches. Written so that compilers make vectors of
/// it.
#[inline(always)]
fn differing<T: Tuple>(cells: &[u32], tuple: &T) -> [u32; SCAN_LANES] {
    let mut differ = [[0u16; 2]; SCAN_LANES];
    for (of_word, &x) in cells.chunks_exact(3 * SCAN_LANES).zip(tuple.words()) {
        let (masks, rest) = of_word.split_at(SCAN_LANES);
        let (least, spans) = rest.split_at(SCAN_LANES);
        for lane in 0..SCAN_LANES {
            let (x, least, span) = (halves(x & masks[lane]), halves(least[lane]), halves(spans[lane]));
            for half in 0..2 {
                differ[lane][half] |= x[half].wrapping_sub(least[half]).saturating_sub(span[half]);
            }
        }
    }
    differ.map(|[high, low]| u32::from(high | low))
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // the halves
fn mask_of<T: Tuple>(elements: &[u64]) -> T {
    let mut mask = T::default();
    for (at, word) in mask.words_mut().iter_mut().enumerate() {
        *word = (elements[at / 2] >> (at % 2 * 32)) as u32;
    }
    mask
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // the halves
fn is_match<T: Tuple>(view: View<'_>, lane: usize, slot: Slot, tuple: &T) -> bool {
    // What pads the last block is 0 in every tuple.
    (0..blocks::<T>() * BLOCK).all(|word| {
        let x = tuple.words().get(word).copied().unwrap_or(0);
        let at = cell_at::<T>(lane / LANES, word / BLOCK, lane % LANES) + word % BLOCK / 2;
        let of = |element: u64| (element >> (word % 2 * 32)) as u32;
        is_in(x, of(view.cells[at]), of(view.cells[at + B_AFTER]), slot.form())
    })
}

/// A batch on any CPU.
pub(super) fn portable<T: Tuple>(view: View<'_>, tuples: &[T], results: &mut [u32]) {
    let seeds = view.seeds();
    for (tuple, result) in tuples.iter().zip(results) {
        *result = best(view, &seeds, tuple, &mut |_| ()).result();
    }
}
