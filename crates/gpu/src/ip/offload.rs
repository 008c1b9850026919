//! [`Offload`]: lookups that go to the CPU or to GPUs, and never fail for a GPU's sake.

use std::collections::VecDeque;

use wirespeed_fib::{Address, NextHop};

use super::remote::Remote;
use crate::dispatch::{Counts, Dispatcher, Meter, Place, Use};
use crate::error::GpuError;
use crate::runtime::Ticket;

/// A table on GPUs beside the same table on the CPU. Whoever looks up brings the CPU's way along; what a GPU can't answer is
/// answered by that, with one warning for all.
pub struct Offload<A> {
    remote: Remote<A>,
    dispatcher: Dispatcher,
}

impl<A: Address> Offload<A> {
    /// The table on GPUs, when to use it, and what lookups cost on the CPU.
    pub fn new(remote: Remote<A>, by: Use, meter: Meter) -> Self {
        Self { remote, dispatcher: Dispatcher::new(by, meter) }
    }

    /// The table on GPUs.
    pub fn remote(&self) -> &Remote<A> {
        &self.remote
    }

    /// How many keys went where since the start.
    pub fn counts(&self) -> Counts {
        self.dispatcher.counts()
    }

    /// Looks up each address into the same place of `next_hops`; `cpu` does it where the CPU is to.
    ///
    /// Panics when the slices differ in length.
    pub fn lookup_batch(
        &self,
        addresses: &[A],
        next_hops: &mut [NextHop],
        cpu: impl FnOnce(&[A], &mut [NextHop]),
    ) {
        assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
        let on_gpu =
            |remote: &Remote<A>, next_hops: &mut [NextHop]| remote.lookup_batch(addresses, next_hops);
        self.answer(next_hops, on_gpu, |next_hops| cpu(addresses, next_hops));
    }

    /// The same where keys are not addresses yet: each place gets them in its own way.
    pub fn answer(
        &self,
        next_hops: &mut [NextHop],
        gpu: impl FnOnce(&Remote<A>, &mut [NextHop]) -> Result<(), GpuError>,
        cpu: impl FnOnce(&mut [NextHop]),
    ) {
        let keys = next_hops.len();
        if self.place(keys) == Place::Gpu {
            match gpu(&self.remote, next_hops) {
                Ok(()) => return self.dispatcher.count(Place::Gpu, keys),
                Err(error) => self.dispatcher.warn(&error),
            }
        }
        self.dispatcher.on_cpu(keys, || cpu(next_hops));
    }

    /// Where a batch of so many keys goes now.
    pub fn place(&self, keys: usize) -> Place {
        let is_there = self.remote.is_out().is_none();
        self.dispatcher.place(keys, is_there.then_some(|| self.remote.estimate(keys)))
    }
}

/// Batches of one thread, several under way at once: first in, first out.
///
/// A batch that goes to the CPU is answered when its turn to be taken comes. Any number of pipelines share the slots of a device
/// without standing in each other's way for good: one that gets no slot empties its own first.
pub struct Pipeline<'k, A> {
    offload: &'k Offload<A>,
    under_way: VecDeque<Sent<'k, A>>,
}

struct Sent<'k, A> {
    keys: &'k [A],
    state: State,
}

enum State {
    /// For the CPU, when its turn comes.
    Waiting,
    OnGpu(Ticket),
    /// Taken before its turn, for its slot.
    Found(Vec<NextHop>),
}

impl<'k, A: Address> Pipeline<'k, A> {
    /// With nothing under way.
    pub fn new(offload: &'k Offload<A>) -> Self {
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
    pub fn submit(&mut self, keys: &'k [A]) {
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

    fn send(&mut self, keys: &'k [A]) -> Result<Ticket, GpuError> {
        loop {
            if let Some(ticket) = self.offload.remote.try_submit(keys)? {
                return Ok(ticket);
            }
            let oldest = self.under_way.iter_mut().find(|sent| matches!(sent.state, State::OnGpu(_)));
            let Some(sent) = oldest else { return self.offload.remote.submit(keys) };
            // Out of its slot, and kept until its turn comes; what went wrong with it is for the CPU then.
            if let State::OnGpu(ticket) = std::mem::replace(&mut sent.state, State::Waiting) {
                let mut found = vec![NextHop::NONE; sent.keys.len()];
                match self.offload.remote.take(ticket.wait(), sent.keys, &mut found) {
                    Ok(()) => sent.state = State::Found(found),
                    Err(error) => self.offload.dispatcher.warn(&error),
                }
            }
        }
    }

    /// Waits for the oldest batch and writes its results to the start of `next_hops`; its keys, or `None` when nothing is under way.
    ///
    /// Panics where `next_hops` is shorter than the batch.
    #[allow(clippy::should_implement_trait)] // it ends and goes on again, as no iterator should
    pub fn next(
        &mut self,
        next_hops: &mut [NextHop],
        cpu: impl FnOnce(&[A], &mut [NextHop]),
    ) -> Option<&'k [A]> {
        let Sent { keys, state } = self.under_way.pop_front()?;
        let next_hops = &mut next_hops[..keys.len()];
        let taken = match state {
            State::Waiting => None,
            State::Found(found) => {
                next_hops.copy_from_slice(&found);
                Some(Ok(()))
            }
            State::OnGpu(ticket) => Some(self.offload.remote.take(ticket.wait(), keys, next_hops)),
        };
        match taken {
            Some(Ok(())) => {
                self.offload.dispatcher.count(Place::Gpu, keys.len());
                return Some(keys);
            }
            Some(Err(error)) => self.offload.dispatcher.warn(&error),
            None => {}
        }
        self.offload.dispatcher.on_cpu(keys.len(), || cpu(keys, next_hops));
        Some(keys)
    }
}
