//! The runs of chunks that are worth a place in shared memory: [`Block`]s are made of these when a table is
//! built.
//!
//! What a run is worth is the share of keys that it answers, of the traffic that a table is likely to see:
//! 0.8 × keys drawn by prefix, each prefix as often as any other and any address of it as often, and 0.2 ×
//! keys drawn from the whole space. Of a chunk with more runs than a block has, a dynamic program over its
//! runs picks those that are worth most; between them lie stretches without a value, which take a run of the
//! block too. The chunks whose blocks are worth most get one.

use wirespeed_fib::{Rib, V4};

use super::block::{Block, RUNS};
use super::layout::{SHORT, mark};

/// Share of the keys that are drawn by prefix.
const BY_PREFIX: f32 = 0.8;

/// What keys ask for: a weight for each element of each chunk, as differences to the element before.
#[derive(Clone, Debug)]
pub(super) struct Demand(Vec<[f32; SHORT]>);

impl Demand {
    /// What is asked of so many chunks; `chunk_of` is the one of a slot, if it has one.
    pub(super) fn of(rib: &Rib<V4>, chunks: usize, chunk_of: impl Fn(u32) -> Option<usize>) -> Self {
        let mut demand = vec![[0.0; SHORT]; chunks];
        // Prefixes of whole slots, as differences to the slot before.
        let mut of_slots = vec![0.0f64; (1 << 16) + 1];
        let of_prefix = f64::from(BY_PREFIX) / f64::from(u32::try_from(rib.len()).unwrap_or(u32::MAX).max(1));
        for (prefix, _) in rib.iter() {
            let elements = 1u32 << 24u8.saturating_sub(prefix.len());
            let of_element = of_prefix / f64::from(elements);
            let (from, slot) = (prefix.address().0 >> 8, prefix.address().0 >> 16);
            if prefix.len() <= 16 {
                of_slots[slot as usize] += of_element;
                of_slots[slot as usize + elements as usize / SHORT] -= of_element;
            } else if let Some(chunk) = chunk_of(slot) {
                add(&mut demand[chunk], from as usize % SHORT, elements as usize, narrow(of_element));
            }
        }
        let of_space = f64::from(1.0 - BY_PREFIX) / f64::from(1 << 24);
        let mut of_element = of_space;
        for (slot, difference) in (0..1 << 16).zip(of_slots) {
            of_element += difference;
            if let Some(chunk) = chunk_of(slot) {
                add(&mut demand[chunk], 0, SHORT, narrow(of_element));
            }
        }
        Self(demand)
    }

    /// The block of a chunk that answers most keys, and how many it answers: a share of all.
    pub(super) fn block(&self, chunk: usize, elements: &[u8]) -> (Block, f32) {
        let runs = runs(elements, &self.0[chunk]);
        let (worth, chosen) = cover(&runs);
        let mut boundaries = Vec::with_capacity(RUNS);
        for at in 1..runs.len() {
            // One stretch without a value may be of many runs.
            if chosen[at] || chosen[at - 1] {
                boundaries.push(runs[at].from);
            }
        }
        (Block::new(&boundaries, elements), worth)
    }
}

#[allow(clippy::cast_possible_truncation)] // a weight
fn narrow(weight: f64) -> f32 {
    weight as f32
}

/// Adds to so many elements.
fn add(differences: &mut [f32; SHORT], from: usize, elements: usize, weight: f32) {
    differences[from] += weight;
    if let Some(after) = differences.get_mut(from + elements) {
        *after -= weight;
    }
}

/// A run of equal elements.
#[derive(Clone, Copy, Debug)]
struct Run {
    from: u8,
    /// What it is worth to answer for.
    worth: f32,
}

