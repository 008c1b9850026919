//! [`Followed`]: a source of routes that is followed live, as the command line names it, and its
//! [`State`].

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use wirespeed_feeds::bmp::{PeerStatus, Peers};
use wirespeed_feeds::{Feed, Monitored, Skip, Status, bmp, fpm, kernel};
use wirespeed_router::metrics::SourceState;

use crate::number::{Grouped, counted_u64};

/// A source of routes that is followed live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Followed {
    /// The kernel, by netlink.
    Kernel,
    /// FRR, which connects to this address by FPM.
    Fpm(SocketAddr),
    /// Routers, which connect to this address by BMP.
    Bmp(SocketAddr),
}

impl FromStr for Followed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "a source is kernel, fpm:ADDRESS:PORT or bmp:ADDRESS:PORT".to_owned();
        let address = |text: &str| text.parse::<SocketAddr>().map_err(|_| wrong());
        match text.split_once(':') {
            None if text == "kernel" => Ok(Self::Kernel),
            Some(("fpm", rest)) => address(rest).map(Self::Fpm),
            Some(("bmp", rest)) => address(rest).map(Self::Bmp),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Followed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel => f.write_str("kernel"),
            Self::Fpm(address) => write!(f, "fpm:{address}"),
            Self::Bmp(address) => write!(f, "bmp:{address}"),
        }
    }
}

impl Followed {
    /// Starts to follow, or to listen.
    pub(crate) fn open(self) -> Result<Open> {
        let (source, feed, peers) = match self {
            Self::Kernel => (self, kernel::follow(kernel::Options::default())?, None),
            Self::Fpm(address) => {
                let mut options = fpm::Options::default();
                options.address = address;
                let feed = fpm::listen(options)?;
                (Self::Fpm(feed.address().unwrap_or(address)), feed, None)
            }
            Self::Bmp(address) => {
                let mut options = bmp::Options::default();
                options.address = address;
                let (feed, peers) = bmp::listen(options)?;
                (Self::Bmp(feed.address().unwrap_or(address)), feed, Some(peers))
            }
        };
        Ok(Open { source, feed, peers })
    }
}

/// A source that is followed.
pub(crate) struct Open {
    /// The source, with the address that is listened on.
    pub(crate) source: Followed,
    pub(crate) feed: Feed,
    /// The peers of routers of BMP.
    peers: Option<Peers>,
}

/// The state of a source that is followed; in JSON, scripts rely on these keys.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct State {
    pub(crate) source: String,
    /// Whether its first state was whole.
    pub(crate) synced: bool,
    /// Seconds since the source was lost; `null` while it is there.
    pub(crate) stale_s: Option<f64>,
    pub(crate) prefixes: u64,
    /// Messages that were read, those that were skipped included.
    pub(crate) messages: u64,
    /// Changes that it told. A route that changes more than once in what is read at once is told once.
    pub(crate) changes: u64,
    /// The times that its state was compared with the source again.
    pub(crate) resyncs: u64,
    pub(crate) connections: u64,
    /// Connections that were dropped for a violation of their protocol.
    pub(crate) violations: u64,
    /// The times that the kernel's buffer overran.
    pub(crate) overruns: u64,
    /// Messages that were skipped, by reason.
    pub(crate) skipped: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bmp: Option<Bmp>,
}

/// The routers of BMP, and their peers. Each peer is asked for when this is written.
#[derive(Clone, Debug)]
pub(crate) struct Bmp {
    counts: Monitored,
    peers: Peers,
}

/// Scripts rely on these keys of the JSON.
impl Serialize for Bmp {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Monitored { routers, peers_up, peers_down, ups, downs, .. } = self.counts;
        let mut object = to.serialize_struct("Bmp", 6)?;
        for (key, count) in [
            ("routers", routers),
            ("peers_up", peers_up),
            ("peers_down", peers_down),
            ("ups", ups),
            ("downs", downs),
        ] {
            object.serialize_field(key, &count)?;
        }
        let peers: Vec<PeerState> = self.peers.list().into_iter().map(PeerState::of).collect();
        object.serialize_field("peers", &peers)?;
        object.end()
    }
}

/// A view of a peer of BMP; in JSON, scripts rely on these keys.
#[derive(Debug, Serialize)]
pub(crate) struct PeerState {
    router: IpAddr,
    router_name: String,
    peer: IpAddr,
    asn: u32,
    view: String,
    up: bool,
    /// Seconds since it came up, went down or was lost.
    since_s: f64,
    /// Whether its routes count.
    active: bool,
    routes: u64,
    announced: u64,
    withdrawn: u64,
    malformed: u64,
    end_of_rib: bool,
}

impl PeerState {
    fn of(status: PeerStatus) -> Self {
        let PeerStatus { router, router_name, asn, up, active, routes, .. } = status;
        let PeerStatus { announced, withdrawn, malformed, end_of_rib, .. } = status;
        Self {
            router,
            router_name,
            peer: status.address,
            asn,
            view: status.view.to_string(),
            up,
            since_s: age(status.since).as_secs_f64(),
            active,
            routes,
            announced,
            withdrawn,
            malformed,
            end_of_rib,
        }
    }
}

