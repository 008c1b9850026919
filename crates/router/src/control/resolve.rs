//! [`Ways::resolve`]: what the forwarder does with the packets of a path. [`Links`]: the interfaces that it
//! knows.

use std::collections::HashMap;
use std::net::IpAddr;

use wirespeed_feeds::{Hop as FeedHop, Link, Path, PathKind, TableId};

use super::neighbours::{Neighbours, Seen};
use super::routes::{Routes, Vrf};
use crate::{Group, Hop, Mac, PortId, Route};

/// The interfaces of the kernel, and which of them are ports.
pub(super) struct Links {
    /// The interfaces of ports, in their order.
    ports: Vec<u32>,
    /// The place of each there.
    places: HashMap<u32, PortId>,
    links: HashMap<u32, Link>,
    is_touched: bool,
    is_vrf_touched: bool,
}

impl Links {
    pub(super) fn new(ports: Vec<u32>) -> Self {
        // Ports are fewer than their numbers.
        let places = ports.iter().copied().zip((0..=u16::MAX).map(PortId)).collect();
        Self { ports, places, links: HashMap::new(), is_touched: false, is_vrf_touched: true }
    }

    pub(super) fn set(&mut self, link: Link) {
        let index = link.index;
        let is_port = self.port(index).is_some();
        let vrf = (link.vrf, link.master);
        let old = self.links.insert(index, link);
        self.is_touched |= is_port && old.as_ref() != self.links.get(&index);
        self.is_vrf_touched |= old.as_ref().is_none_or(|old| (old.vrf, old.master) != vrf);
    }

    pub(super) fn remove(&mut self, index: u32) {
        let is_gone = self.links.remove(&index).is_some();
        self.is_touched |= is_gone && self.port(index).is_some();
        self.is_vrf_touched |= is_gone;
    }

    /// Whether a port's link changed since the last call.
    pub(super) fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.is_touched)
    }

    /// Whether an interface came, went, or changed its VRF since the last call.
    pub(super) fn take_vrf_touched(&mut self) -> bool {
        std::mem::take(&mut self.is_vrf_touched)
    }

    /// The port of an interface.
    pub(super) fn port(&self, interface: u32) -> Option<PortId> {
        self.places.get(&interface).copied()
    }

    /// The interfaces of ports, in their order.
    pub(super) fn ports(&self) -> &[u32] {
        &self.ports
    }

    /// The link-layer address of an interface.
    pub(super) fn mac(&self, interface: u32) -> Option<Mac> {
        mac_of(self.links.get(&interface)?)
    }

    /// The VRF that an interface belongs to, or is.
    pub(super) fn vrf(&self, interface: u32) -> Vrf {
        self.links.get(&interface)?.vrf
    }

    /// Whether a name is that of the device of the VRF with this table.
    pub(super) fn is_vrf(&self, name: &str, table: TableId) -> bool {
        let mut vrfs = self.links.values().filter(|link| link.vrf == Some(table) && link.master.is_none());
        vrfs.any(|link| link.name == name)
    }

    /// The device of the VRF that an interface belongs to.
    pub(super) fn vrf_device(&self, interface: u32) -> Option<u32> {
        self.links.get(&interface).filter(|link| link.vrf.is_some())?.master
    }
}

/// All that says where a path leads.
#[derive(Clone, Copy)]
pub(super) struct Ways<'c> {
    pub(super) links: &'c Links,
    pub(super) neighbours: &'c Neighbours,
    pub(super) routes: &'c Routes,
}

/// The next hop of a path's hop.
enum Resolved {
    Hop(Hop),
    /// Nobody answers there, as the kernel found.
    Dead,
    /// Nobody knows yet where it is.
    Unresolved,
    /// The kernel has to take its packets.
    Kernel,
}

