//! [`Labels`]: the values that next-hop and action indexes stand for, in the user's own type.
//!
//! Values are only added, and never move or change, so an index can be resolved at any time and on any
//! thread:
//!
//! ```text
//! writer   intern(value) ──► value in place ──► index ──► table.insert(prefix, index) ──► published
//! reader                                                   lookup ──► index ──► get ──► the value
//! ```
//!
//! A table is published after its indexes were given out, so a reader that sees an index also sees its value.
//! Resolving takes no lock: values lie in buckets that double in size, so no value ever moves.
//!
//! ```text
//! bucket 0   1
//! bucket 1   2 3
//! bucket 2   4 5 6 7            index 2^b + i is element i of bucket b
//! …
//! ```

use std::fmt::{self, Display};
use std::hash::{BuildHasher, Hash, RandomState};
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hashbrown::HashTable;
use wirespeed_fib::{NextHop, NextHops, TooManyNextHops};

use crate::error::Error;
use crate::image_file::each_label;

/// The values that prefixes lead to, by [`NextHop`] index: a route, a name, an AS number or any other value
/// that describes an address. Equal values share an index. Indexes start at 1, in the order in which values
/// first appear.
///
/// Clones share the values. Resolving an index takes two dependent reads and no lock. Interning takes a lock
/// against other writers.
///
/// A value stays as long as any clone exists, even after its last route is gone, so an index always means the
/// same. A service with unlimited distinct values (times, counters) should keep these elsewhere, and use a
/// key to them as the label.
///
/// ```
/// use wirespeed::{Labels, NextHop};
///
/// let labels = Labels::new();
/// let transit = labels.intern("transit")?;
/// assert_eq!((transit, labels.intern("transit")?), (NextHop(1), NextHop(1)));
/// assert_eq!(labels.get(transit), Some(&"transit"));
/// assert_eq!(labels.get(NextHop::NONE), None);
/// # Ok::<(), wirespeed::Error>(())
/// ```
pub struct Labels<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    buckets: [OnceLock<Box<[OnceLock<T>]>>; BUCKETS],
    hasher: RandomState,
    index: Mutex<Index>,
}

/// Finds the index of a value. Holds no values: comparisons read them in the buckets.
#[derive(Default)]
struct Index {
    known: HashTable<NextHop>,
    /// The largest index given out.
    last: u32,
}

/// The number of buckets: one for each number of bits of an index.
const BUCKETS: usize = u32::BITS as usize;

