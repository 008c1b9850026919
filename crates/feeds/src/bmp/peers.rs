//! [`Peers`]: what an operator wants to know of the peers.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::View;

/// The peers of a feed, as they are at each call.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    shared: Arc<Mutex<Vec<PeerStatus>>>,
}

/// A view of a peer: its state and its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerStatus {
    /// The address of the router that tells.
    pub router: IpAddr,
    /// The name that the router gives itself.
    pub router_name: String,
    /// The peer's address; `0.0.0.0` for the router's own choice.
    pub address: IpAddr,
    /// The peer's AS.
    pub asn: u32,
    /// The table that is shown.
    pub view: View,
    /// Whether the router says that the peer is up, and the router is connected.
    pub up: bool,
    /// The time when the peer came up, went down, or was lost with its router.
    pub since: SystemTime,
    /// Whether routes of this view count: no better view of the peer is there.
    pub active: bool,
    /// Routes that are held.
    pub routes: u64,
    /// Routes announced, repeated ones included.
    pub announced: u64,
    /// Routes withdrawn.
    pub withdrawn: u64,
    /// UPDATE messages that were skipped because they are malformed.
    pub malformed: u64,
    /// Whether the peer marked the end of its first pass.
    pub end_of_rib: bool,
}

impl Peers {
    /// The peers now: those that are up, those whose routes are held until their router is back, and those
    /// that went down since their router connected. Takes a lock for a moment.
    #[must_use]
    pub fn list(&self) -> Vec<PeerStatus> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, peers: Vec<PeerStatus>) {
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = peers;
    }
}
