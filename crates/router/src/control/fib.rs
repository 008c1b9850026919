//! [`Fib`]: a table that ports look up in, as the routes of its VRF make it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::IpAddr;
use std::sync::Arc;

use foldhash::HashMap;
use ipnet::IpNet;
use wirespeed::{AnyUpdate, IpReader, IpTable, Rib, V4, V6};
use wirespeed_feeds::{Hop, Path};

use super::labels::PathLabels;
use super::options::Options;
use super::resolve::Ways;
use super::routes::Vrf;
use crate::Error;

/// A table is built anew for at least as many changes, if they are also half of what it has: that costs less
/// than to let it grow.
const MANY: usize = 1024;
/// A list of touched prefixes that once was longer gives its memory back.
const LONG: usize = 1 << 16;

/// A table that ports look up in.
pub(super) struct Fib {
    vrf: Vrf,
    table: IpTable,
    /// The path of each prefix in the table.
    paths: HashMap<IpNet, Arc<Path>>,
    /// The interfaces whose links routes lead to, with the numbers of those.
    links: BTreeMap<u32, usize>,
    /// The hosts that have a route of their own, with their interfaces.
    hosts: HashMap<IpNet, u32>,
    /// Prefixes whose route may differ from the table's. One may be there several times.
    touched: Vec<IpNet>,
    /// Hosts on links have to be looked at again.
    is_on_link_touched: bool,
}

impl Fib {
    /// The table of a VRF, or of ports outside. It is empty until all of these prefixes are published.
    pub(super) fn new(
        vrf: Vrf,
        prefixes: impl Iterator<Item = IpNet>,
        options: &Options,
    ) -> Result<Self, Error> {
        let mut builder = IpTable::builder().device(options.device);
        if let Some(fleet) = &options.fleet {
            builder = builder.fleet(fleet.clone());
        }
        Ok(Self {
            vrf,
            table: builder.build()?,
            paths: HashMap::default(),
            links: BTreeMap::new(),
            hosts: HashMap::default(),
            touched: prefixes.collect(),
            is_on_link_touched: true,
        })
    }

    pub(super) fn reader(&self) -> IpReader {
        self.table.reader()
    }

    /// The number of routes, hosts on links among them.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Notes a prefix whose route may be another one.
    pub(super) fn touch(&mut self, prefix: IpNet) {
        self.touched.push(prefix);
    }

    /// Notes that a host may be on a link now, or not any more.
    pub(super) fn touch_hosts(&mut self) {
        self.is_on_link_touched = true;
    }

    /// Publishes what was touched: lookups see the routes of a call at once.
    pub(super) fn publish(&mut self, labels: &mut PathLabels, ways: Ways<'_>) -> Result<(), Error> {
        let mut gone = Vec::new();
        let mut updates = Vec::new();
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for &prefix in &touched {
            let path = ways.routes.path(self.vrf, &prefix);
            self.plan(prefix, path, (labels, ways), &mut updates, &mut gone)?;
        }
        touched.clear();
        touched.shrink_to(LONG);
        self.touched = touched;
        self.apply(&updates)?;
        if std::mem::take(&mut self.is_on_link_touched) {
            self.publish_hosts(labels, ways, &mut gone)?;
        }
        // Only now nothing leads to them.
        gone.into_iter().for_each(|path| labels.let_go(self.vrf, path));
        Ok(())
    }

