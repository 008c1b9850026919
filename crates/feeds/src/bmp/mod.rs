//! Routers' BGP routes, by the BGP Monitoring Protocol (RFC 7854, RFC 8671, RFC 9069).
//!
//! ```text
//! routers ──TCP──► messages: peers up and down, UPDATEs ──► routes by prefix and peer ──► the one that counts
//! ```
//!
//! A router shows up to three views of its routes. Its own choice (Loc-RIB) counts if it is there. Without it
//! those of each peer after the policy count, and without these those before it. If several routes of a
//! prefix count, the shortest AS path wins, then the lowest address of a peer. That is not what routers do,
//! who compare more: where it matters, let the router show its Loc-RIB, or select a peer.
//!
//! - The path of a route is its BGP next hop, with the AS that announced the prefix. Interfaces are not
//!   known.
//! - Routes of VRFs (peers with a distinguisher) and of routes sent to peers (Adj-RIB-Out) are counted and
//!   skipped, as are families other than unicast IPv4 and IPv6.
//! - When a router's connection ends its routes stay, and age. When it is back they are compared: those that
//!   don't come again are removed when nearly no new prefix has come for [`Options::quiet`].
//! - When a router says that a peer is down, the peer's routes go at once.
//! - A message that violates BMP's framing ends the connection with a warning. So does silence: the first
//!   message must come within [`Options::first_message`], or earlier if new connections need the place. An
//!   UPDATE that can't be read is skipped and counted.

mod fault;
mod message;
mod nlri;
mod open;
mod peers;
mod rib;
mod router;
mod session;
mod update;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

pub use message::View;
pub(crate) use message::{Messages, read};
pub use peers::{PeerStatus, Peers};
pub(crate) use rib::Rib;
pub(crate) use router::{Router, Tables};

use crate::error::Error;
use crate::feed::Feed;
use crate::tcp;

/// The settings of [`listen`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The address to listen on. Nothing authenticates the senders, so the default is the loopback's.
    pub address: SocketAddr,
    /// The only peer whose routes are read; all if `None`. The router's own choice is the peer `0.0.0.0`.
    pub peer: Option<IpAddr>,
    /// The only view that is read; the best of each peer if `None`.
    pub view: Option<View>,
    /// The routes of a router are taken for whole when at most a thousandth of them came anew within this
    /// time.
    pub quiet: Duration,
    /// The routes of all peers that the feed holds at most. Others are skipped and counted.
    pub cap: usize,
    /// The time in which a router's first message must be whole. A connection without one is ended, and
    /// counted as a violation.
    pub first_message: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 11_019)),
            peer: None,
            view: None,
            quiet: Duration::from_secs(3),
            cap: 16 << 20,
            first_message: Duration::from_secs(30),
        }
    }
}

/// Listens for routers, and starts a feed of their routes, in the table
/// [`TableId::MAIN`](crate::TableId::MAIN).
///
/// Fails if the address can't be listened on. [`Feed::address`] is the one that is listened on.
pub fn listen(options: Options) -> Result<(Feed, Peers), Error> {
    let listener = tcp::listen(options.address)?;
    let address = listener.local_addr().ok();
    let peers = Peers::default();
    let shared = peers.clone();
    let feed = Feed::start("BMP", move |out| {
        session::run(&listener, &options, &shared, out);
        Ok(())
    })?;
    Ok((feed.at(address), peers))
}