impl Ways<'_> {
    /// Finds the way of the packets of a path of a VRF.
    pub(super) fn resolve(self, vrf: Vrf, path: &Path) -> Route {
        match path.kind {
            PathKind::Unicast => {}
            PathKind::Blackhole => return Route::Blackhole,
            PathKind::Unreachable => return Route::Unreachable,
            PathKind::Prohibit => return Route::Prohibited,
            // The kernel's own addresses, and what only it can decide.
            PathKind::Local
            | PathKind::Broadcast
            | PathKind::Anycast
            | PathKind::Multicast
            | PathKind::Throw => {
                return Route::Kernel;
            }
        }
        let is_kernels = self.routes.is_kernels(vrf);
        let (mut hops, mut is_unresolved) = (Vec::new(), false);
        for hop in self.hops(vrf, path) {
            match self.of_hop(&hop) {
                Resolved::Hop(resolved) => hops.push((resolved, hop.weight)),
                Resolved::Dead => {}
                // The kernel does not know the route, so its packets would not make it find the hop.
                Resolved::Unresolved if !is_kernels => is_unresolved = true,
                // With one hop unknown the kernel spreads the flows, and so finds the hop.
                Resolved::Unresolved | Resolved::Kernel => return Route::Kernel,
            }
        }
        match hops[..] {
            // The kernel tells the senders.
            [] if is_kernels => Route::Kernel,
            [] if is_unresolved => Route::Unresolved,
            [] => Route::Unreachable,
            [(hop, _)] => Route::Via(hop),
            _ => Group::new(hops).map_or(Route::Kernel, Route::Group),
        }
    }

    /// The gateways of a path that neighbours have to be known for, with their interfaces.
    pub(super) fn gateways(self, vrf: Vrf, path: &Path) -> impl Iterator<Item = (u32, IpAddr)> {
        self.hops(vrf, path).into_iter().filter_map(move |hop| {
            let is_port = self.links.port(hop.interface).is_some();
            hop.gateway.filter(|_| is_port).map(|gateway| (hop.interface, gateway))
        })
    }

    /// The hops of a path that are in use. A hop without an interface is where the kernel's routes lead to
    /// its gateway: there, or to another gateway on the way. Without a way it keeps no interface.
    fn hops(self, vrf: Vrf, path: &Path) -> Vec<FeedHop> {
        let mut hops = Vec::with_capacity(path.hops.len());
        for hop in path.live_hops() {
            let way = match hop.gateway {
                Some(gateway) if hop.interface == 0 => self.routes.way_to(vrf, gateway),
                _ => None,
            };
            match way.filter(|way| way.kind == PathKind::Unicast) {
                None => hops.push(*hop),
                Some(way) => hops.extend(way.live_hops().map(|on| FeedHop {
                    gateway: on.gateway.or(hop.gateway),
                    weight: hop.weight.saturating_mul(on.weight),
                    ..*on
                })),
            }
        }
        hops
    }

    fn of_hop(self, hop: &FeedHop) -> Resolved {
        if hop.interface == 0 {
            return Resolved::Unresolved;
        }
        let links = self.links;
        let (Some(port), Some(link)) = (links.port(hop.interface), links.links.get(&hop.interface)) else {
            return Resolved::Kernel;
        };
        let (Some(gateway), Some(mac), true) = (hop.gateway, mac_of(link), link.up && !hop.encapsulated)
        else {
            return Resolved::Kernel;
        };
        match self.neighbours.of(hop.interface, gateway) {
            Seen::At(neighbour) => {
                // Larger packets than 65,535 bytes are in no frame.
                let mtu = u16::try_from(link.mtu).unwrap_or(u16::MAX);
                Resolved::Hop(Hop::new(port, neighbour, mac, mtu))
            }
            Seen::Failed => Resolved::Dead,
            Seen::Unknown => Resolved::Unresolved,
        }
    }
}

/// The address of a link, in the router's type.
fn mac_of(link: &Link) -> Option<Mac> {
    link.mac.map(|mac| Mac(mac.0))
}
