//! MRT writers: tables as TABLE_DUMP_V2 with one peer of AS 0, updates as BGP4MP_ET messages of that peer.
//!
//! The encoder of `bgpkit-parser` keeps a whole table in a hash map and writes the long form of MP_REACH_NLRI
//! in tables, which RFC 6396 (4.3.4) does not allow. A route needs only three attributes, so they are written
//! here.

use std::io::Write;
use std::net::IpAddr;

use super::text::parts;
use super::{Routes, WriteError, refuse, text_of};
use crate::address::Address;
use crate::next_hop::NextHops;
use crate::prefix::Prefix;
use crate::read::any_prefix::AnyPrefix;
use crate::read::mrt_header::{BGP4MP_ET, TABLE_DUMP_V2};
use crate::read::{Format, TimedUpdate};

const PEER_INDEX_TABLE: u16 = 1;
const RIB_IPV4_UNICAST: u16 = 2;
const RIB_IPV6_UNICAST: u16 = 4;
const MESSAGE_AS4: u16 = 4;
const UNICAST: u8 = 1;

/// Attributes with their flags: well-known ones are transitive; multiprotocol ones are optional, with a
/// length of two octets.
const ORIGIN_IGP: [u8; 4] = [0x40, 1, 1, 0];
const EMPTY_AS_PATH: [u8; 3] = [0x40, 2, 0];
const NEXT_HOP: [u8; 2] = [0x40, 3];
const MP_REACH_NLRI: [u8; 2] = [0x90, 14];
const MP_UNREACH_NLRI: [u8; 2] = [0x90, 15];

pub(super) fn table(routes: &mut Routes<'_>, out: &mut dyn Write) -> Result<(), WriteError> {
    // The collector is 0.0.0.0, the view has no name, and the one peer is 0.0.0.0 of AS 0, with a 4-octet AS.
    let mut peers = vec![0; 6];
    peers.extend([0, 1, 2]);
    peers.extend([0; 12]);
    record(out, 0, TABLE_DUMP_V2, PEER_INDEX_TABLE, &peers)?;
    let mut sequence = 0u32;
    let mut body = Vec::new();
    routes.each(|prefix, next_hop| {
        let address = address(prefix, next_hop)?;
        body.clear();
        body.extend(sequence.to_be_bytes());
        nlri(&mut body, prefix);
        // There is one entry, of peer 0 at time 0.
        body.extend([0, 1, 0, 0, 0, 0, 0, 0]);
        let attributes = [&ORIGIN_IGP[..], &EMPTY_AS_PATH, &table_next_hop(prefix, address)].concat();
        put_u16(&mut body, attributes.len());
        body.extend(attributes);
        let subtype = if is_v4(prefix) { RIB_IPV4_UNICAST } else { RIB_IPV6_UNICAST };
        sequence = sequence.wrapping_add(1);
        Ok(record(out, 0, TABLE_DUMP_V2, subtype, &body)?)
    })
}

