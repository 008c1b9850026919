//! [`Batches`]: batches in memory that is used again and again, on the device that suits them.
//!
//! ```text
//! Batches::batch ──► Batch ──push, extend──► submit ──► Submitted ──wait──► Answers ──► read in place
//!     ▲                                                                        │
//!     └───────────────── memory of keys and results ◄─────────────── dropped ◄─┘   at any step
//! ```

mod answers;
mod asked;
#[cfg(feature = "rules")]
mod matches;
// Models are built without what drives GPUs.
#[cfg(all(test, feature = "gpu"))]
mod suites;

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wirespeed_table::Keys;

use crate::common::ReaderCore;
use crate::engine::Served;
use crate::gpu::dispatch::Why;
use crate::gpu::offload::{Answers as RemoteAnswers, Offload, Sent};
use crate::gpu::runtime::Done;
use crate::owned_keys::OwnedKeys;
use crate::turnover::Seen;

pub use answers::{Answers, Numbers};
#[cfg(feature = "names")]
pub use asked::Matches;
pub use asked::{Asked, Results};
#[cfg(feature = "rules")]
pub use matches::RuleMatches;

/// A source of empty batches that are filled key by key, looked up, and read where the results are.
/// [`Reader::batches`](crate::Reader::batches) makes one for addresses,
/// [`NameReader::batches`](crate::NameReader::batches) for names and
/// [`NameReader::match_batches`](crate::NameReader::match_batches) for names with the lengths that match,
/// [`RuleReader::batches`](crate::RuleReader::batches) for tuples. It is made for a thread that gets its keys
/// one at a time, such as a thread that parses packets.
///
/// If a GPU may look a batch of this size up, and has a slot free, keys are written to its pinned memory as
/// they come, in the form that the GPU reads, and lie nowhere else. If the [longest
/// prefix](crate::Builder::longest_prefix) is stated, these are the bytes of an address that it needs.
/// Without it IPv4 addresses are whole, and the form of IPv6 addresses is known only when the batch is
/// submitted, unless the table has prefixes of more than 64 bits: they are packed then. Names leave the
/// slot when it has no room for their bytes. Tuples are written there by [`extend_from`](Batch::extend_from)
/// alone: a batch that begins with a single tuple is packed when it is submitted, which takes less time. The
/// results stay where the GPU wrote them, as wide as the table needs, and [`Answers`] reads them there. All
/// other memory comes from this source and goes back to it when a batch is dropped, so a batch allocates
/// nothing once the source is warm. Keys that lie in a slot in another form, and are asked for again or left
/// to the CPU, are the exception.
///
/// A batch for more keys than a slot holds lies in memory of the source, too, because keys and results in
/// several slots would be no slices. A slot holds 1,048,576 addresses or tuples or 262,144 names, unless the
/// [`fleet`](crate::Builder::fleet) has others. Such a batch is packed when it is submitted. If it got no
/// more keys than a slot holds, nothing else is different. Otherwise it goes to a GPU in parts, as with
/// [`Reader::lookup_batch`](crate::Reader::lookup_batch): each part sees one state of the table, all
/// but the first may wait for slots when results are asked for, and results are copied out of the slots.
///
/// Numbers of next hops may stand for [labels that end](crate::Labels#labels-that-end). Enter the labels
/// before a batch is submitted, and resolve its answers while that guard is held: also those of names. The
/// numbers of rules stand for rules, which may be replaced meanwhile: [`Answers::matches`] gives their
/// actions, and verdicts where rules were left out.
///
/// A batch is never lost, and one that fits a slot never waits for a slot. Without a slot keys lie in memory
/// of the source, and a slot is tried again when the batch is submitted and when its results are asked for.
/// The CPU looks the batch up if the device is the CPU, if there is still no slot, or if a GPU fails. So any
/// number of threads may keep any number of batches for any time. A slot that is kept serves nobody else:
/// other calls then wait for another, at most 0.2 s while nothing is under way on the GPUs, and go on on the
/// CPU.
///
/// ```
/// use wirespeed::prelude::*;
///
/// let routes = [("10.0.0.0/8".parse::<Ipv4Net>()?, NextHop(1))];
/// let reader = Ipv4Table::builder().routes(routes).device(Device::Auto).build()?.reader();
///
/// let batches = reader.batches();
/// let mut batch = batches.batch(1024).expect("no batch is out");
/// for n in 0..100 {
///     batch.push(Ipv4Addr::new(10, 0, 0, n)).expect("there is room");
/// }
/// let answers = batch.submit().wait();
/// assert!(answers.iter().all(|next_hop| next_hop == NextHop(1)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a source that is dropped gives no batches"]
pub struct Batches<D: Served, R: Asked<D> = Results> {
    source: Arc<Source<D, R>>,
}

