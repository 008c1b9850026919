//! [`Journal`]: what takes a row of changes back, and what waits until they hold.

use std::sync::Arc;

use super::flow::Flow;
use super::state::Change;
use super::uses::Uses;

/// The changes of a row so far, none of which workers see.
#[derive(Debug)]
pub(crate) struct Journal {
    /// The changes of the state that undo those that were made, in the order of these.
    pub(crate) undo: Vec<Change>,
    /// Flows that came and flows that went: their timers wait.
    pub(crate) came: Vec<Arc<Flow>>,
    pub(crate) went: Vec<Arc<Flow>>,
    /// The numbers before the first change.
    pub(crate) before: Before,
}

/// What a switch counts beside its state, before a row of changes.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) ahead: usize,
    pub(crate) flows: usize,
    pub(crate) uses: Uses,
    pub(crate) gone: usize,
    pub(crate) events: usize,
}

impl Journal {
    pub(crate) const fn new(before: Before) -> Self {
        Self { undo: Vec::new(), came: Vec::new(), went: Vec::new(), before }
    }
}
