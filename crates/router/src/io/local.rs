//! [`LocalAddresses`]: the addresses of the router itself, whose packets stay the kernel's, and the hardware
//! addresses of its interfaces.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::bpf::{Kind, Map};
use super::hardware::Hardware;
use super::interface::Interface;
use super::sys::denied;
use super::transit::{Addresses, Takes, Transit, mapped};
use crate::Error;

/// The addresses of the router itself, shared by its ports and by XDP programs. Clones are the same set.
///
/// Broadcast addresses of subnets belong to it too: the kernel knows what to do with their packets.
#[derive(Clone, Debug, Default)]
pub struct LocalAddresses {
    set: Addresses,
    /// The kernel's copy, once an XDP program needs it. Whoever changes the set has this locked.
    map: Arc<Mutex<Option<Arc<Map>>>>,
    /// The interfaces whose frames are chosen, by their numbers.
    hardware: Arc<Mutex<HashMap<u32, Weak<Hardware>>>>,
}

/// The most addresses.
pub(super) const MOST: u32 = 1 << 16;

impl LocalAddresses {
    /// An empty set: each packet is transit.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the addresses. While it runs, an address that stays is always there, in the kernel too.
    pub fn set(&self, addresses: impl IntoIterator<Item = IpAddr>) -> Result<(), Error> {
        let wanted: HashSet<[u8; 16]> = addresses.into_iter().map(mapped).collect();
        let map = self.map();
        if wanted.len() > MOST as usize {
            let what = format!("{} local addresses, and the most is {MOST}", wanted.len());
            return Err(Error::port("XDP", what, io::ErrorKind::InvalidInput.into()));
        }
        if let Some(map) = map.as_ref() {
            let old = self.set.read().unwrap_or_else(PoisonError::into_inner);
            change(map, &old, &wanted)
                .map_err(|cause| denied("XDP", "local addresses can't be set", "CAP_BPF", cause))?;
        }
        *self.set.write().unwrap_or_else(PoisonError::into_inner) = wanted;
        Ok(())
    }

    /// The choice of the frames that are taken at an interface, for ports that are no XDP sockets.
    #[must_use]
    pub fn transit(&self, interface: &Interface, takes: impl Into<Takes>) -> Transit {
        Transit::new(self.hardware(interface), takes.into(), Arc::clone(&self.set))
    }

    /// Sets the hardware address that an interface has now: ports and XDP programs that were made for it
    /// choose frames to this address from now on.
    pub fn set_mac(&self, interface: u32, mac: [u8; 6]) -> Result<(), Error> {
        let hardware = self.interfaces().get(&interface).and_then(Weak::upgrade);
        hardware.map_or(Ok(()), |hardware| hardware.set(mac))
    }

    /// The hardware address of an interface, as it is now: known as long as somebody keeps it.
    pub(super) fn hardware(&self, interface: &Interface) -> Arc<Hardware> {
        let mut interfaces = self.interfaces();
        if let Some(known) = interfaces.get(&interface.index).and_then(Weak::upgrade) {
            return known;
        }
        let hardware = Arc::new(Hardware::new(interface.mac));
        interfaces.insert(interface.index, Arc::downgrade(&hardware));
        hardware
    }

    fn interfaces(&self) -> MutexGuard<'_, HashMap<u32, Weak<Hardware>>> {
        // Each entry is whole.
        self.hardware.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kernel's copy, for a program.
    pub(super) fn kernel(&self) -> io::Result<Arc<Map>> {
        let mut map = self.map();
        if let Some(map) = map.as_ref() {
            return Ok(Arc::clone(map));
        }
        let made = Arc::new(Map::new(Kind::Hash, "local", 16, 1, MOST)?);
        let set = self.set.read().unwrap_or_else(PoisonError::into_inner);
        change(&made, &HashSet::new(), &set)?;
        *map = Some(Arc::clone(&made));
        Ok(made)
    }

    fn map(&self) -> MutexGuard<'_, Option<Arc<Map>>> {
        // The map is in the kernel, so a thread that panicked left it whole.
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the kernel's copy what is wanted: first what is new, then what is old.
fn change(map: &Map, old: &HashSet<[u8; 16]>, wanted: &HashSet<[u8; 16]>) -> io::Result<()> {
    wanted.difference(old).try_for_each(|address| map.set(address, &[1]))?;
    old.difference(wanted).try_for_each(|address| map.remove(address))
}