/// The part that a source shares with its batches.
struct Source<D: Served, R: Asked<D>> {
    reader: ReaderCore<D>,
    spare: Mutex<Vec<Memory<D, R>>>,
    out: AtomicUsize,
    at_once: usize,
    within: Option<Duration>,
}

/// Memory for the keys of a batch, and for results that the CPU finds.
#[derive(Debug)]
pub struct Memory<D: Served, R: Asked<D>> {
    keys: D::Owned,
    results: Vec<R::Answer>,
    /// The slot that came back, with the results of a GPU or with an error. Keys may lie there alone.
    done: Option<Done>,
}

/// Memory that is out. Dropping it gives it back.
struct Lent<D: Served, R: Asked<D>> {
    memory: Memory<D, R>,
    source: Arc<Source<D, R>>,
}

/// The most batches of a source that are out at once, unless [`Batches::at_once`] says otherwise.
const AT_ONCE: usize = 8;

/// Keys of a batch for the CPU: results stay in the first-level cache.
const ON_CPU: usize = 4096;

impl<D: Served, R: Asked<D>> Batches<D, R> {
    pub(crate) fn new(reader: ReaderCore<D>) -> Self {
        Self::of(reader, AT_ONCE, None)
    }

    fn of(reader: ReaderCore<D>, at_once: usize, within: Option<Duration>) -> Self {
        let (spare, out) = (Mutex::default(), AtomicUsize::new(0));
        Self { source: Arc::new(Source { reader, spare, out, at_once, within }) }
    }

    /// Sets the number of batches that may be out at once, at least 1. The default is 8. This bounds the
    /// memory of the source, and the batches of this thread that are under way. Batches that are out already
    /// don't count.
    pub fn at_once(self, batches: usize) -> Self {
        Self::of(self.source.reader.clone(), batches.max(1), self.source.within)
    }

    /// Sets the longest time from a batch's first key to its submission, for [`Batch::is_due`]. Batches that
    /// are out already keep their time.
    pub fn within(self, time: Duration) -> Self {
        Self::of(self.source.reader.clone(), self.source.at_once, Some(time))
    }

    /// Takes an empty batch for at most `keys` keys, at least 1. Returns `None` if as many batches are out as
    /// [may be](Self::at_once): drop the answers of one first. Never waits. Any number of keys is allowed: a
    /// batch for more than a slot holds lies [in memory of the source](Self), and one for more than 1,048,576
    /// takes memory beyond that as keys come.
    #[must_use]
    pub fn batch(&self, keys: usize) -> Option<Batch<D, R>> {
        let take = |out: usize| (out < self.source.at_once).then_some(out + 1);
        self.source.out.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        let spare = self.source.locked().pop();
        let lent = Lent { memory: spare.unwrap_or_default(), source: Arc::clone(&self.source) };
        Some(Batch::of(lent, keys))
    }

    /// The number of keys that a batch should have on this machine, for a thread that may choose: the fewest
    /// with which the device that suits the table best makes its highest rate, or stays within the [latency
    /// bound](crate::Builder::latency_bound). The measurements are those of
    /// [`Table::device_costs`](crate::Table::device_costs).
    ///
    /// ```
    /// use wirespeed::prelude::*;
    ///
    /// let routes = [("10.0.0.0/8".parse::<Ipv4Net>()?, NextHop(1))];
    /// let batches = Ipv4Table::builder().routes(routes).build()?.reader().batches();
    /// let batch = batches.batch(batches.suited_keys());
    /// # assert_eq!(batch.map(|batch| batch.capacity()), Some(4096));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn suited_keys(&self) -> usize {
        #[cfg(feature = "gpu")]
        if let Some(suited) = self.suited() {
            return suited.keys;
        }
        ON_CPU
    }

    /// The device, the number of keys and the number of batches under way that make the highest rate, as
    /// measured for this table, or the highest within the [latency bound](crate::Builder::latency_bound).
    /// `None` for a table that is on the CPU alone.
    #[cfg(feature = "gpu")]
    #[must_use]
    pub fn suited(&self) -> Option<crate::gpu::costs::Suited> {
        self.source.reader.offload().map(Offload::suited)
    }

    /// The device that a batch of `keys` keys would go to now. `None` for a table that is on the CPU alone.
    #[cfg(feature = "gpu")]
    #[must_use]
    pub fn place(&self, keys: usize) -> Option<crate::gpu::dispatch::Place> {
        self.source.reader.offload().map(|offload| offload.place_in_place(keys))
    }

    /// The number of batches that are out: being filled, under way, or with answers that are still held.
    #[must_use]
    pub fn out(&self) -> usize {
        self.source.out.load(Ordering::Relaxed)
    }
}