/// Writes a peer as a line.
impl fmt::Display for PeerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { router, router_name, peer, asn, view, since_s, announced, withdrawn, malformed, .. } =
            self;
        // The name is the router's word, and may have any character.
        write!(f, "{peer} AS{asn} {view} of {router} {router_name:?}: ")?;
        f.write_str(if self.up { "up" } else { "down" })?;
        write!(f, " for {since_s:.0} s, {}", counted_u64(self.routes, "route"))?;
        f.write_str(if self.active { "" } else { " that don't count" })?;
        write!(f, ", {} announced, {} withdrawn", Grouped(*announced), Grouped(*withdrawn))?;
        if *malformed > 0 { write!(f, ", {} malformed", Grouped(*malformed)) } else { Ok(()) }
    }
}

/// The time since then. A clock that was set back makes nothing older.
fn age(since: SystemTime) -> Duration {
    SystemTime::now().duration_since(since).unwrap_or(Duration::ZERO)
}

impl Open {
    /// The state now.
    pub(crate) fn state(&self) -> State {
        State::of(self.source, self.feed.status(), self.peers.as_ref())
    }
}

/// What routes say that is not followed, and how a warning puts it.
pub(crate) const UNFOLLOWED: [(Skip, &str); 2] = [
    (
        Skip::Selective,
        "for one type of service or from one source only (`tos`, `from`), which are passed over",
    ),
    (Skip::RouteMtu, "with an MTU of their own (`mtu`), for which the MTU of their interface counts"),
];

impl State {
    /// Whether the source has routes that are not followed in whole.
    pub(crate) fn has_unfollowed(&self) -> bool {
        UNFOLLOWED.iter().any(|(reason, _)| self.skipped.contains_key(&reason.to_string()))
    }

    /// The peers of BMP.
    pub(crate) fn peers(&self) -> impl Iterator<Item = PeerState> {
        self.bmp.iter().flat_map(|bmp| bmp.peers.list()).map(PeerState::of)
    }

    fn of(source: Followed, status: Status, peers: Option<&Peers>) -> Self {
        let Status {
            synced,
            stale_since,
            prefixes,
            messages,
            changes,
            connections,
            violations,
            overruns,
            resyncs,
            skipped,
            monitored,
            ..
        } = status;
        Self {
            source: source.to_string(),
            synced,
            stale_s: stale_since.map(|since| age(since).as_secs_f64()),
            prefixes,
            messages,
            changes,
            resyncs,
            connections,
            violations,
            overruns,
            skipped: skipped.into_iter().map(|(reason, count)| (reason.to_string(), count)).collect(),
            bmp: peers.cloned().map(|peers| Bmp { counts: monitored.unwrap_or_default(), peers }),
        }
    }
}

impl State {
    /// The state as metrics tell it.
    pub(crate) fn of_metrics(&self) -> SourceState {
        let mut state = SourceState::default();
        state.source.clone_from(&self.source);
        state.is_synced = self.synced;
        state.stale = self.stale_s.map(Duration::from_secs_f64);
        state.prefixes = self.prefixes;
        state.messages = self.messages;
        state.changes = self.changes;
        state.resyncs = self.resyncs;
        state.connections = self.connections;
        state.violations = self.violations;
        state.overruns = self.overruns;
        state.skipped = self.skipped.values().sum();
        state.monitored = self.bmp.as_ref().map(|bmp| bmp.counts);
        state
    }
}

/// Writes a state as a line.
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, prefixes, changes, resyncs, .. } = self;
        write!(
            f,
            "{source}: {}, {}, {}",
            counted_u64(*prefixes, "route"),
            counted_u64(*changes, "change"),
            counted_u64(*resyncs, "resync")
        )?;
        if let Some(Bmp { counts: Monitored { routers, peers_up, peers_down, downs, .. }, .. }) = &self.bmp {
            let (routers, up) = (counted_u64(*routers, "router"), counted_u64(*peers_up, "peer"));
            write!(f, ", {routers}, {up} up, {} down", Grouped(*peers_down))?;
            if *downs > 0 {
                write!(f, ", {} lost since the start", Grouped(*downs))?;
            }
        }
        let skipped = self.skipped.values().sum();
        for (count, what) in
            [(self.overruns, "overruns"), (self.violations, "violations"), (skipped, "messages skipped")]
        {
            if count > 0 {
                write!(f, ", {} {what}", Grouped(count))?;
            }
        }
        match self.stale_s {
            Some(seconds) => write!(f, ", stale for {seconds:.0} s"),
            None if !self.synced => f.write_str(", not whole yet"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_and_written_alike() {
        for text in ["kernel", "fpm:127.0.0.1:2620", "bmp:[::1]:11019"] {
            assert_eq!(text.parse::<Followed>().unwrap().to_string(), text);
        }
        for text in ["", "fpm", "fpm:", "fpm:127.0.0.1", "bmp:localhost:1", "bgp:127.0.0.1:179", "kernel:"] {
            assert!(text.parse::<Followed>().is_err(), "{text}");
        }
    }
}
