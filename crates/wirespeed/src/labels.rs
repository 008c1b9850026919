//! [`Labels`]: the values that next-hop and action indexes stand for, in the user's own type.
//!
//! An index is given out before a table with it is published, so a reader that sees an index also sees its
//! value. Resolving takes no lock: see [`slots`].
//!
//! ```text
//! writer   intern(value) ──► value in place ──► index ──► table.insert(prefix, index) ──► published
//! reader             enter ──► lookup ──► index ──► get ──► the value
//! ```
//!
//! A label of an attached table ends with the last route that uses it, as [`LabelCounts`] tells. The next
//! call that adds or counts labels retires it; later calls go on as marks pass:
//!
//! ```text
//! Live ──► Retired: not found by value ──► a mark passes ──► Free: no value, the index may be given again
//!                                                            └─► a mark passes ──► the value is dropped
//! ```

#[cfg(feature = "serde")]
mod json;
mod known;
pub(crate) mod saved;
mod slots;

use std::collections::{BTreeSet, VecDeque};
use std::fmt::{self, Display};
use std::hash::{BuildHasher, Hash};
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, PoisonError};

use wirespeed_fib::{NextHop, TooManyNextHops};

use crate::error::Error;
use crate::image_file::each_label;
use crate::sync::{Mutex, MutexGuard, Seeds};
use crate::uses::{Claims, LabelCounts};
use known::Known;
use saved::SavedLabels;
pub use slots::LabelRef;
use slots::{Mark, Pin, Slots};

/// The values that prefixes lead to, by [`NextHop`] index: a route, a name, an AS number or any other value
/// that describes an address. Equal values share an index. Indexes start at 1, in the order in which values
/// first appear.
///
/// Clones share the values. Resolving an index takes two dependent reads and no lock. Interning takes a lock
/// against other writers.
///
/// ```
/// use wirespeed::{Labels, NextHop};
///
/// let labels = Labels::new();
/// let transit = labels.intern("transit")?;
/// assert_eq!((transit, labels.intern("transit")?), (NextHop(1), NextHop(1)));
/// assert_eq!(labels.get(transit).as_deref(), Some(&"transit"));
/// assert!(labels.get(NextHop::NONE).is_none());
/// # Ok::<(), wirespeed::Error>(())
/// ```
///
/// # Labels that end
///
/// Labels stay for ever if no table is attached to them. A table is attached by the methods of its builder
/// that take labels, by the builder's `labels`, and by the table's `attach_labels`. Attached tables count
/// their routes. A label ends when no route uses it any more: its value is dropped, and its index is given to
/// another value. So labels that change with each update take no more memory than those in use.
///
/// Two rules hold for labels that end:
///
/// - **Readers: enter the labels, then look up, then resolve.** A guard resolves each index of a lookup that
///   began after [`enter`](Self::enter), even if the routes end meanwhile.
/// - **Writers: intern for each insert.** Each [`intern`](Self::intern) keeps the index until an update of an
///   attached table takes it. An index that is kept elsewhere may end, and then stand for another value. Give
///   up an index that no route takes with [`release`](Self::release).
///
/// All tables whose routes lead to the labels must be attached. The routes of a table count until the table
/// and its last reader are dropped.
///
/// ```
/// use wirespeed::prelude::*;
///
/// let labels = Labels::new();
/// let mut table = Ipv4Table::builder().labels(&labels).build()?;
/// let (net, address) = ("192.0.2.0/24".parse::<Ipv4Net>()?, Ipv4Addr::new(192, 0, 2, 1));
/// let reader = table.reader();
/// for round in 0..1000 {
///     table.insert(net, labels.intern(format!("path {round}"))?)?;
///     let known = labels.enter();
///     let found = reader.lookup(address);
///     assert_eq!(known.get(found), Some(&format!("path {round}")));
/// }
/// assert_eq!(labels.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Labels<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    slots: Slots<T>,
    counts: Arc<LabelCounts>,
    hasher: Seeds,
    index: Mutex<Index>,
}

/// Gives out indexes, and finds them by value.
#[derive(Default)]
struct Index {
    known: Known,
    /// The state of each index that was given out, from 1.
    states: Vec<State>,
    live: usize,
    /// The indexes to give out again, the smallest first: tables stay narrow.
    free: BTreeSet<NextHop>,
    /// The indexes that are retired, in order of their marks.
    retired: VecDeque<(Mark, NextHop)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Found by its value.
    Live,
    /// Resolves for guards that were taken before it ended.
    Retired,
    /// Has no value, and is among the free indexes.
    Free,
    /// Has no value, but a route leads to it: free when that ends.
    Dangling,
}

