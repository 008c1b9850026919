//! A forwarder that is so simple that it is obviously right. It shares no code with the router: it parses and
//! writes by `etherparse`, and finds routes by a scan.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{IpFragOffset, Ipv4Header, Ipv4HeaderSlice, Ipv4Options, Ipv6HeaderSlice};
use ipnet::IpNet;
use wirespeed_router::{Hop, Reason, Route};

/// What has to become of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The frame leaves a port, perhaps in parts.
    Out(u16, Vec<Vec<u8>>),
    Drop(Reason),
    Kernel,
}

pub(crate) struct Oracle {
    routes: Vec<(IpNet, Route)>,
    mtu: Vec<u16>,
}

impl Oracle {
    pub(crate) fn new(routes: Vec<(IpNet, Route)>, mtu: Vec<u16>) -> Self {
        Self { routes, mtu }
    }

    fn route(&self, to: IpAddr) -> Option<&Route> {
        let matching = self.routes.iter().filter(|(net, _)| net.contains(&to));
        matching.max_by_key(|(net, _)| net.prefix_len()).map(|(_, route)| route)
    }

    pub(crate) fn fate(&self, frame: &[u8]) -> Fate {
        if frame.len() < 14 {
            return Fate::Drop(Reason::Cut);
        }
        let mut at = 12;
        loop {
            let Some(kind) = frame.get(at..at + 2) else { return Fate::Drop(Reason::Cut) };
            match kind {
                [0x81, 0x00] | [0x88, 0xa8] => at += 4,
                [0x08, 0x00] => return self.v4(&frame[..at + 2], &frame[at + 2..]),
                [0x86, 0xdd] => return self.v6(&frame[..at + 2], &frame[at + 2..]),
                _ => return Fate::Kernel,
            }
        }
    }

