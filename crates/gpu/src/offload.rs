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
use std::time::{Duration, Instant};

use wirespeed_table::Keys;

use crate::costs::{self, Cost, Suited};
use crate::dispatch::{Counts, Dispatcher, Meter, Place, Use};
use crate::error::GpuError;
use crate::runtime::{Done, FleetBatch, Form, Ticket};
use crate::trip::{self, look_up};

pub use crate::remote::{Answers, KeysOf, RemoteFollower, RemoteTable, ResultOf};
pub use crate::source::Source;

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
        let offload = Self { remote, dispatcher: Dispatcher::new(by, meter) };
        let first = offload.costs().into_iter().find(|cost| cost.place == Place::Gpu);
        match first {
            Some(cost) => tracing::info!(keys = cost.keys, "GPUs look up batches of this many keys or more"),
            None => tracing::info!("the CPU looks up batches of every size"),
        }
        offload
    }

    /// The table on GPUs.
    pub const fn remote(&self) -> &T {
        &self.remote
    }

    /// The expected times of batches of usual sizes, with nothing else under way, and the device of each.
    /// Empty if the GPUs are out of use.
    pub fn costs(&self) -> Vec<Cost> {
        let copies = self.remote.copies();
        if copies.is_out().is_some() {
            return Vec::new();
        }
        costs::costs(self.dispatcher.policy(), self.dispatcher.meter(), copies.curve())
    }

    /// The batches that have the most keys looked up, as far as it is measured.
    pub fn suited(&self) -> Suited {
        let (policy, most) = (self.dispatcher.policy(), self.remote.copies().fleet().largest_batch());
        costs::suited(&self.costs(), policy, self.dispatcher.meter().cpu_rate(), most)
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

    /// Packs and sends keys, if the policy picks a GPU and a slot is free. `None` means that the CPU looks
    /// them up.
    pub fn try_send(&self, keys: KeysOf<'_, T>) -> Option<Ticket>
    where
        T: Answers<ResultOf<T>>,
    {
        match self.place(keys.len()) {
            Place::Cpu => None,
            Place::Gpu => {
                let began = Instant::now();
                match trip::try_send::<ResultOf<T>, T>(&self.remote, keys) {
                    Ok(ticket) => {
                        if ticket.is_some() {
                            self.dispatcher.fed(keys.len(), began.elapsed());
                        }
                        ticket
                    }
                    Err(error) => {
                        self.dispatcher.warn(&error);
                        None
                    }
                }
            }
        }
    }

    /// Takes a free slot for `keys` keys that are written there as they come, if the policy picks a GPU for
    /// them. Never waits.
    pub fn write_to(&self, keys: usize) -> Option<T::Written> {
        let slot = || match self.place_in_place(keys) {
            Place::Cpu => None,
            Place::Gpu => self.remote.copies().try_slot(keys).unwrap_or_else(|error| {
                self.dispatcher.warn(&error);
                None
            }),
        };
        self.remote.write_to(slot, keys)
    }

    /// The device for `keys` keys that are to be written to a slot as they come.
    pub fn place_in_place(&self, keys: usize) -> Place {
        self.dispatcher.place_packed(keys, self.gpu_estimate(keys), false)
    }

    /// The device for `keys` keys that are in a slot already: a GPU, unless the CPU is clearly better.
    pub fn place_in_slot(&self, keys: usize) -> Place {
        self.dispatcher.place_packed(keys, self.gpu_estimate(keys), true)
    }

    /// Sends a slot that keys were written to in this form.
    pub fn send_slot(&self, slot: FleetBatch, form: Form) -> Ticket {
        slot.submit_form(self.remote.copies().table(), form)
    }

    /// Waits for a slot that was [sent](Self::send_slot), and keeps it. Returns whether it has valid results.
    /// If it has not, its keys are still there, for the CPU.
    pub fn slot_came<R>(&self, ticket: Ticket, slot: &mut Option<Done>) -> bool
    where
        T: Answers<R>,
    {
        let mut done = ticket.wait();
        let error = loop {
            let Err(error) = self.remote.check(&done) else { break None };
            // Results get wider each time, so this ends.
            let Some(form) = self.remote.once_more(done.form(), &error) else { break Some(error) };
            match self.remote.copies().table().submit_again(done, form) {
                Ok(ticket) => done = ticket.wait(),
                Err(same) => {
                    done = same;
                    break Some(error);
                }
            }
        };
        match &error {
            None => self.dispatcher.count(Place::Gpu, done.count()),
            Some(error) => self.dispatcher.warn(error),
        }
        *slot = Some(done);
        error.is_none()
    }

    /// Waits for keys that were sent. The results in the slot are valid. `None` after an error means that the
    /// CPU looks the keys up.
    pub fn came(&self, ticket: Ticket, keys: KeysOf<'_, T>) -> Option<Done>
    where
        T: Answers<ResultOf<T>>,
    {
        match trip::valid::<ResultOf<T>, T>(&self.remote, ticket.wait(), keys) {
            Ok(done) => {
                self.dispatcher.count(Place::Gpu, keys.len());
                Some(done)
            }
            Err(error) => {
                self.dispatcher.warn(&error);
                None
            }
        }
    }

    /// Looks `keys` keys up on the CPU.
    pub fn on_cpu(&self, keys: usize, cpu: impl FnOnce()) {
        self.dispatcher.on_cpu(keys, cpu);
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
        self.dispatcher.place(keys, self.gpu_estimate(keys))
    }

    /// The expected time of keys on a GPU. `None` if the GPUs are out of use.
    fn gpu_estimate(&self, keys: usize) -> Option<impl FnOnce() -> Duration> {
        let is_there = self.remote.copies().is_out().is_none();
        is_there.then_some(move || self.remote.copies().estimate(keys))
    }
}

/// A queue of batches of one thread, several under way at once: first in, first out.
///
/// A batch for the CPU is looked up when its results are taken. A batch that no slot holds goes to a GPU in
/// parts. Any number of pipelines can share the slots of a device without blocking each other: a pipeline
/// that gets no slot first takes the results of its own batches.
pub struct Pipeline<'o, 'k, T: Answers<R>, R> {
    offload: &'o Offload<T>,
    /// The device of all batches, instead of the policy's choice.
    only: Option<Place>,
    /// The parts of all batches.
    under_way: VecDeque<Sent<KeysOf<'k, T>, R>>,
    batches: usize,
}

/// A part of a batch; most are the whole of one.
struct Sent<K, R> {
    keys: K,
    state: State<R>,
    /// The keys of the batch, in its last part.
    ends: Option<K>,
}

enum State<R> {
    /// The CPU will look the part up when its turn comes.
    Waiting,
    /// A GPU has it. Packing and sending took this time.
    OnGpu(Ticket, Duration),
    /// The results were taken early, to free the slot.
    Found(Vec<R>),
}

impl<T: Answers<R>, R> fmt::Debug for Pipeline<'_, '_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("under_way", &self.batches).finish_non_exhaustive()
    }
}

