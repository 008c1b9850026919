//! Which of several plans a set is built by: that whose lookups read least, over tuples that some of its
//! rules match, and over tuples that few or none do, as most of what a router forwards.
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
/// So many of the first plans, the best, are tried again with a scan.
const AGAIN: usize = 2;
/// The fewest cells of a layer in these. Cells of wide masks are scanned then: together they fill buckets
/// that most tuples ask for.
const NOT_WIDE: u32 = 32;
/// A plan that scans has to cost less by this part, more than samples err by.
const CLEAR: u64 = 12;
/// Many layers: real sets have fewer.
const MANY: usize = 16;
/// The fewest cells that plans are compared for: with fewer any plan is a good one.
const FEW: usize = 32;
/// The fewest cells where plans without many layers are tried again with a scan: of fewer a larger part is
/// scanned, and updates of these take longer.
const SOME: usize = 4_000;
/// Tuples that plans are held against.
const SAMPLES: usize = 3_000;
/// What a lookup reads of one layer, bucket and group, and what a scan and a group of it cost: in tenths of a
/// nanosecond or thereabouts, of tables that are near.
const COSTS: [u64; 5] = [10, 15, 20, 10, 18];
/// Cells from so many on are far, and buckets and groups cost this many times as much.
const FAR: (usize, u64) = (30_000, 2);

/// A store of these cells.
pub(super) fn store<T: Tuple>(cells: &[(Cell<T>, Rank)], seed: u64, shift: u32) -> Result<Store<T>, Full> {
    let samples = samples(cells, seed);
    let mixed = mixed(&samples, seed);
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
        Ok(Built { cost, shape: *shape, store })
    };
    let build = |shapes: &[Shape]| by_cost(shapes.par_iter().map(of).collect());
    let mut built = build(if cells.len() < FEW { &SHAPES[..1] } else { &SHAPES })?;
    if built[0].store.layers.len() > MANY {
        built.extend(build(&SCANS).unwrap_or_default());
        built.sort_by_key(|built| built.cost);
    } else if cells.len() >= SOME {
        // What most of the mixed tuples ask for is the same, and near.
        let with_mixed = |built: &Built<T>| built.cost + cost(&built.store.tally(&mixed), 0);
        let again: Vec<Shape> =
            built.iter().take(AGAIN).map(|built| Shape { least: NOT_WIDE, ..built.shape }).collect();
        let scans = build(&again).unwrap_or_default();
        let best = scans.into_iter().map(|built| (with_mixed(&built), built)).min_by_key(|(cost, _)| *cost);
        if let Some((cost, scan)) = best
            && cost + cost / CLEAR < with_mixed(&built[0])
        {
            return Ok(scan.store);
        }
    }
    Ok(built.swap_remove(0).store)
}

/// What a plan comes to.
struct Built<T: Tuple> {
    cost: u64,
    shape: Shape,
    store: Store<T>,
}

/// Plans that there was room for, the cheapest first.
fn by_cost<T: Tuple>(all: Vec<Result<Built<T>, Full>>) -> Result<Vec<Built<T>>, Full> {
    let (mut built, mut full) = (Vec::new(), None);
    for one in all {
        match one {
            Ok(one) => built.push(one),
            Err(one) => full = Some(one),
        }
    }
    built.sort_by_key(|built| built.cost);
    match full {
        Some(full) if built.is_empty() => Err(full),
        _ => Ok(built),
    }
}

fn cost(tally: &Tally, cells: usize) -> u64 {
    let times = if cells < FAR.0 { 1 } else { FAR.1 };
    let of_buckets = (tally.buckets * COSTS[1] + tally.groups * COSTS[2]) * times;
    tally.layers * COSTS[0] + of_buckets + tally.scans * COSTS[3] + tally.scanned() * COSTS[4]
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

/// Tuples whose fields are each of another sample: most match rules of few fields, or none.
fn mixed<T: Tuple>(samples: &[T], seed: u64) -> Vec<T> {
    let mut rng = Rng::new(!seed);
    let mut drawn = || samples[usize::try_from(rng.below(samples.len() as u64)).expect("an index")];
    let mix = || T::FIELDS.iter().fold(T::default(), |tuple, field| tuple.with(field, drawn().field(field)));
    std::iter::repeat_with(mix).take(samples.len()).collect()
}
