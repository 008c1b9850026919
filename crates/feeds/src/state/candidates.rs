//! [`Candidates`]: the routes of one prefix, best first, and the kernel's rules of what replaces what.
//!
//! A notification does not say which older route it is about. What the kernel does, by experiment and from
//! `net/ipv4/fib_trie.c` and `net/ipv6/ip6_fib.c`:
//!
//! | | IPv4 | IPv6 |
//! |---|---|---|
//! | new, flag "replace" | the first route of the metric goes | the first of the metric that is a group like it, else the first |
//! | new, flag "append" | behind those of the metric | with gateways: the message holds the whole group of the metric |
//! | new | before those of the metric | likewise; without gateways: behind those of the metric |
//! | gone | the route with these hops | with gateways: these hops leave the group |
//!
//! IPv6 routes of one prefix and metric, some with gateways and some without, have no order: the kernel takes
//! turns by their state. Here the first one stays.

use std::num::NonZeroU8;
use std::sync::Arc;

use super::paths::Paths;
use crate::model::{Hop, Path, PathKind};

/// Routes that routers announce in IPv6 do not join groups.
const RTPROT_RA: u8 = 9;

/// A comparison with the source. A candidate of an older one was not told again.
pub(super) type Generation = NonZeroU8;

/// A route of a prefix.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) path: Arc<Path>,
    metric: u32,
    /// The next-hop object that gives the path; 0 if none.
    pub(super) object: u32,
    protocol: u8,
    pub(super) generation: Generation,
}

impl Candidate {
    pub(super) fn new(path: Arc<Path>, metric: u32, object: u32, protocol: u8) -> Self {
        Self { path, metric, object, protocol, generation: Generation::MIN }
    }

    /// Whether both are one route to the kernel.
    fn is(&self, other: &Self) -> bool {
        (self.metric, self.object) == (other.metric, other.object)
            && self.protocol == other.protocol
            && (Arc::ptr_eq(&self.path, &other.path) || self.leads_by(other.path.kind, &other.path.hops))
    }

    fn leads_by(&self, kind: PathKind, hops: &[Hop]) -> bool {
        self.path.kind == kind
            && self.path.hops.len() == hops.len()
            && self.path.hops.iter().zip(hops).all(|(own, hop)| own.leads_like(hop))
    }

    /// Whether IPv6 routes of equal metric join this one as a group.
    fn is_group(&self) -> bool {
        self.object == 0 && self.protocol != RTPROT_RA && are_gateways(&self.path.hops)
    }
}

fn are_gateways(hops: &[Hop]) -> bool {
    !hops.is_empty() && hops.iter().all(|hop| hop.gateway.is_some())
}

/// Where a candidate goes among those of its metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// A dump tells the candidates in their order.
    Dumped,
    /// The candidate takes the place of another. `again` says that the last dump may include this already.
    Replaces {
        again: bool,
    },
    First,
    Last,
}

/// A route that is withdrawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Withdrawn<'a> {
    pub(super) metric: u32,
    pub(super) object: u32,
    pub(super) protocol: u8,
    pub(super) kind: PathKind,
    pub(super) hops: &'a [Hop],
}

/// The path that counts: of the first candidate that is usable.
pub(super) fn best(candidates: &[Candidate]) -> Option<&Arc<Path>> {
    candidates.iter().map(|candidate| &candidate.path).find(|path| path.is_usable())
}

/// Adds an IPv4 candidate.
pub(super) fn announce_v4(candidates: &mut Vec<Candidate>, candidate: Candidate, order: Order) {
    let metric = candidate.metric;
    let known = candidates.iter().position(|other| other.is(&candidate));
    match (order, known) {
        (Order::Replaces { .. }, known) => {
            let first = candidates.partition_point(|other| other.metric < metric);
            // Known behind the first: an event that the last dump includes. What it replaced came back with
            // an event before it.
            if let Some(known) = known.filter(|&known| known != first) {
                candidates.remove(known);
            }
            match candidates.get_mut(first) {
                Some(other) if other.metric == metric => *other = candidate,
                _ => insert_first(candidates, candidate),
            }
        }
        (Order::Dumped, known) => {
            if let Some(known) = known {
                candidates.remove(known);
            }
            insert_last(candidates, candidate);
        }
        (_, Some(known)) => candidates[known] = candidate,
        (Order::First, None) => insert_first(candidates, candidate),
        (Order::Last, None) => insert_last(candidates, candidate),
    }
}