impl<'o, 'k, T: Answers<R>, R: Copy + Default> Pipeline<'o, 'k, T, R> {
    /// Makes a pipeline with no batch under way.
    pub const fn new(offload: &'o Offload<T>) -> Self {
        Self { offload, only: None, under_way: VecDeque::new(), batches: 0 }
    }

    /// Sends all batches to one device, instead of the policy's choice. The CPU looks up those that a GPU
    /// can't answer.
    #[must_use]
    pub fn only(self, place: Place) -> Self {
        Self { only: Some(place), ..self }
    }

    /// The number of batches under way.
    pub fn under_way(&self) -> usize {
        self.batches
    }

    /// Whether [`next`](Self::next) returns without waiting: the oldest batch has come back, or is one for
    /// the CPU.
    pub fn is_ready(&self) -> bool {
        let is_back = |sent: &Sent<_, R>| match &sent.state {
            State::OnGpu(ticket, _) => ticket.is_done(),
            State::Waiting | State::Found(_) => true,
        };
        let end = self.under_way.iter().position(|sent| sent.ends.is_some());
        end.is_some_and(|end| self.under_way.iter().take(end + 1).all(is_back))
    }

    /// Sends keys. Waits for a slot if none is free.
    pub fn submit(&mut self, keys: KeysOf<'k, T>) {
        self.submit_freeing(keys, || false);
    }

