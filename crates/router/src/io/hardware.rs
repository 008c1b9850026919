//! [`Hardware`]: the hardware address of an interface as it is now, for whoever chooses frames by it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::Error;

/// The hardware address of an interface as it is now.
pub(super) struct Hardware {
    mac: AtomicU64,
    /// Whoever has the address in a place of its own. Whoever changes the address has this locked.
    followers: Mutex<Vec<Weak<dyn Follow>>>,
}

/// A holder of a copy of the address.
pub(super) trait Follow: Send + Sync {
    /// Takes the address that the interface has now.
    fn follow(&self, mac: [u8; 6]) -> Result<(), Error>;
}

impl Hardware {
    pub(super) fn new(mac: [u8; 6]) -> Self {
        Self { mac: AtomicU64::new(number(mac)), followers: Mutex::default() }
    }

    /// The address.
    pub(super) fn mac(&self) -> [u8; 6] {
        let [_, _, mac @ ..] = self.mac.load(Ordering::Relaxed).to_be_bytes();
        mac
    }

    /// Makes a holder of the address, which is told of changes as long as it is kept.
    pub(super) fn followed<F: Follow + 'static>(
        &self,
        make: impl FnOnce([u8; 6]) -> Result<F, Error>,
    ) -> Result<Arc<F>, Error> {
        let mut followers = self.followers();
        let follower = Arc::new(make(self.mac())?);
        let weak: Weak<F> = Arc::downgrade(&follower);
        followers.push(weak);
        Ok(follower)
    }

    /// Sets the address, and tells those that follow it.
    pub(super) fn set(&self, mac: [u8; 6]) -> Result<(), Error> {
        if self.mac() == mac {
            return Ok(());
        }
        let mut followers = self.followers();
        followers.retain(|follower| follower.strong_count() > 0);
        for follower in followers.iter().filter_map(Weak::upgrade) {
            follower.follow(mac)?;
        }
        self.mac.store(number(mac), Ordering::Relaxed);
        Ok(())
    }

    fn followers(&self) -> MutexGuard<'_, Vec<Weak<dyn Follow>>> {
        // Each entry is whole, whatever a thread that panicked was about.
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Hardware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hardware").field("mac", &self.mac()).finish_non_exhaustive()
    }
}

/// An address as a number.
const fn number(mac: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = mac;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}
