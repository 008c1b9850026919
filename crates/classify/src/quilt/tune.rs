//! Which of several plans a set is built by: that whose lookups read least, over tuples that some of its rules match.
//!
//! How many cells a bucket should have, and how many layers there are then, is another question for each set. Layers are tried in the
//! order of how often they have the answer to these tuples, so that their heights rule out the others soon.

use rayon::prelude::*;
use wirespeed_rng::Rng;

use super::cell::{Cell, Form};
use super::plan::{Draft, Shape};
use super::store::{Full, Store};
use super::weigh::Tally;
use crate::rank::Rank;
use crate::spans::halves;
use crate::tuple::Tuple;

/// The plans that are tried.
const SHAPES: [Shape; 5] = [
    Shape { full: 4, further: 100, roomy: 8 },
    Shape { full: 5, further: 60, roomy: 8 },
    Shape { full: 8, further: 0, roomy: 8 },
    Shape { full: 12, further: 60, roomy: 12 },
    Shape { full: 16, further: 10, roomy: 16 },
];
/// Of fewer cells any plan is a good one.
const FEW: usize = 32;
/// Tuples that plans are held against.
const SAMPLES: usize = 3_000;
/// What a lookup reads of one layer, bucket or group costs, in tenths of a nanosecond or thereabouts: of tables that are near.
const COSTS: [u64; 3] = [10, 15, 20];
/// Cells from so many on are far, and buckets and groups cost this many times as much.
const FAR: (usize, u64) = (30_000, 2);

/// A store of these cells.
pub(super) fn store<T: Tuple>(cells: &[(Cell<T>, Rank)], seed: u64, shift: u32) -> Result<Store<T>, Full> {
    let shapes = if cells.len() < FEW { &SHAPES[..1] } else { &SHAPES[..] };
    let samples = samples(cells, seed);
    let draft = Draft::of(cells.iter().map(|&(cell, _)| cell));
    let of = |shape: &Shape| {
        let mut store = Store::new(seed, shift, shape.roomy);
        let masks = draft.layers(&store.seeds, shape);
        store.fill(cells, &masks)?;
        store.sort_layers(&store.tally(&samples).wins);
        let cost = cost(&store.tally(&samples), cells.len());
        Ok((cost, store))
    };
    let stores: Vec<Result<_, Full>> = shapes.par_iter().map(of).collect();
    let mut best = Err(Full("cells"));
    for built in stores {
        best = match (best, built) {
            (Ok((cost, store)), Ok((other, _))) if cost <= other => Ok((cost, store)),
            (Ok(best), Err(_)) => Ok(best),
            (_, built) => built,
        };
    }
    best.map(|(_, store)| store)
}

fn cost(tally: &Tally, cells: usize) -> u64 {
    let times = if cells < FAR.0 { 1 } else { FAR.1 };
    tally.layers * COSTS[0] + (tally.buckets * COSTS[1] + tally.groups * COSTS[2]) * times
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
        let (a, b) = (cell.a.words()[word], cell.b.words()[word]);
        *to = match cell.form {
            Form::Masks => {
                let any = u32::try_from(rng.bits() >> 32).expect("32 bits");
                a | any & !b
            }
            Form::Ranges => {
                let (a, b) = (halves(a), halves(b));
                let mut half = |at: usize| {
                    u32::from(a[at]) + u32::try_from(rng.below(u64::from(b[at]) + 1)).expect("16 bits")
                };
                half(0) << 16 | half(1)
            }
        };
    }
    tuple.and(&T::USED)
}
