//! [`Reader`]: security associations and policies for a thread that uses them.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use arc_swap::ArcSwap;
use wirespeed::RuleReader;
use wirespeed::classify::{Ipv4Tuple, Ipv6Tuple};

use crate::fragments::Fragments;
use crate::keepalives::Keepalives;
use crate::policy::Direction;
use crate::state::State;

/// What readers share of outer packets and their fragments.
#[derive(Debug)]
pub(crate) struct Outer {
    pub(crate) fragments: Mutex<Fragments>,
    pub(crate) keepalives: Mutex<Keepalives>,
    /// The identification of the next packet that is cut.
    pub(crate) id: AtomicU32,
}

/// The rules of both families in one direction.
#[derive(Clone, Debug)]
pub struct FamilyReaders {
    /// The rules of IPv4: actions are numbers of policies.
    pub v4: RuleReader<Ipv4Tuple>,
    /// The rules of IPv6.
    pub v6: RuleReader<Ipv6Tuple>,
    pub(crate) count: Arc<AtomicUsize>,
}

impl FamilyReaders {
    /// Whether there is no rule, so that none has to be asked.
    #[must_use]
    pub fn are_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }
}

/// Security associations and policies: a reader's side, which never waits.
#[derive(Clone, Debug)]
pub struct Reader {
    pub(crate) state: Arc<ArcSwap<State>>,
    pub(crate) outer: Arc<Outer>,
    pub(crate) out: FamilyReaders,
    pub(crate) r#in: FamilyReaders,
}

impl Reader {
    /// The state of now. For policies, ask the rules first and take the state then: it knows what they found.
    #[must_use]
    pub fn state(&self) -> Arc<State> {
        self.state.load_full()
    }

    /// The fragments of ESP packets that came, shared by all readers: those of a packet may come to different
    /// threads. Others wait as long as the caller has them.
    pub fn fragments(&self) -> MutexGuard<'_, Fragments> {
        self.outer.fragments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keepalives that are to be sent now, as packets. One reader gets each; there are none more often
    /// than once a second.
    #[must_use]
    pub fn keepalives(&self, now: Instant) -> Vec<Vec<u8>> {
        // Where another thread asks, it sends them.
        let keepalives = self.outer.keepalives.try_lock();
        keepalives.map_or_else(|_| Vec::new(), |mut keepalives| keepalives.due(self.state().sas(), now))
    }

    /// An identification for the fragments of an IPv6 packet, another one for each call (RFC 8200, 4.5).
    #[must_use]
    pub fn next_id(&self) -> u32 {
        self.outer.id.fetch_add(1, Ordering::Relaxed)
    }

    /// The rules of a direction.
    #[must_use]
    pub const fn rules(&self, direction: Direction) -> &FamilyReaders {
        match direction {
            Direction::Out => &self.out,
            Direction::In => &self.r#in,
        }
    }
}
