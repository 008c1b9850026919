//! [`Hot`]: what nearly every frame needs of its flow, to lie beside the flow's key.

use super::counts::Cell;
use crate::wire::number::port;

/// The way of a packet that needs no interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quick {
    /// The packet is dropped.
    Drop,
    /// The packet goes out of a port as it is.
    Output(u32),
    /// The packet goes back out of the port that it came in on.
    Back,
    /// The instructions have to be executed.
    No,
}

/// The part of a flow that frames read. It is copied to where the flow's key is, so that a frame reads one
/// line for both.
#[derive(Clone, Debug)]
pub(crate) struct Hot {
    counts: Cell,
    /// A port, or a number over all ports.
    way: u32,
    pub(crate) priority: u16,
    /// Whether the flow notes the time of packets.
    pub(crate) is_timed: bool,
}

impl Hot {
    const DROP: u32 = u32::MAX;
    const NO: u32 = u32::MAX - 1;
    const BACK: u32 = u32::MAX - 2;

    pub(crate) fn new(counts: Cell, quick: Quick, priority: u16, is_timed: bool) -> Self {
        let way = match quick {
            Quick::Drop => Self::DROP,
            Quick::Back => Self::BACK,
            Quick::Output(to) if to <= port::MAX => to,
            Quick::Output(_) | Quick::No => Self::NO,
        };
        Self { counts, way, priority, is_timed }
    }

    /// Its part with another way.
    pub(crate) fn with(&self, quick: Quick) -> Self {
        Self::new(self.counts.clone(), quick, self.priority, self.is_timed)
    }

    #[inline]
    pub(crate) const fn quick(&self) -> Quick {
        match self.way {
            Self::DROP => Quick::Drop,
            Self::NO => Quick::No,
            Self::BACK => Quick::Back,
            to => Quick::Output(to),
        }
    }

    /// Counts a packet of a worker.
    #[inline]
    pub(crate) fn count(&self, worker: usize, bytes: u64) {
        self.counts.add(worker, 1, bytes);
    }

    /// Brings the counters of a worker near.
    #[inline]
    pub(crate) fn prefetch_counts(&self, worker: usize) {
        self.counts.prefetch(worker);
    }
}
