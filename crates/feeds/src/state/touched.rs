//! [`Touched`]: the prefixes that changed, with their path before and now.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use foldhash::HashMap;
use ipnet::IpNet;

use crate::model::{Batch, Change, Path, Route, TableId};

/// The prefixes that changed since changes were told last.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    paths: HashMap<(TableId, IpNet), Paths>,
}

/// The paths of a prefix.
#[derive(Debug)]
struct Paths {
    /// The path that was told last.
    told: Option<Arc<Path>>,
    now: Option<Arc<Path>>,
}

impl Touched {
    pub(crate) fn len(&self) -> usize {
        self.paths.len()
    }

    /// Notes a prefix if its path changed.
    pub(crate) fn note(
        &mut self,
        table: TableId,
        prefix: IpNet,
        before: Option<Arc<Path>>,
        now: Option<&Arc<Path>>,
    ) {
        let is_unchanged = match (&before, now) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (before, now) => before.is_none() && now.is_none(),
        };
        if is_unchanged {
            return;
        }
        let now = now.cloned();
        match self.paths.entry((table, prefix)) {
            Entry::Occupied(mut entry) => entry.get_mut().now = now,
            Entry::Vacant(entry) => drop(entry.insert(Paths { told: before, now })),
        }
    }

    /// Appends the changes since the last call.
    pub(crate) fn drain(&mut self, to: &mut Batch) {
        /// A map that once was larger gives its memory back.
        const LARGE: usize = 1 << 16;
        to.reserve(self.paths.len());
        for ((table, prefix), Paths { told, now }) in self.paths.drain() {
            match (told, now) {
                (told, Some(path)) if told.as_ref() != Some(&path) => {
                    to.push(Change::Route(Route { table, prefix, path }));
                }
                (Some(_), None) => to.push(Change::RouteGone { table, prefix }),
                (Some(_), Some(_)) | (None, _) => {}
            }
        }
        self.paths.shrink_to(LARGE);
    }
}
