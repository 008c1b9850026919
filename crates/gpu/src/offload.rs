//! [`Offload`] and [`Pipeline`]: lookups on the CPU or on GPUs. They never fail because of a GPU. The code
//! serves addresses, names and tuples: a [`RemoteTable`] knows its keys, how to send them and how to take
//! results.
//!
//! ```text
//! keys ─ place ─┬─ GPU: parts ─ pack ─► slots ─► results ─ take ─┬─► found
//!               │                                  fails         │
//!               └─ CPU: the caller's way ◄───────────┴───────────┘
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

use wirespeed_image::Patch;
use wirespeed_image::device::OnDevice;
use wirespeed_image::live::Follower;
use wirespeed_table::{Domain, Keys};

use crate::copies::Copies;
use crate::dispatch::{Counts, Dispatcher, Meter, Place, Use};
use crate::error::GpuError;
use crate::runtime::{Done, Fleet, Ticket};

/// A table on GPUs, for keys of a domain. Clones share the table.
pub trait RemoteTable: Clone + Send + Sync + 'static {
    /// The domain of the table.
    type Domain: Domain;

    /// A hint about future keys, given when a table is copied to GPUs. It decides the form of keys and the
    /// measurements.
    type KeyHint<'k>: Copy;

    /// The number of parts of a large batch, so that one part's keys travel while another part's results come
    /// back.
    const PARTS: usize;

    /// Copies a table to all GPUs. Finds the fastest launches and measures transfers, which takes about a
    /// second.
    fn upload<T: OnDevice>(fleet: &Fleet, table: &T, hint: Self::KeyHint<'_>) -> Result<Self, GpuError>;

    /// The copies on the GPUs.
    fn copies(&self) -> &Copies;

    /// The end of the part of a large batch that starts at `start`: at least one key, and small enough for a
    /// slot if one key fits any.
    fn end_of_part(&self, keys: KeysOf<'_, Self>, start: usize) -> usize;

    /// Says that lookups may depend on this number of leading bits of a key, from the next change on.
    fn reach(&self, bits: u8) {
        let _ = bits;
    }

    /// Applies a patch.
    fn patch(&self, patch: &Patch) {
        self.copies().patch(patch);
    }

    /// Replaces the table.
    fn replace<T: OnDevice>(&self, table: &T) {
        self.copies().replace(table);
    }

    /// The follower that keeps the copies in step with a live table: for
    /// [`Live::follow`](wirespeed_table::Live::follow).
    fn follower(&self) -> RemoteFollower<Self> {
        RemoteFollower(self.clone())
    }
}

/// The keys of a table on GPUs, borrowed.
pub type KeysOf<'k, T> = <<T as RemoteTable>::Domain as Domain>::Keys<'k>;

/// A table on GPUs with results of a type.
pub trait Answers<R>: RemoteTable {
    /// Packs and sends keys, at most as many as a slot holds. Waits for a slot.
    fn send(&self, keys: KeysOf<'_, Self>) -> Result<Ticket, GpuError>;

    /// Packs and sends keys like [`send`](Self::send). `None` if no slot is free; a caller with batches under
    /// way then takes the results of one, which frees a slot.
    fn try_send(&self, keys: KeysOf<'_, Self>) -> Result<Option<Ticket>, GpuError>;

    /// Takes the results of keys that were sent.
    fn results(&self, done: Done, keys: KeysOf<'_, Self>, found: &mut [R]) -> Result<(), GpuError>;
}

/// Passes a live table's changes to its copies on GPUs. A change that fails takes the copies out of use,
/// until a whole table replaces them.
pub struct RemoteFollower<R>(R);

impl<R> fmt::Debug for RemoteFollower<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteFollower")
    }
}

impl<R: RemoteTable, T: OnDevice> Follower<T> for RemoteFollower<R> {
    fn reach(&mut self, bits: u8) {
        self.0.reach(bits);
    }

    fn patch(&mut self, patch: &Patch) {
        self.0.patch(patch);
    }

    fn replace(&mut self, table: &T) {
        self.0.replace(table);
    }
}

/// Looks up all keys in parts, several under way at once. After an error some results are written and some
/// are not.
///
/// Panics when the lengths differ.
pub(crate) fn look_up<R, T: Answers<R>>(
    table: &T,
    keys: KeysOf<'_, T>,
    found: &mut [R],
) -> Result<(), GpuError> {
    assert_eq!(keys.len(), found.len(), "a result for each key");
    let mut finish = |(ticket, part): (Ticket, Range<usize>)| {
        table.results(ticket.wait(), keys.part(part.clone()), &mut found[part])
    };
    let (mut under_way, mut start) = (VecDeque::new(), 0);
    while start < keys.len() {
        let part = start..table.end_of_part(keys, start);
        if under_way.len() == T::PARTS
            && let Some(oldest) = under_way.pop_front()
        {
            finish(oldest)?;
        }
        let ticket = loop {
            if let Some(ticket) = table.try_send(keys.part(part.clone()))? {
                break ticket;
            }
            // A caller that holds slots must not wait for more, because all callers could wait then.
            match under_way.pop_front() {
                Some(oldest) => finish(oldest)?,
                None => break table.send(keys.part(part.clone()))?,
            }
        };
        start = part.end;
        under_way.push_back((ticket, part));
    }
    under_way.into_iter().try_for_each(finish)
}

/// A table on GPUs beside the same table on the CPU. Each call passes its lookup on the CPU, which answers
/// the batches that a GPU can't answer, with one warning for all.
pub struct Offload<T> {
    remote: T,
    dispatcher: Dispatcher,
}

impl<T> fmt::Debug for Offload<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offload").finish_non_exhaustive()
    }
}