impl<T> Labels<T> {
    /// Makes an empty set of values.
    pub fn new() -> Self {
        let shared = Shared {
            buckets: [const { OnceLock::new() }; BUCKETS],
            hasher: RandomState::new(),
            index: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The value of an index. `None` for [`NextHop::NONE`] and for an index that was never given out.
    /// Wait-free.
    #[inline]
    pub fn get(&self, next_hop: NextHop) -> Option<&T> {
        let (bucket, at) = place(next_hop)?;
        self.shared.buckets[bucket].get()?.get(at)?.get()
    }

    /// The number of indexes that were given out, which is also the largest index.
    pub fn len(&self) -> usize {
        self.index().last as usize
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every index that was given out before the call, with its value, in order of the index.
    pub fn iter(&self) -> impl Iterator<Item = (NextHop, &T)> {
        let last = self.index().last;
        (1..=last).map(NextHop).filter_map(|next_hop| Some((next_hop, self.get(next_hop)?)))
    }

    /// Appends a value, even if an equal value exists. The caller holds the lock.
    fn push(&self, index: &mut Index, value: T) -> Result<NextHop, TooManyNextHops> {
        let next_hop = NextHop(index.last.checked_add(1).ok_or(TooManyNextHops)?);
        if let Some((bucket, at)) = place(next_hop) {
            let bucket = self.shared.buckets[bucket].get_or_init(|| {
                let mut empty = Vec::new();
                empty.resize_with(1 << bucket, OnceLock::new);
                empty.into()
            });
            // The element is empty: it is past the last index, and only the holder of the lock fills it.
            let _ = bucket[at].set(value);
        }
        index.last = next_hop.0;
        Ok(next_hop)
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        // After a panic in the user's Hash or Eq a value may not be found again; nothing worse can happen.
        self.shared.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Eq + Hash> Labels<T> {
    /// The index of a value. A new value gets a new index. O(1), amortised; adding a value waits for no
    /// reader.
    pub fn intern(&self, value: T) -> Result<NextHop, TooManyNextHops> {
        let mut index = self.index();
        let hash = self.shared.hasher.hash_one(&value);
        if let Some(&known) = index.known.find(hash, |&known| self.get(known) == Some(&value)) {
            return Ok(known);
        }
        let new = self.push(&mut index, value)?;
        self.make_known(&mut index, hash, new);
        Ok(new)
    }

    /// The index of a value. `None` if the value was never interned.
    pub fn find(&self, value: &T) -> Option<NextHop> {
        let hash = self.shared.hasher.hash_one(value);
        self.index().known.find(hash, |&known| self.get(known) == Some(value)).copied()
    }

    /// Appends a value at the next index, even if the value has an index: for indexes that were given out
    /// elsewhere.
    pub(crate) fn append(&self, value: T) -> Result<NextHop, TooManyNextHops> {
        let mut index = self.index();
        let hash = self.shared.hasher.hash_one(&value);
        let is_known = index.known.find(hash, |&known| self.get(known) == Some(&value)).is_some();
        let new = self.push(&mut index, value)?;
        if !is_known {
            self.make_known(&mut index, hash, new);
        }
        Ok(new)
    }

    fn make_known(&self, index: &mut Index, hash: u64, next_hop: NextHop) {
        let hash_of =
            |&known: &NextHop| self.get(known).map_or(0, |value| self.shared.hasher.hash_one(value));
        index.known.insert_unique(hash, next_hop, hash_of);
    }
}

impl<T: Display> Labels<T> {
    /// Converts the values to texts with the same indexes.
    pub(crate) fn to_texts(&self) -> Result<NextHops, Error> {
        let mut texts = NextHops::new();
        for (next_hop, value) in self.iter() {
            let text = value.to_string();
            if texts.intern(&text)? != next_hop {
                return Err(Error::LabelsAlike { text });
            }
        }
        Ok(texts)
    }
}

impl<T: FromStr<Err: ToString> + Eq + Hash> Labels<T> {
    /// Opens the labels that were saved with a table, by
    /// [`Table::save_labelled`](crate::Table::save_labelled),
    /// [`NameTable::save_labelled`](crate::NameTable::save_labelled),
    /// [`Classifier::save_labelled`](crate::Classifier::save_labelled) or `lookupctl build`. The result is
    /// empty if the file has no labels. If two tables share labels, open the labels of the table that was
    /// saved last: they contain the other table's labels, too.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let labels = Self::new();
        each_label(path.as_ref(), |text| Ok(labels.append(parse(text)?).map(drop)?))?;
        Ok(labels)
    }
}

impl<T> Clone for Labels<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Default for Labels<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Labels<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// The bucket of an index, and the position in it. `None` for [`NextHop::NONE`].
#[inline]
fn place(next_hop: NextHop) -> Option<(usize, usize)> {
    let bucket = next_hop.0.checked_ilog2()?;
    Some((bucket as usize, (next_hop.0 ^ (1 << bucket)) as usize))
}

/// Parses a label.
pub(crate) fn parse<T: FromStr<Err: ToString>>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|error: T::Err| Error::Label { text: text.to_owned(), reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn places_fill_each_bucket_in_order() {
        let places: Vec<_> = (0..9).map(|n| place(NextHop(n))).collect();
        let full = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (2, 3), (3, 0)];
        assert_eq!(places[0], None);
        assert_eq!(places[1..], full.map(Some));
        assert_eq!(place(NextHop(u32::MAX)), Some((31, (1 << 31) - 1)));
    }

    #[test]
    fn equal_values_share_an_index_through_all_growth() {
        let labels = Labels::new();
        for round in 0..2 {
            for i in 0..5000u32 {
                assert_eq!(labels.intern(format!("{i}")), Ok(NextHop(i + 1)), "round {round}");
            }
        }
        assert_eq!(labels.len(), 5000);
        assert!(
            labels.iter().zip(0..5000u32).all(|((n, text), i)| n == NextHop(i + 1) && *text == i.to_string())
        );
        assert_eq!(labels.find(&"77".to_owned()), Some(NextHop(78)));
        assert_eq!(labels.find(&"x".to_owned()), None);
        assert_eq!((labels.get(NextHop(5001)), labels.get(NextHop(u32::MAX))), (None, None));
    }

    #[test]
    fn appended_values_keep_their_places_and_the_first_is_found() {
        let labels = Labels::new();
        for value in [7, 8, 7] {
            labels.append(value).unwrap();
        }
        assert_eq!(labels.iter().map(|(_, &value)| value).collect::<Vec<_>>(), [7, 8, 7]);
        assert_eq!((labels.intern(7), labels.intern(9)), (Ok(NextHop(1)), Ok(NextHop(4))));
    }

    #[test]
    fn an_index_that_was_published_resolves_on_every_thread() {
        let labels = Labels::new();
        let published = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let (labels, published) = (labels.clone(), &published);
                scope.spawn(move || {
                    loop {
                        let last = published.load(Ordering::Acquire);
                        for index in
                            [last, last / 2, last / 3 + 1].into_iter().filter(|&n| (1..=last).contains(&n))
                        {
                            assert_eq!(labels.get(NextHop(index)), Some(&(u64::from(index) * 3)));
                        }
                        if last == 100_000 {
                            break;
                        }
                    }
                });
            }
            for index in 1..=100_000u64 {
                published.store(labels.intern(index * 3).unwrap().0, Ordering::Release);
            }
        });
    }
}
