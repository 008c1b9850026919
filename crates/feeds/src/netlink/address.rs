//! Addresses of this host: `RTM_NEWADDR` and `RTM_DELADDR`.

use ipnet::IpNet;

use super::Fault;
use super::attributes::{Attributes, u32_at};
use crate::model::InterfaceAddress;

/// The fixed part: family, prefix length, flags, scope, interface.
const FIXED: usize = 8;

const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;

/// Reads an address. On a point-to-point link the network is that of the other end, and the address that of
/// this one.
pub(super) fn read_address(body: &[u8]) -> Result<InterfaceAddress, Fault> {
    let attributes = Attributes::after(FIXED, body)?;
    let (Some(&length), Some(interface)) = (body.get(1), u32_at(body, 4)) else {
        return Err(Fault::Truncated);
    };
    let (mut address, mut local) = (None, None);
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.number {
            IFA_ADDRESS => address = Some(attribute.ip()?),
            IFA_LOCAL => local = Some(attribute.ip()?),
            _ => {}
        }
    }
    let address = local.or(address).ok_or(Fault::Malformed)?;
    let net = IpNet::new(address, length).map_err(|_| Fault::Malformed)?;
    Ok(InterfaceAddress { interface, net })
}