    /// Sends keys like [`submit`](Self::submit), for a thread with several pipelines that share slots. If no
    /// slot is free and this pipeline holds none, `free` makes another pipeline [give one
    /// up](Self::give_up_slot), and returns `false` if none of them holds one: a thread that holds slots must
    /// not wait for more, because all threads could wait then.
    pub fn submit_freeing(&mut self, keys: KeysOf<'k, T>, mut free: impl FnMut() -> bool) {
        self.batches += 1;
        let place = match self.only {
            Some(only) if !keys.is_empty() => only,
            Some(_) | None => self.offload.place(keys.len()),
        };
        if place == Place::Cpu {
            return self.under_way.push_back(Sent { keys, state: State::Waiting, ends: Some(keys) });
        }
        let mut start = 0;
        loop {
            let end = trip::end_of_part(&self.offload.remote, keys, start, keys.len());
            let part = keys.part(start..end);
            let state = match self.send(part, &mut free) {
                Ok((ticket, time)) => State::OnGpu(ticket, time),
                Err(error) => {
                    self.offload.dispatcher.warn(&error);
                    State::Waiting
                }
            };
            let ends = (end == keys.len()).then_some(keys);
            self.under_way.push_back(Sent { keys: part, state, ends });
            if ends.is_some() {
                return;
            }
            start = end;
        }
    }

    fn send(
        &mut self,
        keys: KeysOf<'k, T>,
        free: &mut impl FnMut() -> bool,
    ) -> Result<(Ticket, Duration), GpuError> {
        let remote = &self.offload.remote;
        loop {
            let began = Instant::now();
            if let Some(ticket) = trip::try_send(remote, keys)? {
                return Ok((ticket, began.elapsed()));
            }
            if !self.give_up_slot() && !free() {
                // The wait for a slot is no work: an earlier batch tells what packing takes.
                return Ok((trip::send(remote, keys)?, self.offload.dispatcher.feed(keys.len())));
            }
        }
    }

    /// Takes the oldest part on a GPU from its slot, and keeps its results until its turn. After an error the
    /// CPU looks it up then. Waits for the results. Returns `false` if no part is on a GPU.
    pub fn give_up_slot(&mut self) -> bool {
        let oldest = self.under_way.iter_mut().find(|sent| matches!(sent.state, State::OnGpu(..)));
        let Some(sent) = oldest else { return false };
        if let State::OnGpu(ticket, _) = std::mem::replace(&mut sent.state, State::Waiting) {
            let mut found = vec![R::default(); sent.keys.len()];
            match trip::results(&self.offload.remote, ticket.wait(), sent.keys, &mut found) {
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
        mut cpu: impl FnMut(KeysOf<'k, T>, &mut [R]),
    ) -> Option<KeysOf<'k, T>> {
        let mut found = found;
        loop {
            let Sent { keys, state, ends } = self.under_way.pop_front()?;
            let (of_part, rest) = found.split_at_mut(keys.len());
            self.take(keys, state, of_part, &mut cpu);
            if ends.is_some() {
                self.batches -= 1;
                return ends;
            }
            found = rest;
        }
    }

    /// Waits for a part and writes its results.
    fn take(
        &self,
        keys: KeysOf<'k, T>,
        state: State<R>,
        found: &mut [R],
        cpu: impl FnOnce(KeysOf<'k, T>, &mut [R]),
    ) {
        let (count, dispatcher) = (keys.len(), &self.offload.dispatcher);
        let taken = match state {
            State::Waiting => None,
            State::Found(kept) => {
                found.copy_from_slice(&kept);
                Some(Ok(()))
            }
            State::OnGpu(ticket, packing) => {
                let (done, began) = (ticket.wait(), Instant::now());
                let taken = trip::results(&self.offload.remote, done, keys, found);
                dispatcher.fed(count, packing + began.elapsed());
                Some(taken)
            }
        };
        match taken {
            Some(Ok(())) => return dispatcher.count(Place::Gpu, count),
            Some(Err(error)) => dispatcher.warn(&error),
            None => {}
        }
        dispatcher.on_cpu(count, || cpu(keys, found));
    }
}
