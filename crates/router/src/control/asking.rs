//! [`Asking`]: neighbours that the kernel is asked to resolve, since it doesn't see the packets to them.
//!
//! ```text
//! worker ─ packet for the kernel ─► Wanted: its destination ─► Control ─ next hop, host ─► Asking ─► kernel
//!                                                                ▲                                  │
//!                                                                └────── feed: a neighbour ◄────────┘
//! ```
//!
//! The kernel would resolve a packet's next hop when it forwards the packet. At ports of AF_PACKET its own
//! forwarding is off, for IPv6 at all interfaces, so there it resolves nothing by itself.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use wirespeed_feeds::kernel::Resolver;

use crate::header::{TYPE_IPV4, TYPE_IPV6, network};
use crate::{Error, Kernel, PortId};

/// How long a neighbour is left alone once the kernel was asked for it: so long does the kernel try itself.
const PAUSE: Duration = Duration::from_secs(3);
/// Neighbours that are asked for at most in [`PAUSE`]. An attacker who scans a link fills this, and not the
/// kernel's table.
const MOST: usize = 512;
/// Destinations that wait for the control thread. More are forgotten: their next packets tell again.
const WAITING: usize = 256;

/// A destination, and the port that its packet came from, whose VRF says where it is.
type Wanted = (PortId, IpAddr);

/// Neighbours that the kernel was asked for not long ago.
pub(super) struct Asking {
    resolver: Resolver,
    asked: HashMap<(u32, IpAddr), Instant>,
    wanted: Receiver<Wanted>,
    sender: SyncSender<Wanted>,
}

impl Asking {
    pub(super) fn open() -> Result<Self, Error> {
        let (sender, wanted) = sync_channel(WAITING);
        let resolver = Resolver::open().map_err(Error::Feed)?;
        Ok(Self { resolver, asked: HashMap::new(), wanted, sender })
    }

    /// A way for workers to tell destinations.
    pub(super) fn wants(&self) -> Wants {
        Wants(self.sender.clone())
    }

    /// The destinations that workers told since the last call, each once.
    pub(super) fn wanted(&self) -> Vec<Wanted> {
        let mut wanted: Vec<Wanted> = self.wanted.try_iter().take(WAITING).collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    /// Asks the kernel for a neighbour, unless it was asked a moment ago or has too many to look for.
    pub(super) fn ask(&mut self, interface: u32, address: IpAddr) -> Result<(), Error> {
        let now = Instant::now();
        if self.asked.len() >= MOST {
            self.asked.retain(|_, since| now.duration_since(*since) < PAUSE);
        }
        if let Some(since) = self.asked.get(&(interface, address))
            && now.duration_since(*since) < PAUSE
        {
            return Ok(());
        }
        if self.asked.len() >= MOST {
            return Ok(());
        }
        self.asked.insert((interface, address), now);
        self.resolver.ask(interface, address).map_err(Error::Feed)
    }
}

/// A way for workers to tell the destinations of packets whose next hops may have to be resolved.
#[derive(Clone, Debug)]
pub struct Wants(SyncSender<Wanted>);

impl Wants {
    /// Gives packets to `kernel`, and tells their destinations.
    #[must_use]
    pub fn told_by<K: Kernel>(&self, kernel: K) -> Asked<K> {
        Asked { kernel, wanted: self.0.clone() }
    }
}

/// Gives packets to the kernel, and tells their destinations: see [`Wants::told_by`].
#[derive(Debug)]
pub struct Asked<K> {
    kernel: K,
    wanted: SyncSender<Wanted>,
}

impl<K: Kernel> Kernel for Asked<K> {
    fn take(&mut self, port: PortId, frame: &[u8]) {
        if let Some(destination) = destination(frame) {
            // A full queue forgets it, and a control thread that has ended wants none.
            let _ = self.wanted.try_send((port, destination));
        }
        self.kernel.take(port, frame);
    }
}

/// The destination of the packet in a frame.
fn destination(frame: &[u8]) -> Option<IpAddr> {
    match network(frame).ok()? {
        (TYPE_IPV4, at) => Some(IpAddr::from(*frame.get(at + 16..)?.first_chunk::<4>()?)),
        (TYPE_IPV6, at) => Some(IpAddr::from(*frame.get(at + 24..)?.first_chunk::<16>()?)),
        _ => None,
    }
}
