//! [`LiveTable`] and [`Updates`]: from the changes of a feed to a table that looks up.
//!
//! ```text
//! Feed ──► Batch ──► Updates: the wanted tables, paths interned as labels ──► IpTable ──► readers
//! ```

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use rustc_hash::FxHashMap;
use wirespeed::{
    AnyUpdate, IpReader, IpTable, Ipv4Table, Ipv6Table, Labels, NextHop, Rib, V4, V6, VrfId, VrfUpdate,
};

use crate::error::Error;
use crate::feed::Feed;
use crate::model::{Change, Path, Route, TableId};

/// A table that follows a feed. Its next hops are labels: the [`Path`]s of the feed.
///
/// ```no_run
/// use std::time::Duration;
///
/// use wirespeed_feeds::{LiveTable, kernel};
///
/// let feed = kernel::follow(kernel::Options::default())?;
/// let mut table = LiveTable::of(&feed, Duration::from_secs(30))?;
/// let (reader, labels) = (table.reader(), table.labels().clone());
/// std::thread::spawn(move || {
///     let known = labels.enter(); // before the lookup: then what it finds resolves
///     let found = reader.lookup("192.0.2.1".parse().unwrap());
///     println!("{:?}", known.get(found));
/// });
/// loop {
///     table.follow(&feed, Duration::from_secs(1))?;
/// }
/// # #[allow(unreachable_code)]
/// # Ok::<(), wirespeed_feeds::Error>(())
/// ```
#[derive(Debug)]
pub struct LiveTable {
    table: IpTable,
    updates: Updates,
}

impl LiveTable {
    /// Makes a table of the feed's main table, when the feed has told all of it. A feed that takes longer
    /// than `patience` gives a table of what it told so far.
    pub fn of(feed: &Feed, patience: Duration) -> Result<Self, Error> {
        Self::of_tables(feed, &[TableId::MAIN], patience)
    }

    /// Makes a table of several tables of the feed. The first one that has a prefix gives its path.
    ///
    /// This merges by prefix: a longer prefix of a later table is found before a shorter one of an earlier
    /// table. Linux looks tables up one after the other instead.
    pub fn of_tables(feed: &Feed, tables: &[TableId], patience: Duration) -> Result<Self, Error> {
        let deadline = Instant::now() + patience;
        let labels = Labels::new();
        let mut updates = Updates::of_tables(labels.clone(), tables);
        // Each path is interned once. That claims its label until the table is there.
        // The map holds each path, so that no other one gets its place in memory.
        let mut known: FxHashMap<*const Path, (Arc<Path>, NextHop)> = FxHashMap::default();
        let (mut v4, mut v6) = (Rib::<V4>::new(), Rib::<V6>::new());
        let mut is_synced = false;
        while !is_synced {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(batch) = feed.recv_timeout(left)? else { break };
            is_synced = batch.iter().any(|change| matches!(change, Change::Synced | Change::Resynced(_)));
            for change in &batch {
                let Some((prefix, path)) = updates.wanted(change) else { continue };
                let next_hop = match path {
                    None => None,
                    Some(path) => Some(match known.entry(Arc::as_ptr(&path)) {
                        Entry::Occupied(known) => known.get().1,
                        Entry::Vacant(new) => {
                            let next_hop = labels.intern(Arc::clone(&path))?;
                            new.insert((path, next_hop)).1
                        }
                    }),
                };
                match update(prefix, next_hop)? {
                    AnyUpdate::V4(update) => drop(v4.apply(&update)),
                    AnyUpdate::V6(update) => drop(v6.apply(&update)),
                }
            }
        }
        let v4 = Ipv4Table::builder().labels(&labels).rib(v4).build()?;
        let v6 = Ipv6Table::builder().labels(&labels).rib(v6).build()?;
        known.values().for_each(|&(_, next_hop)| labels.release(next_hop));
        Ok(Self { table: IpTable::new(v4, v6), updates })
    }

    /// Waits for the next batch of the feed, at most as long as `timeout`, and applies it with those that
    /// wait behind it. Returns the number of updates. Readers see all of them at once in each family.
    pub fn follow(&mut self, feed: &Feed, timeout: Duration) -> Result<usize, Error> {
        /// Updates that are applied at once, about.
        const TOGETHER: usize = 1 << 16;
        let Some(first) = feed.recv_timeout(timeout)? else { return Ok(0) };
        let mut updates = Vec::new();
        self.updates.append(&first, &mut updates)?;
        while updates.len() < TOGETHER
            && let Ok(Some(batch)) = feed.recv_timeout(Duration::ZERO)
        {
            self.updates.append(&batch, &mut updates)?;
        }
        self.table.apply(&updates)?;
        Ok(updates.len())
    }

