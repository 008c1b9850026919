//! Work on many things at once, on all processors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, anyhow};

/// `work` on every item; results in the order of the items. Of several errors, that of the first item.
pub(super) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return done };
            done.push((index, work(item)));
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let mut done = Vec::new();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            done.extend(worker.join().map_err(|_| anyhow!("a thread panicked"))?);
        }
        Ok::<_, anyhow::Error>(())
    })?;
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use anyhow::ensure;

    use super::*;

    #[test]
    fn results_are_in_order_and_the_first_error_wins() {
        let items: Vec<u32> = (0..1000).collect();
        assert_eq!(map(&items, |item| Ok(item * 2)).unwrap(), (0..2000).step_by(2).collect::<Vec<_>>());
        let error = map(&items, |item| {
            ensure!(item % 100 != 7, "{item}");
            Ok(())
        });
        assert_eq!(error.unwrap_err().to_string(), "7");
        assert!(map(&[], |(): &()| Ok(())).unwrap().is_empty());
    }
}
