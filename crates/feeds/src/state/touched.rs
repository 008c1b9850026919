//! [`Touched`]: the prefixes that changed, with their path before.

use std::collections::HashMap;
use std::collections::hash_map::Drain;
use std::sync::Arc;

use ipnet::IpNet;

use crate::model::{Batch, Change, Path, Route, TableId};

/// The prefixes that changed since changes were told last, with the path that was told.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    before: HashMap<(TableId, IpNet), Option<Arc<Path>>>,
}

impl Touched {
    pub(crate) fn len(&self) -> usize {
        self.before.len()
    }

    /// Notes a prefix, with its path before this change.
    pub(crate) fn note(&mut self, table: TableId, prefix: IpNet, before: Option<Arc<Path>>) {
        self.before.entry((table, prefix)).or_insert(before);
    }

    /// Takes all that was noted.
    pub(crate) fn drain(&mut self) -> Drain<'_, (TableId, IpNet), Option<Arc<Path>>> {
        /// A map that once was larger gives its memory back.
        const LARGE: usize = 1 << 16;
        if self.before.capacity() > LARGE && self.before.len() < LARGE / 4 {
            self.before.shrink_to(LARGE / 2);
        }
        self.before.drain()
    }
}

/// Appends the change from one path to another, if there is one.
pub(crate) fn tell(
    to: &mut Batch,
    table: TableId,
    prefix: IpNet,
    before: Option<&Arc<Path>>,
    now: Option<&Arc<Path>>,
) {
    match (before, now) {
        (Some(before), Some(now)) if Arc::ptr_eq(before, now) || before == now => {}
        (_, Some(path)) => to.push(Change::Route(Route { table, prefix, path: Arc::clone(path) })),
        (Some(_), None) => to.push(Change::RouteGone { table, prefix }),
        (None, None) => {}
    }
}