    /// Applies changes. Returns the number of updates.
    pub fn apply(&mut self, changes: &[Change]) -> Result<usize, Error> {
        let mut updates = Vec::new();
        self.updates.append(changes, &mut updates)?;
        self.table.apply(&updates)?;
        Ok(updates.len())
    }

    /// A reader of the table.
    #[must_use]
    pub fn reader(&self) -> IpReader {
        self.table.reader()
    }

    /// The paths that the table's next hops stand for.
    #[must_use]
    pub fn labels(&self) -> &Labels<Arc<Path>> {
        self.updates.labels()
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &IpTable {
        &self.table
    }
}

/// Turns changes of a feed into updates of a table, for services that own their tables.
#[derive(Debug)]
pub struct Updates {
    labels: Labels<Arc<Path>>,
    tables: Vec<TableId>,
    /// The paths of each prefix by table, if there are several tables.
    held: HashMap<IpNet, Vec<(usize, Arc<Path>)>>,
}

impl Updates {
    /// Takes the routes of the main table. The labels must be attached to the tables that get the updates.
    #[must_use]
    pub fn new(labels: Labels<Arc<Path>>) -> Self {
        Self::of_tables(labels, &[TableId::MAIN])
    }

    /// Takes the routes of several tables. The first one that has a prefix gives its path.
    #[must_use]
    pub fn of_tables(labels: Labels<Arc<Path>>, tables: &[TableId]) -> Self {
        Self { labels, tables: tables.to_vec(), held: HashMap::new() }
    }

    /// The paths that next hops stand for.
    #[must_use]
    pub fn labels(&self) -> &Labels<Arc<Path>> {
        &self.labels
    }

    /// Appends the updates that the changes mean.
    ///
    /// Each announcement claims its label, so all updates must be applied to a table to which the labels are
    /// attached. Fails if there are more paths than next hops.
    pub fn append(&mut self, changes: &[Change], to: &mut Vec<AnyUpdate>) -> Result<(), Error> {
        for change in changes {
            if let Some((prefix, path)) = self.wanted(change) {
                let next_hop = path.map(|path| self.labels.intern(path)).transpose()?;
                to.push(update(prefix, next_hop)?);
            }
        }
        Ok(())
    }

    /// Appends the updates that the changes mean to the VRFs of the wanted tables. A VRF has the number of
    /// its table, and must be there when the updates are applied.
    pub fn append_to_vrfs(&self, changes: &[Change], to: &mut Vec<VrfUpdate>) -> Result<(), Error> {
        for change in changes {
            let (table, prefix, path) = match change {
                Change::Route(Route { table, prefix, path }) => (table, prefix, Some(path)),
                Change::RouteGone { table, prefix } => (table, prefix, None),
                _ => continue,
            };
            if self.tables.contains(table) {
                let next_hop = path.map(|path| self.labels.intern(Arc::clone(path))).transpose()?;
                to.push(VrfUpdate::Route(VrfId(table.0), update(*prefix, next_hop)?));
            }
        }
        Ok(())
    }

    /// The path that a prefix has after a change, if the change is one of the wanted tables.
    fn wanted(&mut self, change: &Change) -> Option<(IpNet, Option<Arc<Path>>)> {
        let (table, prefix, path) = match change {
            Change::Route(Route { table, prefix, path }) => (table, *prefix, Some(path)),
            Change::RouteGone { table, prefix } => (table, *prefix, None),
            _ => return None,
        };
        let rank = self.tables.iter().position(|wanted| wanted == table)?;
        if self.tables.len() == 1 {
            return Some((prefix, path.cloned()));
        }
        let mut entry = match self.held.entry(prefix) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(entry) => entry.insert_entry(Vec::new()),
        };
        let held = entry.get_mut();
        let at = held.partition_point(|&(other, _)| other < rank);
        if held.get(at).is_some_and(|&(other, _)| other == rank) {
            held.remove(at);
        }
        if let Some(path) = path {
            held.insert(at, (rank, Arc::clone(path)));
        }
        let best = held.first().map(|(_, path)| Arc::clone(path));
        if best.is_none() {
            entry.remove();
        }
        Some((prefix, best))
    }
}

/// The update that gives a prefix a next hop, or none.
fn update(prefix: IpNet, next_hop: Option<NextHop>) -> Result<AnyUpdate, Error> {
    let update = match next_hop {
        Some(next_hop) => AnyUpdate::announce(prefix, next_hop),
        None => AnyUpdate::withdraw(prefix),
    };
    // Feeds tell prefixes without host bits.
    Ok(update.map_err(wirespeed::Error::from)?)
}
