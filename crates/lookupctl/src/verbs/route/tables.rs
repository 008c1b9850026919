//! [`Tables`]: the tables of an application, on the devices that look up.

use std::net::IpAddr;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use wirespeed::classify::{Ipv4Tuple, Ipv6Tuple};
use wirespeed::engine::RuleTuple;
use wirespeed::names::NameReader;
use wirespeed::{Classifier, Fleet, IpReader, IpTable, Labels, NameTable, NextHop};
use wirespeed_fib::synth::TableSpec;
use wirespeed_fib::trace::{self, TraceKind};
use wirespeed_fib::{Address, Family, Fib, Rib};
use wirespeed_openflow::SwitchOptions;
use wirespeed_router::apps::ip::{Own, Owns};
use wirespeed_router::apps::{Acl, Decision, Ndn, Pit};
use wirespeed_router::{App, Hop, Mac, PortId, Route};

use super::options::{AppName, Options};
use super::switch::OpenFlow;
use crate::busy::Busy;
use crate::device::Device;
use crate::verbs::generate;

/// The tables of an application.
pub(super) enum Tables {
    Ip(Box<IpTables>),
    Names(Box<NameTables>),
    Switch(OpenFlow),
}

/// Tables for `ip` and `acl`.
pub(super) struct IpTables {
    pub(super) reader: IpReader,
    pub(super) routes: Labels<Route>,
    pub(super) own: Owns,
    pub(super) list: AccessList,
    /// Destinations for frames that are made.
    pub(super) to: Arc<[IpAddr]>,
    /// Readers find the routes in it.
    _table: IpTable,
}

/// The access list of `acl`.
pub(super) struct AccessList {
    decisions: Labels<Decision>,
    v4: Option<Classifier<Ipv4Tuple>>,
    v6: Option<Classifier<Ipv6Tuple>>,
}

impl AccessList {
    /// Reads the rules of both families, as far as there are some.
    pub(super) fn load(options: &Options, fleet: Option<&Fleet>) -> Result<Self> {
        let decisions = Labels::new();
        let v4 = options.rules.as_ref().map(|file| rules(options, file, &decisions, fleet)).transpose()?;
        let v6 = options.rules6.as_ref().map(|file| rules(options, file, &decisions, fleet)).transpose()?;
        Ok(Self { decisions, v4, v6 })
    }

    /// The access list in front of an application.
    pub(super) fn before<A: App>(&self, app: A, otherwise: Decision) -> Acl<'_, A> {
        let mut acl = Acl::new(app, &self.decisions, otherwise);
        if let Some(rules) = &self.v4 {
            acl = acl.v4(rules.reader());
        }
        if let Some(rules) = &self.v6 {
            acl = acl.v6(rules.reader());
        }
        acl
    }
}

/// Tables for `names`.
pub(super) struct NameTables {
    reader: NameReader,
    pub(super) routes: Labels<Route>,
    /// Interests that wait for Data, if it goes back to who asked.
    pit: Option<Pit>,
    pub(super) own: Owns,
    _table: NameTable,
}

/// The link-layer address of the router's port.
pub(super) fn mac_of(port: PortId) -> Mac {
    let [high, low] = port.0.to_be_bytes();
    Mac([2, 0, 0, 0, high, low])
}

/// A forwarder of names at a port: it has no address but that of the link.
pub(super) fn own_mac(mac: Mac) -> Own {
    Own { mac, ..Own::default() }
}

/// What each next hop of a file does, under the same index. Words that `ip route` has for routes without a
/// next hop mean what they mean there.
fn routes_of(texts: &Labels<String>, options: &Options) -> Result<Labels<Route>> {
    let routes = Labels::new();
    for index in (1..).map(NextHop).take(texts.len()) {
        let text = texts.get(index);
        let route = match text.as_deref().map(String::as_str) {
            Some("blackhole") => Route::Blackhole,
            Some("unreachable") => Route::Unreachable,
            Some("prohibit") => Route::Prohibited,
            Some("local") => Route::Kernel,
            _ => neighbour(index.0, options),
        };
        let given = routes.intern(route)?;
        // Texts differ, so do routes, and indexes are given in order.
        ensure!(given == index, "next hop {} has the index {}", index.0, given.0);
    }
    Ok(routes)
}

/// The neighbour that a next hop of a file is: behind one of the sinks, in turns. Port 0 is the source.
fn neighbour(next_hop: u32, options: &Options) -> Route {
    let sinks = u32::from(options.sinks());
    // At most as many as there are sinks.
    let port = PortId(1 + u16::try_from(next_hop.wrapping_sub(1) % sinks).unwrap_or(0));
    let [_, a, b, c] = next_hop.to_be_bytes();
    Route::Via(Hop::new(port, Mac([2, 0, 1, a, b, c]), mac_of(port), options.mtu()))
}

/// The device of a builder, for GPUs that are open already.
pub(super) const fn device(device: Device, fleet: Option<&Fleet>) -> wirespeed::Device {
    match (device, fleet) {
        (Device::Cpu, _) | (_, None) => wirespeed::Device::Cpu,
        (Device::Gpu, Some(_)) => wirespeed::Device::Gpu,
        (Device::Auto | Device::IfAny, Some(_)) => wirespeed::Device::Auto,
    }
}

