//! [`in_order`]: work on threads whose results come in order.

use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, anyhow};

/// The pieces that nobody works on yet, and what becomes of the next one.
struct Left<T> {
    pieces: Range<usize>,
    results: SyncSender<Receiver<Result<T>>>,
}

/// Works on pieces by threads, and gives `take` the result of each, in order. `begin` is called before the
/// work on each piece, in order, too, and the work gets what it returns. Fails with the first error in order.
/// At most one result more than there are threads is in the making or waits for `take`.
pub(crate) fn in_order<B, T: Send>(
    pieces: usize,
    threads: usize,
    begin: impl Fn() -> B + Sync,
    work: impl Fn(usize, B) -> Result<T> + Sync,
    mut take: impl FnMut(usize, T) -> Result<()>,
) -> Result<()> {
    let (results, taken) = sync_channel(threads);
    let left = Mutex::new(Left { pieces: 0..pieces, results });
    std::thread::scope(|scope| {
        for _ in 0..threads.min(pieces) {
            scope.spawn(|| {
                while let Some((piece, begun, result)) = claim(&left, &begin) {
                    // After an error nobody takes it.
                    let _ = result.send(work(piece, begun));
                }
            });
        }
        // When this ends early, no more pieces are claimed.
        let taken = taken;
        for piece in 0..pieces {
            let ended = |_| anyhow!("a thread ended early");
            take(piece, taken.recv().map_err(ended)?.recv().map_err(ended)??)?;
        }
        Ok(())
    })
}

/// Claims the next piece, and the place of its result. Waits while too many results wait. `None` if there is
/// no piece left, or if nobody takes results any more.
fn claim<B, T>(left: &Mutex<Left<T>>, begin: impl Fn() -> B) -> Option<(usize, B, SyncSender<Result<T>>)> {
    let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
    let piece = left.pieces.next()?;
    let (result, slot) = sync_channel(1);
    left.results.send(slot).ok()?;
    Some((piece, begin(), result))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use anyhow::ensure;

    use super::*;

    #[test]
    fn results_come_in_order_and_few_wait() {
        for (pieces, threads) in [(0, 3), (1, 3), (200, 1), (200, 4)] {
            let (begun, mut taken) = (AtomicUsize::new(0), 0);
            let begin = || begun.fetch_add(1, Ordering::SeqCst);
            let work = |piece: usize, nth: usize| {
                assert_eq!(piece, nth);
                std::thread::sleep(Duration::from_micros((piece as u64 * 7) % 5 * 100));
                Ok(piece * 2)
            };
            in_order(pieces, threads, begin, work, |piece, result| {
                assert_eq!((piece, result), (taken, 2 * piece));
                let waiting = begun.load(Ordering::SeqCst) - taken;
                assert!(waiting <= threads + 1, "{waiting} of {threads} threads");
                taken += 1;
                std::thread::sleep(Duration::from_micros(200));
                Ok(())
            })
            .unwrap();
            assert_eq!(taken, pieces);
        }
    }

    #[test]
    fn the_first_error_in_order_ends_the_work() {
        let begun = AtomicUsize::new(0);
        let work = |piece: usize, ()| {
            begun.fetch_add(1, Ordering::SeqCst);
            // The later piece fails first.
            std::thread::sleep(Duration::from_millis(if piece == 7 { 50 } else { 0 }));
            ensure!(![7, 8].contains(&piece), "piece {piece}");
            Ok(())
        };
        let mut taken = 0;
        let ended = in_order(
            1000,
            3,
            || (),
            work,
            |_, ()| {
                taken += 1;
                Ok(())
            },
        );
        assert_eq!((ended.unwrap_err().to_string(), taken), ("piece 7".to_owned(), 7));
        assert!(begun.load(Ordering::SeqCst) < 20);
        let ended = in_order(1000, 3, || (), |_, ()| Ok(()), |piece, ()| Err(anyhow!("taker {piece}")));
        assert_eq!(ended.unwrap_err().to_string(), "taker 0");
    }
}
