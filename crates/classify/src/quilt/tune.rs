//! Which of several plans a set is built by: that whose lookups read least, over tuples that some of its
//! rules match.
//!
//! How many cells a bucket should have, and how many layers there are then, is another question for each set.
//! Layers are tried in the order of how often they have the answer to these tuples, so that their heights
//! rule out the others soon.

use rayon::prelude::*;
use wirespeed_rng::Rng;

use super::cell::Cell;
use super::crowd;
use super::full::Full;
use super::plan::{Draft, SOME_LAYERS, Shape};
use super::store::Store;
use super::weigh::Tally;
use crate::rank::Rank;
use crate::spans::halves;
use crate::tuple::Tuple;

/// The plans that are tried.
const SHAPES: [Shape; 5] = [
    Shape { full: 4, further: 100, roomy: 8, least: 1 },
    Shape { full: 5, further: 60, roomy: 8, least: 1 },
    Shape { full: 8, further: 0, roomy: 8, least: 1 },
    Shape { full: 12, further: 60, roomy: 12, least: 1 },
    Shape { full: 16, further: 10, roomy: 16, least: 1 },
];
/// Plans that scan cells rather than have many layers, tried where those above have.
const SCANS: [Shape; 4] = [
    Shape { full: 4, further: 100, roomy: 8, least: 8 },
    Shape { full: 5, further: 60, roomy: 8, least: 32 },
    Shape { full: 16, further: 10, roomy: 16, least: 32 },
    Shape { full: 5, further: 60, roomy: 8, least: 256 },
];
/// Many layers: real sets have fewer.
const MANY: usize = 16;
/// The fewest cells that plans are compared for: with fewer any plan is a good one.
const FEW: usize = 32;
/// Tuples that plans are held against.
const SAMPLES: usize = 3_000;
/// What a lookup reads of one layer, bucket, group or group of scanned cells costs, in tenths of a nanosecond
/// or thereabouts: of tables that are near.
const COSTS: [u64; 4] = [10, 15, 20, 25];
/// Cells from so many on are far, and buckets and groups cost this many times as much.
const FAR: (usize, u64) = (30_000, 2);

/// A store of these cells.
pub(super) fn store<T: Tuple>(cells: &[(Cell<T>, Rank)], seed: u64, shift: u32) -> Result<Store<T>, Full> {
    let samples = samples(cells, seed);
    let (cells, scanned) = crowd::split(cells, seed);
    let draft = Draft::of(cells.iter().map(|&(cell, _)| cell));
    let of = |shape: &Shape| {
        // What a plan that scans leaves makes no layers of its own.
        let most_layers = if shape.least == 1 { SOME_LAYERS } else { 0 };
        let mut store = Store::new(seed, shift, shape.roomy, most_layers);
        let masks = draft.layers(&store.seeds, shape);
        store.fill(&cells, &scanned, &masks)?;
        store.sort_layers(&store.tally(&samples).wins);
        let cost = cost(&store.tally(&samples), cells.len());
        Ok((cost, store))
    };
    let best_of = |shapes: &[Shape]| shapes.par_iter().map(of).collect::<Vec<_>>().into_iter().reduce(better);
    let shapes = if cells.len() < FEW { &SHAPES[..1] } else { &SHAPES[..] };
    let mut best = best_of(shapes).expect("there are shapes");
    if best.as_ref().is_ok_and(|(_, store)| store.layers.len() > MANY) {
        best = better(best, best_of(&SCANS).expect("there are shapes"));
    }
    best.map(|(_, store)| store)
}

type Built<T> = Result<(u64, Store<T>), Full>;

/// The first of two of one cost.
fn better<T: Tuple>(one: Built<T>, other: Built<T>) -> Built<T> {
    match (one, other) {
        (Ok((cost, store)), Ok((more, _))) if cost <= more => Ok((cost, store)),
        (Ok(one), Err(_)) => Ok(one),
        (_, other) => other,
    }
}

fn cost(tally: &Tally, cells: usize) -> u64 {
    let times = if cells < FAR.0 { 1 } else { FAR.1 };
    let scanned = tally.scanned * COSTS[3];
    tally.layers * COSTS[0] + (tally.buckets * COSTS[1] + tally.groups * COSTS[2]) * times + scanned
}

/// Tuples that some cells match, spread over all.
fn samples<T: Tuple>(cells: &[(Cell<T>, Rank)], seed: u64) -> Vec<T> {
    let mut rng = Rng::new(seed);
    let count = cells.len().min(SAMPLES);
    (0..count).map(|at| sample(&cells[at * cells.len() / count].0, &mut rng)).collect()
}

/// A tuple that a cell matches.
fn sample<T: Tuple>(cell: &Cell<T>, rng: &mut Rng) -> T {
    let mut tuple = T::default();
    for (word, to) in tuple.words_mut().iter_mut().enumerate() {
        let (a, b) = (halves(cell.a.words()[word]), halves(cell.b.words()[word]));
        let mut half = |at: usize| match cell.form.is_range(word, at) {
            true => u32::from(a[at]) + u32::try_from(rng.below(u64::from(b[at]) + 1)).expect("16 bits"),
            false => u32::from(a[at] | u16::try_from(rng.below(1 << 16)).expect("16 bits") & !b[at]),
        };
        *to = half(0) << 16 | half(1);
    }
    tuple.and(&T::USED)
}
