//! [`Control`]: the kernel's routes, neighbours and links, as tables and routes of the forwarder.
//!
//! ```text
//! kernel's feed ─► Change ─┬─ link, neighbour ─► paths that use it: their labels are replaced, no route is touched
//!                          ├─ route ───────────► path ─► index ─► update of the table of its VRF
//!                          ├─ address ─────────► local addresses: they stay the kernel's
//!                          └─ rule ────────────► refused, unless the tables follow it
//! another feed, a file ──────► route ──────────► path ─► next hop, by the kernel's routes and neighbours
//! ```
//!
//! The forwarder takes transit only, and only what it can finish. A path leads to the kernel if a next hop
//! is not resolved yet, if it leaves by an interface that is not the router's, or if it needs more than a new
//! link-layer header. The kernel then resolves the next hop, the feed tells, and the path is taken over.
//!
//! A host on a link is a route of its own: `/32` or `/128`, with the neighbour's address. So the longest
//! prefix is all that a lookup needs.
//!
//! # VRFs
//!
//! The packets of an interface that belongs to a VRF are looked up in the VRF's table, and those of the
//! others in the table of [`Options`]. A packet that the table has no route for is dropped: the kernel would
//! go on with the main table, unless the VRF has a default route.
//!
//! # Routes of another source
//!
//! Routes of [`take_routes`](Control::take_routes) take the place of the kernel's: see [`Source`]. The kernel
//! has no such routes, so its own packets don't make it resolve their next hops: it is asked to, and until
//! then packets are dropped as [`Unresolved`](crate::Reason::Unresolved). A next hop without an interface is
//! where the kernel's routes lead to its address.

mod asking;
#[cfg(test)]
mod churn;
mod fib;
mod kept;
mod labels;
mod neighbours;
mod options;
mod resolve;
mod routes;
#[cfg(test)]
mod tests;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnet::{IpNet, Ipv4Net};
use wirespeed::{IpTable, Labels};
use wirespeed_feeds::{Change, Feed, InterfaceAddress, Path, PathKind, Rule, RuleAction, TableId};

use crate::apps::ip::{Own, Owns};
use crate::io::LocalAddresses;
use crate::{Error, PortTable, PortTables, Route, Used};
use asking::Asking;
pub use asking::{Asked, Wants};
use fib::Fib;
use kept::Kept;
use labels::PathLabels;
use neighbours::{Neighbours, Seen};
pub use options::{Options, Source};
use resolve::{Links, Ways};
use routes::{Routes, Vrf, is_on_link};

/// The most batches of a feed that are published together: lookups are to see some while others come.
const TOGETHER: usize = 16;

/// The state of a router that follows the kernel.
pub struct Control {
    options: Options,
    paths: PathLabels,
    fibs: BTreeMap<Vrf, Fib>,
    tables: Arc<PortTables>,
    links: Links,
    neighbours: Neighbours,
    addresses: BTreeSet<InterfaceAddress>,
    rules: BTreeSet<Rule>,
    routes: Routes,
    /// Routes by which next hops are found changed.
    is_way_touched: bool,
    /// The filters of local addresses have others than the kernel told.
    is_own_touched: bool,
    own: Arc<Owns>,
    local_addresses: Vec<LocalAddresses>,
    /// Next hops that only the router has routes by, and those that carry packets.
    kept: Kept,
    /// The routes that carried packets, as workers note them.
    used: Arc<Used>,
    /// Next hops of packets that the kernel got.
    asking: Asking,
    /// The VRFs of the ports, with their devices, when tables were handed out.
    vrfs: Vec<(Vrf, Option<u32>)>,
}

impl Control {
    /// A router with these interfaces as its ports, by their numbers in the kernel, and for each the filter
    /// of addresses that are the router's own in the port's VRF.
    ///
    /// Fails if there is none.
    pub fn new(
        interfaces: impl IntoIterator<Item = (u32, LocalAddresses)>,
        options: Options,
    ) -> Result<Self, Error> {
        let (ports, local_addresses): (Vec<u32>, Vec<_>) = interfaces.into_iter().unzip();
        if ports.is_empty() {
            return Err(Error::Control("a router needs an interface"));
        }
        let nothing = PortTable { reader: IpTable::builder().build()?.reader(), vrf: None };
        Ok(Self {
            routes: Routes::new(options.source, options.table),
            options,
            paths: PathLabels::new(),
            fibs: BTreeMap::new(),
            tables: Arc::new(PortTables::new(vec![nothing; ports.len()])),
            own: Arc::new(Owns::new(vec![Own::default(); ports.len()])),
            links: Links::new(ports),
            neighbours: Neighbours::default(),
            addresses: BTreeSet::new(),
            rules: BTreeSet::new(),
            is_way_touched: false,
            is_own_touched: true,
            local_addresses,
            kept: Kept::default(),
            used: Arc::default(),
            asking: Asking::open()?,
            vrfs: Vec::new(),
        })
    }

