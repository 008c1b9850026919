//! Messages of BMP, with the BGP messages inside.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

pub(crate) const POST_POLICY: u8 = 0x40;

/// A peer as the headers of messages name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) address: IpAddr,
    pub(crate) asn: u32,
}

pub(crate) const LOC_RIB: Peer =
    Peer { kind: 3, flags: 0, address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), asn: 64_496 };

impl Peer {
    pub(crate) fn new(address: &str, asn: u32) -> Self {
        Self { kind: 0, flags: 0, address: address.parse().unwrap(), asn }
    }

    pub(crate) fn post_policy(self) -> Self {
        Self { flags: POST_POLICY, ..self }
    }

    fn header(&self) -> Vec<u8> {
        let mut bytes = vec![self.kind, self.flags | if self.address.is_ipv6() { 0x80 } else { 0 }];
        bytes.extend([0; 8]);
        match self.address {
            IpAddr::V4(address) => {
                bytes.extend([0; 12]);
                bytes.extend(address.octets());
            }
            IpAddr::V6(address) => bytes.extend(address.octets()),
        }
        bytes.extend(self.asn.to_be_bytes());
        bytes.extend([0; 12]);
        bytes
    }

    /// The peer comes up; `add_path` says whether identifiers are agreed on.
    pub(crate) fn up(&self, add_path: bool) -> Vec<u8> {
        let capability = |offer| if add_path { vec![2, 6, 69, 4, 0, 1, 1, offer] } else { Vec::new() };
        let open = |offer| {
            let parameters = capability(offer);
            let mut open = vec![4, 0, 1, 0, 90, 10, 0, 0, 1, u8::try_from(parameters.len()).unwrap()];
            open.extend(parameters);
            bgp(1, &open)
        };
        let mut body = self.header();
        body.extend([0; 20]);
        body.extend(open(1));
        body.extend(open(2));
        message(3, &body)
    }

    pub(crate) fn down(&self) -> Vec<u8> {
        let mut body = self.header();
        body.push(4);
        message(2, &body)
    }

    /// Routes of the peer.
    pub(crate) fn routes(&self, update: &[u8]) -> Vec<u8> {
        let mut body = self.header();
        body.extend(bgp(2, update));
        message(0, &body)
    }

    pub(crate) fn announce(&self, prefixes: &[&str], next_hop: &str, as_path: &[u32]) -> Vec<u8> {
        self.routes(&announced(prefixes, None, next_hop, as_path))
    }

    pub(crate) fn withdraw(&self, prefixes: &[&str]) -> Vec<u8> {
        self.routes(&withdrawn(prefixes, None))
    }
}

/// An UPDATE's content that announces prefixes of one family, with a path identifier before each if given.
pub(crate) fn announced(
    prefixes: &[&str],
    identifier: Option<u32>,
    next_hop: &str,
    as_path: &[u32],
) -> Vec<u8> {
    let next_hop: IpAddr = next_hop.parse().unwrap();
    let routes = nlri(prefixes, identifier);
    let mut path = vec![2, u8::try_from(as_path.len()).unwrap()];
    path.extend(as_path.iter().flat_map(|asn| asn.to_be_bytes()));
    let mut attributes = attribute(1, &[0]);
    attributes.extend(attribute(2, if as_path.is_empty() { &[] } else { &path }));
    let is_v4 = prefixes.iter().all(|prefix| !prefix.contains(':'));
    match next_hop {
        IpAddr::V4(next_hop) => attributes.extend(attribute(3, &next_hop.octets())),
        IpAddr::V6(next_hop) => {
            let mut reach = vec![0, if is_v4 { 1 } else { 2 }, 1, 16];
            reach.extend(next_hop.octets());
            reach.push(0);
            reach.extend(&routes);
            attributes.extend(attribute(14, &reach));
        }
    }
    let mut update = vec![0, 0];
    update.extend(u16::try_from(attributes.len()).unwrap().to_be_bytes());
    update.extend(attributes);
    if next_hop.is_ipv4() {
        update.extend(routes);
    }
    update
}

/// An UPDATE's content that withdraws IPv4 prefixes.
pub(crate) fn withdrawn(prefixes: &[&str], identifier: Option<u32>) -> Vec<u8> {
    let routes = nlri(prefixes, identifier);
    let mut update = u16::try_from(routes.len()).unwrap().to_be_bytes().to_vec();
    update.extend(routes);
    update.extend([0, 0]);
    update
}

fn nlri(prefixes: &[&str], identifier: Option<u32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for prefix in prefixes {
        let prefix: IpNet = prefix.parse().unwrap();
        let octets = match prefix.addr() {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        bytes.extend(identifier.iter().flat_map(|identifier| identifier.to_be_bytes()));
        bytes.push(prefix.prefix_len());
        bytes.extend(&octets[..usize::from(prefix.prefix_len()).div_ceil(8)]);
    }
    bytes
}

pub(crate) fn initiation(name: &str) -> Vec<u8> {
    let mut body = vec![0, 2];
    body.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
    body.extend(name.as_bytes());
    message(4, &body)
}

pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![3];
    bytes.extend(u32::try_from(6 + body.len()).unwrap().to_be_bytes());
    bytes.push(kind);
    bytes.extend(body);
    bytes
}

fn bgp(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xff; 16];
    bytes.extend(u16::try_from(19 + body.len()).unwrap().to_be_bytes());
    bytes.push(kind);
    bytes.extend(body);
    bytes
}

fn attribute(kind: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x50, kind];
    bytes.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
    bytes.extend(value);
    bytes
}
