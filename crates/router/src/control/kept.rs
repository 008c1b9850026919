//! [`Kept`]: next hops that the kernel is asked to resolve, and to keep.
//!
//! The kernel resolves a neighbour when it sends a packet there itself. It has no packet for a next hop that
//! only the router's routes have, so it is asked, and asked again to keep what it knows.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use wirespeed_feeds::kernel::Resolver;

/// A next hop that is not resolved is asked for this often.
const AGAIN: Duration = Duration::from_secs(1);

/// A next hop that is resolved is asked for this often: before the kernel forgets who nobody uses.
const KEEP: Duration = Duration::from_secs(15);

/// The times when next hops were asked for.
#[derive(Debug, Default)]
pub(super) struct Kept {
    resolver: Option<Resolver>,
    /// When each was asked for last, by the number of the round that saw it last.
    last: HashMap<(u32, IpAddr), (Instant, u64)>,
    rounds: u64,
    next: Option<Instant>,
}

impl Kept {
    /// Whether it is time for another [round](Self::round), if nothing changed.
    pub(super) fn is_due(&self) -> bool {
        self.next.is_none_or(|next| Instant::now() >= next)
    }

    /// Asks for those next hops whose time has come. Each is given with whether it is resolved.
    pub(super) fn round(&mut self, hops: impl Iterator<Item = ((u32, IpAddr), bool)>) {
        self.rounds += 1;
        let now = Instant::now();
        self.next = Some(now + AGAIN);
        for (hop, is_resolved) in hops {
            let pause = if is_resolved { KEEP } else { AGAIN };
            let last = self.last.get(&hop).map(|&(last, _)| last);
            let is_due = last.is_none_or(|last| now.duration_since(last) >= pause);
            let asked = last.filter(|_| !is_due).unwrap_or(now);
            self.last.insert(hop, (asked, self.rounds));
            if is_due {
                self.ask(hop);
            }
        }
        let rounds = self.rounds;
        self.last.retain(|_, &mut (_, round)| round == rounds);
    }

    fn ask(&mut self, (interface, address): (u32, IpAddr)) {
        if self.resolver.is_none() {
            self.resolver = Resolver::open().map_err(|error| tracing::warn!("{error}")).ok();
        }
        if let Some(resolver) = &mut self.resolver
            && let Err(error) = resolver.ask(interface, address)
        {
            tracing::warn!(interface, %address, "{error}");
        }
    }
}
