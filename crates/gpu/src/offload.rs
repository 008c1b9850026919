//! [`Offload`] and [`Pipeline`]: lookups that go to the CPU or to GPUs, and never fail for a GPU's sake. Once
//! for addresses, names and tuples: what is a key, and how keys are sent and results taken, a [`RemoteTable`]
//! knows.
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

/// A table on GPUs, and the keys that it takes. Clones are the same table.
pub trait RemoteTable: Clone + Send + Sync + 'static {
    /// What it is a table of.
    type Domain: Domain;

    /// What is known of the keys to come when a table is brought to GPUs: it decides how they travel, and
    /// what is measured.
    type KeyHint<'k>: Copy;

    /// Parts that a large batch is cut into, so that keys of one travel while another's results come back.
    const PARTS: usize;

    /// Brings a table to all GPUs. Finds the fastest launches and measures the ways of moving data: about a
    /// second.
    fn upload<T: OnDevice>(fleet: &Fleet, table: &T, hint: Self::KeyHint<'_>) -> Result<Self, GpuError>;

    /// The table on them.
    fn copies(&self) -> &Copies;

    /// Where the part of a large batch ends that starts there: after a key at least, and in a slot if one key
    /// fits any.
    fn end_of_part(&self, keys: KeysOf<'_, Self>, start: usize) -> usize;

    /// Lookups may depend on so many first bits of a key from the next change on.
    fn reach(&self, bits: u8) {
        let _ = bits;
    }

    /// The table takes a patch.
    fn patch(&self, patch: &Patch) {
        self.copies().patch(patch);
    }

    /// Another table takes its place.
    fn replace<T: OnDevice>(&self, table: &T) {
        self.copies().replace(table);
    }

    /// What keeps it in step with a live table: for [`Live::follow`](wirespeed_table::Live::follow).
    fn follower(&self) -> RemoteFollower<Self> {
        RemoteFollower(self.clone())
    }
}

/// Keys as a table on GPUs takes them, borrowed.
pub type KeysOf<'k, T> = <<T as RemoteTable>::Domain as Domain>::Keys<'k>;

/// A table on GPUs that gives results of some type.
pub trait Answers<R>: RemoteTable {
    /// Packs and sends keys, at most as many as a slot holds; waits for a slot.
    fn send(&self, keys: KeysOf<'_, Self>) -> Result<Ticket, GpuError>;

    /// Packs and sends keys like [`send`](Self::send); `None` where no slot is free. A caller with batches
    /// under way then takes the results of one, which frees a slot.
    fn try_send(&self, keys: KeysOf<'_, Self>) -> Result<Option<Ticket>, GpuError>;

    /// The results of keys that were sent.
    fn results(&self, done: Done, keys: KeysOf<'_, Self>, found: &mut [R]) -> Result<(), GpuError>;
}

/// Passes a live table's changes on to its copy on GPUs. A change that fails takes the copy out of use, until
/// a whole table takes its place again.
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

/// Looks up all keys in parts, several under way at once. On an error some of the results are written and
/// some not.
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
            // Whoever holds slots must not wait for more: all could.
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

/// A table on GPUs beside the same table on the CPU. Whoever looks up brings the CPU's way along; what a GPU
/// can't answer is answered by that, with one warning for all.
pub struct Offload<T> {
    remote: T,
    dispatcher: Dispatcher,
}

impl<T: RemoteTable> Offload<T> {
    /// The table on GPUs, when to use it, and what lookups cost on the CPU.
    pub fn new(remote: T, by: Use, meter: Meter) -> Self {
        Self { remote, dispatcher: Dispatcher::new(by, meter) }
    }

    /// The table on GPUs.
    pub const fn remote(&self) -> &T {
        &self.remote
    }

    /// How many keys went where since the start.
    pub fn counts(&self) -> Counts {
        self.dispatcher.counts()
    }

    /// Looks up each key into the same place of `found`; `cpu` does it where the CPU is to.
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

    /// Looks up keys that are not in the table's form yet: each place gets them in its own way.
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

    /// Where a batch of so many keys goes now.
    pub fn place(&self, keys: usize) -> Place {
        let is_there = self.remote.copies().is_out().is_none();
        self.dispatcher.place(keys, is_there.then_some(|| self.remote.copies().estimate(keys)))
    }
}

/// Batches of one thread, several under way at once: first in, first out.
///
/// A batch that goes to the CPU is answered when its turn to be taken comes. Any number of pipelines share
/// the slots of a device without standing in each other's way for good: one that gets no slot empties its own
/// first.
pub struct Pipeline<'o, 'k, T: Answers<R>, R> {
    offload: &'o Offload<T>,
    under_way: VecDeque<Sent<KeysOf<'k, T>, R>>,
}

struct Sent<K, R> {
    keys: K,
    state: State<R>,
}

enum State<R> {
    /// Waits for the CPU, until its turn comes.
    Waiting,
    OnGpu(Ticket),
    /// Taken before its turn, for its slot.
    Found(Vec<R>),
}

impl<'o, 'k, T: Answers<R>, R: Copy + Default> Pipeline<'o, 'k, T, R> {
    /// A pipeline with nothing under way.
    pub const fn new(offload: &'o Offload<T>) -> Self {
        Self { offload, under_way: VecDeque::new() }
    }

    /// Batches under way.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Whether [`next`](Self::next) would not wait: the oldest batch has come back, or is the CPU's.
    pub fn is_ready(&self) -> bool {
        self.under_way.front().is_some_and(|sent| match &sent.state {
            State::OnGpu(ticket) => ticket.is_done(),
            State::Waiting | State::Found(_) => true,
        })
    }

    /// Sends keys; waits for a slot where all are taken.
    pub fn submit(&mut self, keys: KeysOf<'k, T>) {
        let state = match self.offload.place(keys.len()) {
            Place::Cpu => State::Waiting,
            Place::Gpu => match self.send(keys) {
                Ok(ticket) => State::OnGpu(ticket),
                Err(error) => {
                    self.offload.dispatcher.warn(&error);
                    State::Waiting
                }
            },
        };
        self.under_way.push_back(Sent { keys, state });
    }

    fn send(&mut self, keys: KeysOf<'k, T>) -> Result<Ticket, GpuError> {
        let remote = &self.offload.remote;
        loop {
            if let Some(ticket) = remote.try_send(keys)? {
                return Ok(ticket);
            }
            let oldest = self.under_way.iter_mut().find(|sent| matches!(sent.state, State::OnGpu(_)));
            let Some(sent) = oldest else { return remote.send(keys) };
            // Out of its slot, and kept until its turn comes; what went wrong with it is for the CPU then.
            if let State::OnGpu(ticket) = std::mem::replace(&mut sent.state, State::Waiting) {
                let mut found = vec![R::default(); sent.keys.len()];
                match remote.results(ticket.wait(), sent.keys, &mut found) {
                    Ok(()) => sent.state = State::Found(found),
                    Err(error) => self.offload.dispatcher.warn(&error),
                }
            }
        }
    }

    /// Waits for the oldest batch and writes its results to the start of `found`; its keys, or `None` when
    /// nothing is under way.
    ///
    /// Panics where `found` is shorter than the batch.
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
