//! [`Joined`]: several queues of a device as one port, for a worker that has more than one of them.

use std::os::fd::RawFd;

use super::{Port, PortCounts};
use crate::{Error, Frame, Memory};

/// Several queues of a device. Frames come from each in turn, and leave by the first.
pub struct Joined {
    name: String,
    queues: Vec<Box<dyn Port>>,
    next: usize,
}

impl Joined {
    /// Joins queues under the device's name. Panics without a queue.
    #[must_use]
    pub fn new(name: impl Into<String>, queues: Vec<Box<dyn Port>>) -> Self {
        assert!(!queues.is_empty(), "a port has a queue");
        Self { name: name.into(), queues, next: 0 }
    }
}

impl Port for Joined {
    fn name(&self) -> &str {
        &self.name
    }

    fn receive(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>, most: usize) -> Result<usize, Error> {
        let mut received = 0;
        for _ in 0..self.queues.len() {
            self.next = (self.next + 1) % self.queues.len();
            received += self.queues[self.next].receive(memory, frames, most - received)?;
        }
        Ok(received)
    }

    fn send(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error> {
        self.queues[0].send(memory, frames)
    }

    fn poll(&mut self, memory: &mut Memory) -> Result<(), Error> {
        self.queues.iter_mut().try_for_each(|queue| queue.poll(memory))
    }

    fn held(&self) -> usize {
        self.queues.iter().map(|queue| queue.held()).sum()
    }

    fn unsent(&self) -> usize {
        self.queues.iter().map(|queue| queue.unsent()).sum()
    }

    fn close(&mut self, memory: &mut Memory) {
        self.queues.iter_mut().for_each(|queue| queue.close(memory));
    }

    fn is_at_end(&self) -> bool {
        self.queues.iter().all(|queue| queue.is_at_end())
    }

    fn can_wait(&self) -> bool {
        self.queues.iter().all(|queue| queue.can_wait())
    }

    fn descriptors(&self, descriptors: &mut Vec<RawFd>) -> bool {
        self.queues.iter().all(|queue| queue.descriptors(descriptors))
    }

    fn counts(&self) -> PortCounts {
        let mut sum = PortCounts::default();
        self.queues.iter().for_each(|queue| sum.add(&queue.counts()));
        sum
    }
}
