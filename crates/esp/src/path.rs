//! The size of a tunnel's path, and ICMP errors that tell it (RFC 4301, 8.2).
//!
//! Such errors are under no seal. One is taken if the packet that it quotes has the addresses, the ports, the
//! index and a sequence number of an association that sent it lately, and is larger than the size that the
//! error tells. So a forger has to see or guess those. What was learned is forgotten after a time, for a path
//! that has become larger, and for what a forger did.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::ip::{self, ESP, Family, Header, IPV4, IPV6, PROTOCOL_ESP, PROTOCOL_UDP, Ports, UDP, be16, be32};

/// The time for which a smaller size holds (RFC 1191, 6.3; RFC 8201, 5.3).
const HOLDS: Duration = Duration::from_secs(10 * 60);

/// The size of a path: as it was configured, or smaller because a router told so.
#[derive(Debug)]
pub(crate) struct Path {
    configured: u16,
    mtu: AtomicU16,
    /// The time when the smaller size was learned.
    learned: Mutex<Option<Instant>>,
}

impl Path {
    pub(crate) const fn new(mtu: u16) -> Self {
        Self { configured: mtu, mtu: AtomicU16::new(mtu), learned: Mutex::new(None) }
    }

    /// The largest packet that the path takes.
    #[inline]
    pub(crate) fn mtu(&self) -> u16 {
        self.mtu.load(Ordering::Relaxed)
    }

    /// Learns a size, if it is smaller than the one of now.
    pub(crate) fn learn(&self, mtu: u16, now: Instant) {
        if mtu < self.mtu() {
            *self.learned.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
            self.mtu.store(mtu, Ordering::Relaxed);
        }
    }

    /// Forgets what was learned too long ago: the next packets find the size anew. Returns whether the path
    /// is larger now.
    #[cold]
    pub(crate) fn forget(&self, now: Instant) -> bool {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = learned.is_some_and(|learned| now.saturating_duration_since(learned) >= HOLDS);
        if is_old {
            *learned = None;
            self.mtu.store(self.configured, Ordering::Relaxed);
        }
        is_old
    }
}

/// A router on the path told that a packet of an association was too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge {
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) spi: u32,
    /// The lower half of the packet's sequence number.
    pub(crate) low: u32,
    /// The ports, if it is in UDP.
    pub(crate) ports: Option<Ports>,
    /// The largest packet that the next link takes, and no less than every link has to take.
    pub(crate) mtu: u16,
}

/// The least that a link takes whole: of IPv4 what every host takes (RFC 791, 3.1), of IPv6 RFC 8200, 5.
pub(crate) const LEAST_V4: u16 = 576;
pub(crate) const LEAST_V6: u16 = 1280;
/// Bytes of a header of ICMP.
const ICMP: usize = 8;

impl TooLarge {
    /// Reads a packet. `None` for one that is no such error, or is about no ESP packet.
    #[inline]
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        let is_v4 = packet.first()? >> 4 == 4;
        // Nearly every packet ends here.
        if *packet.get(if is_v4 { 9 } else { 6 })? != if is_v4 { 1 } else { 58 } {
            return None;
        }
        Self::read_icmp(packet, is_v4)
    }

    #[cold]
    fn read_icmp(packet: &[u8], is_v4: bool) -> Option<Self> {
        let len = Header::read(packet)?.len;
        let start = if is_v4 { usize::from(packet[0] & 15) * 4 } else { IPV6 };
        let message = packet.get(start..len)?;
        let (icmp, quoted) = message.split_first_chunk::<ICMP>()?;
        let (mtu, least) = match (is_v4, icmp[0], icmp[1]) {
            (true, 3, 4) if wirespeed_checksum::sum(message) == 0xffff => (be16(icmp, 6).into(), LEAST_V4),
            (false, 2, 0) if ip::is_sum_right(packet, len) => (be32(icmp, 4), LEAST_V6),
            _ => return None,
        };
        let family = match quoted.first()? >> 4 {
            4 if quoted.len() >= IPV4 => Family::V4,
            6 if quoted.len() >= IPV6 => Family::V6,
            _ => return None,
        };
        let (protocol, mut esp, len) = match family {
            Family::V4 => (quoted[9], usize::from(quoted[0] & 15) * 4, usize::from(be16(quoted, 2))),
            Family::V6 => (quoted[6], IPV6, IPV6 + usize::from(be16(quoted, 4))),
        };
        let mut ports = None;
        match protocol {
            PROTOCOL_ESP => {}
            PROTOCOL_UDP => {
                let udp = quoted.get(esp..esp + UDP)?;
                ports = Some(Ports { src: be16(udp, 0), dst: be16(udp, 2) });
                esp += UDP;
            }
            _ => return None,
        }
        let esp = quoted.get(esp..esp + ESP)?;
        // A packet that the link takes was not too large.
        (len > mtu as usize).then(|| Self {
            src: ip::source(quoted, family),
            dst: ip::destination(quoted, family),
            spi: be32(esp, 0),
            low: be32(esp, 4),
            ports,
            mtu: u16::try_from(mtu).unwrap_or(u16::MAX).max(least),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_size_holds_for_ten_minutes() {
        let (path, start) = (Path::new(1500), Instant::now());
        assert!(!path.forget(start + 2 * HOLDS));
        path.learn(1400, start);
        path.learn(1450, start + HOLDS / 2);
        assert_eq!(path.mtu(), 1400);
        assert!(!path.forget(start + HOLDS - Duration::from_secs(1)));
        assert_eq!(path.mtu(), 1400);
        assert!(path.forget(start + HOLDS));
        assert_eq!(path.mtu(), 1500);
        // The next packets may find it small again.
        path.learn(1280, start + HOLDS);
        assert!(!path.forget(start + HOLDS + HOLDS / 2));
        assert_eq!(path.mtu(), 1280);
    }
}
