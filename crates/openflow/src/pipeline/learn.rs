//! [`Learned`]: a switch without OpenFlow, which learns where addresses are.

use rustc_hash::FxHashMap;

/// Addresses that a worker remembers.
const MOST: usize = 65_536;
/// Milliseconds until an address is forgotten (IEEE 802.1Q, 8.8.3: 300 s).
const FORGOTTEN: u64 = 300_000;

/// Where addresses were seen, by VLAN. Each worker learns for itself: until it has seen an address, it
/// floods.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    ports: FxHashMap<(u64, u16), (u32, u64)>,
}

impl Learned {
    /// Learns a source, and tells the port of the destination if it is known. Groups have none.
    pub(crate) fn learn(
        &mut self,
        (source, destination): (u64, u64),
        vlan: u16,
        port: u32,
        now: u64,
    ) -> Option<u32> {
        const GROUP: u64 = 1 << 40;
        if source & GROUP == 0 {
            if self.ports.len() >= MOST && !self.ports.contains_key(&(source, vlan)) {
                self.ports.retain(|_, (_, seen)| *seen + FORGOTTEN > now);
            }
            if self.ports.len() < MOST || self.ports.contains_key(&(source, vlan)) {
                self.ports.insert((source, vlan), (port, now));
            }
        }
        let known = self.ports.get(&(destination, vlan)).filter(|_| destination & GROUP == 0);
        known.filter(|(_, seen)| seen + FORGOTTEN > now).map(|&(port, _)| port)
    }
}
