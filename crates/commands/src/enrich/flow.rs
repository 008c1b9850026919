//! [`flow()`]: the 5-tuple of a record, out of its cells.

use std::net::IpAddr;

use wirespeed_classify::tuple::{has_ports, protocol_number};
use wirespeed_records::{Role, is_unset};

use super::columns::Column;
use crate::rules::{Flow, ICMP, ICMPV6};

/// The flow of a record. `None` if an address or the protocol is not known, or if the addresses are of two
/// families. `cell` gives the cell of a column of these, without blanks around it, and `address` the address
/// of one. Fails with the place of the column whose cell is wrong.
pub fn flow<'c>(
    columns: &[Column],
    cell: impl Fn(usize) -> &'c [u8],
    address: impl Fn(usize) -> Result<Option<IpAddr>, ()>,
) -> Result<Option<Flow>, usize> {
    let of = |role| {
        let mut of_role = columns.iter().enumerate().filter(|(_, column)| column.role == role);
        of_role.find_map(|(at, _)| {
            let cell = cell(at);
            (!is_unset(cell)).then_some((cell, at))
        })
    };
    let parsed = |role| {
        let at = columns.iter().position(|column| column.role == role);
        at.map_or(Ok(None), |at| address(at).map_err(|()| at))
    };
    let (src, dst) = (parsed(Role::Source)?, parsed(Role::Destination)?);
    let proto = match of(Role::Protocol) {
        Some((cell, at)) => protocol(cell).map_err(|()| at)?,
        None => None,
    };
    let (Some(src), Some(dst), Some(proto)) = (src, dst, proto) else { return Ok(None) };
    if src.is_ipv4() != dst.is_ipv4() {
        return Ok(None);
    }
    // Zeek, and others, say icmp for both families.
    let proto = if proto == ICMP && src.is_ipv6() { ICMPV6 } else { proto };
    let number = |role, most: u16| -> Result<Option<u16>, usize> {
        let Some((cell, at)) = of(role) else { return Ok(None) };
        let number = std::str::from_utf8(cell).ok().and_then(|text| text.parse().ok());
        number.filter(|&number| number <= most).map(Some).ok_or(at)
    };
    let ports = match proto {
        _ if has_ports(proto) => {
            [number(Role::SourcePort, u16::MAX)?, number(Role::DestinationPort, u16::MAX)?]
        }
        // Columns of ports hold the type and the code in many ways, so they are not taken for them.
        ICMP | ICMPV6 => [number(Role::IcmpType, 255)?, number(Role::IcmpCode, 255)?],
        _ => [Some(0); 2],
    };
    Ok(Some(Flow { src, dst, proto, ports }))
}

/// The number of a protocol, by number or name. `None` if the record says that it is not known.
fn protocol(cell: &[u8]) -> Result<Option<u8>, ()> {
    /// More bytes than any name has.
    const LONG: usize = 64;
    if cell.len() > LONG {
        return Err(());
    }
    if let Some(number) = std::str::from_utf8(cell).ok().and_then(|text| text.parse().ok()) {
        return Ok(Some(number));
    }
    let name = String::from_utf8_lossy(cell).to_ascii_lowercase();
    match &*name {
        // Zeek's word.
        "unknown_transport" => Ok(None),
        // ECS writes the name without a dash, nfdump with one.
        "ipv6-icmp" | "ipv6icmp" | "icmp6" | "icmp-v6" => Ok(Some(ICMPV6)),
        name => protocol_number(name).map(Some).ok_or(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enrich::{Key, Kind};

    fn flow_of(cells: &str) -> Result<Option<Flow>, usize> {
        let roles = [
            Role::Source,
            Role::Destination,
            Role::Protocol,
            Role::SourcePort,
            Role::DestinationPort,
            Role::IcmpType,
            Role::IcmpCode,
        ];
        let columns = roles.map(|role| Column { name: String::new(), role });
        let columns = columns.to_vec();
        let key = Key { kind: Kind::Rules, label: None, columns, first: 0, numbers: None };
        let cells: Vec<&str> = cells.split(',').collect();
        let cell = |at: usize| cells.get(at).map_or(&b""[..], |cell| cell.as_bytes());
        flow(&key.columns, cell, |at| key.address(cell(at)))
    }

    #[test]
    fn flows_of_cells() {
        let of = |cells| flow_of(cells).unwrap().map(|flow| (flow.proto, flow.ports));
        let both = |a, b| [Some(a), Some(b)];
        assert_eq!(of("10.0.0.1,10.0.0.2,tcp,1,443"), Some((6, both(1, 443))));
        assert_eq!(of("10.0.0.1,10.0.0.2,UDP,,53"), Some((17, [None, Some(53)])));
        assert_eq!(of("10.0.0.1,10.0.0.2,17,-,-"), Some((17, [None, None])));
        assert_eq!(of("10.0.0.1,10.0.0.2,icmp,8.0,x"), Some((1, [None, None])));
        assert_eq!(of("10.0.0.1,10.0.0.2,1,,,8,0"), Some((1, both(8, 0))));
        assert_eq!(of("2001:db8::1,2001:db8::2,icmp,,,128"), Some((58, [Some(128), None])));
        assert_eq!(of("10.0.0.1,10.0.0.2,gre"), Some((47, both(0, 0))));
        for none in ["10.0.0.1,,tcp", ",10.0.0.1,tcp", "10.0.0.1,10.0.0.2,-", "10.0.0.1,2001:db8::1,tcp"] {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(of("10.0.0.1,10.0.0.2,unknown_transport"), None);
        let mapped = flow_of("::ffff:10.0.0.1,10.0.0.2,6,1,2").unwrap().unwrap();
        assert_eq!(mapped.src, IpAddr::from([10, 0, 0, 1]));
        for (wrong, at) in [
            ("x,10.0.0.2,tcp", 0),
            ("167772161,10.0.0.2,tcp", 0),
            ("10.0.0.1,x,tcp", 1),
            ("10.0.0.1,10.0.0.2,256", 2),
            ("10.0.0.1,10.0.0.2,tpc", 2),
            ("10.0.0.1,10.0.0.2,tcp,65536,1", 3),
            ("10.0.0.1,10.0.0.2,tcp,1,http", 4),
            ("10.0.0.1,10.0.0.2,icmp,,,256", 5),
        ] {
            assert_eq!(flow_of(wrong), Err(at), "{wrong}");
        }
    }
}
