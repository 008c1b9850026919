//! [`AnyApp`]: an application without its type, so that workers are compiled once. A worker calls it a few
//! times for each chunk.

use std::collections::VecDeque;

use crate::{App, Chunk, Memory};

/// The methods of [`App`] for an application of any type. It keeps the states of the chunks that are under
/// way, and takes chunks back in the order in which they came.
pub(crate) trait AnyApp {
    fn pre_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory);

    /// Whether the answers of the first chunk under way are there. Without such a chunk they are not.
    fn is_ready(&self) -> bool;

    /// Ends the first chunk under way, which is `chunk`.
    fn post_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory);

    fn make(&mut self, chunk: &mut Chunk, memory: &mut Memory);

    fn suited_to_gpu(&self) -> Option<usize>;

    fn least_for_gpu(&self) -> usize;

    fn counters(&self) -> Vec<(&'static str, u64)>;
}

/// Takes the type off an application.
pub(crate) fn any<'a, A: App + 'a>(app: A) -> Box<dyn AnyApp + 'a> {
    Box::new(InOrder { app, under_way: VecDeque::new() })
}

/// An application, and what it knows about its chunks.
struct InOrder<A: App> {
    app: A,
    under_way: VecDeque<A::Pending>,
}

impl<A: App> AnyApp for InOrder<A> {
    fn pre_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory) {
        self.under_way.push_back(self.app.pre_shade(chunk, memory));
    }

    fn is_ready(&self) -> bool {
        self.under_way.front().is_some_and(|pending| self.app.is_ready(pending))
    }

    fn post_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory) {
        let pending = self.under_way.pop_front().expect("a chunk is read before it ends");
        self.app.post_shade(chunk, memory, pending);
    }

    fn make(&mut self, chunk: &mut Chunk, memory: &mut Memory) {
        self.app.make(chunk, memory);
    }

    fn suited_to_gpu(&self) -> Option<usize> {
        self.app.suited_to_gpu()
    }

    fn least_for_gpu(&self) -> usize {
        self.app.least_for_gpu()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.app.counters()
    }
}