impl<T> Labels<T> {
    /// Makes an empty set of values.
    #[must_use]
    pub fn new() -> Self {
        let shared = Shared {
            slots: Slots::new(),
            counts: Arc::default(),
            hasher: Seeds::default(),
            index: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Enters the labels, to resolve indexes. Wait-free. A guard that was taken before a lookup resolves each
    /// index that the lookup gives.
    ///
    /// Values that end or are replaced while a guard is held stay in memory until it is dropped: hold a guard
    /// for a few batches only.
    #[inline]
    pub fn enter(&self) -> LabelsGuard<'_, T> {
        LabelsGuard { labels: self, pin: Pin::new() }
    }

    /// The value of an index. `None` for [`NextHop::NONE`] and for an index without a value. Wait-free. Many
    /// indexes resolve faster through one guard: [`enter`](Self::enter).
    #[inline]
    #[must_use]
    pub fn get(&self, next_hop: NextHop) -> Option<LabelRef<'_, T>> {
        self.shared.slots.hold(next_hop)
    }

    /// The number of changes of values so far. While it stays, each index stands for the value that it did,
    /// so that copies of values are right. A reader that looks up, and then asks for this number, sees the
    /// changes that were made before the table that it found the index in was published.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.shared.slots.changes()
    }

    /// The number of labels: the indexes that stand for a value, without those that ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.with_index(|index| index.live)
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives up an index that [`intern`](Self::intern) returned and that no route takes. The label ends if no
    /// route uses it and nobody else interned it.
    pub fn release(&self, next_hop: NextHop) {
        self.shared.counts.release(next_hop);
        self.with_index(|_| ());
    }

    /// Drops the values of labels that ended or were replaced, as far as no guard can see them. Each call
    /// that adds or counts labels does a part of this. A service calls it if it changes tables but rarely
    /// labels.
    pub fn reclaim(&self) {
        /// A value that nobody sees passes two marks, and a mark passes within three steps.
        const STEPS: usize = 8;
        for _ in 0..STEPS {
            self.with_index(|_| ());
        }
    }

    /// What counts the uses of the labels.
    pub(crate) fn counts(&self) -> &Arc<LabelCounts> {
        &self.shared.counts
    }

    /// Calls `use_it` with the index, without the labels that ended. Drops what nobody sees any more.
    fn with_index<R>(&self, use_it: impl FnOnce(&mut Index) -> R) -> R {
        let mut index = self.index();
        let unseen = self.settle(&mut index);
        let result = use_it(&mut index);
        drop(index);
        // After the lock: dropping a value runs the user's code.
        drop(unseen);
        result
    }

    /// Retires the labels that ended, frees those that no reader needs any more, and takes the values that no
    /// reader can see. The caller holds the lock, and drops the values after it.
    #[inline(never)] // one copy for all crates
    fn settle(&self, index: &mut Index) -> Vec<Box<T>> {
        let Shared { slots, counts, .. } = &*self.shared;
        for next_hop in counts.take_ended() {
            let Some(state) = index.state(next_hop) else { continue };
            match *state {
                State::Live => {
                    *state = State::Retired;
                    index.live -= 1;
                    index.known.remove(next_hop);
                    index.retired.push_back((slots.mark(), next_hop));
                }
                State::Dangling => {
                    *state = State::Free;
                    index.free.insert(next_hop);
                }
                State::Retired | State::Free => {}
            }
        }
        let unseen = slots.reclaim();
        while let Some(&(mark, next_hop)) = index.retired.front()
            && slots.has_passed(mark)
        {
            index.retired.pop_front();
            slots.put(next_hop, None);
            index.set(next_hop, State::Free);
            index.free.insert(next_hop);
        }
        unseen
    }

    /// A free index: one that ended, or a new one. The caller holds the lock.
    fn vacant(&self, index: &mut Index) -> Result<NextHop, TooManyNextHops> {
        while let Some(free) = index.free.pop_first() {
            if !self.shared.counts.is_used(free) {
                return Ok(free);
            }
            // Somebody uses an index that ended. It must not get another value under its routes.
            index.set(free, State::Dangling);
        }
        index.next()
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        // After a panic in the user's Hash or Eq a value may not be found again; nothing worse can happen.
        self.shared.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    /// The state of an index that was given out.
    fn state(&mut self, next_hop: NextHop) -> Option<&mut State> {
        self.states.get_mut((next_hop.0 as usize).checked_sub(1)?)
    }

    fn set(&mut self, next_hop: NextHop, new: State) {
        if let Some(state) = self.state(next_hop) {
            *state = new;
        }
    }

    /// An index that was never given out. It has no value yet.
    fn next(&mut self) -> Result<NextHop, TooManyNextHops> {
        let next = u32::try_from(self.states.len() + 1).map_err(|_| TooManyNextHops)?;
        self.states.push(State::Dangling);
        Ok(NextHop(next))
    }

    fn live(&self) -> impl Iterator<Item = NextHop> {
        let states = (1..).map(NextHop).zip(&self.states);
        states.filter(|(_, state)| **state == State::Live).map(|(next_hop, _)| next_hop)
    }
}