    /// The table of each port.
    #[must_use]
    pub fn tables(&self) -> Arc<PortTables> {
        Arc::clone(&self.tables)
    }

    /// The routes that the results of lookups stand for.
    #[must_use]
    pub fn routes(&self) -> Labels<Route> {
        self.paths.routes()
    }

    /// The router's identities at its ports.
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

    /// The routes that carry packets, for workers to note them. The kernel doesn't see these packets, so it
    /// is asked to check their next hops from time to time: one that went silent fails, as it would if the
    /// kernel forwarded.
    #[must_use]
    pub fn used(&self) -> Arc<Used> {
        Arc::clone(&self.used)
    }

    /// The number of routes in the tables of all ports, hosts on links among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fibs.values().map(Fib::len).sum()
    }

    /// Whether there is no route.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of tables that ports look up in.
    #[must_use]
    pub fn count_tables(&self) -> usize {
        self.fibs.len()
    }

    /// The rules of policy routing that the tables of ports don't follow. The kernel may forward the packets
    /// that they are for in another way.
    ///
    /// There is none where routes of one table are given ([`Source::OneTable`]): rules are about the
    /// kernel's routes.
    pub fn unfollowed_rules(&self) -> impl Iterator<Item = &Rule> {
        let counts = self.options.source != Source::OneTable;
        self.rules.iter().filter(move |rule| counts && !self.follows(rule))
    }

    fn follows(&self, rule: &Rule) -> bool {
        let RuleAction::Lookup(table) = rule.action else { return rule.is_default() };
        let device = rule.came_by.as_ref().or(rule.bound_to.as_ref());
        let is_vrfs = device.is_some_and(|name| self.links.is_vrf(name, table));
        let is_chosen = table == self.options.table && table != TableId::MAIN;
        rule.is_default() || is_vrfs || is_chosen
    }

    /// Takes the changes of the kernel's feed for this time, or until its first state is whole, whichever
    /// comes first. Returns whether it is whole.
    pub fn first(&mut self, feed: &Feed, time: Duration) -> Result<bool, Error> {
        let is_whole = self.until_whole(feed, time, Self::take)?;
        // All at once: a table that is built costs less than one that grows.
        self.publish()?;
        Ok(is_whole)
    }

    /// Takes the routes of another feed for this time, or until they are whole, whichever comes first.
    /// Returns whether they are whole.
    pub fn first_routes(&mut self, feed: &Feed, time: Duration) -> Result<bool, Error> {
        let is_whole = self.until_whole(feed, time, Self::take_routes)?;
        self.publish()?;
        Ok(is_whole)
    }

    fn until_whole(
        &mut self,
        feed: &Feed,
        time: Duration,
        mut take: impl FnMut(&mut Self, Vec<Change>),
    ) -> Result<bool, Error> {
        let until = Instant::now() + time;
        let mut is_whole = false;
        while !is_whole {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            if let Some(batch) = feed.recv_timeout(left).map_err(Error::Feed)? {
                is_whole = batch.contains(&Change::Synced);
                take(self, batch);
            }
        }
        Ok(is_whole)
    }

    /// Takes the batches of the kernel's feed that are there now, or the first one that comes within this
    /// time, and publishes them.
    pub fn follow(&mut self, feed: &Feed, time: Duration) -> Result<(), Error> {
        let mut wait = time;
        for _ in 0..TOGETHER {
            let Some(batch) = feed.recv_timeout(wait).map_err(Error::Feed)? else { break };
            self.take(batch);
            wait = Duration::ZERO;
        }
        self.publish()?;
        self.ask()
    }

    /// Asks the kernel for the next hops of packets that it got.
    fn ask(&mut self) -> Result<(), Error> {
        for (port, destination) in self.asking.wanted() {
            let Some(&interface) = self.links.ports().get(port.index()) else { continue };
            if self.addresses.iter().any(|address| address.net.addr() == destination) {
                continue;
            }
            let path = self.routes.way_to(self.links.vrf(interface), destination);
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

    /// Takes the batches of another feed that are there now. Lookups see them with
    /// [`publish`](Self::publish).
    pub fn follow_routes(&mut self, feed: &Feed) -> Result<(), Error> {
        for _ in 0..TOGETHER {
            let Some(batch) = feed.recv_timeout(Duration::ZERO).map_err(Error::Feed)? else { break };
            self.take_routes(batch);
        }
        Ok(())
    }

    /// Takes changes of the kernel. Lookups see them with [`publish`](Self::publish).
    pub fn take(&mut self, batch: impl IntoIterator<Item = Change>) {
        for change in batch {
            self.take_one(change);
        }
    }

    /// Takes routes of another source than the kernel: see [`Source`]. Lookups see them with
    /// [`publish`](Self::publish). All other changes are passed over.
    pub fn take_routes(&mut self, batch: impl IntoIterator<Item = Change>) {
        for change in batch {
            let (table, prefix, path) = match change {
                Change::Route(route) => (route.table, route.prefix, Some(route.path)),
                Change::RouteGone { table, prefix } => (table, prefix, None),
                _ => continue,
            };
            let old = self.routes.set_given(table, prefix, path.clone());
            self.touch(table, prefix, old.as_ref(), path.as_ref());
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
            Change::Neighbour(neighbour) => self.neighbours.set(neighbour),
            Change::NeighbourGone { interface, address } => self.neighbours.remove(interface, address),
            Change::Rule(rule) => drop(self.rules.insert(*rule)),
            Change::RuleGone(rule) => drop(self.rules.remove(&rule)),
            Change::Route(route) => self.take_route(route.table, route.prefix, Some(route.path)),
            Change::RouteGone { table, prefix } => self.take_route(table, prefix, None),
            Change::Stale(_) | Change::Synced | Change::Resynced(_) => {}
            // A kind of change that this version does not know concerns nothing that it forwards by.
            _ => {}
        }
    }

    fn take_route(&mut self, table: TableId, prefix: IpNet, path: Option<Arc<Path>>) {
        let old = self.routes.set_kernels(table, prefix, path.clone());
        self.is_way_touched |= self.options.source != Source::Kernel;
        self.touch(table, prefix, old.as_ref(), path.as_ref());
    }

    /// Notes that a prefix of a table has another path.
    fn touch(&mut self, table: TableId, prefix: IpNet, old: Option<&Arc<Path>>, path: Option<&Arc<Path>>) {
        // A host may be behind another route than before.
        let concerns_hosts = old.is_some_and(is_on_link)
            || path.is_some_and(is_on_link)
            || self.neighbours.has_within(&prefix);
        for vrf in self.routes.concerned(table) {
            let Some(fib) = self.fibs.get_mut(&vrf) else { continue };
            fib.touch(prefix);
            if concerns_hosts {
                fib.touch_hosts();
            }
        }
    }

    /// Publishes all changes that were taken: lookups in a table see the routes of a call at once.
    pub fn publish(&mut self) -> Result<(), Error> {
        let are_vrfs_touched = self.links.take_vrf_touched();
        if are_vrfs_touched {
            self.is_own_touched = true;
            self.make_tables()?;
        }
        let are_links_touched = self.links.take_touched();
        if are_links_touched || self.is_own_touched {
            self.publish_own()?;
        }
        let are_neighbours_touched = self.neighbours.take_touched();
        if are_neighbours_touched {
            self.fibs.values_mut().for_each(Fib::touch_hosts);
        }
        let is_way_touched =
            are_links_touched | are_neighbours_touched | std::mem::take(&mut self.is_way_touched);
        let ways = Ways { links: &self.links, neighbours: &self.neighbours, routes: &self.routes };
        if is_way_touched {
            self.paths.resolve_again(ways)?;
        }
        for fib in self.fibs.values_mut() {
            fib.publish(&mut self.paths, ways)?;
        }
        if self.paths.take_new() | is_way_touched || self.kept.is_due() {
            self.watch();
        }
        if are_vrfs_touched {
            self.hand_out_tables();
        }
        Ok(())
    }

    /// Asks the kernel for next hops that it would not find, check or keep by itself.
    fn watch(&mut self) {
        let ways = Ways { links: &self.links, neighbours: &self.neighbours, routes: &self.routes };
        let pause = |(interface, address), is_given| self.neighbours.pause(interface, address, is_given);
        let taken = self.used.take();
        let given = self.paths.gateways(ways).map(|hop| (hop, pause(hop, true)));
        let used = self.paths.used_gateways(&taken, ways).map(|hop| (hop, pause(hop, false)));
        self.kept.round(given.chain(used).filter_map(|(hop, pause)| Some((hop, pause?))));
    }

    /// Makes the tables of the VRFs that ports belong to.
    fn make_tables(&mut self) -> Result<(), Error> {
        for &port in self.links.ports() {
            let vrf = self.links.vrf(port);
            if let Entry::Vacant(entry) = self.fibs.entry(vrf) {
                entry.insert(Fib::new(vrf, self.routes.prefixes(vrf), &self.options)?);
            }
        }
        Ok(())
    }

    /// Gives each port the table of its VRF, and ends the tables that no port looks up in.
    fn hand_out_tables(&mut self) {
        let vrfs: Vec<(Vrf, Option<u32>)> = self
            .links
            .ports()
            .iter()
            .map(|&port| (self.links.vrf(port), self.links.vrf_device(port)))
            .collect();
        if vrfs == self.vrfs {
            return;
        }
        let table = |(vrf, device): &(Vrf, Option<u32>)| {
            // Made when the port joined.
            let reader = self.fibs.get(vrf)?.reader();
            Some(PortTable { reader, vrf: *device })
        };
        self.tables.set(vrfs.iter().filter_map(table).collect());
        let paths = &mut self.paths;
        let wanted: BTreeSet<Vrf> = vrfs.iter().map(|&(vrf, _)| vrf).collect();
        let (wanted, others) =
            std::mem::take(&mut self.fibs).into_iter().partition(|(vrf, _)| wanted.contains(vrf));
        self.fibs = wanted;
        let others: BTreeMap<Vrf, Fib> = others;
        others.into_values().for_each(|fib| fib.end(paths));
        self.vrfs = vrfs;
    }

    /// Tells ports and their filters what the router is.
    fn publish_own(&mut self) -> Result<(), Error> {
        let of = |interface: u32, wants_v4: bool| {
            // Addresses are in the order of their interfaces.
            let least = InterfaceAddress { interface, net: IpNet::V4(Ipv4Net::default()) };
            let mut all = self.addresses.range(least..).take_while(|address| address.interface == interface);
            all.find_map(|address| {
                let address = address.net.addr();
                let is_link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
                (address.is_ipv4() == wants_v4 && !is_link_local).then_some(address)
            })
        };
        let own = self.links.ports().iter().map(|&interface| Own {
            mac: self.links.mac(interface).unwrap_or_default(),
            v4: of(interface, true).and_then(|address| match address {
                IpAddr::V4(v4) => Some(v4),
                IpAddr::V6(_) => None,
            }),
            v6: of(interface, false).and_then(|address| match address {
                IpAddr::V6(v6) => Some(v6),
                IpAddr::V4(_) => None,
            }),
        });
        self.own.set(own.collect());
        for (&port, local) in self.links.ports().iter().zip(&self.local_addresses) {
            if let Some(mac) = self.links.mac(port) {
                local.set_mac(port, mac.0)?;
            }
        }
        if std::mem::take(&mut self.is_own_touched) {
            // What is the router's in one VRF may be anybody's in another.
            let mut all: BTreeMap<Vrf, Vec<IpAddr>> = BTreeMap::new();
            for address in &self.addresses {
                all.entry(self.links.vrf(address.interface)).or_default().push(address.net.addr());
            }
            let of = |port: u32| all.get(&self.links.vrf(port)).into_iter().flatten().copied();
            for (&port, local) in self.links.ports().iter().zip(&self.local_addresses) {
                local.set(of(port))?;
            }
            self.own.set_sources(self.links.ports().iter().map(|&port| {
                let v4 = of(port).filter_map(|address| match address {
                    IpAddr::V4(address) => Some(address),
                    IpAddr::V6(_) => None,
                });
                v4.collect()
            }));
        }
        Ok(())
    }
}
