//! [`Plan`]: how a trace is driven.

use std::fmt;
use std::time::Duration;

use crate::device::On;
use crate::number::grouped;

/// A plan: how much of a trace to drive, on which devices and how many threads, for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verbs) struct Plan {
    /// Keys of the trace, at least one.
    pub(in crate::verbs) len: usize,
    /// Keys of a batch, at least 1.
    pub(in crate::verbs) batch: usize,
    /// Lookup threads, at least 1.
    pub(in crate::verbs) threads: usize,
    /// Batches of a thread that are under way at once, where a GPU may look up; at least 1.
    pub(in crate::verbs) in_flight: usize,
    /// The only device that looks up. Without it each batch goes where it is answered sooner.
    pub(in crate::verbs) only: Option<On>,
    /// How long the trace is repeated.
    pub(in crate::verbs) time: Duration,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { batch, threads, in_flight, only, .. } = *self;
        let device = match only {
            None => "GPU and CPU",
            Some(On::Gpu) => "GPU",
            Some(On::Cpu) => "CPU",
        };
        write!(f, "{device}, batches of {}, threads {threads}", grouped(batch))?;
        if only == Some(On::Cpu) { Ok(()) } else { write!(f, ", {in_flight} in flight") }
    }
}
