//! [`Control`]: the kernel's routes, neighbours and links, as tables and routes of the forwarder.
//!
//! ```text
//! feed ─► Change ─┬─ link, neighbour ─► paths that use it: their labels are replaced, no route is touched
//!                 ├─ route ───────────► path ─► index ─► update of the table
//!                 └─ address ─────────► local addresses: they stay the kernel's
//! ```
//!
//! The forwarder takes transit only, and only what it can finish. A path leads to the kernel if a next hop
//! is not resolved yet, if it leaves by an interface that is not the router's, or if it needs more than a new
//! link-layer header. The kernel then resolves the next hop, the feed tells, and the path is taken over.
//!
//! A host on a link is a route of its own: `/32` or `/128`, with the neighbour's address. So the longest
//! prefix is all that a lookup needs.

mod asking;
mod labels;
mod neighbours;
mod resolve;

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use wirespeed::{AnyUpdate, IpReader, IpTable, Labels};
use wirespeed_feeds::{Change, Feed, InterfaceAddress, Path, PathKind, TableId};

use crate::apps::ip::{Own, Owns};
use crate::io::LocalAddresses;
use crate::{Error, PortId, Route};
use asking::Asking;
pub use asking::{Asked, Wants};
use labels::PathLabels;
use neighbours::{Neighbours, Seen};
use resolve::Links;

/// The state of a router that follows the kernel.
pub struct Control {
    table: IpTable,
    paths: PathLabels,
    links: Links,
    neighbours: Neighbours,
    addresses: BTreeSet<InterfaceAddress>,
    /// The kernel's routes by table: its own addresses, and the others.
    local: HashMap<IpNet, Arc<Path>>,
    main: HashMap<IpNet, Arc<Path>>,
    /// Prefixes whose route may differ from the table's.
    touched: BTreeSet<IpNet>,
    /// Hosts on links have to be looked at again.
    is_on_link_touched: bool,
    /// The filter of local addresses has others than the kernel told.
    is_own_touched: bool,
    own: Arc<Owns>,
    local_addresses: LocalAddresses,
    asking: Asking,
}

impl Control {
    /// A router with these interfaces as its ports, by their numbers in the kernel.
    pub fn new(
        interfaces: impl IntoIterator<Item = u32>,
        local_addresses: LocalAddresses,
    ) -> Result<Self, Error> {
        let ports: HashMap<u32, PortId> = interfaces.into_iter().zip((0..).map(PortId)).collect();
        let own = Arc::new(Owns::new(vec![Own::default(); ports.len()]));
        Ok(Self {
            table: IpTable::builder().build()?,
            paths: PathLabels::new(),
            links: Links::new(ports),
            neighbours: Neighbours::default(),
            addresses: BTreeSet::new(),
            local: HashMap::new(),
            main: HashMap::new(),
            touched: BTreeSet::new(),
            is_on_link_touched: false,
            is_own_touched: true,
            own,
            local_addresses,
            asking: Asking::open()?,
        })
    }

    /// Lookups in the table.
    pub fn reader(&self) -> IpReader {
        self.table.reader()
    }

    /// What the results of lookups do with packets.
    #[must_use]
    pub fn routes(&self) -> Labels<Route> {
        self.paths.routes()
    }

    /// What the router is at its ports.
    #[must_use]
    pub fn own(&self) -> Arc<Owns> {
        Arc::clone(&self.own)
    }

    /// A way for workers to tell the destinations of the packets that they give to the kernel. The kernel is
    /// asked to resolve their next hops: where its own forwarding is off it does so for no packet.
    #[must_use]
    pub fn wants(&self) -> Wants {
        self.asking.wants()
    }

