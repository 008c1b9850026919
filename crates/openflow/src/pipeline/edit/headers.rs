//! Headers that are put on and taken off: tags of VLANs, entries of MPLS, backbone bridges.

use super::super::parse::{be16, be32};
use super::Packet;

impl Packet {
    pub(crate) fn push_vlan(&mut self, ether: u16) {
        self.refresh();
        if self.bytes.len() < 14 {
            return;
        }
        let tag = if self.layout.tags > 0 { be16(&self.bytes, 14).unwrap_or(0) } else { 0 };
        self.insert(12, &[ether.to_be_bytes(), tag.to_be_bytes()].concat());
    }

    pub(crate) fn pop_vlan(&mut self) {
        self.refresh();
        if self.layout.tags > 0 {
            self.remove(12, 4);
        }
    }

    pub(crate) fn push_mpls(&mut self, ether: u16) {
        self.refresh();
        if self.bytes.len() < 14 {
            return;
        }
        let entry = if self.layout.is_mpls {
            // The new entry has what the old one has, and is not the last.
            be32(&self.bytes, self.layout.payload).unwrap_or(0) & !0x100
        } else {
            0x100 | u32::from(self.ip_hops().map_or(0, |at| self.bytes[at]))
        };
        // The outermost place: before other tags (specification 1.3.5, section 5.12).
        // In front of entries that there are, else in the outermost place, before tags (specification 1.3.5,
        // section 5.12.1): a tag loses its type there, and gets it back when the entry is taken off.
        let at = if self.layout.is_mpls { self.layout.ether_at } else { 12 };
        self.put(at, &ether.to_be_bytes());
        self.insert(at + 2, &entry.to_be_bytes());
    }

    pub(crate) fn pop_mpls(&mut self, ether: u16) {
        self.refresh();
        if self.layout.is_mpls {
            let at = self.layout.ether_at;
            self.bytes[at..at + 2].copy_from_slice(&ether.to_be_bytes());
            self.remove(self.layout.payload, 4);
        }
    }

    pub(crate) fn push_pbb(&mut self, ether: u16) {
        self.refresh();
        let Some(addresses) = self.bytes.first_chunk::<12>().copied() else { return };
        let pcp = if self.layout.tags > 0 { be16(&self.bytes, 14).unwrap_or(0) >> 13 } else { 0 };
        let isid = if self.layout.is_pbb {
            be32(&self.bytes, self.layout.payload).unwrap_or(0) & 0xff_ffff
        } else {
            0
        };
        let mut header = [0; 18];
        header[..12].copy_from_slice(&addresses);
        header[12..14].copy_from_slice(&ether.to_be_bytes());
        header[14..].copy_from_slice(&(u32::from(pcp) << 29 | isid).to_be_bytes());
        self.insert(0, &header);
    }

    pub(crate) fn pop_pbb(&mut self) {
        self.refresh();
        if self.layout.is_pbb && self.layout.tags == 0 {
            self.remove(0, self.layout.payload + 4);
        }
    }
}
