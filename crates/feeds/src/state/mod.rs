//! [`State`]: what a source of netlink messages said so far, so that differences can be told.
//!
//! ```text
//! Event ──► State::apply ──► hosts: links, addresses, neighbours ─┐
//!                       ├──► next-hop objects ──► routes that use them
//!                       └──► routes: per prefix the candidates, best first
//!                                  └─ prefixes touched, with their path before ──► State::drain ──► Batch
//! ```
//!
//! Several messages about one prefix between two calls of [`State::drain`] give one change, or none if the
//! path is the old one. A comparison with the source is a mark and a sweep: see [`State::begin`].

mod candidates;
mod hosts;
mod next_hops;
mod paths;
mod policy;
mod routes;
mod touched;

use std::sync::Arc;

pub(crate) use paths::Paths;
pub(crate) use policy::Policy;
pub(crate) use touched::Touched;

use crate::model::{Batch, Hop, Path, PathKind};
use crate::netlink::{Event, RouteMessage, flags};
use crate::status::{Skip, Status};
use candidates::{Candidate, Order};
use hosts::Hosts;
use next_hops::NextHops;
use routes::Routes;

/// Where an event comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Dump,
    /// Events that came during a dump, which may include what they tell.
    Backlog,
    Live,
}

/// The parts of the state that are compared with the source one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Hosts,
    NextHops,
    RoutesV4,
    RoutesV6,
}

/// What a source of netlink messages said so far.
#[derive(Debug)]
pub(crate) struct State {
    policy: Policy,
    hosts: Hosts,
    next_hops: NextHops,
    routes: Routes,
    paths: Paths,
    /// Hops of the message that is read; kept for its memory.
    hops: Vec<Hop>,
    /// Whether something happened with which the kernel changes IPv4 routes silently.
    is_suspect: bool,
}

impl State {
    /// Makes an empty state that holds at most `cap` routes.
    pub(crate) fn new(policy: Policy, cap: usize) -> Self {
        Self {
            policy,
            hosts: Hosts::default(),
            next_hops: NextHops::default(),
            routes: Routes::new(policy, cap),
            paths: Paths::default(),
            hops: Vec::new(),
            is_suspect: false,
        }
    }

    /// The number of prefixes that have a candidate.
    pub(crate) fn prefixes(&self) -> usize {
        self.routes.prefixes()
    }

    /// The number of prefixes that came, or came again since a comparison began, ever.
    pub(crate) fn came(&self) -> u64 {
        self.routes.came()
    }

    /// The number of prefixes that changed since the last [`drain`](Self::drain).
    pub(crate) fn touched(&self) -> usize {
        self.routes.touched()
    }

    /// Whether something happened with which the kernel changes IPv4 routes silently. Asking resets it.
    pub(crate) fn take_suspect(&mut self) -> bool {
        std::mem::take(&mut self.is_suspect)
    }

    /// Starts a comparison of a part: what is not told again until [`sweep`](Self::sweep) is gone.
    pub(crate) fn begin(&mut self, part: Part) {
        match part {
            Part::Hosts => self.hosts.begin(),
            Part::NextHops => self.next_hops.begin(),
            Part::RoutesV4 => self.routes.begin_v4(),
            Part::RoutesV6 => self.routes.begin_v6(),
        }
    }

    /// Ends a comparison: removes what was not told again since [`begin`](Self::begin).
    pub(crate) fn sweep(&mut self, part: Part) {
        match part {
            Part::Hosts => self.hosts.sweep(),
            Part::NextHops => self.next_hops.sweep(),
            Part::RoutesV4 => self.routes.sweep_v4(),
            Part::RoutesV6 => self.routes.sweep_v6(),
        }
    }

