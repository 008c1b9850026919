//! [`Hit`]: a flow that a lookup found.

use std::sync::Arc;

use super::flow::Flow;
use super::hot::Hot;

/// A flow that was found: its part for frames, and where the whole flow is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit<'t> {
    pub(crate) hot: &'t Hot,
    /// Most frames don't read it. It is there.
    flow: &'t Option<Arc<Flow>>,
}

impl<'t> Hit<'t> {
    pub(crate) const fn new(hot: &'t Hot, flow: &'t Option<Arc<Flow>>) -> Self {
        Self { hot, flow }
    }

    /// The whole flow.
    pub(crate) const fn flow(&self) -> Option<&'t Arc<Flow>> {
        self.flow.as_ref()
    }

    /// Whether the flow was removed.
    pub(crate) fn is_gone(&self) -> bool {
        self.flow().is_some_and(|flow| flow.life.is_gone())
    }

    /// Counts a packet of a worker, whose time is in milliseconds.
    #[inline]
    pub(crate) fn count(&self, worker: usize, bytes: u64, now: u64) {
        // Where the flow is lies in a line that is in no cache, so it is not looked at without need.
        if self.hot.is_timed
            && let Some(flow) = self.flow
        {
            flow.count(worker, bytes, now);
        } else {
            self.hot.count(worker, bytes);
        }
    }
}
