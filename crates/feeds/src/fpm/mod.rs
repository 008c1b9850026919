//! FRR's routes, by its Forwarding Plane Manager: zebra's module `dplane_fpm_nl` connects, and sends netlink
//! messages.
//!
//! ```text
//! zebra ──TCP 2620──► frame { version 1, type 1, length } ──► netlink messages ──► state ──► changes
//! ```
//!
//! - Next hops come as objects with identifiers, and routes name them. FRR's `no fpm use-next-hop-groups`
//!   sends them within the routes, which works as well.
//! - A changed route comes as a withdrawal and an announcement. Here that is one change.
//! - FPM has no end marker. The table is taken for whole when nearly no new prefix has come for
//!   [`Options::first_quiet`]. After a reconnect the routes that did not come again are removed when that
//!   holds for [`Options::quiet`].
//! - Routes stay when the connection ends: forwarding goes on, and [`Status::stale_since`](crate::Status)
//!   says since when nobody vouches for them.
//! - A frame that violates the protocol ends the connection with a warning. zebra connects again within some
//!   seconds, and sends everything. A message with a wrong value within a valid frame is only skipped and
//!   counted: to drop the connection for it would only bring it again.
//! - One connection counts: the newest of those that sent a valid frame. Somebody who only connects, or sends
//!   something else, does not end the connection of FRR.
//!
//! Listen before FRR starts; some versions try to connect only once. In FRR:
//!
//! ```text
//! zebra -M dplane_fpm_nl                       # as an option in /etc/frr/daemons
//! fpm address 127.0.0.1 port 2620              # in the configuration
//! ```

mod frame;
mod session;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

pub(crate) use session::read;

use crate::error::Error;
use crate::feed::Feed;
use crate::tcp;

/// The settings of [`listen`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The address to listen on. Nothing authenticates the sender, so the default is the loopback's.
    pub address: SocketAddr,
    /// After a reconnect the table is taken for whole when at most a thousandth of its prefixes came anew
    /// within this time. A table without any route takes twelve times as long. If the time is too short,
    /// routes that come late are removed for a while.
    pub quiet: Duration,
    /// The time for the first table, where no route can be removed too early. FRR rests for a second where
    /// its buffer is full.
    pub first_quiet: Duration,
    /// The prefixes that the feed holds at most. Others are skipped and counted.
    pub cap: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 2620)),
            quiet: Duration::from_secs(5),
            first_quiet: Duration::from_millis(1500),
            cap: 16 << 20,
        }
    }
}

/// Listens for FRR, and starts a feed of its routes.
///
/// Fails if the address can't be listened on. [`Feed::address`] is the one that is listened on.
pub fn listen(options: Options) -> Result<Feed, Error> {
    let listener = tcp::listen(options.address)?;
    let address = listener.local_addr().ok();
    let feed = Feed::start("FPM", move |out| {
        session::run(&listener, &options, out);
        Ok(())
    })?;
    Ok(feed.at(address))
}