    /// Takes an event, with the flags of its message. `origin` says where it comes from.
    pub(crate) fn apply(
        &mut self,
        event: Event<'_>,
        message_flags: u16,
        origin: Origin,
        status: &mut Status,
    ) {
        match event {
            Event::Link(link) => self.is_suspect |= self.hosts.link(*link) && origin != Origin::Dump,
            Event::LinkGone(index) => {
                self.hosts.link_gone(index);
                self.is_suspect = true;
            }
            Event::Address(address) => self.hosts.address(address),
            Event::AddressGone(address) => {
                self.hosts.address_gone(&address);
                self.is_suspect = true;
            }
            Event::Neighbour(neighbour) => self.hosts.neighbour(neighbour),
            Event::NeighbourGone(neighbour) => self.hosts.neighbour_gone(&neighbour),
            Event::Rule(rule) => self.hosts.rule(*rule),
            Event::RuleGone(rule) => self.hosts.rule_gone(&rule),
            Event::NextHop(object) => {
                if !self.next_hops.set(object) {
                    status.skip(Skip::OverCap);
                }
            }
            Event::NextHopGone(id) => self.next_hops.remove(id),
            Event::Route(route) => self.announce(&route, Order::of(message_flags, origin), status),
            Event::RouteGone(route) => self.withdraw(&route, status),
            Event::Skipped(reason) => status.skip(reason),
            Event::Done(_) | Event::Error(_) | Event::Overrun => {}
        }
    }

    fn announce(&mut self, route: &RouteMessage<'_>, order: Order, status: &mut Status) {
        if self.paths.are_too_many() {
            status.skip(Skip::OverCap);
            return;
        }
        if route.has_mtu {
            status.skip(Skip::RouteMtu);
        }
        let path = self.path(route, status);
        let candidate = Candidate::new(path, route.metric, route.object, route.protocol);
        if !self.routes.announce(route.table, route.prefix, candidate, order) {
            status.skip(Skip::OverCap);
        }
    }

    fn withdraw(&mut self, route: &RouteMessage<'_>, status: &mut Status) {
        self.hops.clear();
        route.via.write_to(&mut self.hops);
        let (routes, paths) = (&mut self.routes, &mut self.paths);
        if !routes.withdraw(route, &self.hops, paths) {
            status.skip(Skip::NotThere);
        }
    }

    /// The path of a route: that of its next-hop object, or that of its own hops.
    fn path(&mut self, route: &RouteMessage<'_>, status: &mut Status) -> Arc<Path> {
        if route.object != 0 {
            if let Some(path) = self.next_hops.path(route.object, &mut self.paths) {
                return path;
            }
            status.skip(Skip::UnknownNextHop);
        }
        self.hops.clear();
        // Hops of packets that are dropped mean nothing; the kernel names the loopback for IPv6.
        if !matches!(
            route.kind,
            PathKind::Blackhole | PathKind::Unreachable | PathKind::Prohibit | PathKind::Throw
        ) {
            route.via.write_to(&mut self.hops);
        }
        // A notification of an IPv6 group begins with the hop that is new, a dump with the oldest one. The
        // kernel gives the order no meaning.
        if self.policy == Policy::Kernel && route.prefix.addr().is_ipv6() {
            self.hops.sort_unstable();
        }
        self.paths.intern(route.kind, &self.hops, None)
    }

    /// Appends the changes since the last call.
    pub(crate) fn drain(&mut self, to: &mut Batch) {
        self.hosts.drain(to);
        if let Some(changed) = self.next_hops.take_changed() {
            // The kernel deletes the routes of an object together with it. FRR withdraws them itself.
            let keep_orphans = self.policy == Policy::Single;
            let (next_hops, paths) = (&mut self.next_hops, &mut self.paths);
            self.routes.resolve_again(&changed, keep_orphans, |id| next_hops.path(id, paths));
        }
        self.routes.drain(to);
        self.paths.forget_unused();
    }
}

impl Order {
    /// Where a candidate goes, as the flags of its message tell.
    fn of(message_flags: u16, origin: Origin) -> Self {
        if origin == Origin::Dump {
            Self::Dumped
        } else if message_flags & flags::REPLACE != 0 {
            Self::Replaces { again: origin == Origin::Backlog }
        } else if message_flags & flags::APPEND != 0 {
            Self::Last
        } else {
            Self::First
        }
    }
}
