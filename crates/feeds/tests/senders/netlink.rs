//! Messages of netlink about routes and next-hop objects, and frames of FPM.

use std::net::IpAddr;

use ipnet::IpNet;

pub(crate) const NEW: u16 = 24;
pub(crate) const GONE: u16 = 25;
pub(crate) const REPLACE: u16 = 0x100;
pub(crate) const APPEND: u16 = 0x800;

/// A route.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) table: u32,
    pub(crate) prefix: IpNet,
    pub(crate) metric: u32,
    pub(crate) kind: u8,
    /// Gateway, interface, weight.
    pub(crate) hops: Vec<(Option<IpAddr>, u32, u8)>,
    pub(crate) object: u32,
    /// The type of service.
    pub(crate) tos: u8,
    /// An MTU of its own; 0 for none.
    pub(crate) mtu: u32,
}

impl Route {
    pub(crate) fn via(prefix: &str, gateways: &[&str]) -> Self {
        let hops = gateways.iter().map(|gateway| (Some(gateway.parse().unwrap()), 7, 1)).collect();
        Self {
            table: 254,
            prefix: prefix.parse().unwrap(),
            metric: 0,
            kind: 1,
            hops,
            object: 0,
            tos: 0,
            mtu: 0,
        }
    }

    pub(crate) fn of_object(prefix: &str, object: u32) -> Self {
        Self { object, hops: Vec::new(), ..Self::via(prefix, &[]) }
    }

    pub(crate) fn metric(self, metric: u32) -> Self {
        Self { metric, ..self }
    }

    pub(crate) fn message(&self, kind: u16, flags: u16) -> Vec<u8> {
        let family = family(self.prefix.addr());
        let small_table = u8::try_from(self.table).unwrap_or(0);
        let mut body =
            vec![family, self.prefix.prefix_len(), 0, self.tos, small_table, 4, 0, self.kind, 0, 0, 0, 0];
        attribute(&mut body, 1, &octets(self.prefix.addr()));
        attribute(&mut body, 15, &self.table.to_ne_bytes());
        if self.metric != 0 {
            attribute(&mut body, 6, &self.metric.to_ne_bytes());
        }
        if self.mtu != 0 {
            let mut metrics = Vec::new();
            attribute(&mut metrics, 2, &self.mtu.to_ne_bytes());
            attribute(&mut body, 8, &metrics);
        }
        if self.object != 0 {
            attribute(&mut body, 30, &self.object.to_ne_bytes());
        }
        match &self.hops[..] {
            [] => {}
            [(gateway, interface, _)] => {
                self.gateway(&mut body, *gateway);
                attribute(&mut body, 4, &interface.to_ne_bytes());
            }
            hops => {
                let mut group = Vec::new();
                for (gateway, interface, weight) in hops {
                    let mut hop = vec![0, 0, 0, weight - 1];
                    hop.extend(interface.to_ne_bytes());
                    self.gateway(&mut hop, *gateway);
                    let length = u16::try_from(hop.len()).unwrap();
                    hop[..2].copy_from_slice(&length.to_ne_bytes());
                    group.extend(hop);
                }
                attribute(&mut body, 9, &group);
            }
        }
        message(kind, flags, &body)
    }

    fn gateway(&self, to: &mut Vec<u8>, gateway: Option<IpAddr>) {
        let Some(gateway) = gateway else { return };
        if gateway.is_ipv4() == self.prefix.addr().is_ipv4() {
            attribute(to, 5, &octets(gateway));
        } else {
            let mut via = u16::from(family(gateway)).to_ne_bytes().to_vec();
            via.extend(octets(gateway));
            attribute(to, 18, &via);
        }
    }
}

/// A next-hop object that leads to a gateway.
pub(crate) fn next_hop(id: u32, gateway: &str, interface: u32) -> Vec<u8> {
    let gateway = gateway.parse().unwrap();
    let mut body = vec![family(gateway), 0, 0, 0, 0, 0, 0, 0];
    attribute(&mut body, 1, &id.to_ne_bytes());
    attribute(&mut body, 6, &octets(gateway));
    attribute(&mut body, 5, &interface.to_ne_bytes());
    message(104, 0, &body)
}

/// A group of next-hop objects, with their weights.
pub(crate) fn group(id: u32, members: &[(u32, u8)]) -> Vec<u8> {
    let mut body = vec![0; 8];
    let mut group = Vec::new();
    for (member, weight) in members {
        group.extend(member.to_ne_bytes());
        group.extend([weight - 1, 0, 0, 0]);
    }
    attribute(&mut body, 1, &id.to_ne_bytes());
    attribute(&mut body, 2, &group);
    message(104, 0, &body)
}

/// The end of a next-hop object.
pub(crate) fn next_hop_gone(id: u32) -> Vec<u8> {
    let mut body = vec![0; 8];
    attribute(&mut body, 1, &id.to_ne_bytes());
    message(105, 0, &body)
}

/// The body of a rule: family, lengths of destination and source, table, action, attributes.
pub(crate) fn rule(
    family: u8,
    (to, from): (u8, u8),
    table: u8,
    action: u8,
    attributes: &[(u16, &[u8])],
) -> Vec<u8> {
    let mut body = vec![family, to, from, 0, table, 0, 0, action, 0, 0, 0, 0];
    attributes.iter().for_each(|(number, value)| attribute(&mut body, *number, value));
    body
}

/// A frame of FPM.
pub(crate) fn frame(messages: &[Vec<u8>]) -> Vec<u8> {
    let content = messages.concat();
    let length = u16::try_from(content.len() + 4).unwrap();
    let mut frame = vec![1, 1];
    frame.extend(length.to_be_bytes());
    frame.extend(content);
    frame
}

pub(crate) fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + body.len()).unwrap();
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn attribute(to: &mut Vec<u8>, number: u16, value: &[u8]) {
    let length = u16::try_from(4 + value.len()).unwrap();
    to.extend(length.to_ne_bytes());
    to.extend(number.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { 2 } else { 10 }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}
