//! [`Timers`]: the flows that end by themselves, by the time when that may be.
//!
//! A flow with an idle time is looked at when it would end without another packet, and put back if it had
//! one. Flows that are gone stay in the heap until their time or until they are the most of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::flow::{Flow, Life};

/// Flows that are gone, and may stay.
const SLACK: usize = 1024;

/// The flows that end by themselves.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<Timer>>,
    gone: usize,
}

#[derive(Debug)]
struct Timer {
    due: u64,
    flow: Arc<Flow>,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}

impl Timers {
    pub(crate) fn add(&mut self, flow: &Arc<Flow>) {
        if let Some((due, _)) = flow.life.due() {
            self.heap.push(Reverse(Timer { due, flow: Arc::clone(flow) }));
        }
    }

    /// Notes that a flow is gone.
    pub(crate) fn ended(&mut self, life: &Life) {
        if life.due().is_none() {
            return;
        }
        self.gone += 1;
        if self.gone > SLACK && self.gone * 2 > self.heap.len() {
            self.heap.retain(|Reverse(timer)| !timer.flow.life.is_gone());
            self.gone = 0;
        }
    }

    /// The next flow whose time is over, and whether it was idle.
    pub(crate) fn expired(&mut self, now: u64) -> Option<(Arc<Flow>, bool)> {
        while self.heap.peek().is_some_and(|Reverse(timer)| timer.due <= now) {
            let Reverse(Timer { flow, .. }) = self.heap.pop()?;
            if flow.life.is_gone() {
                self.gone = self.gone.saturating_sub(1);
                continue;
            }
            match flow.life.due() {
                Some((due, is_idle)) if due <= now => return Some((flow, is_idle)),
                Some((due, _)) => self.heap.push(Reverse(Timer { due, flow })),
                None => {}
            }
        }
        None
    }
}
