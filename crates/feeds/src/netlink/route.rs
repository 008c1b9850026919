//! Routes: `RTM_NEWROUTE` and `RTM_DELROUTE`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::Fault;
use super::attributes::{AF_INET, AF_INET6, Attributes, ip, u16_at, u32_at};
use crate::model::{Hop, PathKind, TableId};
use crate::status::Skip;

/// The fixed part: family, lengths of destination and source, type of service, table, protocol, scope, type,
/// flags.
const FIXED: usize = 12;

const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_METRICS: u16 = 8;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
const RTA_VIA: u16 = 18;
const RTA_ENCAP: u16 = 22;
const RTA_NH_ID: u16 = 30;

/// A number within `RTA_METRICS`.
const RTAX_MTU: u16 = 2;

const RTM_F_CLONED: u32 = 0x200;
const RTNH_F_DEAD: u32 = 1;

/// The length of the header of a hop in `RTA_MULTIPATH`: length, flags, weight less one, interface.
const HOP: usize = 8;

/// A route as a message tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteMessage<'a> {
    pub(crate) table: TableId,
    pub(crate) prefix: IpNet,
    pub(crate) metric: u32,
    pub(crate) protocol: u8,
    pub(crate) kind: PathKind,
    /// The next-hop object that the route uses; 0 if none.
    pub(crate) object: u32,
    /// Whether the route has an MTU of its own, apart from that of its link.
    pub(crate) has_mtu: bool,
    pub(crate) via: Via<'a>,
}

/// The hops of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Via<'a> {
    /// No hop is named.
    Nothing,
    One(Hop),
    /// The value of `RTA_MULTIPATH`, checked.
    Several(&'a [u8]),
}

/// Reads a route; the reason why it is skipped if it is none that a table can hold.
pub(super) fn read_route(body: &[u8]) -> Result<Result<RouteMessage<'_>, Skip>, Fault> {
    let attributes = Attributes::after(FIXED, body)?;
    let Some(&[family, length, source_length, tos, table, protocol, _scope, kind]) = body.first_chunk::<8>()
    else {
        return Err(Fault::Truncated);
    };
    let flags = u32_at(body, 8).ok_or(Fault::Truncated)?;
    let mut destination = match family {
        AF_INET => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        AF_INET6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => return Ok(Err(Skip::OtherFamily)),
    };
    let Some(kind) = path_kind(kind) else { return Ok(Err(Skip::OtherFamily)) };
    let mut table = u32::from(table);
    let (mut metric, mut object, mut from_source) = (0, 0, source_length != 0);
    let (mut gateway, mut interface, mut encapsulated, mut several) = (None, 0, false, None);
    let mut has_mtu = false;
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.number {
            RTA_DST => destination = attribute.ip()?,
            RTA_SRC => from_source = true,
            RTA_OIF => interface = attribute.u32()?,
            RTA_GATEWAY => gateway = Some(attribute.ip()?),
            RTA_VIA => gateway = Some(via(attribute.value)?),
            RTA_PRIORITY => metric = attribute.u32()?,
            RTA_TABLE => table = attribute.u32()?,
            RTA_ENCAP => encapsulated = true,
            RTA_NH_ID => object = attribute.u32()?,
            RTA_METRICS => {
                for metric in attribute.nested() {
                    has_mtu |= metric?.number == RTAX_MTU;
                }
            }
            RTA_MULTIPATH => several = Some(attribute.value),
            _ => {}
        }
    }
    if flags & RTM_F_CLONED != 0 {
        return Ok(Err(Skip::Cached));
    }
    if tos != 0 || from_source {
        return Ok(Err(Skip::Selective));
    }
    if destination.is_ipv4() != (family == AF_INET) {
        return Err(Fault::Malformed);
    }
    let prefix = IpNet::new(destination, length).map_err(|_| Fault::Malformed)?.trunc();
    let via = match several {
        Some(bytes) => {
            hops(bytes).try_for_each(|hop| hop.map(drop))?;
            Via::Several(bytes)
        }
        None if gateway.is_some() || interface != 0 => {
            let dead = flags & RTNH_F_DEAD != 0;
            Via::One(Hop { gateway, interface, weight: 1, dead, encapsulated })
        }
        None => Via::Nothing,
    };
    Ok(Ok(RouteMessage { table: TableId(table), prefix, metric, protocol, kind, object, has_mtu, via }))
}

impl Via<'_> {
    /// Appends the hops.
    pub(crate) fn write_to(&self, to: &mut Vec<Hop>) {
        match *self {
            Self::Nothing => {}
            Self::One(hop) => to.push(hop),
            Self::Several(bytes) => to.extend(hops(bytes).map_while(Result::ok)),
        }
    }
}

/// The hops in a value of `RTA_MULTIPATH`. Ends after the first fault.
fn hops(bytes: &[u8]) -> impl Iterator<Item = Result<Hop, Fault>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut rest);
        let hop = u16_at(bytes, 0).map(usize::from).ok_or(Fault::Truncated).and_then(|length| {
            rest = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
            if length < HOP {
                rest = &[];
                return Err(Fault::Malformed);
            }
            hop(bytes.get(..length).ok_or(Fault::Truncated)?)
        });
        if hop.is_err() {
            rest = &[];
        }
        Some(hop)
    })
}

/// A hop of `RTA_MULTIPATH`.
fn hop(bytes: &[u8]) -> Result<Hop, Fault> {
    let attributes = Attributes::after(HOP, bytes)?;
    let (Some(&flags), Some(&weight), Some(interface)) = (bytes.get(2), bytes.get(3), u32_at(bytes, 4))
    else {
        return Err(Fault::Truncated);
    };
    let mut hop = Hop::on_link(interface);
    hop.weight = u16::from(weight) + 1;
    hop.dead = u32::from(flags) & RTNH_F_DEAD != 0;
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.number {
            RTA_GATEWAY => hop.gateway = Some(attribute.ip()?),
            RTA_VIA => hop.gateway = Some(via(attribute.value)?),
            RTA_ENCAP => hop.encapsulated = true,
            _ => {}
        }
    }
    Ok(hop)
}

/// A gateway of any family: the family, then the address.
fn via(bytes: &[u8]) -> Result<IpAddr, Fault> {
    ip(bytes.get(2..).ok_or(Fault::Truncated)?).ok_or(Fault::Malformed)
}

fn path_kind(kind: u8) -> Option<PathKind> {
    Some(match kind {
        // FRR leaves the type out when it withdraws.
        0 | 1 => PathKind::Unicast,
        2 => PathKind::Local,
        3 => PathKind::Broadcast,
        4 => PathKind::Anycast,
        5 => PathKind::Multicast,
        6 => PathKind::Blackhole,
        7 => PathKind::Unreachable,
        8 => PathKind::Prohibit,
        9 => PathKind::Throw,
        _ => return None,
    })
}