/// The runs of a chunk.
fn runs(elements: &[u8], differences: &[f32; SHORT]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::with_capacity(16);
    let mut weight = 0.0;
    let mut before = None;
    for (from, (&element, difference)) in (0..=u8::MAX).zip(elements.iter().zip(differences)) {
        weight += difference;
        if before.replace(element) != Some(element) {
            runs.push(Run { from, worth: 0.0 });
        }
        // What leads on to longer prefixes is not answered.
        if u32::from(element) != mark(1)
            && let Some(run) = runs.last_mut()
        {
            run.worth += weight.max(0.0);
        }
    }
    runs
}

/// Where the last run is chosen, or part of a stretch without a value.
const STRETCH: usize = 0;
const CHOSEN: usize = 1;

/// The runs to choose so that they, and the stretches between them, are [`RUNS`] at most and worth most; what
/// they are worth.
fn cover(runs: &[Run]) -> (f32, Vec<bool>) {
    if runs.len() <= RUNS {
        return (runs.iter().map(|run| run.worth).sum(), vec![true; runs.len()]);
    }
    // best[n][state]: of the runs so far, in n runs of the block; and for each run how the best came to be.
    let none = [f32::NEG_INFINITY; 2];
    let mut best = [none; RUNS + 1];
    best[1] = [0.0, runs[0].worth];
    let mut came_from = vec![[[STRETCH; 2]; RUNS + 1]; runs.len()];
    for (run, came_from) in runs.iter().zip(&mut came_from).skip(1) {
        let mut next = [none; RUNS + 1];
        for n in 1..=RUNS {
            let before = best[n - 1];
            // A stretch goes on, or begins after a chosen run.
            let goes_on = best[n][STRETCH] >= before[CHOSEN];
            (next[n][STRETCH], came_from[n][STRETCH]) =
                if goes_on { (best[n][STRETCH], STRETCH) } else { (before[CHOSEN], CHOSEN) };
            let from = if before[STRETCH] >= before[CHOSEN] { STRETCH } else { CHOSEN };
            (next[n][CHOSEN], came_from[n][CHOSEN]) = (before[from] + run.worth, from);
        }
        best = next;
    }
    let ends = (1..=RUNS).flat_map(|n| [(n, STRETCH), (n, CHOSEN)]);
    let (mut n, mut state) = ends
        .max_by(|&(n, state), &(m, other)| best[n][state].total_cmp(&best[m][other]))
        .expect("there are runs of a block");
    let worth = best[n][state];
    let mut chosen = vec![false; runs.len()];
    for (chosen, came_from) in chosen.iter_mut().zip(&came_from).rev() {
        *chosen = state == CHOSEN;
        let from = came_from[n][state];
        // Only a stretch that goes on takes no further run.
        n -= usize::from(state == CHOSEN || from == CHOSEN);
        state = from;
    }
    (worth, chosen)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs of a block that a choice takes.
    fn taken(chosen: &[bool]) -> usize {
        let begins = |at: usize| chosen[at] || at == 0 || chosen[at - 1];
        (0..chosen.len()).filter(|&at| begins(at)).count()
    }

    proptest! {
        /// No other choice that fits is worth more, and the one made is worth what is said.
        #[test]
        fn the_best_choice(worths in proptest::collection::vec(0..20u8, 1..12)) {
            let runs: Vec<Run> =
                (0..).zip(&worths).map(|(from, &worth)| Run { from, worth: worth.into() }).collect();
            let (worth, chosen) = cover(&runs);
            let of = |chosen: &[bool]| -> f32 {
                runs.iter().zip(chosen).filter(|it| *it.1).map(|it| it.0.worth).sum()
            };
            prop_assert!(taken(&chosen) <= RUNS, "{:?}", chosen);
            prop_assert!((of(&chosen) - worth).abs() < 1e-3);
            for choice in 0..1u32 << runs.len() {
                let other: Vec<bool> = (0..runs.len()).map(|at| choice >> at & 1 == 1).collect();
                if taken(&other) <= RUNS {
                    prop_assert!(of(&other) <= worth, "{:?} is better than {:?}", other, chosen);
                }
            }
        }
    }
}