impl<T: RemoteTable> Offload<T> {
    /// Joins a table on GPUs with the policy and the cost of lookups on the CPU.
    pub fn new(remote: T, by: Use, meter: Meter) -> Self {
        Self { remote, dispatcher: Dispatcher::new(by, meter) }
    }

    /// The table on GPUs.
    pub const fn remote(&self) -> &T {
        &self.remote
    }

    /// Numbers of keys that each device looked up since the start.
    pub fn counts(&self) -> Counts {
        self.dispatcher.counts()
    }

    /// Looks each key up, and writes its result to the same index of `found`. `cpu` looks up on the CPU.
    ///
    /// Panics when the lengths differ.
    pub fn lookup_batch<'k, R>(
        &self,
        keys: KeysOf<'k, T>,
        found: &mut [R],
        cpu: impl FnOnce(KeysOf<'k, T>, &mut [R]),
    ) where
        T: Answers<R>,
    {
        assert_eq!(keys.len(), found.len(), "a result for each key");
        self.answer(found, |remote, found| look_up(remote, keys, found), |found| cpu(keys, found));
    }

    /// Looks up keys that are not in the table's form: each device gets a function of its own.
    pub fn answer<R>(
        &self,
        found: &mut [R],
        gpu: impl FnOnce(&T, &mut [R]) -> Result<(), GpuError>,
        cpu: impl FnOnce(&mut [R]),
    ) {
        let keys = found.len();
        if self.place(keys) == Place::Gpu {
            match gpu(&self.remote, found) {
                Ok(()) => return self.dispatcher.count(Place::Gpu, keys),
                Err(error) => self.dispatcher.warn(&error),
            }
        }
        self.dispatcher.on_cpu(keys, || cpu(found));
    }

    /// The device for a batch of `keys` keys now.
    pub fn place(&self, keys: usize) -> Place {
        let is_there = self.remote.copies().is_out().is_none();
        self.dispatcher.place(keys, is_there.then_some(|| self.remote.copies().estimate(keys)))
    }
}

/// A queue of batches of one thread, several under way at once: first in, first out.
///
/// A batch for the CPU is looked up when its results are taken. Any number of pipelines can share the slots
/// of a device without blocking each other: a pipeline that gets no slot first takes the results of its own
/// batches.
pub struct Pipeline<'o, 'k, T: Answers<R>, R> {
    offload: &'o Offload<T>,
    under_way: VecDeque<Sent<KeysOf<'k, T>, R>>,
}

struct Sent<K, R> {
    keys: K,
    state: State<R>,
}

enum State<R> {
    /// The CPU will look the batch up when its turn comes.
    Waiting,
    OnGpu(Ticket),
    /// The results were taken early, to free the slot.
    Found(Vec<R>),
}

