//! [`Follower`]: a consumer that waits for what it expects.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use wirespeed_feeds::{Change, Feed, Link, Neighbour};

use crate::model::Model;

/// What came of a feed.
pub(crate) struct Follower {
    pub(crate) feed: Feed,
    pub(crate) model: Model,
    pub(crate) links: BTreeMap<u32, Link>,
    pub(crate) addresses: Vec<String>,
    pub(crate) neighbours: BTreeMap<IpAddr, Neighbour>,
    /// Changes since the last wait began.
    pub(crate) seen: Vec<Change>,
}

impl Follower {
    pub(crate) fn new(feed: Feed) -> Self {
        let (links, neighbours) = (BTreeMap::new(), BTreeMap::new());
        Self { feed, model: Model::default(), links, addresses: Vec::new(), neighbours, seen: Vec::new() }
    }

    /// A follower of a feed that has told its first state.
    pub(crate) fn synced(feed: Feed) -> Self {
        let mut follower = Self::new(feed);
        follower.until("Synced", |follower| follower.seen.contains(&Change::Synced));
        follower
    }

    /// Waits until a state is there.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, is_there: impl Fn(&Self) -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        self.seen.clear();
        while !is_there(self) {
            assert!(Instant::now() < end, "{what} did not come: {:?}, {:?}", self.feed.status(), self.model);
            self.take(Duration::from_millis(50));
        }
    }

    /// Takes what comes until nothing has come for a while.
    pub(crate) fn settle(&mut self, quiet: Duration) {
        while self.take(quiet) {}
    }

    fn take(&mut self, timeout: Duration) -> bool {
        let Some(batch) = self.feed.recv_timeout(timeout).unwrap() else { return false };
        self.model.apply(&batch);
        for change in &batch {
            match change {
                Change::Link(link) => drop(self.links.insert(link.index, (**link).clone())),
                Change::LinkGone(index) => drop(self.links.remove(index)),
                Change::Address(address) => self.addresses.push(address.net.to_string()),
                Change::AddressGone(address) => {
                    self.addresses.retain(|other| *other != address.net.to_string());
                }
                Change::Neighbour(neighbour) => {
                    self.neighbours.insert(neighbour.address, *neighbour);
                }
                Change::NeighbourGone { address, .. } => drop(self.neighbours.remove(address)),
                _ => {}
            }
        }
        self.seen.extend(batch);
        true
    }

    pub(crate) fn link(&self, name: &str) -> Option<&Link> {
        self.links.values().find(|link| link.name == name)
    }

    /// Waits until a prefix of the main table has a path, or none.
    #[track_caller]
    pub(crate) fn until_path(&mut self, prefix: &str, path: Option<&str>) {
        self.until(&format!("{prefix} {path:?}"), |follower| follower.model.path(prefix) == path);
    }
}
