//! [`Keepalives`]: datagrams that keep the mappings of address translation alive (RFC 3948, 4).

use std::net::IpAddr;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::ip::{self, IPV4, IPV6, Outer, PROTOCOL_UDP, Ports, UDP};
use crate::narrow;
use crate::policy::Direction;
use crate::sa::Sa;

/// How often it is looked whether some are due.
const LOOKS: Duration = Duration::from_secs(1);

/// A mapping: the addresses and ports of tunnels through it.
type Mapping = (IpAddr, IpAddr, Ports);

/// The mappings that are kept alive.
#[derive(Debug, Default)]
pub(crate) struct Keepalives {
    looked: Option<Instant>,
    /// The packets that were sent through each, and the time when that number was another one, or when a
    /// keepalive was sent.
    quiet: FxHashMap<Mapping, (u64, Instant)>,
}

impl Keepalives {
    /// The packets that are due now: a mapping has carried nothing for as long as one of its associations
    /// says.
    pub(crate) fn due<'s>(&mut self, sas: impl Iterator<Item = &'s Sa>, now: Instant) -> Vec<Vec<u8>> {
        if self.looked.is_some_and(|looked| now.saturating_duration_since(looked) < LOOKS) {
            return Vec::new();
        }
        self.looked = Some(now);
        let mut mappings: FxHashMap<Mapping, (u64, u16)> = FxHashMap::default();
        for sa in sas.filter(|sa| sa.direction != Some(Direction::In)) {
            let ((dst, Some(ports)), Some(seconds)) = (sa.peer(), sa.config.nat_keepalive) else { continue };
            let (sent, least) = mappings.entry((sa.src, dst, ports)).or_insert((0, seconds));
            (*sent, *least) = (sent.wrapping_add(sa.sent()), seconds.min(*least));
        }
        let mut due = Vec::new();
        let quiet = mappings.into_iter().map(|(mapping, (sent, seconds))| {
            let known = self.quiet.get(&mapping).filter(|(before, _)| *before == sent);
            let mut since = known.map_or(now, |&(_, since)| since);
            if now.saturating_duration_since(since) >= Duration::from_secs(seconds.into()) {
                due.push(packet(mapping));
                since = now;
            }
            (mapping, (sent, since))
        });
        self.quiet = quiet.collect();
        due
    }
}

/// A datagram with the byte 0xff (RFC 3948, 2.3).
fn packet((src, dst, ports): Mapping) -> Vec<u8> {
    let header = if dst.is_ipv4() { IPV4 } else { IPV6 };
    let mut packet = vec![0xff; header + UDP + 1];
    let outer =
        Outer { src, dst, protocol: PROTOCOL_UDP, len: packet.len(), class: 0, is_whole: false, id: 0 };
    outer.write(&mut packet);
    let len = narrow::u16(UDP + 1).to_be_bytes();
    let udp = [ports.src.to_be_bytes(), ports.dst.to_be_bytes(), len, [0; 2]];
    packet[header..header + UDP].copy_from_slice(udp.as_flattened());
    if !dst.is_ipv4() {
        let sum = ip::udp_checksum(&packet);
        packet[IPV6 + 6..IPV6 + 8].copy_from_slice(&sum.to_be_bytes());
    }
    packet
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Lines;
    use crate::{Arrival, Database};

    const LINES: &str = "\
        state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 256 mode tunnel encap espinudp 4500 4501 0.0.0.0 KEY KEEP 20\n\
        state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 257 mode tunnel encap espinudp 4500 4501 0.0.0.0 KEY KEEP 60\n\
        state add src fd00::1 dst fd00::2 proto esp spi 258 mode tunnel encap espinudp 4500 4500 :: KEY KEEP 30\n\
        state add src 192.0.2.2 dst 192.0.2.1 proto esp spi 259 mode tunnel dir in encap espinudp 4501 4500 0.0.0.0 KEY KEEP 20\n\
        state add src 192.0.2.1 dst 192.0.2.3 proto esp spi 260 mode tunnel encap espinudp 4500 4500 0.0.0.0 KEY\n\
        state add src 192.0.2.1 dst 192.0.2.4 proto esp spi 261 mode tunnel KEY\n";

    #[test]
    fn mappings_are_kept_alive_where_nothing_else_is_sent() {
        let key = "aead rfc4106(gcm(aes)) 0x00112233445566778899aabbccddeeff01020304 128";
        let lines = Lines::read(&LINES.replace("KEY", key).replace("KEEP", "nat-keepalive"));
        assert_eq!(lines.skipped, []);
        let mut database = Database::new().unwrap();
        database.apply(lines.changes).unwrap();
        let (state, start) = (database.state(), Instant::now());
        let mut keepalives = Keepalives::default();
        let mut at = |seconds: u64| {
            let due = keepalives.due(state.sas(), start + Duration::from_secs(seconds));
            let mut to: Vec<IpAddr> = Vec::new();
            for packet in due {
                let arrival = Arrival::read(&packet, |_| true, |port| matches!(port, 4500 | 4501));
                assert_eq!(arrival, Arrival::Keepalive);
                to.push(if packet[0] >> 4 == 4 {
                    assert_eq!(packet[20..28], [0x11, 0x94, 0x11, 0x95, 0, 9, 0, 0]);
                    ip::destination(&packet, ip::Family::V4)
                } else {
                    assert!(ip::is_sum_right(&packet, packet.len()));
                    ip::destination(&packet, ip::Family::V6)
                });
            }
            to.sort_unstable();
            to.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let nobody: [&str; 0] = [];
        assert_eq!((at(0), at(19)), (nobody.map(String::from).to_vec(), Vec::new()));
        assert_eq!(at(20), ["192.0.2.2"]);
        assert_eq!((at(29), at(30)), (Vec::new(), vec!["fd00::2".to_owned()]));
        // Nothing is due twice, and a packet of either association puts it off.
        assert_eq!(at(30), nobody);
        drop(state.sas().find(|sa| sa.spi() == 257).unwrap().take(1));
        assert_eq!((at(40), at(59)), (Vec::new(), Vec::new()));
        assert_eq!(at(60), ["192.0.2.2", "fd00::2"]);
    }
}
