//! [`Tuns`]: devices by which packets go to the kernel, one for each VRF.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::interface;
use super::netlink::Netlink;
use super::tun::Tun;
use crate::{Error, Kernel, PortId, PortTables};

/// Devices by which packets go to the kernel, which looks them up in the table of the VRF that they came
/// from. A VRF gets its device with its first packet.
#[derive(Debug)]
pub struct Tuns {
    tables: Arc<PortTables>,
    outside: Tun,
    /// The device of each VRF; `None` where none can be made.
    of: BTreeMap<u32, Option<Tun>>,
}

/// The name of the devices, with their number.
const NAME: &str = "wirespeed%d";

impl Tuns {
    /// Makes the device for packets of no VRF. `tables` says which VRF a port belongs to.
    pub fn open(tables: Arc<PortTables>) -> Result<Self, Error> {
        Ok(Self { tables, outside: Tun::open(NAME)?, of: BTreeMap::new() })
    }
}

/// Makes the device of a VRF.
fn open(vrf: u32) -> Result<Tun, Error> {
    let tun = Tun::open(NAME)?;
    let device = interface::Interface::open(tun.name())?;
    Netlink::open()?.set_master(device.index, vrf)?;
    Ok(tun)
}

impl Kernel for Tuns {
    fn take(&mut self, port: PortId, frame: &[u8]) {
        let Some(vrf) = self.tables.vrf(port) else { return self.outside.take(port, frame) };
        let tun = match self.of.entry(vrf) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let tun = open(vrf).map_err(|error| {
                    tracing::warn!(vrf, "the kernel gets no packets of the VRF: {error}");
                });
                entry.insert(tun.ok())
            }
        };
        // Without a device the packet is lost: outside of its VRF it would go another way.
        if let Some(tun) = tun {
            tun.take(port, frame);
        }
    }
}
