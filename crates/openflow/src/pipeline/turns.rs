//! [`Turns`]: the times at which the classifiers of tables are built.
//!
//! A classifier is built once the flows for it have not changed for a while, or have changed for long.

use super::front::Since;
use super::state::TABLES;
use crate::wire::Key;

/// The least time in milliseconds without a change of wildcards before their classifier is built. It is also
/// as long as the last building took, so that wildcards which change again and again keep no core busy.
const QUIET: u64 = 200;
/// Such times after which it is built although wildcards still change.
const PATIENCE: u64 = 5;

/// The turns of all tables.
#[derive(Debug)]
pub(crate) struct Turns(Vec<Turn>);

#[derive(Clone, Debug, Default)]
struct Turn {
    /// Counts the times that flows were gathered for a classifier.
    epoch: u64,
    /// Changes since the last of these times, until the classifier is built.
    since: Option<Since>,
    /// The times of the last change of flows that a classifier may hold, and of the first one since flows
    /// were gathered, if there was one.
    changed_at: u64,
    changing_from: Option<u64>,
    /// Milliseconds that the last building took.
    took: u64,
}

impl Default for Turns {
    fn default() -> Self {
        Self(vec![Turn::default(); TABLES.into()])
    }
}

impl Turns {
    /// Notes a change of a flow, which a classifier may hold or not.
    pub(crate) fn note(&mut self, table: u8, mask: &Key, is_lost: bool, suits: bool, now: u64) {
        let turn = &mut self.0[usize::from(table)];
        turn.since.iter_mut().for_each(|since| since.note(mask, is_lost));
        if suits {
            turn.changed_at = now;
            turn.changing_from.get_or_insert(now);
        }
    }

    /// The next table whose turn it is, if there is one.
    pub(crate) fn next(&mut self, now: u64, at_once: bool) -> Option<u8> {
        let is_due = |turn: &&mut Turn| {
            let quiet = turn.took.max(QUIET);
            let due = |from: u64| (turn.changed_at + quiet).min(from + PATIENCE * quiet);
            turn.changing_from.is_some_and(|from| at_once || now >= due(from))
        };
        let (table, turn) = (0_u8..).zip(&mut self.0).find(|(_, turn)| is_due(turn))?;
        turn.changing_from = None;
        Some(table)
    }

    /// Notes that flows of a table are gathered, and returns the number that tells whether they are still
    /// the last ones when the classifier is built.
    pub(crate) fn gathered(&mut self, table: u8) -> u64 {
        let turn = &mut self.0[usize::from(table)];
        turn.epoch += 1;
        turn.since = Some(Since::default());
        turn.epoch
    }

    /// What changed while a classifier was built in so many milliseconds, unless another one is on its way.
    pub(crate) fn built(&mut self, table: u8, epoch: u64, took: u64) -> Option<Since> {
        let turn = &mut self.0[usize::from(table)];
        turn.took = took;
        turn.since.take_if(|_| epoch == turn.epoch)
    }
}
