//! [`Kept`]: next hops that the kernel is asked to resolve, to check, and to keep.
//!
//! The kernel resolves a neighbour when it sends a packet there itself, and with such a packet it checks one
//! that it has not heard of for a while. It has no packet for a next hop that only the router's routes have,
//! and it sees none of those that the router forwards. So it is asked, and asked again:
//!
//! ```text
//! reachable ─ 30 s without a word ─► stale ─ asked: NTF_USE ─► delay ─ 5 s ─► probe ─ 3 s without an answer ─► failed
//! ```

use std::net::IpAddr;
use std::time::{Duration, Instant};

use foldhash::HashMap;
use wirespeed_feeds::kernel::Resolver;

/// The pause between two rounds, if nothing changed; a next hop that is not resolved, or that the kernel has
/// doubts about, is asked for this often.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

/// A next hop that is resolved is asked for this often: before the kernel forgets who nobody uses.
pub(super) const KEEP: Duration = Duration::from_secs(15);

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

    /// Asks for those next hops whose time has come. Each is given with the pause between two questions.
    pub(super) fn round(&mut self, hops: impl Iterator<Item = ((u32, IpAddr), Duration)>) {
        self.rounds += 1;
        let now = Instant::now();
        self.next = Some(now + AGAIN);
        for (hop, pause) in hops {
            let last = self.last.get(&hop).map(|&(last, _)| last);
            let is_due = last.is_none_or(|last| now.duration_since(last) >= pause);
            let asked = last.filter(|_| !is_due).unwrap_or(now);
            self.last.insert(hop, (asked, self.rounds));
            if is_due {
                self.ask(hop);
            }
        }
        let rounds = self.rounds;
        // One that is used now and then is not asked for each time.
        self.last.retain(|_, &mut (asked, round)| round == rounds || now.duration_since(asked) < KEEP);
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
