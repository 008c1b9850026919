//! The common part of `ip route` as text and JSON: Linux routes and the table that they make.
//!
//! If a prefix has several routes, the route with the lowest metric forwards, and among equals the first one.
//! A `default` has no family: its gateway tells the family, or the routes around it.

use std::net::IpAddr;

use rustc_hash::FxHashMap;

use super::any_prefix::AnyPrefix;
use super::error::{Fault, SkipReason};
use super::report::Ledger;
use super::table::Table;
use crate::address::Family;
use crate::next_hop::NextHop;

/// One route, its next hops as text in the order of the source.
#[derive(Debug, Default)]
pub(super) struct KernelRoute {
    /// `None` for the default route of a family not yet known.
    pub(super) prefix: Option<AnyPrefix>,
    /// The family, if the route tells it otherwise.
    pub(super) family: Option<Family>,
    pub(super) metric: u32,
    /// One next hop, or the members of a group.
    pub(super) members: Vec<String>,
}

/// The routing tables that the kernel uses by default, by name and number.
const USUAL_TABLES: [&str; 6] = ["main", "local", "default", "254", "255", "253"];

/// Whether the routes of a table are taken.
pub(super) fn is_usual_table(name: &str) -> bool {
    USUAL_TABLES.contains(&name)
}

/// A destination: `default`, a prefix or a bare host.
pub(super) fn destination(word: &str, ledger: &mut Ledger) -> Result<Option<AnyPrefix>, Fault> {
    Ok(if word == "default" { None } else { Some(ledger.prefix(word.as_bytes())?) })
}

/// A next hop as text: the gateway, with the device if the gateway is link-local; or the device.
pub(super) fn member(gateway: Option<&str>, device: Option<&str>) -> Option<String> {
    match (gateway, device) {
        (Some(gateway), Some(device)) if is_link_local(gateway) => Some(format!("{gateway}%{device}")),
        (Some(gateway), _) => Some(gateway.to_owned()),
        (None, Some(device)) => Some(device.to_owned()),
        (None, None) => None,
    }
}

pub(super) fn is_link_local(address: &str) -> bool {
    matches!(address.parse(), Ok(IpAddr::V6(address)) if address.is_unicast_link_local())
}

/// The family of an address.
pub(super) fn family_of(address: &str) -> Result<Family, SkipReason> {
    address.parse().map(Family::of).map_err(|_| SkipReason::NextHop)
}

/// The table of the routes, with the data that decides between routes of one prefix.
#[derive(Debug)]
pub(super) struct KernelTable<'t> {
    table: &'t mut Table,
    /// Metrics other than 0.
    metrics: FxHashMap<AnyPrefix, u32>,
    /// The family of the last route with a known family.
    family: Option<Family>,
    /// The best default route so far whose family is not known.
    open: Option<(NextHop, u32)>,
}

impl<'t> KernelTable<'t> {
    pub(super) fn new(table: &'t mut Table) -> Self {
        Self { table, metrics: FxHashMap::default(), family: None, open: None }
    }

    pub(super) fn put(&mut self, route: &KernelRoute, ledger: &mut Ledger) -> Result<(), Fault> {
        let group = route.members.join(",");
        let next_hop = self.table.hop(group.as_bytes())?;
        let family = route.prefix.map(AnyPrefix::family).or(route.family);
        if let Some(family) = family {
            self.family = Some(family);
            self.close_open(family, ledger);
        }
        match (route.prefix, self.family) {
            (Some(prefix), _) => self.insert(prefix, next_hop, route.metric, ledger),
            (None, Some(family)) => {
                self.insert(AnyPrefix::default_of(family), next_hop, route.metric, ledger);
            }
            (None, None) => match self.open {
                Some((_, metric)) if metric <= route.metric => self.repeated(ledger),
                Some(_) => {
                    self.repeated(ledger);
                    self.open = Some((next_hop, route.metric));
                }
                None => self.open = Some((next_hop, route.metric)),
            },
        }
        Ok(())
    }

    /// Ends the table after all routes.
    pub(super) fn finish(mut self, ledger: &mut Ledger) {
        let family = self.family.unwrap_or(Family::V4);
        self.close_open(family, ledger);
    }

    fn close_open(&mut self, family: Family, ledger: &mut Ledger) {
        if let Some((next_hop, metric)) = self.open.take() {
            self.insert(AnyPrefix::default_of(family), next_hop, metric, ledger);
        }
    }

    fn insert(&mut self, prefix: AnyPrefix, next_hop: NextHop, metric: u32, ledger: &mut Ledger) {
        let best = self.metrics.get(&prefix).copied().unwrap_or(0);
        if metric >= best && self.table.has(prefix) {
            return self.repeated(ledger);
        }
        if metric > 0 {
            self.metrics.insert(prefix, metric);
        } else {
            self.metrics.remove(&prefix);
        }
        self.table.insert(prefix, next_hop, ledger);
    }

    fn repeated(&self, ledger: &mut Ledger) {
        ledger.report.routes += 1;
        ledger.report.repeated += 1;
    }
}
