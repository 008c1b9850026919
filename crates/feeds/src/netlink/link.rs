//! Links: `RTM_NEWLINK` and `RTM_DELLINK`.

use super::Fault;
use super::attributes::{Attribute, Attributes, u16_at, u32_at};
use crate::model::{Link, Mac, TableId};

/// The fixed part: family, pad, device type, index, flags, changed flags.
const FIXED: usize = 16;

const IFF_UP: u32 = 0x1;
const IFF_LOOPBACK: u32 = 0x8;
const IFF_RUNNING: u32 = 0x40;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;

const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_INFO_SLAVE_KIND: u16 = 4;
const IFLA_INFO_SLAVE_DATA: u16 = 5;
/// Number 1 is `IFLA_VRF_TABLE` in the data of a VRF, and `IFLA_VRF_PORT_TABLE` in that of its member.
const VRF_TABLE: u16 = 1;

const ARPHRD_ETHER: u16 = 1;

/// Reads a link; `None` for news of one family only, which bridges send of their ports.
pub(super) fn read_link(body: &[u8]) -> Result<Option<Link>, Fault> {
    let attributes = Attributes::after(FIXED, body)?;
    let (Some(device), Some(index), Some(flags)) = (u16_at(body, 2), u32_at(body, 4), u32_at(body, 8)) else {
        return Err(Fault::Truncated);
    };
    if body.first() != Some(&0) {
        return Ok(None);
    }
    if index == 0 {
        return Err(Fault::Malformed);
    }
    let mut link = Link {
        index,
        name: String::new(),
        mac: None,
        mtu: 0,
        up: flags & IFF_UP != 0,
        running: flags & IFF_UP != 0 && flags & IFF_RUNNING != 0,
        loopback: flags & IFF_LOOPBACK != 0,
        master: None,
        vrf: None,
    };
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.number {
            IFLA_ADDRESS if device == ARPHRD_ETHER => link.mac = mac(&attribute),
            IFLA_IFNAME => link.name = text(attribute.value),
            IFLA_MTU => link.mtu = attribute.u32()?,
            IFLA_MASTER => link.master = Some(attribute.u32()?).filter(|&master| master != 0),
            IFLA_LINKINFO => link.vrf = vrf(&attribute)?,
            _ => {}
        }
    }
    Ok(Some(link))
}

/// The hardware address, if it has six bytes.
pub(super) fn mac(attribute: &Attribute<'_>) -> Option<Mac> {
    attribute.value.try_into().ok().map(Mac)
}

/// The table of a VRF, or of the VRF that the link belongs to.
fn vrf(info: &Attribute<'_>) -> Result<Option<TableId>, Fault> {
    let (mut own, mut masters) = ((false, None), (false, None));
    for attribute in info.nested() {
        let attribute = attribute?;
        match attribute.number {
            IFLA_INFO_KIND => own.0 = text(attribute.value) == "vrf",
            IFLA_INFO_DATA => own.1 = Some(attribute),
            IFLA_INFO_SLAVE_KIND => masters.0 = text(attribute.value) == "vrf",
            IFLA_INFO_SLAVE_DATA => masters.1 = Some(attribute),
            _ => {}
        }
    }
    for (is_vrf, data) in [own, masters] {
        let Some(data) = data.filter(|_| is_vrf) else { continue };
        for attribute in data.nested() {
            let attribute = attribute?;
            if attribute.number == VRF_TABLE {
                return Ok(Some(TableId(attribute.u32()?)));
            }
        }
    }
    Ok(None)
}

/// A text that a zero ends.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
