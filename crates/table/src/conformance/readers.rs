//! Readers on other threads beside a writer: [`beside_readers`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use super::suite::Suite;
use crate::domain::{Domain, Keys};
use crate::engine::Engine;
use crate::live::Live;
use crate::lookup::Lookup;

/// Applies rounds of updates while two threads read. What each reads of the keys in one state has to be whole
/// (`is_whole` of the results of all), and single lookups in that state have to say the same. A round gives
/// the least number of changes, and its updates.
pub fn beside_readers<D: Domain, S: Suite<D>, E: Engine<D>>(
    live: &mut Live<D, E>,
    keys: &S::Batch,
    is_whole: impl Fn(&[D::Result]) -> bool + Sync,
    rounds: impl IntoIterator<Item = (usize, Vec<D::Update>)>,
) {
    let stop = AtomicBool::new(false);
    let passes = [const { AtomicU64::new(0) }; 2];
    std::thread::scope(|scope| {
        let readers = passes.each_ref().map(|passes| {
            let reader = live.reader();
            let (stop, is_whole) = (&stop, &is_whole);
            scope.spawn(move || {
                let keys = S::keys(keys);
                let mut results = vec![D::Result::default(); keys.len()];
                while !stop.load(Ordering::Relaxed) {
                    let table = reader.enter();
                    table.lookup_batch(keys, &mut results);
                    assert!(is_whole(&results), "mixed: {results:?}");
                    for (at, result) in results.iter().enumerate() {
                        let alone = S::result(table.lookup(S::key(keys, at)));
                        assert!(alone == *result, "the state changed under a reader");
                    }
                    drop(table);
                    passes.fetch_add(1, Ordering::Relaxed);
                    // The writer is to have its share of two cores, too.
                    std::thread::yield_now();
                }
            })
        });
        let mut rebuilt = 0;
        for (round, (least, updates)) in rounds.into_iter().enumerate() {
            let applied = live.apply(&updates).expect("the table takes the update");
            assert!(applied.changes >= least, "{} changes, and {least} at least are right", applied.changes);
            rebuilt += u64::from(applied.rebuilt);
            if readers.iter().any(ScopedJoinHandle::is_finished) {
                // It panicked, and no more is to be seen.
                break;
            }
            if round % 16 == 0 {
                wait_for(&passes);
            }
        }
        assert_eq!(rebuilt, live.rebuilds());
        // A reader on a busy machine may not have begun; one that panicked never does.
        let is_to_begin = |(reader, passes): (&ScopedJoinHandle<'_, ()>, &AtomicU64)| {
            !reader.is_finished() && passes.load(Ordering::Relaxed) == 0
        };
        while readers.iter().zip(&passes).any(is_to_begin) {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(passes.iter().all(|passes| passes.load(Ordering::Relaxed) > 0), "a reader never read");
}

/// Lets every reader have a pass, so that the writer isn't done before they begin; not for long, as one may
/// panic meanwhile.
fn wait_for(passes: &[AtomicU64; 2]) {
    let before = passes.each_ref().map(|passes| passes.load(Ordering::Relaxed));
    let end = Instant::now() + Duration::from_millis(100);
    let is_behind =
        || passes.iter().zip(before).any(|(passes, before)| passes.load(Ordering::Relaxed) == before);
    while is_behind() && Instant::now() < end {
        std::thread::yield_now();
    }
}