impl<D: Served, R: Asked<D>> Source<D, R> {
    fn locked(&self) -> std::sync::MutexGuard<'_, Vec<Memory<D, R>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Served, R: Asked<D>> Default for Memory<D, R> {
    fn default() -> Self {
        Self { keys: D::Owned::default(), results: Vec::new(), done: None }
    }
}

impl<D: Served, R: Asked<D>> Memory<D, R> {
    fn keys(&self) -> D::Keys<'_> {
        self.keys.keys(self.done.as_ref())
    }

    /// Removes keys and results. Slots go back.
    fn empty(&mut self) {
        self.keys.empty();
        self.done = None;
    }

    /// Waits for keys that were sent. An error is the reason why there are no results of a GPU.
    fn came<F>(
        &mut self,
        offload: &Offload<D::Remote>,
        sent: Sent,
        found: impl FnOnce(&mut [R::Answer]) -> &mut [F],
    ) -> Result<(), Why>
    where
        D::Remote: RemoteAnswers<F>,
    {
        let ticket = match sent {
            Sent::Slot(ticket) => ticket,
            Sent::Parts(parts) => {
                let (keys, answers) = self.with_answers();
                return offload.parts_came(parts, keys, found(answers));
            }
        };
        let is_there = if self.keys.is_away() {
            offload.slot_came::<F>(ticket, &mut self.done)
        } else {
            self.done = offload.came::<F>(ticket, self.keys.keys(None));
            self.done.is_some()
        };
        is_there.then_some(()).ok_or(Why::Failed)
    }

    /// The keys, and the place of their answers.
    fn with_answers(&mut self) -> (D::Keys<'_>, &mut [R::Answer]) {
        let Self { keys, results, done } = self;
        let keys = keys.keys(done.as_ref());
        // Every element is written, so old results may stay.
        results.resize(keys.len(), R::Answer::default());
        (keys, results)
    }
}

impl<D: Served, R: Asked<D>> Drop for Lent<D, R> {
    fn drop(&mut self) {
        let mut memory = std::mem::take(&mut self.memory);
        memory.empty();
        self.source.locked().push(memory);
        self.source.out.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Keys that are being collected. Dropping it drops the keys.
#[must_use = "a batch that is dropped drops its keys"]
pub struct Batch<D: Served, R: Asked<D> = Results> {
    lent: Lent<D, R>,
    capacity: usize,
    /// The time by which it is to be submitted, from its first key on.
    due: Option<Instant>,
}

/// A batch has no room for another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the batch is full: submit it first")]
pub struct Full;

impl<D: Served, R: Asked<D>> Batch<D, R> {
    fn of(mut lent: Lent<D, R>, keys: usize) -> Self {
        let capacity = keys.max(1);
        lent.memory.empty();
        let Lent { memory, source } = &mut lent;
        memory.keys.make_room(capacity, source.reader.offload());
        Self { lent, capacity, due: None }
    }

    /// Adds a key: an address, a [`Name`](crate::names::Name) or a tuple. Fails, and adds nothing, if the
    /// batch is full. A batch of names is also full at 4 GiB.
    ///
    /// The number of keys goes through memory at each call, which takes a few cycles. Addresses that are at
    /// hand together are added at about ten times the rate by [`extend`](Self::extend).
    #[inline]
    pub fn push<'k>(&mut self, key: impl Into<D::Key<'k>>) -> Result<(), Full> {
        let len = self.len();
        if len >= self.capacity || !self.lent.memory.keys.add(key.into()) {
            return Err(Full);
        }
        if len == 0 {
            self.due = self.due_from_now();
        }
        Ok(())
    }

    /// Adds keys of an iterator until the batch is full, and returns how many. The iterator is not asked for
    /// more. Keys of a range that are computed are made by vector instructions here.
    #[inline]
    pub fn extend<'k>(&mut self, keys: impl IntoIterator<Item = D::Key<'k>>) -> usize {
        let (due, room) = (self.due_from_now(), self.room());
        let added = self.lent.memory.keys.add_all(keys.into_iter(), room);
        self.start(added, due);
        added
    }

    /// Adds the first keys of a slice or of [`Names`](crate::names::Names), as many as there is room for, and
    /// returns how many. The fastest way for keys that lie in memory already, above all where several threads
    /// feed a GPU.
    pub fn extend_from(&mut self, keys: D::Keys<'_>) -> usize {
        let (due, room) = (self.due_from_now(), self.room());
        let added = self.lent.memory.keys.copy(keys, room);
        self.start(added, due);
        added
    }

