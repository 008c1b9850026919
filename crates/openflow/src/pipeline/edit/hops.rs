//! The time to live, of IP and of MPLS.

use super::super::parse::be32;
use super::{Packet, Stopped};

impl Packet {
    /// The offset of the time to live of IP that is directly under Ethernet.
    pub(super) fn ip_hops(&self) -> Option<usize> {
        self.layout.ip.map(|ip| ip.at + if ip.is_v6 { 7 } else { 8 })
    }

    /// The offset of the time to live in the header behind the outer MPLS entry, and that of an IPv4 header.
    fn inner_hops(&self) -> Option<(usize, Option<usize>)> {
        let at = self.layout.payload;
        let entry = be32(&self.bytes, at).filter(|_| self.layout.is_mpls)?;
        let inner = at + 4;
        if entry & 0x100 == 0 {
            return (self.bytes.len() >= inner + 4).then_some((inner + 3, None));
        }
        match self.bytes.get(inner)? >> 4 {
            4 if self.bytes.len() >= inner + 20 => Some((inner + 8, Some(inner))),
            6 if self.bytes.len() >= inner + 40 => Some((inner + 7, None)),
            _ => None,
        }
    }

    /// Sets a time to live, which is no field. The fields are those of the bytes before and after.
    fn set_hops(&mut self, at: usize, ipv4: Option<usize>, hops: u8) {
        match ipv4 {
            Some(base) => self.replace(base, at, &[hops], &[Some(base + 10)]),
            None => self.bytes[at] = hops,
        }
        self.is_stale = false;
    }

    pub(crate) fn set_nw_ttl(&mut self, hops: u8) {
        self.refresh();
        if let (Some(at), Some(ip)) = (self.ip_hops(), self.layout.ip) {
            self.set_hops(at, (!ip.is_v6).then_some(ip.at), hops);
        }
    }

    pub(crate) fn dec_nw_ttl(&mut self) -> Result<(), Stopped> {
        self.refresh();
        match self.ip_hops().map(|at| self.bytes[at]) {
            Some(0 | 1) => Err(Stopped::Spent),
            Some(hops) => {
                self.set_nw_ttl(hops - 1);
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub(crate) fn set_mpls_ttl(&mut self, hops: u8) {
        self.refresh();
        if self.layout.is_mpls {
            self.bytes[self.layout.payload + 3] = hops;
        }
    }

    pub(crate) fn dec_mpls_ttl(&mut self) -> Result<(), Stopped> {
        self.refresh();
        if self.layout.is_mpls {
            let hops = &mut self.bytes[self.layout.payload + 3];
            if *hops <= 1 {
                return Err(Stopped::Spent);
            }
            *hops -= 1;
        }
        Ok(())
    }

    pub(crate) fn copy_ttl_out(&mut self) {
        self.refresh();
        if let Some((at, _)) = self.inner_hops() {
            self.bytes[self.layout.payload + 3] = self.bytes[at];
        }
    }

    pub(crate) fn copy_ttl_in(&mut self) {
        self.refresh();
        if let Some((at, ipv4)) = self.inner_hops() {
            let hops = self.bytes[self.layout.payload + 3];
            self.set_hops(at, ipv4, hops);
        }
    }
}