pub(super) fn update(update: &TimedUpdate, hops: &NextHops, out: &mut dyn Write) -> Result<(), WriteError> {
    let (prefix, announced) = parts(&update.update);
    let mut message = vec![0xff; 16];
    let mut prefixes = Vec::new();
    nlri(&mut prefixes, prefix);
    let (mut withdrawn, mut attributes, mut reached) = (Vec::new(), Vec::new(), Vec::new());
    match announced {
        None if is_v4(prefix) => withdrawn = prefixes,
        None => put_attribute(&mut attributes, MP_UNREACH_NLRI, &[&family(prefix)[..], &prefixes].concat()),
        Some(hop) => {
            let hop = hop.ok_or_else(|| refuse(Format::Mrt, prefix, ""))?;
            let address = address(prefix, text_of(hop, prefix, hops, Format::Mrt)?)?;
            attributes = [&ORIGIN_IGP[..], &EMPTY_AS_PATH].concat();
            match address {
                IpAddr::V4(address) if is_v4(prefix) => {
                    put_attribute(&mut attributes, NEXT_HOP, &address.octets());
                    reached = prefixes;
                }
                address => {
                    let value = [&family(prefix)[..], &sized(address), &[0], &prefixes].concat();
                    put_attribute(&mut attributes, MP_REACH_NLRI, &value);
                }
            }
        }
    }
    let length = 16 + 2 + 1 + 2 + withdrawn.len() + 2 + attributes.len() + reached.len();
    put_u16(&mut message, length);
    message.push(2);
    put_u16(&mut message, withdrawn.len());
    message.extend(withdrawn);
    put_u16(&mut message, attributes.len());
    message.extend(attributes);
    message.extend(reached);

    let time = update.time.unwrap_or_default();
    let mut body = time.subsec_micros().to_be_bytes().to_vec();
    // Peer AS, own AS, interface, family and both addresses are zero, except the family.
    body.extend([0; 10]);
    body.extend([0, 1]);
    body.extend([0; 8]);
    body.extend(message);
    let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
    Ok(record(out, seconds, BGP4MP_ET, MESSAGE_AS4, &body)?)
}

fn record(out: &mut dyn Write, time: u32, kind: u16, subtype: u16, body: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(body.len()).expect("a record of one prefix is under a kilobyte");
    out.write_all(&time.to_be_bytes())?;
    out.write_all(&kind.to_be_bytes())?;
    out.write_all(&subtype.to_be_bytes())?;
    out.write_all(&length.to_be_bytes())?;
    out.write_all(body)
}

/// The attribute with the next hop in a table: there MP_REACH_NLRI holds only the next hop.
fn table_next_hop(prefix: AnyPrefix, address: IpAddr) -> Vec<u8> {
    let mut attribute = Vec::new();
    match address {
        IpAddr::V4(address) if is_v4(prefix) => put_attribute(&mut attribute, NEXT_HOP, &address.octets()),
        address => put_attribute(&mut attribute, MP_REACH_NLRI, &sized(address)),
    }
    attribute
}

fn put_attribute(into: &mut Vec<u8>, head: [u8; 2], value: &[u8]) {
    const LONG: u8 = 0x10;
    into.extend(head);
    if head[0] & LONG != 0 {
        put_u16(into, value.len());
    } else {
        into.push(u8::try_from(value.len()).expect("a next hop is four octets"));
    }
    into.extend(value);
}

fn put_u16(into: &mut Vec<u8>, number: usize) {
    into.extend(u16::try_from(number).expect("the parts of a one-prefix message are short").to_be_bytes());
}

/// An address after its length.
fn sized(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => [&[4][..], &address.octets()].concat(),
        IpAddr::V6(address) => [&[16][..], &address.octets()].concat(),
    }
}

/// AFI and SAFI.
fn family(prefix: AnyPrefix) -> [u8; 3] {
    [0, if is_v4(prefix) { 1 } else { 2 }, UNICAST]
}

fn is_v4(prefix: AnyPrefix) -> bool {
    matches!(prefix, AnyPrefix::V4(_))
}

fn address(prefix: AnyPrefix, next_hop: &str) -> Result<IpAddr, WriteError> {
    next_hop.parse().map_err(|_| refuse(Format::Mrt, prefix, next_hop))
}

/// A length in bits and the octets for it.
fn nlri(into: &mut Vec<u8>, prefix: AnyPrefix) {
    fn put<A: Address>(into: &mut Vec<u8>, prefix: Prefix<A>) {
        into.push(prefix.len());
        into.extend((0..usize::from(prefix.len().div_ceil(8))).map(|at| prefix.address().octet(at)));
    }
    match prefix {
        AnyPrefix::V4(prefix) => put(into, prefix),
        AnyPrefix::V6(prefix) => put(into, prefix),
    }
}
