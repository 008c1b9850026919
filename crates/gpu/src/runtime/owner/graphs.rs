//! [`Graphs`]: the work of batches that come again and again, recorded.

use crate::driver::{Driver, Graph};
use crate::runtime::form::Form;

/// How many graphs a slot keeps, and of how many batches before it remembers what they were.
const KEPT: usize = 8;

/// What a graph was recorded from, besides the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    /// [`Launch::id`](super::launch::Launch::id): the program, the table's copy and the blocks.
    pub(super) launch: u64,
    pub(super) form: Form,
}

/// The graphs of a slot, the last used last.
#[derive(Default)]
pub(in crate::runtime) struct Graphs {
    kept: Vec<(Recorded, Graph)>,
    /// What was done once without a graph.
    seen: Vec<Recorded>,
}

/// What to do about a batch.
pub(super) enum Plan {
    Replay(Graph),
    Record,
    /// Goes without a graph, as it hasn't come before: recording it would cost more than it may ever save.
    Plain,
}

impl Graphs {
    pub(super) fn plan(&mut self, what: Recorded) -> Plan {
        if let Some(at) = self.kept.iter().position(|(recorded, _)| *recorded == what) {
            let found = self.kept.remove(at);
            self.kept.push(found);
            return Plan::Replay(found.1);
        }
        if let Some(at) = self.seen.iter().position(|seen| *seen == what) {
            self.seen.remove(at);
            return Plan::Record;
        }
        if self.seen.len() == KEPT {
            self.seen.remove(0);
        }
        self.seen.push(what);
        Plan::Plain
    }

    /// Keeps a graph, in place of the one that was not used for the longest time where there are many.
    pub(super) fn keep(&mut self, what: Recorded, graph: Graph, driver: &mut dyn Driver) {
        if self.kept.len() == KEPT {
            driver.drop_graph(self.kept.remove(0).1);
        }
        self.kept.push((what, graph));
    }

    pub(super) fn drop_all(&mut self, driver: &mut dyn Driver) {
        for (_, graph) in self.kept.drain(..) {
            driver.drop_graph(graph);
        }
    }
}
