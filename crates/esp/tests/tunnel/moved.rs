//! Address translation that gives the other end of a tunnel in UDP another address or port.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use wirespeed_esp::read::Lines;
use wirespeed_esp::{Arrival, Database, Fault, Opening, Sa, Scratch, open};

use crate::{fix_checksum, inner, sealed};

/// The associations of a gateway with a follower and a strict one out, and one in; and those of its other
/// end.
fn both(is_v6: bool, spi: u32) -> (String, String) {
    let [here, there] = if is_v6 { ["fd00::1", "fd00::2"] } else { ["192.0.2.1", "192.0.2.2"] };
    let line = |src: &str, dst: &str, spi: u32, ports: &str, more: &str| {
        format!(
            "state add src {src} dst {dst} proto esp spi {spi} mode tunnel {more} replay-window 64 \
             aead 'rfc4106(gcm(aes))' 0x0011223344556677889{spi:03}bbccddeeff01020304 128 \
             encap espinudp {ports} ::\n"
        )
    };
    let come = |dir| line(there, here, spi, "6000 4500", dir);
    let follower = line(here, there, spi + 1, "4500 6000", "dir out nat-follow nat-keepalive 20");
    let strict = line(here, there, spi + 2, "4500 6000", "dir out");
    ([come("dir in"), follower, strict].concat(), come("dir out"))
}

fn database(lines: &str) -> Database {
    let lines = Lines::read(lines);
    assert_eq!(lines.skipped, []);
    let mut database = Database::new().unwrap();
    database.apply(lines.changes).unwrap();
    database
}

/// Where a packet goes to: the address and the port.
fn goes_to(packet: &[u8]) -> (IpAddr, u16) {
    let (dst, udp) = match packet[0] >> 4 {
        4 => (IpAddr::from(*packet[16..].first_chunk::<4>().unwrap()), 20),
        _ => (IpAddr::from(*packet[24..].first_chunk::<16>().unwrap()), 40),
    };
    (dst, u16::from_be_bytes([packet[udp + 2], packet[udp + 3]]))
}

/// The packet as address translation sends it on.
fn translated(packet: &[u8], (src, port): (IpAddr, u16)) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let udp = match src {
        IpAddr::V4(src) => {
            packet[12..16].copy_from_slice(&src.octets());
            fix_checksum(&mut packet);
            20
        }
        IpAddr::V6(src) => {
            packet[8..24].copy_from_slice(&src.octets());
            40
        }
    };
    packet[udp..udp + 2].copy_from_slice(&port.to_be_bytes());
    packet
}

/// The error of a router on the way of a packet of IPv4, whose next link takes so many bytes.
fn too_large(quoted: &[u8], most: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 64, 0, 0, 0, 0, 64, 1, 0, 0, 198, 51, 100, 1];
    packet.extend(&quoted[12..16]);
    fix_checksum(&mut packet);
    let mut error = vec![3, 4, 0, 0, 0, 0];
    error.extend(most.to_be_bytes());
    error.extend(&quoted[..36]);
    let sum: u32 = error.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = !(((sum & 0xffff) + (sum >> 16)) as u16 + u16::from((sum & 0xffff) + (sum >> 16) > 0xffff));
    error[2..4].copy_from_slice(&sum.to_be_bytes());
    [packet, error].concat()
}

/// Takes a packet: whether its sender has moved.
fn take(sa: &Sa, packet: Vec<u8>) -> Result<bool, Fault> {
    let arrival = Arrival::read(&packet, |address| address == sa.tunnel().1, |port| port == 4500);
    let Arrival::Esp(envelope) = arrival else { panic!("{arrival:?}") };
    let (opening, mut outcomes) = (Opening::begin(sa, envelope, 0)?, Vec::new());
    open(&[opening], &mut [packet][..], &mut Scratch::default(), &mut outcomes);
    outcomes[0].map(|opened| opened.is_moved)
}

