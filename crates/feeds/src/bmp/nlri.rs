//! [`prefixes`]: the prefixes of an UPDATE, with or without path identifiers.
//!
//! Whether identifiers are there can't always be known: GoBGP sends them of its Loc-RIB, and its Peer Up does
//! not say so. Small identifiers begin with two bytes of 0, which read as two default routes. So prefixes
//! that repeat the default route, or that can't be read, are read with identifiers; what then fits is
//! remembered.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::fault::{Bytes, Fault};

/// Whether prefixes have path identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identifiers {
    Present,
    /// Not as far as is known.
    Unknown,
}

/// A prefix with its path identifier, or 0.
pub(crate) type Nlri = (u32, IpNet);

/// Reads prefixes.
pub(super) fn prefixes(bytes: &[u8], is_v6: bool, identifiers: &mut Identifiers) -> Result<Vec<Nlri>, Fault> {
    if *identifiers == Identifiers::Present {
        return read(bytes, is_v6, true).map(|(prefixes, _)| prefixes);
    }
    let plain = read(bytes, is_v6, false);
    if let Ok((prefixes, true)) = plain {
        return Ok(prefixes);
    }
    if let Ok((prefixes, true)) = read(bytes, is_v6, true) {
        *identifiers = Identifiers::Present;
        return Ok(prefixes);
    }
    plain.map(|(prefixes, _)| prefixes)
}

/// Reads prefixes, and says whether they look right: without host bits, the default route at most once.
fn read(bytes: &[u8], is_v6: bool, with_identifiers: bool) -> Result<(Vec<Nlri>, bool), Fault> {
    let mut bytes = Bytes::new(bytes, "a prefix that ends too early");
    let mut prefixes = Vec::new();
    let (mut defaults, mut has_host_bits) = (0, false);
    while !bytes.is_empty() {
        let identifier = if with_identifiers { bytes.u32()? } else { 0 };
        let length = bytes.u8()?;
        let octets = bytes.take(usize::from(length).div_ceil(8))?;
        let net = if is_v6 {
            Ipv6Net::new(Ipv6Addr::from(padded::<16>(octets)?), length).map(IpNet::V6)
        } else {
            Ipv4Net::new(Ipv4Addr::from(padded::<4>(octets)?), length).map(IpNet::V4)
        };
        let net = net.map_err(|_| TOO_LONG)?;
        defaults += u32::from(length == 0);
        has_host_bits |= net.trunc() != net;
        prefixes.push((identifier, net.trunc()));
    }
    let looks_right = !has_host_bits && (defaults < 2 || with_identifiers);
    Ok((prefixes, looks_right))
}

const TOO_LONG: Fault = Fault("a prefix that is longer than an address");

/// The octets, with zeros behind.
fn padded<const N: usize>(octets: &[u8]) -> Result<[u8; N], Fault> {
    let mut padded = [0; N];
    padded.get_mut(..octets.len()).ok_or(TOO_LONG)?.copy_from_slice(octets);
    Ok(padded)
}
