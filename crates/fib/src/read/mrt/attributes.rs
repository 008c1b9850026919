//! The next hop of a table entry, out of its BGP attributes.

use std::net::IpAddr;

use bgpkit_parser::models::{Afi, AsnLength, AttributeValue, Attributes, NetworkPrefix, Safi};
use bgpkit_parser::parser::bgp::attributes::parse_attributes;
use bytes::Bytes;
use ipnet::IpNet;

use crate::address::Family;
use crate::read::error::SkipReason;
use crate::read::table::AnyPrefix;

/// Codes of the attributes that say where to.
const NEXT_HOP: u8 = 3;
const MP_REACH_NLRI: u8 = 14;

/// The next hop that the attributes of a table entry give its prefix: for IPv4 NEXT_HOP, else MP_REACH_NLRI, which
/// tables hold in a short form too; of a global and a link-local address the global one.
pub(super) fn next_hop(
    attributes: &[u8],
    as_length: AsnLength,
    add_path: bool,
    prefix: AnyPrefix,
) -> Result<IpAddr, SkipReason> {
    let (afi, net): (_, IpNet) = match prefix {
        AnyPrefix::V4(prefix) => (Afi::Ipv4, prefix.into()),
        AnyPrefix::V6(prefix) => (Afi::Ipv6, prefix.into()),
    };
    let attributes = parse_attributes(
        Bytes::copy_from_slice(attributes),
        &as_length,
        add_path,
        Some(afi),
        Some(Safi::Unicast),
        Some(&[NetworkPrefix::new(net, None)]),
    )
    .map_err(|_| SkipReason::Record)?;
    check(&attributes)?;
    let own = attributes.next_hop();
    let multi = attributes.get_reachable_nlri().and_then(|nlri| nlri.next_hop).map(|hop| hop.global_addr());
    match prefix.family() {
        Family::V4 => own.or(multi),
        Family::V6 => multi.or(own),
    }
    .ok_or(SkipReason::NextHopMissing)
}

/// Refuses attributes of which one that matters here could not be decoded.
fn check(attributes: &Attributes) -> Result<(), SkipReason> {
    let is_broken = |value: &AttributeValue| match value {
        AttributeValue::Raw(raw) => matches!(raw.code, NEXT_HOP | MP_REACH_NLRI),
        _ => false,
    };
    if attributes.iter().any(is_broken) { Err(SkipReason::Record) } else { Ok(()) }
}
