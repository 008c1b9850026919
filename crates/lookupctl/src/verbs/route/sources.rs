//! [`Sources`]: where the routes between interfaces come from: the kernel, a file, FRR or BMP.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use wirespeed::Fleet;
use wirespeed::prelude::IpNet;
use wirespeed_feeds::{Change, Hop, Path, PathKind, Route, Skip, TableId};
use wirespeed_fib::{Address, Fib, Prefix, Rib};
use wirespeed_router::Error;
use wirespeed_router::control::{self, Control, Source};
use wirespeed_router::io::{Interface, LocalAddresses};

use super::options::Options;
use super::tables::device;
use crate::followed::{Followed, Open, State, UNFOLLOWED};

/// How long the kernel may take to tell all of its routes.
const FIRST_STATE: Duration = Duration::from_secs(60);
/// How long changes are collected at most before lookups see them.
const COLLECT: Duration = Duration::from_millis(20);

/// The sources of routes, and the state of the router that follows them.
pub(super) struct Sources {
    pub(super) control: Control,
    kernel: Open,
    /// The source of routes in place of the kernel.
    given: Option<Open>,
    states: Arc<States>,
    /// Whether a file gives the routes.
    is_of_file: bool,
    /// The rules of policy routing that were warned of.
    warned: Vec<String>,
    /// What routes say that is not followed, as far as it was warned of.
    warned_routes: Vec<Skip>,
}

/// The states of the sources that are followed, for those who tell them.
#[derive(Debug, Default)]
pub(super) struct States(Mutex<Vec<State>>);

impl States {
    pub(super) fn now(&self) -> Vec<State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells, on stderr, how each source is that is not as it should be, and each but the kernel always.
    pub(super) fn tell(&self) {
        let all = self.now();
        let is_told = |state: &&State| {
            let is_well = state.stale_s.is_none() && state.overruns == 0 && !state.has_unfollowed();
            state.source != "kernel" || !is_well
        };
        all.iter().filter(is_told).for_each(|state| eprintln!("{state}"));
    }
}

impl Sources {
    /// Takes the first state of all sources. Fails if the kernel has rules of policy routing that the tables
    /// would not follow.
    pub(super) fn open(
        options: &Options,
        fleet: Option<&Fleet>,
        interfaces: &[Interface],
        local: &[LocalAddresses],
    ) -> Result<Self> {
        let mut of = control::Options::default();
        (of.device, of.fleet) = (device(options.device(), fleet), fleet.cloned());
        of.source = match (&options.fib, options.feed) {
            (None, None) => Source::Kernel,
            (None, Some(Followed::Fpm(_))) => Source::AllTables,
            _ => Source::OneTable,
        };
        of.table = TableId(options.kernel_table());
        let ports = interfaces.iter().map(|interface| interface.index).zip(local.iter().cloned());
        let control = Control::new(ports, of)?;
        let kernel = Followed::Kernel.open()?;
        let given = options.feed.map(Followed::open).transpose()?;
        let mut sources = Self {
            control,
            kernel,
            given,
            states: Arc::default(),
            is_of_file: options.fib.is_some(),
            warned: Vec::new(),
            warned_routes: Vec::new(),
        };
        sources.first(options)?;
        Ok(sources)
    }

    fn first(&mut self, options: &Options) -> Result<()> {
        let begin = Instant::now();
        if let Some(file) = &options.fib {
            let routes = routes_of(options.read.load(file)?, file)?;
            self.control.take_routes(routes);
        }
        if !self.control.first(&self.kernel.feed, FIRST_STATE)? {
            bail!("the kernel did not tell all of its routes within {} s", FIRST_STATE.as_secs());
        }
        if let Some(rule) = self.control.unfollowed_rules().next() {
            bail!(
                "the kernel has a rule of policy routing that would not be followed: {rule}; \
                 delete it, or leave the interfaces to the kernel"
            );
        }
        if let Some(Open { source, feed, .. }) = &self.given {
            eprintln!("waiting for all routes of {source}; the kernel forwards until then");
            while !self.control.first_routes(feed, Duration::from_millis(100))? {
                self.control.follow(&self.kernel.feed, Duration::ZERO)?;
            }
        }
        let from = match (&self.given, &options.fib) {
            (Some(given), _) => given.source.to_string(),
            (None, Some(file)) => file.to_string_lossy().into_owned(),
            (None, None) => "the kernel".to_owned(),
        };
        let tables = match self.control.count_tables() {
            1 => String::new(),
            many => format!(" in {many} tables"),
        };
        let seconds = begin.elapsed().as_secs_f64();
        eprintln!("{} routes from {from}{tables} in {seconds:.2} s", self.control.len());
        self.note();
        Ok(())
    }

