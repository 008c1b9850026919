//! Next-hop objects: `RTM_NEWNEXTHOP` and `RTM_DELNEXTHOP` (`linux/nexthop.h`).

use super::Fault;
use super::attributes::{Attributes, u32_at};
use crate::model::Hop;

/// The fixed part: family, scope, protocol, reserved, flags.
const FIXED: usize = 8;

const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_BLACKHOLE: u16 = 4;
const NHA_OIF: u16 = 5;
const NHA_GATEWAY: u16 = 6;
const NHA_ENCAP: u16 = 8;

const RTNH_F_DEAD: u32 = 1;

/// An element of a group: identifier, weight less one, the weight's upper byte, reserved.
const MEMBER: usize = 8;

/// A next-hop object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NextHopObject {
    pub(crate) id: u32,
    pub(crate) target: Target,
}

/// What a next-hop object leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Hop(Hop),
    Blackhole,
    Group(Vec<Member>),
}

/// A member of a group of next-hop objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) id: u32,
    pub(crate) weight: u16,
}

/// Reads a next-hop object.
pub(super) fn read_next_hop(body: &[u8]) -> Result<NextHopObject, Fault> {
    let attributes = Attributes::after(FIXED, body)?;
    let flags = u32_at(body, 4).ok_or(Fault::Truncated)?;
    let (mut id, mut group, mut blackhole) = (None, None, false);
    let mut hop = Hop::on_link(0);
    hop.dead = flags & RTNH_F_DEAD != 0;
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.number {
            NHA_ID => id = Some(attribute.u32()?),
            NHA_GROUP => group = Some(members(attribute.value)?),
            NHA_BLACKHOLE => blackhole = true,
            NHA_OIF => hop.interface = attribute.u32()?,
            NHA_GATEWAY => hop.gateway = Some(attribute.ip()?),
            NHA_ENCAP => hop.encapsulated = true,
            _ => {}
        }
    }
    let id = id.filter(|&id| id != 0).ok_or(Fault::Malformed)?;
    let target = match group {
        Some(members) => Target::Group(members),
        None if blackhole => Target::Blackhole,
        None => Target::Hop(hop),
    };
    Ok(NextHopObject { id, target })
}

/// The identifier of an object that is gone.
pub(super) fn read_next_hop_gone(body: &[u8]) -> Result<u32, Fault> {
    for attribute in Attributes::after(FIXED, body)? {
        let attribute = attribute?;
        if attribute.number == NHA_ID {
            return attribute.u32();
        }
    }
    Err(Fault::Malformed)
}

fn members(bytes: &[u8]) -> Result<Vec<Member>, Fault> {
    let (members, rest) = bytes.as_chunks::<MEMBER>();
    if !rest.is_empty() {
        return Err(Fault::Truncated);
    }
    let member = |&[a, b, c, d, low, high, ..]: &[u8; MEMBER]| Member {
        id: u32::from_ne_bytes([a, b, c, d]),
        // Kernels before 6.13 leave the upper byte 0.
        weight: u16::from_le_bytes([low, high]).saturating_add(1),
    };
    Ok(members.iter().map(member).collect())
}