#[test]
fn only_the_newest_authentic_packet_tells_where_the_other_end_is() {
    for is_v6 in [false, true] {
        let (here, there) = both(is_v6, 300);
        let (mut here, there) = (database(&here), database(&there));
        let of = |text: &str| -> IpAddr {
            format!("{}{text}", if is_v6 { "fd00::" } else { "192.0.2." }).parse().unwrap()
        };
        let (told, new, attacker) = ((of("2"), 6000), (of("7"), 1025), (of("66"), 66));
        let packet = inner(false, 40, 0);
        let peer = there.state();
        let peer = peer.sas().next().unwrap();
        let numbered: Vec<Vec<u8>> = (0..8).map(|_| sealed(peer, &packet).unwrap()).collect();
        let take = |database: &Database, number: usize, from| {
            take(database.state().sa(of("1"), 300).unwrap(), translated(&numbered[number], from))
        };
        let ways = |database: &Database, spi: u32| {
            [spi + 1, spi + 2].map(|spi| {
                let state = database.state();
                let sa = state.sas().find(|sa| sa.spi() == spi).unwrap();
                let goes = goes_to(&sealed(sa, &packet).unwrap());
                assert_eq!(sa.peer().0, goes.0);
                goes
            })
        };
        assert_eq!((take(&here, 0, told), ways(&here, 300)), (Ok(false), [told, told]));
        assert_eq!((take(&here, 3, new), ways(&here, 300)), (Ok(true), [new, told]));
        assert_eq!(take(&here, 4, new), Ok(false), "it is there already");
        assert_eq!(here.state().sa(of("1"), 300).unwrap().seen(), Some(new));
        // Late ones, copies and forgeries from elsewhere.
        assert_eq!(take(&here, 1, attacker), Ok(false));
        assert_eq!(take(&here, 4, attacker), Err(Fault::Replay));
        let mut forged = translated(&numbered[5], attacker);
        *forged.last_mut().unwrap() ^= 1;
        assert_eq!(super::moved::take(here.state().sa(of("1"), 300).unwrap(), forged), Err(Fault::Tag));
        assert_eq!(ways(&here, 300), [new, told]);
        let keepalives = here.reader().keepalives(Instant::now());
        assert!(keepalives.is_empty());
        let later = here.reader().keepalives(Instant::now() + Duration::from_secs(30));
        assert_eq!(later.iter().map(|packet| goes_to(packet)).collect::<Vec<_>>(), [new]);
        if !is_v6 {
            let (state, large) = (here.state(), inner(false, 900, 0));
            let [follower, strict] = [301, 302].map(|spi| state.sas().find(|sa| sa.spi() == spi).unwrap());
            let quoted = [follower, strict].map(|sa| sealed(sa, &large).unwrap());
            // The strict one sent nothing to the new place.
            let forged = translated(&quoted[1], (of("1"), 4500));
            let forged = [&forged[..16], &quoted[0][16..24], &forged[24..]].concat();
            assert!(!state.learn(&too_large(&forged, 700)) && state.learn(&too_large(&quoted[0], 700)));
            assert_eq!((follower.path_mtu(), strict.path_mtu()), (700, 1500));
        }
        // New keys for a tunnel whose other end is known; and another tunnel.
        let rekeyed = Lines::read(&both(is_v6, 400).0);
        here.replace(rekeyed.changes).unwrap();
        assert_eq!(ways(&here, 400), [new, told]);
        let elsewhere = both(is_v6, 500).0.replace("6000", "6001");
        here.replace(Lines::read(&elsewhere).changes).unwrap();
        assert_eq!(ways(&here, 500), [(told.0, 6001); 2]);
        // It comes back to where it was.
        let (again, _) = both(is_v6, 300);
        let again = database(&again);
        assert_eq!([take(&again, 5, new), take(&again, 6, told)], [Ok(true); 2]);
        assert_eq!(ways(&again, 300), [told, told]);
    }
}