    /// The number of routes in the table, hosts on links among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no route.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Takes the feed's changes for this time, or until its first state is whole, whichever comes first.
    /// Returns whether it is whole.
    pub fn first(&mut self, feed: &Feed, time: Duration) -> Result<bool, Error> {
        let until = std::time::Instant::now() + time;
        let mut is_whole = false;
        while !is_whole {
            let left = until.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                break;
            }
            if let Some(batch) = feed.recv_timeout(left).map_err(Error::Feed)? {
                is_whole = batch.contains(&Change::Synced);
                self.take(batch);
            }
        }
        // All at once: a table that is built costs less than one that grows.
        self.publish()?;
        Ok(is_whole)
    }

    /// Takes one batch of the feed's changes, if one comes within this time, and publishes it.
    pub fn follow(&mut self, feed: &Feed, time: Duration) -> Result<(), Error> {
        if let Some(batch) = feed.recv_timeout(time).map_err(Error::Feed)? {
            self.take(batch);
        }
        self.publish()?;
        self.ask()
    }

    /// Asks the kernel for the next hops of packets that it got.
    fn ask(&mut self) -> Result<(), Error> {
        for destination in self.asking.wanted() {
            let covering = self.table.lookup_all(destination);
            let nets = covering.iter().rev().map(|(net, _)| net);
            let path = nets.filter_map(|net| self.local.get(net).or_else(|| self.main.get(net))).next();
            let Some(path) = path.filter(|path| path.kind == PathKind::Unicast) else { continue };
            for hop in path.live_hops() {
                // A route without a gateway leads to a link, where the destination itself is.
                let neighbour = hop.gateway.unwrap_or(destination);
                let is_port = self.links.port(hop.interface).is_some();
                if is_port && !matches!(self.neighbours.of(hop.interface, neighbour), Seen::At(_)) {
                    self.asking.ask(hop.interface, neighbour)?;
                }
            }
        }
        Ok(())
    }

    /// Takes changes. Lookups see them with [`publish`](Self::publish).
    pub fn take(&mut self, batch: impl IntoIterator<Item = Change>) {
        for change in batch {
            self.take_one(change);
        }
    }

    fn take_one(&mut self, change: Change) {
        match change {
            Change::Link(link) => self.links.set(*link),
            Change::LinkGone(index) => self.links.remove(index),
            Change::Address(address) => {
                self.is_own_touched |= self.addresses.insert(address);
            }
            Change::AddressGone(address) => {
                self.is_own_touched |= self.addresses.remove(&address);
            }
            Change::Neighbour(neighbour) => {
                self.is_on_link_touched = true;
                self.neighbours.set(neighbour);
            }
            Change::NeighbourGone { interface, address } => {
                self.is_on_link_touched = true;
                self.neighbours.remove(interface, address);
            }
            Change::Route(route) => self.take_route(route.table, route.prefix, Some(route.path)),
            Change::RouteGone { table, prefix } => self.take_route(table, prefix, None),
            Change::Stale(_) | Change::Synced | Change::Resynced(_) => {}
            // A kind of change that this version does not know concerns nothing that it forwards by.
            _ => {}
        }
    }

    fn take_route(&mut self, table: TableId, prefix: IpNet, path: Option<Arc<Path>>) {
        let routes = match table {
            TableId::MAIN => &mut self.main,
            TableId::LOCAL => &mut self.local,
            // Policy routing and VRFs: packets of the router's ports don't look there.
            _ => return,
        };
        let is_on_link = |path: &Arc<Path>| path.hops.iter().any(|hop| hop.gateway.is_none());
        let is_now = path.as_ref().is_some_and(is_on_link);
        let old = match path {
            Some(path) => routes.insert(prefix, path),
            None => routes.remove(&prefix),
        };
        // A host may be behind another route than before.
        self.is_on_link_touched |=
            is_now || old.as_ref().is_some_and(is_on_link) || self.neighbours.has_within(&prefix);
        self.touched.insert(prefix);
    }

    /// Publishes all changes that were taken: lookups see the routes of a call at once.
    pub fn publish(&mut self) -> Result<(), Error> {
        self.publish_own()?;
        if self.links.take_touched() | self.neighbours.take_touched() {
            self.paths.resolve_again(&self.links, &self.neighbours)?;
        }
        let mut gone = Vec::new();
        let mut updates = Vec::new();
        for prefix in std::mem::take(&mut self.touched) {
            // The kernel looks its own addresses up first.
            let path = self.local.get(&prefix).or_else(|| self.main.get(&prefix));
            self.paths.plan(prefix, path, (&self.links, &self.neighbours), &mut updates, &mut gone)?;
        }
        self.apply(updates)?;
        if std::mem::take(&mut self.is_on_link_touched) {
            self.publish_hosts(&mut gone)?;
        }
        self.paths.let_go(gone);
        Ok(())
    }

    fn apply(&mut self, updates: Vec<AnyUpdate>) -> Result<(), Error> {
        if !updates.is_empty() {
            self.table.apply(&updates)?;
        }
        Ok(())
    }

    /// Gives each resolved host on a link of the router a route of its own.
    fn publish_hosts(&mut self, gone: &mut Vec<Arc<Path>>) -> Result<(), Error> {
        let mut wanted = HashMap::new();
        for (interface, address) in self.neighbours.resolved() {
            let host = IpNet::from(address);
            let is_taken = self.local.contains_key(&host) || self.main.contains_key(&host);
            if self.links.port(interface).is_some() && !is_taken && self.is_on_link(interface, address) {
                wanted.insert(host, interface);
            }
        }
        let mut updates = Vec::new();
        for (host, path) in self.neighbours.changed_hosts(wanted) {
            // A route of the kernel's took the place.
            let path = path.as_ref().or_else(|| self.local.get(&host).or_else(|| self.main.get(&host)));
            self.paths.plan(host, path, (&self.links, &self.neighbours), &mut updates, gone)?;
        }
        self.apply(updates)
    }

    /// Whether the longest route to an address is that of the interface's own link.
    fn is_on_link(&self, interface: u32, address: IpAddr) -> bool {
        let host = IpNet::from(address);
        let covering = self.table.lookup_all(address);
        let path = covering
            .iter()
            .rev()
            .map(|(net, _)| net)
            .filter(|&&net| net != host)
            .find_map(|net| self.local.get(net).or_else(|| self.main.get(net)));
        path.is_some_and(|path| {
            let mut hops = path.live_hops();
            hops.any(|hop| hop.gateway.is_none() && hop.interface == interface)
        })
    }

    /// Tells ports and their filters what the router is.
    fn publish_own(&mut self) -> Result<(), Error> {
        let mut own = vec![Own::default(); self.links.ports()];
        for (interface, port) in self.links.each() {
            let of = |wants_v4: bool| {
                let mut all = self.addresses.iter().filter(|address| address.interface == interface);
                all.find_map(|address| {
                    let address = address.net.addr();
                    let is_link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
                    (address.is_ipv4() == wants_v4 && !is_link_local).then_some(address)
                })
            };
            own[port.index()] = Own {
                mac: self.links.mac(interface).unwrap_or_default(),
                v4: of(true).and_then(|address| if let IpAddr::V4(v4) = address { Some(v4) } else { None }),
                v6: of(false).and_then(|address| if let IpAddr::V6(v6) = address { Some(v6) } else { None }),
            };
        }
        self.own.set(own);
        for (interface, _) in self.links.each() {
            if let Some(mac) = self.links.mac(interface) {
                self.local_addresses.set_mac(interface, mac.0)?;
            }
        }
        if std::mem::take(&mut self.is_own_touched) {
            self.local_addresses.set(self.addresses.iter().map(|address| address.net.addr()))?;
        }
        Ok(())
    }
}