    /// Takes changes, and makes lookups see them.
    pub(super) fn follow(&mut self) -> Result<(), Error> {
        if let Some(given) = &self.given {
            self.control.follow_routes(&given.feed)?;
        }
        self.control.follow(&self.kernel.feed, COLLECT)?;
        self.note();
        Ok(())
    }

    /// Notes the states, and warns of rules that came and of routes that are not followed.
    fn note(&mut self) {
        let states = std::iter::once(&self.kernel).chain(&self.given).map(Open::state).collect();
        *self.states.0.lock().unwrap_or_else(PoisonError::into_inner) = states;
        let rules: Vec<String> = self.control.unfollowed_rules().map(ToString::to_string).collect();
        for rule in rules.iter().filter(|rule| !self.warned.contains(rule)) {
            eprintln!("warning: the kernel has a new rule of policy routing, which is not followed: {rule}");
        }
        self.warned = rules;
        self.warn_of_routes();
    }

    /// Warns once of each kind of routes that are not followed. The statistics count them.
    fn warn_of_routes(&mut self) {
        let Open { source, feed, .. } = match &self.given {
            Some(given) => given,
            None if self.is_of_file => return,
            None => &self.kernel,
        };
        let skipped = feed.status().skipped;
        for (reason, what) in UNFOLLOWED {
            if skipped.contains_key(&reason) && !self.warned_routes.contains(&reason) {
                eprintln!("warning: {source} has routes {what}");
                self.warned_routes.push(reason);
            }
        }
    }

    /// The states, which are kept up to date while the sources are followed.
    pub(super) fn states(&self) -> Arc<States> {
        Arc::clone(&self.states)
    }
}

/// The routes of a file, in the table of interfaces outside of VRFs.
fn routes_of(fib: Fib, file: &OsStr) -> Result<Vec<Change>> {
    let paths: Vec<Arc<Path>> = fib
        .next_hops
        .iter()
        .map(|(_, text)| path_of(text).map(Arc::new))
        .collect::<Result<_>>()
        .with_context(|| file.to_string_lossy().into_owned())?;
    let mut routes = Vec::with_capacity(fib.v4.len() + fib.v6.len());
    add(&fib.v4, &paths, &mut routes)?;
    add(&fib.v6, &paths, &mut routes)?;
    Ok(routes)
}

fn add<A: Address>(rib: &Rib<A>, paths: &[Arc<Path>], to: &mut Vec<Change>) -> Result<()>
where
    IpNet: From<Prefix<A>>,
{
    for (prefix, next_hop) in rib.iter() {
        // Next hops are numbered from 1, in the order of their texts.
        let path = next_hop.0.checked_sub(1).and_then(|at| paths.get(at as usize));
        let path = Arc::clone(path.context("a route has a next hop without a text")?);
        to.push(Change::Route(Route { table: TableId::MAIN, prefix: prefix.into(), path }));
    }
    Ok(())
}

/// The path that the text of a next hop names: addresses with commas between, each with its interface after
/// a percent sign if it is of a link; an interface; or a word of `ip route` for routes without a next hop.
fn path_of(text: &str) -> Result<Path> {
    let kind = match text {
        "blackhole" => PathKind::Blackhole,
        "unreachable" => PathKind::Unreachable,
        "prohibit" => PathKind::Prohibit,
        "local" => PathKind::Local,
        _ => {
            let hops: Vec<Hop> = text.split(',').map(|member| hop_of(member, text)).collect::<Result<_>>()?;
            return Ok(Path::unicast(hops));
        }
    };
    Ok(Path { kind, hops: [].into(), origin_as: None })
}