    fn v4(&self, link: &[u8], packet: &[u8]) -> Fate {
        if packet.len() < 20 {
            return Fate::Drop(Reason::Cut);
        }
        if packet[0] >> 4 != 4 {
            return Fate::Drop(Reason::Version);
        }
        let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
        let bytes = usize::from(packet[0] % 16) * 4;
        if bytes < 20 || total < bytes || total > packet.len() {
            return Fate::Drop(Reason::Length);
        }
        let header = Ipv4HeaderSlice::from_slice(packet).expect("checked above").to_header();
        if sum(&packet[..bytes]) != 0xffff {
            return Fate::Drop(Reason::Checksum);
        }
        // The reserved bit of the flags, which `etherparse` does not keep.
        let reserved = packet[6] & 0x80;
        let mut alert = false;
        let mut rest: &[u8] = &header.options;
        while let Some(&kind) = rest.first() {
            match kind {
                0 => break,
                1 => rest = &rest[1..],
                _ => {
                    let Some(&len) = rest.get(1) else { return Fate::Drop(Reason::Options) };
                    let len = usize::from(len);
                    if len < 2 || len > rest.len() {
                        return Fate::Drop(Reason::Options);
                    }
                    let pointer = rest[..len].get(2).copied().unwrap_or(0);
                    match kind {
                        131 | 137 => return Fate::Drop(Reason::Options),
                        148 => alert = true,
                        7 if pointer < 4 => return Fate::Drop(Reason::Options),
                        68 if len < 4 || pointer < 5 => return Fate::Drop(Reason::Options),
                        _ => {}
                    }
                    rest = &rest[len..];
                }
            }
        }
        if alert {
            return Fate::Kernel;
        }
        let (from, to) = (Ipv4Addr::from(header.source), Ipv4Addr::from(header.destination));
        let is_host = |address: Ipv4Addr| {
            let first = address.octets()[0];
            first != 0 && first != 127 && first < 224
        };
        if !is_host(from) {
            let is_dhcp = from.is_unspecified() && to.is_broadcast();
            return if is_dhcp { Fate::Kernel } else { Fate::Drop(Reason::Martian) };
        }
        if !is_host(to) {
            let is_group = to.is_multicast() || to.octets()[0] >= 240;
            return if is_group { Fate::Kernel } else { Fate::Drop(Reason::Martian) };
        }
        if link[0] & 1 == 1 {
            // To many at once, on the link.
            return Fate::Kernel;
        }
        if (0..self.mtu.len()).any(|port| from == Ipv4Addr::new(192, 0, 2, 100 + port as u8)) {
            // It claims to come from the router.
            return Fate::Drop(Reason::Martian);
        }
        let hop = match self.route(to.into()) {
            Some(Route::Via(hop)) => *hop,
            Some(Route::Group(group)) => {
                // Which of its next hops is the router's choice, held to be the same for a flow by other
                // tests.
                let ports = matches!(header.protocol.0, 6 | 17 | 33 | 132 | 136)
                    && !header.is_fragmenting_payload()
                    && packet.len() >= bytes + 4;
                let ports =
                    if ports { u32::from_be_bytes(packet[bytes..bytes + 4].try_into().unwrap()) } else { 0 };
                *group.of_flow(wirespeed_router::flow_hash(&packet[12..20], header.protocol.0, ports))
            }
            other => return refused(other),
        };
        if header.time_to_live <= 1 {
            return Fate::Drop(Reason::Expired);
        }
        let mtu = usize::from(self.mtu[hop.port().index()]);
        if total > mtu && header.dont_fragment {
            return Fate::Drop(Reason::TooBig);
        }
        let mut header = header;
        header.time_to_live -= 1;
        let own = Ipv4Addr::new(192, 0, 2, 100 + hop.port().0 as u8);
        record_route(&mut header.options, own);
        let padding = &packet[total..];
        let payload = &packet[bytes..total];
        if total <= mtu {
            return Fate::Out(hop.port().0, vec![whole(&hop, link, (&header, reserved), payload, padding)]);
        }
        let each = (mtu - bytes) / 8 * 8;
        let mut parts = Vec::new();
        for (n, piece) in payload.chunks(each).enumerate() {
            let mut part = header.clone();
            if n > 0 {
                part.options = copied(&header.options);
            }
            let offset = header.fragment_offset.value() + (n * each / 8) as u16;
            part.fragment_offset = IpFragOffset::try_new(offset % 8192).unwrap();
            part.more_fragments = header.more_fragments || (n + 1) * each < payload.len();
            part.set_payload_len(piece.len()).unwrap();
            parts.push(whole(&hop, link, (&part, reserved), piece, &[]));
        }
        Fate::Out(hop.port().0, parts)
    }

    fn v6(&self, link: &[u8], packet: &[u8]) -> Fate {
        if packet.len() < 40 {
            return Fate::Drop(Reason::Cut);
        }
        if packet[0] >> 4 != 6 {
            return Fate::Drop(Reason::Version);
        }
        let header = Ipv6HeaderSlice::from_slice(packet).expect("checked above").to_header();
        let payload = usize::from(header.payload_length);
        if packet.len() < 40 + payload {
            return Fate::Drop(Reason::Length);
        }
        if header.next_header.0 == 0 {
            if payload == 0 {
                return Fate::Drop(Reason::Length);
            }
            let extension = &packet[40..40 + payload];
            let len = extension.get(1).map_or(usize::MAX, |&units| 8 + usize::from(units) * 8);
            if extension.len() < len {
                return Fate::Drop(Reason::Cut);
            }
            let mut rest = &extension[2..len];
            while let [kind, ..] = *rest {
                match (kind, rest.get(1)) {
                    (0, _) => rest = &rest[1..],
                    (5, _) => return Fate::Kernel,
                    (_, Some(&len)) if rest.len() >= 2 + usize::from(len) => {
                        rest = &rest[2 + usize::from(len)..];
                    }
                    _ => return Fate::Drop(Reason::Cut),
                }
            }
        }
        let (from, to) = (Ipv6Addr::from(header.source), Ipv6Addr::from(header.destination));
        let is_nobody = |a: Ipv6Addr| a.is_unspecified() || a.is_loopback() || a.to_ipv4_mapped().is_some();
        if from.is_multicast() {
            return Fate::Drop(Reason::Martian);
        }
        if to.is_multicast() || to.is_unicast_link_local() {
            return Fate::Kernel;
        }
        if is_nobody(from) || is_nobody(to) || from.is_unicast_link_local() {
            return Fate::Drop(Reason::Martian);
        }
        if link[0] & 1 == 1 {
            // To many at once, on the link.
            return Fate::Kernel;
        }
        let hop = match self.route(to.into()) {
            Some(Route::Via(hop)) => *hop,
            Some(Route::Group(group)) => {
                let label = header.flow_label.value();
                *group.of_flow(flow_v6(packet, label))
            }
            other => return refused(other),
        };
        if header.hop_limit <= 1 {
            return Fate::Drop(Reason::Expired);
        }
        if 40 + payload > usize::from(self.mtu[hop.port().index()]) {
            return Fate::Drop(Reason::TooBig);
        }
        let mut packet = packet.to_vec();
        packet[7] -= 1;
        Fate::Out(hop.port().0, vec![[hop.header(), &link[12..], &packet].concat()])
    }
}