impl<T: Eq + Hash> Labels<T> {
    /// The index of a value. A new value gets a new index, or that of a label that ended. O(1), amortised;
    /// adding a value waits for no reader.
    ///
    /// The index is kept until an attached table inserts a route that leads to it. Intern the value again for
    /// each further insert; see [labels that end](Self#labels-that-end).
    #[inline(never)] // one copy for all crates
    pub fn intern(&self, value: T) -> Result<NextHop, TooManyNextHops> {
        let hash = self.hash(&value);
        let mut index = self.index();
        // A label that ended and was not retired yet keeps its index: routes often come back.
        if let Some(known) = self.find_in(&index, hash, &value) {
            self.shared.counts.claim(known);
            return Ok(known);
        }
        let unseen = self.settle(&mut index);
        let new = self.vacant(&mut index);
        if let Ok(new) = new {
            self.place(&mut index, new, hash, value);
            self.shared.counts.claim(new);
        }
        drop(index);
        drop(unseen);
        new
    }

    /// The index of a value. `None` if no label has the value.
    pub fn find(&self, value: &T) -> Option<NextHop> {
        let hash = self.hash(value);
        self.with_index(|index| self.find_in(index, hash, value))
    }

    /// Replaces the value of an index, for all readers at once. The old value is dropped when no guard can
    /// see it. If another index has an equal value, both stay, and [`intern`](Self::intern) and
    /// [`find`](Self::find) give the first.
    ///
    /// Fails if the index stands for no value.
    ///
    /// ```
    /// use wirespeed::Labels;
    ///
    /// let labels = Labels::new();
    /// let peer = labels.intern("down")?;
    /// labels.replace(peer, "up")?;
    /// assert_eq!(labels.get(peer).as_deref(), Some(&"up"));
    /// assert_eq!((labels.find(&"up"), labels.find(&"down")), (Some(peer), None));
    /// # Ok::<(), wirespeed::Error>(())
    /// ```
    pub fn replace(&self, next_hop: NextHop, value: T) -> Result<(), Error> {
        let hash = self.hash(&value);
        self.with_index(|index| {
            if index.state(next_hop).copied() != Some(State::Live) {
                return Err(Error::NoLabel { next_hop });
            }
            index.known.remove(next_hop);
            self.make_known(index, next_hop, hash, &value);
            self.shared.slots.put(next_hop, Some(value));
            Ok(())
        })
    }

    /// [`intern`](Self::intern) for a table that is not built yet. The claims keep the index.
    pub(crate) fn intern_for(&self, claims: &mut Claims, value: T) -> Result<NextHop, TooManyNextHops> {
        let next_hop = self.intern(value)?;
        claims.hold(&self.shared.counts, next_hop);
        self.shared.counts.release(next_hop);
        Ok(next_hop)
    }

    /// Appends a value at the next index, even if the value has an index, or leaves the index free: for
    /// indexes that were given out elsewhere.
    fn append(&self, value: Option<T>) -> Result<(), TooManyNextHops> {
        let mut index = self.index();
        let next_hop = index.next()?;
        match value {
            Some(value) => self.place(&mut index, next_hop, self.hash(&value), value),
            None => {
                index.set(next_hop, State::Free);
                index.free.insert(next_hop);
            }
        }
        Ok(())
    }