/// Adds an IPv6 candidate.
pub(super) fn announce_v6(candidates: &mut Vec<Candidate>, candidate: Candidate, order: Order) {
    let (metric, is_group) = (candidate.metric, candidate.is_group());
    let position = |candidates: &[Candidate], wanted: &dyn Fn(&Candidate) -> bool| {
        candidates.iter().position(|other| other.metric == metric && wanted(other))
    };
    let older = if is_group {
        position(candidates, &Candidate::is_group)
    } else {
        position(candidates, &|other| other.is(&candidate))
    };
    let older = match order {
        Order::Dumped => {
            if let Some(older) = older {
                candidates.remove(older);
            }
            None
        }
        Order::Replaces { again } => {
            let first = |candidates: &[Candidate]| {
                position(candidates, &|other| other.is_group() == is_group)
                    .or_else(|| position(candidates, &|_| true))
            };
            // The kernel may have a route without gateways twice, but a dump does not tell it twice by
            // mistake.
            if let Some(older) = older
                && again
                && first(candidates) != Some(older)
            {
                candidates.remove(older);
            }
            first(candidates)
        }
        Order::First | Order::Last => older,
    };
    match older {
        Some(older) => candidates[older] = candidate,
        None => insert_last(candidates, candidate),
    }
}

fn insert_first(candidates: &mut Vec<Candidate>, candidate: Candidate) {
    let at = candidates.partition_point(|other| other.metric < candidate.metric);
    candidates.insert(at, candidate);
}

fn insert_last(candidates: &mut Vec<Candidate>, candidate: Candidate) {
    let at = candidates.partition_point(|other| other.metric <= candidate.metric);
    candidates.insert(at, candidate);
}

/// Removes an IPv4 candidate; whether it was there.
pub(super) fn withdraw_v4(candidates: &mut Vec<Candidate>, gone: &Withdrawn<'_>) -> bool {
    let position = |wanted: &dyn Fn(&Candidate) -> bool| {
        candidates.iter().position(|other| other.metric == gone.metric && wanted(other))
    };
    let by_object = |other: &Candidate| gone.object != 0 && other.object == gone.object;
    let by_hops = |other: &Candidate| other.object == gone.object && other.leads_by(gone.kind, gone.hops);
    let found = position(&by_object)
        .or_else(|| position(&by_hops))
        // The hops may have changed silently: a link that went takes its hops out of a group.
        .or_else(|| position(&|other| (other.object, other.protocol) == (gone.object, gone.protocol)));
    found.map(|at| candidates.remove(at)).is_some()
}

/// Removes an IPv6 candidate, or hops of a group; whether it was there.
pub(super) fn withdraw_v6(candidates: &mut Vec<Candidate>, gone: &Withdrawn<'_>, paths: &mut Paths) -> bool {
    let is_of_group = gone.object == 0 && gone.protocol != RTPROT_RA && are_gateways(gone.hops);
    if !is_of_group {
        return withdraw_v4(candidates, gone);
    }
    let group = |other: &Candidate| other.metric == gone.metric && other.is_group();
    let Some(at) = candidates.iter().position(group) else { return false };
    let path = &candidates[at].path;
    let is_gone = |hop: &Hop| gone.hops.iter().any(|other| other.leads_like(hop));
    let mut rest: Vec<Hop> = path.hops.iter().filter(|hop| !is_gone(hop)).copied().collect();
    if rest.len() == path.hops.len() {
        return false;
    }
    if let [hop] = &mut rest[..] {
        // A dump tells no weight of a hop that is alone.
        hop.weight = 1;
    }
    if rest.is_empty() {
        candidates.remove(at);
    } else {
        candidates[at].path = paths.intern(path.kind, &rest, None);
    }
    true
}