    /// Plans the update that gives a prefix a path, or takes its path away. The path that the prefix left
    /// goes to `gone`.
    fn plan(
        &mut self,
        prefix: IpNet,
        path: Option<&Arc<Path>>,
        (labels, ways): (&mut PathLabels, Ways<'_>),
        updates: &mut Vec<AnyUpdate>,
        gone: &mut Vec<Arc<Path>>,
    ) -> Result<(), Error> {
        if self.paths.get(&prefix) == path {
            return Ok(());
        }
        let no_host_bits = |_| Error::Control("a route was told with host bits");
        for hop in path.iter().flat_map(|path| path.hops.iter().filter(|hop| hop.gateway.is_none())) {
            *self.links.entry(hop.interface).or_default() += 1;
        }
        let old = match path {
            Some(path) => {
                let index = labels.use_path(self.vrf, path, ways)?;
                updates.push(AnyUpdate::announce(prefix, index).map_err(no_host_bits)?);
                self.paths.insert(prefix, Arc::clone(path))
            }
            None => {
                updates.push(AnyUpdate::withdraw(prefix).map_err(no_host_bits)?);
                self.paths.remove(&prefix)
            }
        };
        for hop in old.iter().flat_map(|old| old.hops.iter().filter(|hop| hop.gateway.is_none())) {
            if let Entry::Occupied(mut routes) = self.links.entry(hop.interface) {
                *routes.get_mut() -= 1;
                if *routes.get() == 0 {
                    routes.remove();
                }
            }
        }
        gone.extend(old);
        Ok(())
    }

    fn apply(&mut self, updates: &[AnyUpdate]) -> Result<(), Error> {
        if updates.len() >= MANY && updates.len() >= self.table.len() / 2 {
            let mut v4: Rib<V4> = self.table.v4().routes().iter().collect();
            let mut v6: Rib<V6> = self.table.v6().routes().iter().collect();
            for update in updates {
                match update {
                    AnyUpdate::V4(update) => drop(v4.apply(update)),
                    AnyUpdate::V6(update) => drop(v6.apply(update)),
                }
            }
            self.table.replace(v4, v6)?;
        } else if !updates.is_empty() {
            self.table.apply(updates)?;
        }
        Ok(())
    }

    /// Gives each resolved host on a link of the router a route of its own.
    fn publish_hosts(
        &mut self,
        labels: &mut PathLabels,
        ways: Ways<'_>,
        gone: &mut Vec<Arc<Path>>,
    ) -> Result<(), Error> {
        let mut wanted = HashMap::default();
        for &interface in self.links.keys().filter(|&&interface| ways.links.port(interface).is_some()) {
            for address in ways.neighbours.resolved(interface) {
                let host = IpNet::from(address);
                let is_taken = ways.routes.path(self.vrf, &host).is_some();
                if !is_taken && self.is_on_link(interface, address, ways) {
                    wanted.insert(host, interface);
                }
            }
        }
        let mut updates = Vec::new();
        for (host, path) in self.changed_hosts(wanted) {
            // A route of the VRF took the place.
            let path = path.as_ref().or_else(|| ways.routes.path(self.vrf, &host));
            self.plan(host, path, (labels, ways), &mut updates, gone)?;
        }
        self.apply(&updates)
    }

    /// Whether the longest route to an address is that of the interface's own link.
    fn is_on_link(&self, interface: u32, address: IpAddr, ways: Ways<'_>) -> bool {
        let host = IpNet::from(address);
        let covering = self.table.lookup_all(address);
        let others = covering.iter().rev().map(|(net, _)| net).filter(|&&net| net != host);
        let path = others.copied().find_map(|net| ways.routes.path(self.vrf, &net));
        path.is_some_and(|path| {
            let mut hops = path.live_hops();
            hops.any(|hop| hop.gateway.is_none() && hop.interface == interface)
        })
    }

    /// Takes the routes of hosts that there should be. Returns those that are new or different, with their
    /// paths, and those that are not wanted any more, without.
    fn changed_hosts(&mut self, wanted: HashMap<IpNet, u32>) -> Vec<(IpNet, Option<Arc<Path>>)> {
        let path = |host: &IpNet, interface: u32| {
            let hop = Hop { interface, ..Hop::via(host.addr()) };
            Arc::new(Path::unicast([hop]))
        };
        let is_new = |(host, interface): &(&IpNet, &u32)| self.hosts.get(host) != Some(interface);
        let new = wanted.iter().filter(is_new).map(|(host, &interface)| (*host, Some(path(host, interface))));
        let mut changed: Vec<_> = new.collect();
        let gone = self.hosts.keys().filter(|host| !wanted.contains_key(host));
        changed.extend(gone.map(|host| (*host, None)));
        self.hosts = wanted;
        changed
    }

    /// Lets all paths go: the table is not looked up in any more.
    pub(super) fn end(self, labels: &mut PathLabels) {
        self.paths.into_values().for_each(|path| labels.let_go(self.vrf, path));
    }
}