fn hop_of(member: &str, text: &str) -> Result<Hop> {
    let (address, device) = match member.split_once('%') {
        Some((address, device)) => (Some(address), Some(device)),
        None if member.parse::<IpAddr>().is_ok() => (Some(member), None),
        None => (None, Some(member)),
    };
    let none = || format!("the next hop {text:?} is no address, and no interface of this host");
    let gateway = address.map(str::parse).transpose().with_context(none)?;
    let interface = match device {
        Some(device) => Interface::open(device).map_err(|_| anyhow::anyhow!(none()))?.index,
        None => 0,
    };
    Ok(Hop { gateway, ..Hop::on_link(interface) })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use wirespeed::V4;
    use wirespeed_feeds::{Link, Mac, Neighbour, NeighbourState};
    use wirespeed_router::apps::Ip;
    use wirespeed_router::io::Port;
    use wirespeed_router::io::memory::{Limits, MemoryPort};
    use wirespeed_router::io::traffic::{Sizes, Traffic};
    use wirespeed_router::{Memory, Published, Settings, Worker};

    use super::*;
    use crate::device::Device;
    use crate::on_host;

    #[test]
    fn routes_of_interfaces_are_looked_up_on_the_gpu_that_is_asked_for() {
        /// No host has so many interfaces.
        const FIRST: u32 = 1_000_000;
        let Some((fleet, _)) = on_host::fleet::<V4>() else { return };
        let mut of = control::Options::default();
        (of.device, of.fleet) = (device(Device::Gpu, Some(&fleet)), Some(fleet));
        let mut control = Control::new((0..2).map(|port| (FIRST + port, LocalAddresses::new())), of).unwrap();
        control.take((0..2_u8).map(|port| {
            Change::Link(Box::new(Link {
                index: FIRST + u32::from(port),
                name: format!("p{port}"),
                mac: Some(Mac([2, 0, 0, 0, 0, port])),
                mtu: 1500,
                up: true,
                running: true,
                loopback: false,
                master: None,
                vrf: None,
            }))
        }));
        let gateway = IpAddr::from([10, 0, 2, 2]);
        let path = Arc::new(Path::unicast([Hop { interface: FIRST + 1, ..Hop::via(gateway) }]));
        let route = |second: u8| Route {
            table: TableId::MAIN,
            prefix: IpNet::new(IpAddr::from([20, second, 0, 0]), 16).unwrap(),
            path: Arc::clone(&path),
        };
        control.take((0..200).map(|second| Change::Route(route(second))));
        control.take([Change::Neighbour(Neighbour {
            interface: FIRST + 1,
            address: gateway,
            mac: Some(Mac([2, 0, 0, 0, 9, 9])),
            state: NeighbourState::Reachable,
        })]);
        control.publish().unwrap();
        let (tables, routes, own) = (control.tables(), control.routes(), control.own());
        let mut memory = Memory::new(4096).unwrap();
        let to = (0..200).map(|second| IpAddr::from([20, second, 1, 1])).collect();
        let traffic = Traffic { to, sizes: Sizes::Fixed(64), mac: wirespeed_router::Mac([2, 0, 0, 0, 0, 0]) };
        let limits = Limits { count: Some(2000), rate: None };
        let names = ["in".to_owned(), "out".to_owned()];
        let ports = MemoryPort::ports(names, traffic.source(0, 1), &mut memory, limits);
        let ports = ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
        let settings = Settings { gpu_chunk: Some(1024), ..Settings::default() };
        let mut worker = Worker::new(Ip::of_ports(&tables, &routes, &own), memory, ports, settings);
        let stats = worker.run(&AtomicBool::new(false), &Published::default()).unwrap();
        assert_eq!((stats.frames_out, stats.chunks_cpu), (2000, 0), "{stats:?}");
        assert!(stats.chunks_gpu > 0, "{stats:?}");
    }

    #[test]
    fn next_hops_are_addresses_interfaces_or_words() {
        let path = |text: &str| path_of(text).map(|path| path.to_string()).map_err(|error| error.to_string());
        assert_eq!(path("192.0.2.1").unwrap(), "via 192.0.2.1");
        assert_eq!(path("192.0.2.1,2001:db8::1").unwrap(), "via 192.0.2.1, via 2001:db8::1");
        assert_eq!(path("fe80::1%lo").unwrap(), "via fe80::1 interface 1");
        assert_eq!(path("lo").unwrap(), "on link interface 1");
        assert_eq!(path("blackhole").unwrap(), "blackhole");
        for text in ["7", "AS64500", "192.0.2.1,7", "fe80::1%no_such0", "%lo", ""] {
            assert!(path(text).unwrap_err().contains("no address"), "{text}");
        }
    }
}
