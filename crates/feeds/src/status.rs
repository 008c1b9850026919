//! [`Status`]: what an operator wants to know of a feed.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

/// The state and the counters of a feed, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Whether the first state was whole.
    pub synced: bool,
    /// The time since when the routes age, because their source is lost.
    pub stale_since: Option<SystemTime>,
    /// The prefixes that have a path.
    pub prefixes: u64,
    /// Messages read, those that were skipped included.
    pub messages: u64,
    /// Changes told. A route that changes more than once in what is read at once is told once.
    pub changes: u64,
    /// Connections that were accepted; for the kernel, the sockets opened.
    pub connections: u64,
    /// Connections that were dropped for a violation of their protocol.
    pub violations: u64,
    /// The times that the kernel's buffer overran.
    pub overruns: u64,
    /// The times that the state was compared with its source.
    pub resyncs: u64,
    /// Messages that were skipped, by reason.
    pub skipped: BTreeMap<Skip, u64>,
    /// The routers and their peers; `None` if the feed is not of BMP.
    pub monitored: Option<Monitored>,
}

/// The routers that a feed of BMP hears, and their peers. A router's own choice of routes is a peer, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Monitored {
    /// Routers that are connected.
    pub routers: u64,
    /// Peers that are up.
    pub peers_up: u64,
    /// Peers that went down since their router connected, or were lost with their router, and are not back.
    pub peers_down: u64,
    /// The times that a peer came up.
    pub ups: u64,
    /// The times that a peer went down, or was lost with its router.
    pub downs: u64,
}

impl Status {
    /// Counts a message that is skipped.
    pub(crate) fn skip(&mut self, reason: Skip) {
        *self.skipped.entry(reason).or_default() += 1;
    }
}

/// The reason why a message or a part of one is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Skip {
    /// A message is shorter than its own fields say.
    Truncated,
    /// A field has a value that its protocol does not allow.
    Malformed,
    /// A message is of a kind that says nothing about routes.
    OtherKind,
    /// A route is of an address family other than IPv4 and IPv6, or of multicast.
    OtherFamily,
    /// A route holds for packets of some types of service or sources only.
    Selective,
    /// A route has an MTU of its own, which is passed over. The route is told.
    RouteMtu,
    /// A route is a cached result of the kernel, not a route.
    Cached,
    /// A route names a next-hop object that was not announced.
    UnknownNextHop,
    /// A withdrawn route was not there.
    NotThere,
    /// A route is over the number that the feed may hold.
    OverCap,
    /// A message is of a peer that was not announced.
    UnknownPeer,
    /// A message is of a peer or a table that is not wanted.
    NotWanted,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "truncated",
            Self::Malformed => "malformed",
            Self::OtherKind => "of another kind",
            Self::OtherFamily => "of another family",
            Self::Selective => "for some packets only",
            Self::RouteMtu => "MTU of a route",
            Self::Cached => "cached",
            Self::UnknownNextHop => "next hop not announced",
            Self::NotThere => "withdrawn, but not there",
            Self::OverCap => "over the cap",
            Self::UnknownPeer => "peer not announced",
            Self::NotWanted => "not wanted",
        })
    }
}

impl From<crate::netlink::Fault> for Skip {
    fn from(fault: crate::netlink::Fault) -> Self {
        match fault {
            crate::netlink::Fault::Truncated => Self::Truncated,
            crate::netlink::Fault::Malformed => Self::Malformed,
        }
    }
}
