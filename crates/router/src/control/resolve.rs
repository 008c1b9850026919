//! [`resolve`]: what the forwarder does with the packets of a path. [`Links`]: the interfaces that it knows.

use std::collections::HashMap;

use wirespeed_feeds::{Hop as FeedHop, Link, Path, PathKind};

use super::neighbours::{Neighbours, Seen};
use crate::{Group, Hop, Mac, PortId, Route};

/// The interfaces of the kernel, and which of them are ports.
pub(super) struct Links {
    ports: HashMap<u32, PortId>,
    links: HashMap<u32, Link>,
    is_touched: bool,
}

impl Links {
    pub(super) fn new(ports: HashMap<u32, PortId>) -> Self {
        Self { ports, links: HashMap::new(), is_touched: false }
    }

    pub(super) fn set(&mut self, link: Link) {
        let index = link.index;
        let is_port = self.ports.contains_key(&index);
        let old = self.links.insert(index, link);
        self.is_touched |= is_port && old.as_ref() != self.links.get(&index);
    }

    pub(super) fn remove(&mut self, index: u32) {
        self.is_touched |= self.links.remove(&index).is_some() && self.ports.contains_key(&index);
    }

    /// Whether a port's link changed since the last call.
    pub(super) fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.is_touched)
    }

    /// The port of an interface.
    pub(super) fn port(&self, interface: u32) -> Option<PortId> {
        self.ports.get(&interface).copied()
    }

    /// The number of ports.
    pub(super) fn ports(&self) -> usize {
        self.ports.len()
    }

    /// The interfaces that are ports.
    pub(super) fn each(&self) -> impl Iterator<Item = (u32, PortId)> + '_ {
        self.ports.iter().map(|(&interface, &port)| (interface, port))
    }

    /// The link-layer address of an interface.
    pub(super) fn mac(&self, interface: u32) -> Option<Mac> {
        mac_of(self.links.get(&interface)?)
    }
}

/// The next hop of a path's hop: `None` if the kernel has to take its packets.
enum Resolved {
    Hop(Hop),
    /// Nobody answers there, as the kernel found.
    Dead,
    Kernel,
}

/// What the forwarder does with the packets of a path.
pub(super) fn resolve(path: &Path, links: &Links, neighbours: &Neighbours) -> Route {
    match path.kind {
        PathKind::Unicast => {}
        PathKind::Blackhole => return Route::Blackhole,
        PathKind::Unreachable => return Route::Unreachable,
        PathKind::Prohibit => return Route::Prohibited,
        // The kernel's own addresses, and what only it can decide.
        PathKind::Local | PathKind::Broadcast | PathKind::Anycast | PathKind::Multicast | PathKind::Throw => {
            return Route::Kernel;
        }
    }
    let mut hops = Vec::new();
    for hop in path.live_hops() {
        match of_hop(hop, links, neighbours) {
            Resolved::Hop(resolved) => hops.push((resolved, hop.weight)),
            Resolved::Dead => {}
            // With one hop unknown the kernel spreads the flows, and so finds the hop.
            Resolved::Kernel => return Route::Kernel,
        }
    }
    match hops[..] {
        // The kernel tells the senders.
        [] => Route::Kernel,
        [(hop, _)] => Route::Via(hop),
        _ => Group::new(hops).map_or(Route::Kernel, Route::Group),
    }
}

fn of_hop(hop: &FeedHop, links: &Links, neighbours: &Neighbours) -> Resolved {
    let (Some(port), Some(link)) = (links.port(hop.interface), links.links.get(&hop.interface)) else {
        return Resolved::Kernel;
    };
    let (Some(gateway), Some(mac), true) = (hop.gateway, mac_of(link), link.up && !hop.encapsulated) else {
        return Resolved::Kernel;
    };
    match neighbours.of(hop.interface, gateway) {
        Seen::At(neighbour) => {
            // Larger packets than 65,535 bytes are in no frame.
            let mtu = u16::try_from(link.mtu).unwrap_or(u16::MAX);
            Resolved::Hop(Hop::new(port, neighbour, mac, mtu))
        }
        Seen::Failed => Resolved::Dead,
        Seen::Unknown => Resolved::Kernel,
    }
}

/// The address of a link, in the router's type.
fn mac_of(link: &Link) -> Option<Mac> {
    link.mac.map(|mac| Mac(mac.0))
}
