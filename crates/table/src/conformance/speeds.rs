//! Rates of batches with each vector level, for benches.

use std::hint::black_box;
use std::time::Instant;

use crate::domain::{Domain, Keys};
use crate::lookup::Lookup;
use crate::vector::VectorLevel;

/// Keys of a batch.
const BATCH: usize = 1024;
/// Rounds; each level is timed once in each, in turns.
const ROUNDS: usize = 31;
/// Keys that a level looks up in a round.
const STRETCH: usize = 1 << 18;

/// Prints what columns of [`compare_levels`] are.
pub fn levels_head() {
    println!("{:36} {:>9} {:>9} {:>9}  by portable (quartiles)", "M lookups/s", "level", "median", "best");
}

/// Holds a table's answers with each vector level of this CPU against the right ones, and prints the rate of
/// each on one core, and how many times the portable one it is. Levels look up in turns, so that whatever
/// else runs on the machine slows all of them.
pub fn compare_levels<D: Domain>(what: &str, table: &dyn Lookup<D>, keys: D::Keys<'_>, right: &[D::Result]) {
    let levels: Vec<_> = VectorLevel::ALL.into_iter().rev().filter(|level| level.is_here()).collect();
    let mut found = vec![D::Result::default(); keys.len()];
    for level in &levels {
        level.as_fastest(|| table.lookup_batch(keys, &mut found));
        assert!(found == right, "{what}: wrong answers with {level:?}");
    }
    let mut rates = vec![Vec::new(); levels.len()];
    let mut at = 0;
    for round in 0..ROUNDS {
        for turn in 0..levels.len() {
            let turn = (round + turn) % levels.len();
            let start = Instant::now();
            for _ in 0..STRETCH / BATCH {
                let part = at..keys.len().min(at + BATCH);
                let found = &mut found[..part.len()];
                levels[turn].as_fastest(|| table.lookup_batch(keys.part(part.clone()), found));
                black_box(found);
                at = if part.end == keys.len() { 0 } else { part.end };
            }
            rates[turn].push(STRETCH as f64 / start.elapsed().as_secs_f64() / 1e6);
        }
    }
    for (level, of_level) in levels.iter().zip(&rates) {
        let ratios = of_level.iter().zip(&rates[0]).map(|(rate, portable)| rate / portable).collect();
        let ([low, ratio, high], [_, median, _]) = (quartiles(ratios), quartiles(of_level.clone()));
        let best = of_level.iter().copied().fold(0.0, f64::max);
        let level = format!("{level:?}");
        println!("{what:36} {level:>9} {median:9.1} {best:9.1}  {ratio:.2} ({low:.2} to {high:.2})");
    }
}

/// The quartiles of some numbers, the median in the middle.
fn quartiles(mut numbers: Vec<f64>) -> [f64; 3] {
    numbers.sort_unstable_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| numbers[(numbers.len() - 1) * quarter / 4])
}
