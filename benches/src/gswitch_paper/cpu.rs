//! Rates of CPUs by cores: each core looks up batches of its own, as cores with a queue each do.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use wirespeed_classify::{Lookup, Tuple};

use super::float;

/// Tuples that cores look up, and the numbers that are right.
pub type Known<'a, T> = (&'a [T], &'a [u32]);

/// Tuples a second of so many cores with batches of so many tuples, for about so many seconds, one batch at
/// least; numbers are held against the right ones before.
pub fn rate<T: Tuple>(
    table: &dyn Lookup<T>,
    (tuples, right): Known<'_, T>,
    batch: usize,
    cores: usize,
    seconds: f64,
) -> Result<f64> {
    let mut found = vec![u32::MAX; tuples.len()];
    table.par_lookup_batch(tuples, &mut found);
    ensure!(found == right, "numbers of the CPU differ");
    let (batch, time) = (batch.min(tuples.len()).max(1), Duration::from_secs_f64(seconds));
    let start = Barrier::new(cores);
    let one = |core: usize| {
        let mut numbers = vec![0; batch];
        // Each core begins elsewhere.
        let whole = tuples.len() / batch;
        let mut at = core * whole / cores;
        start.wait();
        let (began, mut done) = (Instant::now(), 0);
        loop {
            table.lookup_batch(&tuples[at * batch..][..batch], &mut numbers);
            black_box(&numbers);
            done += batch;
            at = (at + 1) % whole;
            let elapsed = began.elapsed();
            if elapsed >= time {
                return float(done) / elapsed.as_secs_f64();
            }
        }
    };
    let rates: Option<Vec<f64>> = std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = (0..cores).map(|core| scope.spawn(move || one(core))).collect();
        threads.into_iter().map(|thread| thread.join().ok()).collect()
    });
    let rates = rates.ok_or_else(|| anyhow::anyhow!("a core ended early"))?;
    Ok(rates.iter().sum())
}
