//! Lookups of columns: in blocks, on one thread or several.

use std::iter;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::column::Column;
use crate::failure::Failure;

/// Keys of a block: enough for a fast batch, few enough for the caches.
pub(crate) const BLOCK: usize = 1024;

/// The least number of keys that a thread is started for.
const LEAST_PART: usize = 4 * BLOCK;

/// The most threads of a call.
const MOST_THREADS: usize = 1024;

/// A part of a batch: some keys of a column, and the places of their results.
pub(crate) struct Part<'a, T> {
    pub(crate) column: &'a dyn Column<T>,
    /// The first key in the column.
    pub(crate) from: usize,
    /// The first key in the batch.
    pub(crate) place: usize,
    pub(crate) numbers: &'a mut [u32],
    /// Other results, one for each key, or none.
    pub(crate) beside: &'a mut [u32],
}

/// The number of threads of an argument `threads`: 0 stands for all cores.
pub(crate) fn threads(wanted: usize) -> Result<usize, Failure> {
    match wanted {
        0 => Ok(thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS)),
        wanted if wanted <= MOST_THREADS => Ok(wanted),
        wanted => Err(Failure::input(format!("threads is {wanted}, at most {MOST_THREADS} are started"))),
    }
}

/// Looks up all keys of some columns. Returns a number for each, and as many other results if they are asked
/// for, in order. `worker` is called on each thread, and makes what looks a part up there.
pub(crate) fn look_up<'w, T: 'w, W>(
    columns: &[Box<dyn Column<T> + '_>],
    threads: usize,
    has_beside: bool,
    worker: impl Fn() -> W + Sync,
) -> Result<(Vec<u32>, Vec<u32>), Failure>
where
    W: FnMut(Part<'_, T>) -> Result<(), (usize, String)> + 'w,
{
    let len: usize = columns.iter().map(|column| column.len()).sum();
    let mut numbers = vec![0; len];
    let mut beside = vec![0; if has_beside { len } else { 0 }];
    let part = len.div_ceil(threads).max(LEAST_PART);
    let parts = parts(columns, part, (&mut numbers, &mut beside));
    let threads = threads.min(parts.len());
    let waiting = Mutex::new(parts.into_iter());
    let work = || -> Result<(), (usize, String)> {
        let mut look_up = worker();
        iter::from_fn(|| waiting.lock().unwrap_or_else(PoisonError::into_inner).next())
            .try_for_each(&mut look_up)
    };
    let wrong = if threads <= 1 {
        work().err()
    } else {
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let done = workers.into_iter().map(thread::ScopedJoinHandle::join);
            let done = done.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            // The first in the batch, whichever thread found it first.
            done.filter_map(Result::err).min()
        })
    };
    match wrong {
        None => Ok((numbers, beside)),
        Some((at, why)) => Err(Failure::Input(why).at(at)),
    }
}

/// Cuts columns into parts of so many keys at most.
fn parts<'a, T>(
    columns: &'a [Box<dyn Column<T> + '_>],
    part: usize,
    (mut numbers, mut beside): (&'a mut [u32], &'a mut [u32]),
) -> Vec<Part<'a, T>> {
    let mut parts = Vec::new();
    let mut place = 0;
    for column in columns {
        let mut from = 0;
        while from < column.len() {
            let len = part.min(column.len() - from);
            let of_beside = len.min(beside.len());
            parts.push(Part {
                column: &**column,
                from,
                place,
                numbers: first(&mut numbers, len),
                beside: first(&mut beside, of_beside),
            });
            from += len;
            place += len;
        }
    }
    parts
}

/// Takes the first elements of a slice away.
fn first<'a>(slice: &mut &'a mut [u32], len: usize) -> &'a mut [u32] {
    let (first, rest) = std::mem::take(slice).split_at_mut(len);
    *slice = rest;
    first
}

impl<T: Copy> Part<'_, T> {
    /// Reads the keys a block at a time, and looks those up that are not null. `look_up` gets the keys and
    /// the places for their results. A null has the results 0.
    pub(crate) fn each_block(
        self,
        empty: T,
        mut look_up: impl FnMut(&[T], &mut [u32], &mut [u32]),
    ) -> Result<(), (usize, String)> {
        let Self { column, mut from, place, numbers, beside } = self;
        let (first, has_beside) = (from, !beside.is_empty());
        let (mut read, mut keys) = (vec![None; BLOCK], vec![empty; BLOCK]);
        let mut none = [0; 0];
        let mut of_beside = beside.chunks_mut(BLOCK);
        for numbers in numbers.chunks_mut(BLOCK) {
            let beside = if has_beside { of_beside.next().unwrap_or(&mut none) } else { &mut none };
            let (read, keys) = (&mut read[..numbers.len()], &mut keys[..numbers.len()]);
            column.read(from, read).map_err(|(at, why)| (place + at - first, why))?;
            let mut has_null = false;
            for (key, read) in keys.iter_mut().zip(&*read) {
                *key = read.unwrap_or(empty);
                has_null |= read.is_none();
            }
            look_up(keys, numbers, beside);
            if has_null {
                for (at, _) in read.iter().enumerate().filter(|(_, key)| key.is_none()) {
                    numbers[at] = 0;
                    if let Some(beside) = beside.get_mut(at) {
                        *beside = 0;
                    }
                }
            }
            from += numbers.len();
        }
        Ok(())
    }
}