    /// Puts a value under a vacant index. The caller holds the lock.
    fn place(&self, index: &mut Index, next_hop: NextHop, hash: u64, value: T) {
        self.make_known(index, next_hop, hash, &value);
        index.set(next_hop, State::Live);
        index.live += 1;
        self.shared.slots.put(next_hop, Some(value));
    }

    fn make_known(&self, index: &mut Index, next_hop: NextHop, hash: u64, value: &T) {
        let (slots, pin) = (&self.shared.slots, Pin::new());
        index.known.add(hash, next_hop, |known| slots.value(known, &pin) == Some(value));
    }

    fn find_in(&self, index: &Index, hash: u64, value: &T) -> Option<NextHop> {
        let (slots, pin) = (&self.shared.slots, Pin::new());
        index.known.find(hash, |known| slots.value(known, &pin) == Some(value))
    }

    fn hash(&self, value: &T) -> u64 {
        self.shared.hasher.hash_one(value)
    }
}

impl<T: Display> Labels<T> {
    /// The labels as texts.
    pub(crate) fn to_texts(&self) -> Result<SavedLabels, Error> {
        self.save(None, |value| Ok(value.to_string()))
    }
}

impl<T> Labels<T> {
    /// The labels as texts of this type.
    fn save(
        &self,
        of_type: Option<&'static str>,
        text: impl Fn(&T) -> Result<String, Error>,
    ) -> Result<SavedLabels, Error> {
        let guard = self.enter();
        let live: Vec<_> = self.with_index(|index| {
            // All values of one moment: the guard keeps them when the lock is gone.
            let value = |next_hop| Some((next_hop, guard.get(next_hop)?, index.known.is_twin(next_hop)));
            index.live().filter_map(value).collect()
        });
        let texts = live.into_iter().map(|(next_hop, value, is_twin)| Ok((next_hop, text(value)?, is_twin)));
        SavedLabels::new(of_type, texts.collect::<Result<_, Error>>()?)
    }
}

impl<T: Eq + Hash> Labels<T> {
    /// Reads the labels that were saved as texts of this type.
    fn read(
        path: &Path,
        of_type: Option<&'static str>,
        value: impl Fn(&str) -> Result<T, Error>,
    ) -> Result<Self, Error> {
        let labels = Self::new();
        each_label(path, of_type, |text| Ok(labels.append(text.map(&value).transpose()?)?))?;
        Ok(labels)
    }
}

impl<T: FromStr<Err: ToString> + Eq + Hash> Labels<T> {
    /// Opens the labels that were saved with a table, by
    /// [`Table::save_labelled`](crate::Table::save_labelled),
    /// [`NameTable::save_labelled`](crate::NameTable::save_labelled),
    /// [`Classifier::save_labelled`](crate::Classifier::save_labelled) or `lookupctl build`. The result is
    /// empty if the file has no labels. If two tables share labels, open the labels of the table that was
    /// saved last: they contain the other table's labels, too, if neither table changed in between.
    ///
    /// Fails if the labels were not saved as text.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::read(path.as_ref(), None, parse)
    }
}

/// The labels, entered to resolve indexes: see [`Labels::enter`].
#[must_use = "a guard that is dropped at once keeps no value"]
pub struct LabelsGuard<'a, T> {
    labels: &'a Labels<T>,
    pin: Pin,
}

impl<T> LabelsGuard<'_, T> {
    /// The value of an index. `None` for [`NextHop::NONE`] and for an index without a value. Wait-free.
    #[inline]
    #[must_use]
    pub fn get(&self, next_hop: NextHop) -> Option<&T> {
        self.labels.shared.slots.value(next_hop, &self.pin)
    }

    /// Every index that stands for a value at the call, with its value, in order of the index. Takes a lock
    /// for a moment, and a copy of the indexes.
    pub fn iter(&self) -> impl Iterator<Item = (NextHop, &T)> {
        let live: Vec<_> = self.labels.with_index(|index| index.live().collect());
        live.into_iter().filter_map(|next_hop| Some((next_hop, self.get(next_hop)?)))
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
        self.enter().fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for LabelsGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Parses a label.
pub(crate) fn parse<T: FromStr<Err: ToString>>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|error: T::Err| Error::Label {
        file: None,
        text: text.to_owned(),
        reason: error.to_string(),
    })
}

#[cfg(loom)]
#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;