impl Tables {
    /// Reads and builds the tables.
    pub(super) fn load(options: &Options, fleet: Option<Fleet>) -> Result<Self> {
        if options.app == AppName::Names {
            let own = (0..=options.sinks()).map(|port| mac_of(PortId(port)));
            let names = NameTables::load(options, fleet, own, |texts| routes_of(texts, options))?;
            return Ok(Self::Names(Box::new(names)));
        }
        if options.app == AppName::Openflow {
            let names =
                (0..=options.sinks()).map(|at| if at == 0 { "in".to_owned() } else { format!("out{at}") });
            let ports = SwitchOptions::with_ports(names).ports;
            let switch = OpenFlow::open(options, ports, None, options.threads())?;
            switch.wait(options);
            return Ok(Self::Switch(switch));
        }
        let fib = match &options.fib {
            Some(file) => options.read.load(file)?,
            None => generate::make(Family::V4, &TableSpec::full(Family::V4))?,
        };
        let _busy = Busy::with("building");
        let to = if options.makes_frames() { destinations(&fib, options) } else { [].into() };
        let texts = Labels::<String>::new();
        let mut builder =
            IpTable::builder().fib(fib, &texts).device(device(options.device(), fleet.as_ref()));
        if let Some(fleet) = &fleet {
            builder = builder.fleet(fleet.clone());
        }
        let table = builder.build()?;
        let routes = routes_of(&texts, options)?;
        let list = AccessList::load(options, fleet.as_ref())?;
        let own = (0..=options.sinks()).map(|port| Own {
            mac: mac_of(PortId(port)),
            v4: Some(options.own()),
            v6: Some(options.own6()),
        });
        Ok(Self::Ip(Box::new(IpTables {
            reader: table.reader(),
            routes,
            own: Owns::new(own.collect()),
            list,
            to,
            _table: table,
        })))
    }
}

/// Destinations that are drawn, at least.
const DESTINATIONS: usize = 1 << 21;

/// Destinations for frames that are made: a prefix at random, then an address inside, of each family in
/// proportion to its prefixes.
fn destinations(fib: &Fib, options: &Options) -> Arc<[IpAddr]> {
    let (v4, v6) = (fib.v4.len(), fib.v6.len());
    // Workers begin at places of their own, and a worker's frames are to addresses that differ.
    let count = (options.buffers * 2).max(DESTINATIONS);
    let share = |of: usize| count * of / (v4 + v6).max(1);
    let mut to: Vec<IpAddr> = drawn(&fib.v4, share(v4));
    to.extend(drawn(&fib.v6, share(v6)));
    if v4 > 0 && v6 > 0 {
        // Both families at each time: a step that has no factor with the length goes to every place once.
        let step = (0..).map(|n| 2_654_435_761_usize % to.len() + n).find(|&step| gcd(step, to.len()) == 1);
        let step = step.unwrap_or(1);
        to = (0..to.len()).map(|at| to[(at as u128 * step as u128 % to.len() as u128) as usize]).collect();
    }
    to.into()
}

const fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn drawn<A: Address>(rib: &Rib<A>, count: usize) -> Vec<IpAddr> {
    // A table without prefixes draws nothing.
    let keys = trace::keys(rib, TraceKind::Prefix, count, 1).unwrap_or_default();
    keys.into_iter().map(Address::to_ip).collect()
}

fn rules<T: RuleTuple>(
    options: &Options,
    file: &std::path::Path,
    decisions: &Labels<Decision>,
    fleet: Option<&Fleet>,
) -> Result<Classifier<T>> {
    let mut builder =
        Classifier::<T>::builder().file(file, decisions).device(device(options.device(), fleet));
    if let Some(fleet) = fleet {
        builder = builder.fleet(fleet.clone());
    }
    builder.build().with_context(|| format!("{}", file.display()))
}

impl NameTables {
    /// Reads the table. `macs` are the link-layer addresses of the ports. `routes` says what each next hop
    /// does, under the index of its text.
    pub(super) fn load(
        options: &Options,
        fleet: Option<Fleet>,
        macs: impl Iterator<Item = Mac>,
        routes: impl FnOnce(&Labels<String>) -> Result<Labels<Route>>,
    ) -> Result<Self> {
        let file = options.table.as_ref().context("--app names needs a table of names: --table FILE")?;
        let texts = Labels::<String>::new();
        let mut builder =
            NameTable::builder().file(file, &texts).device(device(options.device(), fleet.as_ref()));
        if let Some(fleet) = fleet {
            builder = builder.fleet(fleet);
        }
        let table = builder.build()?;
        let routes = routes(&texts)?;
        let own = Owns::new(macs.map(own_mac).collect());
        Ok(Self { reader: table.reader(), routes, pit: options.pending.map(Pit::new), own, _table: table })
    }

    /// The application of a worker.
    pub(super) fn forwarder(&self) -> Ndn<'_> {
        let ndn = Ndn::new(self.reader.clone(), &self.routes);
        match &self.pit {
            Some(pit) => ndn.pending(pit, &self.own),
            None => ndn,
        }
    }
}
