//! [`Graphs`]: recorded work of batches that repeat.

use super::form::Form;
use crate::driver::{Driver, Graph};

/// The number of graphs that a slot keeps, and the number of earlier batches that it remembers.
const KEPT: usize = 8;

/// The work that a graph was recorded from, besides the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    /// [`Launch::id`](super::owner): the program, the table's copy and the blocks.
    pub(super) launch: u64,
    pub(super) form: Form,
}

/// The graphs of a slot, the last used one last.
#[derive(Default)]
pub(super) struct Graphs {
    kept: Vec<(Recorded, Graph)>,
    /// Work that was done once without a graph.
    seen: Vec<Recorded>,
}

/// The plan for a batch.
pub(super) enum Plan {
    Replay(Graph),
    Record,
    /// Work without a graph, because it was not seen before: recording could cost more than it ever saves.
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

    /// Keeps a graph. If there are too many it replaces the graph that was not used for the longest time.
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
