//! [`PortTables`]: the table that the packets of each port are looked up in.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use wirespeed::IpReader;

use crate::PortId;

/// The table that the packets of each port are looked up in. It may change while a router runs, as when an
/// interface joins a VRF.
#[derive(Debug, Default)]
pub struct PortTables {
    ports: RwLock<Vec<PortTable>>,
    /// The number of changes, so that a worker sees one without taking the lock.
    version: AtomicU64,
}

/// The table of a port.
#[derive(Clone, Debug)]
pub struct PortTable {
    /// Lookups in the table.
    pub reader: IpReader,
    /// The VRF of the port, by the number of its device in the kernel; `None` outside of VRFs.
    pub vrf: Option<u32>,
}

impl PortTables {
    /// The tables of ports, in their order. A port without one has that of the first port.
    #[must_use]
    pub const fn new(ports: Vec<PortTable>) -> Self {
        Self { ports: RwLock::new(ports), version: AtomicU64::new(0) }
    }

    /// Changes the tables. Workers look up in them from their next chunk on.
    pub fn set(&self, ports: Vec<PortTable>) {
        *self.ports.write().unwrap_or_else(PoisonError::into_inner) = ports;
        self.version.fetch_add(1, Ordering::Release);
    }

    /// The number of changes so far.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The readers of all ports, in their order.
    pub(crate) fn readers(&self) -> Vec<IpReader> {
        let ports = self.ports.read().unwrap_or_else(PoisonError::into_inner);
        ports.iter().map(|port| port.reader.clone()).collect()
    }

    /// The VRF of a port, by the number of its device in the kernel; `None` outside of VRFs.
    #[must_use]
    pub fn vrf(&self, port: PortId) -> Option<u32> {
        self.ports.read().unwrap_or_else(PoisonError::into_inner).get(port.index())?.vrf
    }
}
