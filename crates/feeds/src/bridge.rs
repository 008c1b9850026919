//! [`LiveTable`] and [`Updates`]: from the changes of a feed to a table that looks up.
//!
//! ```text
//! Feed ──► Batch ──► Updates: the wanted tables, paths interned as labels ──► IpTable ──► readers
//! ```

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use wirespeed::{AnyUpdate, IpReader, IpTable, Labels, NextHop, VrfId, VrfUpdate};

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
    /// Makes a table of the feed's main table, when the feed has told all of it. A feed that takes longer than
    /// `patience` gives a table of what it told so far.
    pub fn of(feed: &Feed, patience: Duration) -> Result<Self, Error> {
        Self::of_tables(feed, &[TableId::MAIN], patience)
    }

    /// Makes a table of several tables of the feed. The first one that has a prefix gives its path.
    ///
    /// This merges by prefix: a longer prefix of a later table is found before a shorter one of an earlier
    /// table. Linux looks tables up one after the other instead.
    pub fn of_tables(feed: &Feed, tables: &[TableId], patience: Duration) -> Result<Self, Error> {
        let deadline = std::time::Instant::now() + patience;
        let labels = Labels::new();
        let mut updates = Updates::of_tables(labels.clone(), tables);
        let mut routes: HashMap<IpNet, Arc<Path>> = HashMap::new();
        let mut is_synced = false;
        while !is_synced {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            let Some(batch) = feed.recv_timeout(left)? else { break };
            is_synced = batch.iter().any(|change| matches!(change, Change::Synced | Change::Resynced(_)));
            for change in &batch {
                match updates.wanted(change) {
                    Some((prefix, Some(path))) => routes.insert(prefix, path),
                    Some((prefix, None)) => routes.remove(&prefix),
                    None => None,
                };
            }
        }
        let table = IpTable::builder().labels(&labels).labelled_routes(&labels, routes).build()?;
        Ok(Self { table, updates })
    }

    /// Waits for the next batch of the feed, at most as long as `timeout`, and applies it with those that wait
    /// behind it. Returns the number of updates. Readers see all of them at once in each family.
    pub fn follow(&mut self, feed: &Feed, timeout: Duration) -> Result<usize, Error> {
        /// Updates that are applied at once, about.
        const TOGETHER: usize = 1 << 16;
        let Some(first) = feed.recv_timeout(timeout)? else { return Ok(0) };
        let mut updates = Vec::new();
        self.updates.append(&first, &mut updates)?;
        while updates.len() < TOGETHER
            && let Some(batch) = feed.recv_timeout(Duration::ZERO)?
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
            let update = match self.wanted(change) {
                None => continue,
                Some((prefix, Some(path))) => AnyUpdate::announce(prefix, self.intern(path)?),
                Some((prefix, None)) => AnyUpdate::withdraw(prefix),
            };
            to.push(update.map_err(wirespeed::Error::from)?);
        }
        Ok(())
    }

    /// Appends the updates that the changes mean to a table of each VRF, whose number is that of the kernel's
    /// table. The VRFs must be there: `new` is called for each table of which the first route comes, and says
    /// whether the table is wanted.
    pub fn append_to_vrfs(
        &mut self,
        changes: &[Change],
        to: &mut Vec<VrfUpdate>,
        mut new: impl FnMut(TableId) -> bool,
    ) -> Result<(), Error> {
        for change in changes {
            let update = match change {
                Change::Route(Route { table, prefix, path }) if new(*table) => {
                    VrfUpdate::announce(VrfId(table.0), *prefix, self.intern(Arc::clone(path))?)
                }
                Change::RouteGone { table, prefix } if new(*table) => {
                    VrfUpdate::withdraw(VrfId(table.0), *prefix)
                }
                _ => continue,
            };
            to.push(update.map_err(wirespeed::Error::from)?);
        }
        Ok(())
    }

    fn intern(&self, path: Arc<Path>) -> Result<NextHop, Error> {
        Ok(self.labels.intern(path)?)
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
