//! Neighbours: `RTM_NEWNEIGH` and `RTM_DELNEIGH`.

use super::Fault;
use super::attributes::{AF_INET, AF_INET6, Attributes, u16_at, u32_at};
use super::link::mac;
use crate::model::{Neighbour, NeighbourState};

/// The fixed part: family, pads, interface, state, flags, type.
const FIXED: usize = 12;

const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;

/// Proxy entries say for which addresses this host answers, not who is a neighbour.
const NTF_PROXY: u8 = 0x8;

/// Reads a neighbour; `None` for those of bridges and proxies.
pub(super) fn read_neighbour(body: &[u8]) -> Result<Option<Neighbour>, Fault> {
    let attributes = Attributes::after(FIXED, body)?;
    let fixed = (body.first(), u32_at(body, 4), u16_at(body, 8), body.get(10));
    let (Some(&family), Some(interface), Some(state), Some(&flags)) = fixed else {
        return Err(Fault::Truncated);
    };
    if !matches!(family, AF_INET | AF_INET6) || flags & NTF_PROXY != 0 {
        return Ok(None);
    }
    let (mut address, mut hardware) = (None, None);
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.number {
            NDA_DST => address = Some(attribute.ip()?),
            NDA_LLADDR => hardware = mac(&attribute),
            _ => {}
        }
    }
    let address = address.ok_or(Fault::Malformed)?;
    Ok(Some(Neighbour { interface, address, mac: hardware, state: neighbour_state(state) }))
}

fn neighbour_state(bits: u16) -> NeighbourState {
    match bits {
        0x01 => NeighbourState::Incomplete,
        0x02 => NeighbourState::Reachable,
        0x04 => NeighbourState::Stale,
        0x08 => NeighbourState::Delay,
        0x10 => NeighbourState::Probe,
        0x20 => NeighbourState::Failed,
        0x40 => NeighbourState::NoArp,
        0x80 => NeighbourState::Permanent,
        _ => NeighbourState::None,
    }
}