    /// The keys. Addresses for a table with a stated [longest prefix](crate::Builder::longest_prefix) may
    /// have zeros behind the bits that lookups depend on; such keys are made by the first call.
    #[must_use]
    pub fn keys(&self) -> D::Keys<'_> {
        self.lent.memory.keys()
    }

    /// The number of keys.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.lent.memory.keys.count()
    }

    /// Whether there are no keys.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most keys that it takes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether it takes no more keys.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() >= self.capacity
    }

    /// Whether it should be submitted: it is full, or its first key has waited for as long as
    /// [`Batches::within`] allows.
    #[inline]
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        self.is_full() || self.due.is_some_and(|due| due <= now)
    }

    /// The time by which it should be submitted. `None` without keys, or without [`Batches::within`].
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Sends the batch to the device that suits it: all of it, or as many parts as slots are free for. Never
    /// waits.
    pub fn submit(self) -> Submitted<D, R> {
        let Self { mut lent, .. } = self;
        let Lent { memory, source } = &mut lent;
        let seen = source.reader.turnover().seen();
        let sent =
            source.reader.offload().map_or(Err(Why::FasterCpu), |offload| R::send(&mut memory.keys, offload));
        Submitted { sent, seen, lent }
    }

    fn room(&self) -> usize {
        self.capacity.saturating_sub(self.len())
    }

    /// The time by which a batch is to be submitted whose first key comes now. `None` if the time runs
    /// already, or if there is none.
    fn due_from_now(&self) -> Option<Instant> {
        let within = self.lent.source.within.filter(|_| self.due.is_none())?;
        Instant::now().checked_add(within)
    }

    /// Starts the time of the first key, if it is among `added` keys.
    fn start(&mut self, added: usize, due: Option<Instant>) {
        if added > 0 {
            self.due = self.due.or(due);
        }
    }
}

/// A batch under way. Dropping it drops its results.
#[must_use = "a batch that is dropped drops its results"]
pub struct Submitted<D: Served, R: Asked<D> = Results> {
    /// The batch on a GPU, or the reason why the CPU will look it up.
    sent: Result<Sent, Why>,
    /// The count of rules that changed hands, from before a state was looked up in.
    seen: Seen,
    lent: Lent<D, R>,
}

impl<D: Served, R: Asked<D>> Submitted<D, R> {
    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lent.memory.keys.count()
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the results are there, those of all parts that were sent; or the batch is on no GPU. Then
    /// [`wait`](Self::wait) has the rest looked up.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.sent.as_ref().map_or(true, Sent::is_done)
    }

    /// Waits for the results. The CPU looks the batch up now if no GPU does, or if a GPU failed.
    pub fn wait(self) -> Answers<D, R> {
        let Self { sent, seen, mut lent } = self;
        let Lent { memory, source } = &mut lent;
        let (offload, turnover) = (source.reader.offload(), source.reader.turnover());
        let seen = if sent.is_ok() { seen } else { turnover.seen() };
        let mut why = Why::FasterCpu;
        if let Some(offload) = offload {
            // A slot may be free by now.
            let sent = sent.or_else(|_| R::send(&mut memory.keys, offload));
            match sent.and_then(|sent| R::came(memory, offload, sent)) {
                Ok(()) => return Answers { is_from_gpu: true, seen, lent },
                Err(reason) => why = reason,
            }
        }
        let (keys, answers) = memory.with_answers();
        let count = keys.len();
        let mut look_up = || R::on_cpu(source.reader.any(), keys, answers);
        match offload {
            None => look_up(),
            Some(offload) => offload.on_cpu(count, why, look_up),
        }
        Answers { is_from_gpu: false, seen, lent }
    }
}

impl<D: Served, R: Asked<D>> Clone for Batches<D, R> {
    /// Makes a source of its own for the same table, with the same settings.
    fn clone(&self) -> Self {
        Self::of(self.source.reader.clone(), self.source.at_once, self.source.within)
    }
}

impl<D: Served, R: Asked<D>> fmt::Debug for Batches<D, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Source { at_once, .. } = *self.source;
        f.debug_struct("Batches").field("at_once", &at_once).field("out", &self.out()).finish_non_exhaustive()
    }
}

impl<D: Served, R: Asked<D>> fmt::Debug for Batch<D, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("len", &self.len())
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

impl<D: Served, R: Asked<D>> fmt::Debug for Submitted<D, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submitted")
            .field("len", &self.len())
            .field("is_ready", &self.is_ready())
            .finish_non_exhaustive()
    }
}
