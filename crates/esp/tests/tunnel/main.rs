//! Tunnels from outside: what goes in comes out, and what is wrong is counted and does not.

#![allow(clippy::cast_possible_truncation, clippy::unwrap_used)] // every function here is a test or helps one

mod fragments;
mod hostile;
mod lines;
mod live;
mod moved;
mod numbers;
mod round_trip;

use std::net::IpAddr;

use wirespeed_esp::{
    Arrival, Fault, Keys, Opening, Ports, Sa, SaConfig, Scratch, Sealing, Secret, open, seal,
};

/// Bytes of a key, for a seed.
pub(crate) fn secret(seed: u8, len: usize) -> Secret {
    Secret::new((0..len).map(|at| (at as u8).wrapping_mul(31) ^ seed).collect())
}

/// Keys of every suite.
pub(crate) fn suites(seed: u8) -> Vec<Keys> {
    vec![
        Keys::Gcm(secret(seed, 20)),
        Keys::Gcm(secret(seed, 36)),
        Keys::CtrSha1 { cipher: secret(seed, 20), authentication: secret(seed ^ 0x55, 20) },
        Keys::NullSha1 { authentication: secret(seed, 20) },
    ]
}

/// An association between addresses of a family.
pub(crate) fn config(keys: Keys, is_v6: bool) -> SaConfig {
    let of = |v4: &str, v6: &str| -> IpAddr { if is_v6 { v6 } else { v4 }.parse().unwrap() };
    let (src, dst) = (of("192.0.2.1", "2001:db8::1"), of("192.0.2.2", "2001:db8::2"));
    SaConfig { path_mtu: 9000, ..SaConfig::new(0x1234_5678, src, dst, keys) }
}

pub(crate) const PORTS: Ports = Ports { src: 4500, dst: 4500 };

/// The checksum of an IPv4 header, word by word.
pub(crate) fn fix_checksum(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let mut sum = 0_u32;
    for pair in packet[..usize::from(packet[0] & 15) * 4].chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair[1]);
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// An inner packet with so many bytes behind its header.
pub(crate) fn inner(is_v6: bool, payload: usize, class: u8) -> Vec<u8> {
    let mut packet = if is_v6 {
        let mut packet = vec![0x60 | class >> 4, class << 4, 0, 0];
        packet.extend((payload as u16).to_be_bytes());
        packet.extend([17, 64]);
        packet.extend([0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.extend([0xfd, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet
    } else {
        let mut packet = vec![0x45, class];
        packet.extend((payload as u16 + 20).to_be_bytes());
        packet.extend([0, 1, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 2]);
        fix_checksum(&mut packet);
        packet
    };
    packet.extend((0..payload).map(|at| at as u8));
    packet
}

/// The packet with a hop less.
pub(crate) fn with_hop_less(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if packet[0] >> 4 == 4 {
        packet[8] -= 1;
        fix_checksum(&mut packet);
    } else {
        packet[7] -= 1;
    }
    packet
}

/// Seals a packet.
pub(crate) fn sealed(sa: &Sa, inner: &[u8]) -> Result<Vec<u8>, Fault> {
    sealed_as(Sealing::begin(sa, inner)?, inner)
}

/// Seals a packet that was checked.
pub(crate) fn sealed_as(sealing: Sealing<'_>, inner: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut packets = vec![vec![0; sealing.len()]];
    packets[0][sealing.head()..][..sealing.inner()].copy_from_slice(&inner[..sealing.inner()]);
    let unsealed = sealing.write(0, &mut packets[0])?;
    seal(&[unsealed], &mut packets[..], &mut Scratch::default());
    Ok(packets.remove(0))
}

/// Reads a packet that came to the end of an association.
pub(crate) fn arrival(sa: &Sa, packet: &[u8]) -> Arrival {
    Arrival::read(packet, |address| address == sa.tunnel().1, |port| port == 4500)
}

/// Opens a packet. A packet that is not for the tunnel at all counts as one with a bad outer header. What
/// fails must not leave a part of its text.
pub(crate) fn opened(sa: &Sa, packet: &[u8]) -> Result<Vec<u8>, Fault> {
    let envelope = match arrival(sa, packet) {
        Arrival::Esp(envelope) if envelope.spi == sa.spi() => envelope,
        Arrival::Esp(_) => return Err(Fault::NoSa),
        Arrival::Fragment | Arrival::LaterFragment => return Err(Fault::Fragment),
        Arrival::Keepalive => return Err(Fault::Keepalive),
        Arrival::Clear | Arrival::Ike | Arrival::Bad => return Err(Fault::Outer),
    };
    let opening = Opening::begin(sa, envelope, 0)?;
    let mut packets = [packet.to_vec()];
    let mut outcomes = Vec::new();
    open(&[opening], &mut packets[..], &mut Scratch::default(), &mut outcomes);
    match outcomes[0] {
        Ok(opened) => Ok(packets[0][opened.start..][..opened.len].to_vec()),
        Err(fault) => {
            let is_v6 = sa.tunnel().1.is_ipv6();
            let outer = if is_v6 { 40 } else { 20 };
            // Behind index, number and vector, and perhaps UDP, nothing is left.
            assert!(packets[0].iter().skip(outer + 24).all(|&byte| byte == 0), "{fault:?}");
            Err(fault)
        }
    }
}