fn refused(route: Option<&Route>) -> Fate {
    match route {
        Some(Route::Kernel) => Fate::Kernel,
        Some(Route::Blackhole) => Fate::Drop(Reason::Blackhole),
        Some(Route::Unreachable) => Fate::Drop(Reason::Unreachable),
        Some(Route::Prohibited) => Fate::Drop(Reason::Prohibited),
        _ => Fate::Drop(Reason::NoRoute),
    }
}

/// The sum of the words of a header, in one's complement.
fn sum(header: &[u8]) -> u32 {
    let mut sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

fn whole(
    hop: &Hop,
    link: &[u8],
    (header, reserved): (&Ipv4Header, u8),
    payload: &[u8],
    padding: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    header.write_raw(&mut bytes).unwrap();
    bytes[6] |= reserved;
    bytes[10..12].fill(0);
    let checksum = !(sum(&bytes) as u16);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    [hop.header(), &link[12..], &bytes, payload, padding].concat()
}

/// Writes an address to the first record-route option with a place for it, and leaves timestamps, which hold
/// the time, to other tests.
fn record_route(options: &mut Ipv4Options, own: Ipv4Addr) {
    let mut at = 0;
    while at < options.len() {
        match options[at] {
            0 => break,
            1 => at += 1,
            kind => {
                let len = usize::from(options[at + 1]);
                let next = usize::from(options[at..at + len].get(2).copied().unwrap_or(0));
                if kind == 7 && next >= 4 && next + 3 <= len {
                    options[at + next - 1..at + next + 3].copy_from_slice(&own.octets());
                    options[at + 2] += 4;
                }
                at += len;
            }
        }
    }
}

fn copied(options: &Ipv4Options) -> Ipv4Options {
    let (mut at, mut kept) = (0, Vec::new());
    while at < options.len() && options[at] != 0 {
        let len = if options[at] == 1 { 1 } else { usize::from(options[at + 1]) };
        if options[at] >= 128 {
            kept.extend(&options[at..at + len]);
        }
        at += len;
    }
    while kept.len() % 4 != 0 {
        kept.push(0);
    }
    Ipv4Options::try_from(&kept[..]).unwrap()
}

/// The flow of an IPv6 packet, as the router numbers it: the choice among next hops is its own.
fn flow_v6(packet: &[u8], label: u32) -> u32 {
    match wirespeed_router::header::ipv6_payload(packet).filter(|_| packet[6] != 44) {
        None => wirespeed_router::flow_hash(&packet[8..40], 0, label),
        Some(payload) => {
            let has = matches!(payload.protocol, 6 | 17 | 33 | 132 | 136) && !payload.is_later_fragment;
            let ports = packet.get(payload.at..payload.at + 4).filter(|_| has);
            let ports = ports.map_or(0, |ports| u32::from_be_bytes(ports.try_into().unwrap()));
            wirespeed_router::flow_hash(&packet[8..40], payload.protocol, ports ^ label.rotate_left(7))
        }
    }
}
