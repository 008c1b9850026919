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

use crate::costs::{self, Cost, Feeders, Suited};
use crate::dispatch::{Counts, Dispatcher, Meter, Place, Use, Why};
use crate::error::GpuError;
use crate::runtime::{Done, FleetBatch, Form, Ticket};
use crate::tally;
use crate::trip::{self, look_up};

pub use crate::remote::{Answers, KeysOf, RemoteFollower, RemoteTable, ResultOf};
pub use crate::source::Source;
pub use crate::trip::Parts;

/// Keys that were sent.
#[derive(Debug)]
pub enum Sent {
    /// Keys in one slot.
    Slot(Ticket),
    /// Keys that no slot holds.
    Parts(Parts),
}

impl Sent {
    /// Whether the keys have come back, all parts that were sent.
    pub fn is_done(&self) -> bool {
        match self {
            Self::Slot(ticket) => ticket.is_done(),
            Self::Parts(parts) => parts.is_done(),
        }
    }
}

/// A table on GPUs beside the same table on the CPU. Each call passes its lookup on the CPU, which answers
/// the batches that a GPU can't answer, with one warning for all.
pub struct Offload<T> {
    remote: T,
    dispatcher: Dispatcher,
}

/// [`Dispatcher::send`] or [`Dispatcher::place`].
type Decision = fn(&Dispatcher, tally::Keys, usize, Option<&dyn Fn() -> Duration>) -> Result<(), Why>;

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

    /// Joins a table like [`new`](Self::new), and measures what these keys cost a core that feeds a GPU.
    #[inline(never)] // one copy for all crates
    pub fn measured(remote: T, by: Use, meter: Meter, keys: KeysOf<'_, T>) -> Self
    where
        T: Answers<ResultOf<T>>,
    {
        // The first pass brings the slot's memory into the caches, as traffic does.
        let feeds = [(); 2].map(|()| feed(&remote, keys).ok());
        let meter = match feeds.into_iter().flatten().min() {
            Some(time) if !keys.is_empty() => meter.with_feed(keys.len(), time),
            _ => meter,
        };
        let offload = Self::new(remote, by, meter);
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
        let (meter, fleet) = (self.dispatcher.meter(), self.remote.copies().fleet());
        let slots = |keys| fleet.slots_for(keys);
        let feeders = Feeders { threads: meter.threads(), slots: &slots, cpu_rate: meter.cpu_rate() };
        costs::suited(&self.costs(), self.dispatcher.policy(), &feeders)
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

    /// Packs and sends keys, if the policy picks a GPU and a slot is free. Keys that no slot holds go in
    /// parts, as many as slots are free for. An error is the reason why the CPU looks them up.
    #[inline(never)] // one copy for all crates
    pub fn try_send<R>(&self, keys: KeysOf<'_, T>) -> Result<Sent, Why>
    where
        T: Answers<R>,
    {
        self.choose(keys.len())?;
        let (began, mut parts) = (Instant::now(), Parts::default());
        let sent = match trip::fits_a_slot(&self.remote, keys) {
            true => trip::try_send::<R, T>(&self.remote, keys)
                .map(|ticket| ticket.map(|ticket| (keys.len(), Sent::Slot(ticket)))),
            false => parts
                .send_some::<R, T>(&self.remote, keys)
                .map(|()| Some((parts.sent(), Sent::Parts(parts))).filter(|&(count, _)| count > 0)),
        };
        match sent {
            Ok(Some((count, sent))) => {
                self.dispatcher.fed(count, began.elapsed());
                Ok(sent)
            }
            Ok(None) => Err(Why::NoSlot),
            Err(error) => Err(self.dispatcher.warn(&error)),
        }
    }

    /// Takes a free slot for `keys` keys that are written there as they come, if the policy picks a GPU for
    /// them and a slot holds as many. Never waits.
    pub fn write_to(&self, keys: usize) -> Option<T::Written> {
        if !self.is_for_a_slot(keys) {
            return None;
        }
        let slot = || {
            self.decide(Dispatcher::send, tally::Keys::AsTheyCome, keys).ok()?;
            self.remote.copies().try_slot(keys).unwrap_or_else(|error| {
                self.dispatcher.warn(&error);
                None
            })
        };
        self.remote.write_to(slot, keys)
    }

    /// Whether a slot holds `keys` keys of usual length.
    fn is_for_a_slot(&self, keys: usize) -> bool {
        keys <= self.remote.copies().fleet().largest_batch()
    }

    /// The device for `keys` keys that are to be written to a slot as they come, if one holds as many.
    pub fn place_in_place(&self, keys: usize) -> Place {
        if !self.is_for_a_slot(keys) {
            return self.place(keys);
        }
        place(self.decide(Dispatcher::place, tally::Keys::AsTheyCome, keys))
    }

    /// The device for `keys` keys that are in a slot already: a GPU, unless the CPU is clearly better. An
    /// error is the reason for the CPU.
    pub fn stays_in_slot(&self, keys: usize) -> Result<(), Why> {
        self.decide(Dispatcher::send, tally::Keys::InSlot, keys)
    }

    /// Sends a slot that keys were written to in this form.
    pub fn send_slot<R>(&self, slot: FleetBatch, form: Form) -> Ticket
    where
        T: Answers<R>,
    {
        slot.submit_form(self.remote.copies().table(), T::asked(form))
    }

    /// Waits for a slot that was [sent](Self::send_slot), and keeps it. Returns whether it has valid results.
    /// If it has not, its keys are still there, for the CPU.
    #[inline(never)] // one copy for all crates
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
            None => self.dispatcher.on_gpu(done.count()),
            Some(error) => _ = self.dispatcher.warn(error),
        }
        *slot = Some(done);
        error.is_none()
    }

    /// Waits for keys that were sent. The results in the slot are valid. `None` after an error means that the
    /// CPU looks the keys up.
    pub fn came<R>(&self, ticket: Ticket, keys: KeysOf<'_, T>) -> Option<Done>
    where
        T: Answers<R>,
    {
        match trip::valid::<R, T>(&self.remote, ticket.wait(), keys) {
            Ok(done) => {
                self.dispatcher.on_gpu(keys.len());
                Some(done)
            }
            Err(error) => {
                self.dispatcher.warn(&error);
                None
            }
        }
    }

    /// Waits for keys that were sent in parts, sends the others, and writes each result to the same index of
    /// `found`. An error is the reason why the CPU looks them up.
    pub fn parts_came<R>(&self, parts: Parts, keys: KeysOf<'_, T>, found: &mut [R]) -> Result<(), Why>
    where
        T: Answers<R>,
    {
        parts.finish(&self.remote, keys, found).map_err(|error| self.dispatcher.warn(&error))?;
        self.dispatcher.on_gpu(keys.len());
        Ok(())
    }

    /// Looks `keys` keys up on the CPU, for a reason.
    pub fn on_cpu(&self, keys: usize, why: Why, cpu: impl FnOnce()) {
        self.dispatcher.on_cpu(keys, why, cpu);
    }

    /// Looks up keys that are not in the table's form: each device gets a function of its own.
    pub fn answer<R>(
        &self,
        found: &mut [R],
        gpu: impl FnOnce(&T, &mut [R]) -> Result<(), GpuError>,
        cpu: impl FnOnce(&mut [R]),
    ) {
        let keys = found.len();
        let sent = self.choose(keys);
        let sent = sent.and_then(|()| gpu(&self.remote, found).map_err(|error| self.dispatcher.warn(&error)));
        match sent {
            Ok(()) => self.dispatcher.on_gpu(keys),
            Err(why) => self.dispatcher.on_cpu(keys, why, || cpu(found)),
        }
    }

    /// The device for a batch of `keys` keys now.
    pub fn place(&self, keys: usize) -> Place {
        place(self.decide(Dispatcher::place, tally::Keys::Slice, keys))
    }

    /// The device for a batch of `keys` keys that goes there now, or the reason for the CPU.
    fn choose(&self, keys: usize) -> Result<(), Why> {
        self.decide(Dispatcher::send, tally::Keys::Slice, keys)
    }

    /// Asks the dispatcher, by the expected time of keys on a GPU. If the GPUs are out of use, the CPU looks
    /// up.
    fn decide(&self, by: Decision, keys: tally::Keys, count: usize) -> Result<(), Why> {
        let copies = self.remote.copies();
        let estimate = || copies.estimate(count);
        by(&self.dispatcher, keys, count, copies.is_out().is_none().then_some(&estimate))
    }
}

/// The time of a core that packs keys, and takes their results.
fn feed<T>(remote: &T, keys: KeysOf<'_, T>) -> Result<Duration, GpuError>
where
    T: Answers<ResultOf<T>>,
{
    let mut found = vec![ResultOf::<T>::default(); keys.len()];
    let began = Instant::now();
    let ticket = trip::send::<ResultOf<T>, T>(remote, keys)?;
    let packing = began.elapsed();
    let done = ticket.wait();
    let began = Instant::now();
    trip::results(remote, done, keys, &mut found)?;
    Ok(packing + began.elapsed())
}

/// The device of a choice.
fn place(chosen: Result<(), Why>) -> Place {
    if chosen.is_ok() { Place::Gpu } else { Place::Cpu }
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
    under_way: VecDeque<Part<KeysOf<'k, T>, R>>,
    batches: usize,
}

/// A part of a batch; most are the whole of one.
struct Part<K, R> {
    keys: K,
    state: State<R>,
    /// The keys of the batch, in its last part.
    ends: Option<K>,
}

enum State<R> {
    /// The CPU will look the part up when its turn comes, for this reason.
    Waiting(Why),
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
        let is_back = |sent: &Part<_, R>| match &sent.state {
            State::OnGpu(ticket, _) => ticket.is_done(),
            State::Waiting(_) | State::Found(_) => true,
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
        let chosen = match self.only {
            Some(Place::Gpu) if !keys.is_empty() => Ok(()),
            Some(_) => Err(Why::FasterCpu),
            None => self.offload.choose(keys.len()),
        };
        if let Err(why) = chosen {
            return self.under_way.push_back(Part { keys, state: State::Waiting(why), ends: Some(keys) });
        }
        let mut start = 0;
        loop {
            let end = trip::end_of_part(&self.offload.remote, keys, start, keys.len());
            let part = keys.part(start..end);
            let state = match self.send(part, &mut free) {
                Ok((ticket, time)) => State::OnGpu(ticket, time),
                Err(error) => State::Waiting(self.offload.dispatcher.warn(&error)),
            };
            let ends = (end == keys.len()).then_some(keys);
            self.under_way.push_back(Part { keys: part, state, ends });
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
        if let State::OnGpu(ticket, _) = std::mem::replace(&mut sent.state, State::Waiting(Why::Failed)) {
            let mut found = vec![R::default(); sent.keys.len()];
            match trip::results(&self.offload.remote, ticket.wait(), sent.keys, &mut found) {
                Ok(()) => sent.state = State::Found(found),
                Err(error) => sent.state = State::Waiting(self.offload.dispatcher.warn(&error)),
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
            let Part { keys, state, ends } = self.under_way.pop_front()?;
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
            State::Waiting(why) => Err(why),
            State::Found(kept) => {
                found.copy_from_slice(&kept);
                Ok(())
            }
            State::OnGpu(ticket, packing) => {
                let (done, began) = (ticket.wait(), Instant::now());
                let taken = trip::results(&self.offload.remote, done, keys, found);
                dispatcher.fed(count, packing + began.elapsed());
                taken.map_err(|error| dispatcher.warn(&error))
            }
        };
        match taken {
            Ok(()) => dispatcher.on_gpu(count),
            Err(why) => dispatcher.on_cpu(count, why, || cpu(keys, found)),
        }
    }
}