impl<T: Answers<R>, R> fmt::Debug for Pipeline<'_, '_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("under_way", &self.under_way.len()).finish_non_exhaustive()
    }
}

impl<'o, 'k, T: Answers<R>, R: Copy + Default> Pipeline<'o, 'k, T, R> {
    /// Makes a pipeline with no batch under way.
    pub const fn new(offload: &'o Offload<T>) -> Self {
        Self { offload, under_way: VecDeque::new() }
    }

    /// The number of batches under way.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Whether [`next`](Self::next) returns without waiting: the oldest batch has come back, or is one for
    /// the CPU.
    pub fn is_ready(&self) -> bool {
        self.under_way.front().is_some_and(|sent| match &sent.state {
            State::OnGpu(ticket) => ticket.is_done(),
            State::Waiting | State::Found(_) => true,
        })
    }

    /// Sends keys. Waits for a slot if none is free.
    pub fn submit(&mut self, keys: KeysOf<'k, T>) {
        self.submit_freeing(keys, || false);
    }

    /// Sends keys like [`submit`](Self::submit), for a thread with several pipelines that share slots. If no
    /// slot is free and this pipeline holds none, `free` makes another pipeline [give one
    /// up](Self::give_up_slot), and returns `false` if none of them holds one: a thread that holds slots must
    /// not wait for more, because all threads could wait then.
    pub fn submit_freeing(&mut self, keys: KeysOf<'k, T>, free: impl FnMut() -> bool) {
        let state = match self.offload.place(keys.len()) {
            Place::Cpu => State::Waiting,
            Place::Gpu => match self.send(keys, free) {
                Ok(ticket) => State::OnGpu(ticket),
                Err(error) => {
                    self.offload.dispatcher.warn(&error);
                    State::Waiting
                }
            },
        };
        self.under_way.push_back(Sent { keys, state });
    }

    fn send(&mut self, keys: KeysOf<'k, T>, mut free: impl FnMut() -> bool) -> Result<Ticket, GpuError> {
        let remote = &self.offload.remote;
        loop {
            if let Some(ticket) = remote.try_send(keys)? {
                return Ok(ticket);
            }
            if !self.give_up_slot() && !free() {
                return remote.send(keys);
            }
        }
    }

    /// Takes the oldest batch on a GPU from its slot, and keeps its results until its turn. After an error
    /// the CPU looks it up then. Waits for the results. Returns `false` if no batch is on a GPU.
    pub fn give_up_slot(&mut self) -> bool {
        let oldest = self.under_way.iter_mut().find(|sent| matches!(sent.state, State::OnGpu(_)));
        let Some(sent) = oldest else { return false };
        if let State::OnGpu(ticket) = std::mem::replace(&mut sent.state, State::Waiting) {
            let mut found = vec![R::default(); sent.keys.len()];
            match self.offload.remote.results(ticket.wait(), sent.keys, &mut found) {
                Ok(()) => sent.state = State::Found(found),
                Err(error) => self.offload.dispatcher.warn(&error),
            }
        }
        true
    }

    /// Waits for the oldest batch and writes its results to the start of `found`. Returns its keys, or `None`
    /// if no batch is under way.
    ///
    /// Panics if `found` is shorter than the batch.
    #[allow(clippy::should_implement_trait)] // it ends and goes on again, as no iterator should
    pub fn next(
        &mut self,
        found: &mut [R],
        cpu: impl FnOnce(KeysOf<'k, T>, &mut [R]),
    ) -> Option<KeysOf<'k, T>> {
        let Sent { keys, state } = self.under_way.pop_front()?;
        let (count, dispatcher) = (keys.len(), &self.offload.dispatcher);
        let found = &mut found[..count];
        let taken = match state {
            State::Waiting => None,
            State::Found(kept) => {
                found.copy_from_slice(&kept);
                Some(Ok(()))
            }
            State::OnGpu(ticket) => Some(self.offload.remote.results(ticket.wait(), keys, found)),
        };
        match taken {
            Some(Ok(())) => {
                dispatcher.count(Place::Gpu, count);
                return Some(keys);
            }
            Some(Err(error)) => dispatcher.warn(&error),
            None => {}
        }
        dispatcher.on_cpu(count, || cpu(keys, found));
        Some(keys)
    }
}
