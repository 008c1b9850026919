//! [`Selector`]: the packets that a policy or a security association is for.

use ipnet::IpNet;
use wirespeed::classify::tuple::Field;
use wirespeed::classify::{Ipv4Tuple, Ipv6Tuple, Pattern, Rule, Tuple};

use crate::error::Error;

/// The packets between two prefixes, of one protocol and ports if they are given. For ICMP the ports are type
/// and code.
///
/// A fragment other than the first has the ports 0, so no selector with another port is for it, and a
/// selector without ports, or with the ports 0, may be. These are the first two ways of RFC 4301, section 7:
/// a tunnel for all ports, or one of its own for such fragments. No fragment waits for its first one (the
/// third way). So beside each policy that protects some ports there has to be one that says what becomes of
/// the other fragments between its prefixes; else they go the way of packets without a policy, in the clear
/// by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Selector {
    /// The sources.
    pub src: IpNet,
    /// The destinations, of the same family.
    pub dst: IpNet,
    /// The protocol; `None` for any.
    pub protocol: Option<u8>,
    /// The source port; `None` for any.
    pub source_port: Option<u16>,
    /// The destination port; `None` for any.
    pub destination_port: Option<u16>,
}

/// A rule for either family.
#[derive(Clone, Debug)]
pub(crate) enum FamilyRule {
    V4(Rule<Ipv4Tuple>),
    V6(Rule<Ipv6Tuple>),
}

impl Selector {
    /// All packets between two prefixes.
    #[must_use]
    pub const fn between(src: IpNet, dst: IpNet) -> Self {
        Self { src, dst, protocol: None, source_port: None, destination_port: None }
    }

    /// Whether it is for some ports, or types and codes.
    pub(crate) const fn has_ports(&self) -> bool {
        self.source_port.is_some() || self.destination_port.is_some()
    }

    /// The selector as a rule. Fails if the prefixes are of different families.
    pub(crate) fn rule(&self, priority: u32, action: u32) -> Result<FamilyRule, Error> {
        match (self.src.trunc(), self.dst.trunc()) {
            (IpNet::V4(src), IpNet::V4(dst)) => {
                let pattern = Pattern::<Ipv4Tuple>::all()
                    .with(&Ipv4Tuple::SRC, src.addr().to_bits().into(), src.netmask().to_bits().into())
                    .with(&Ipv4Tuple::DST, dst.addr().to_bits().into(), dst.netmask().to_bits().into());
                let fields = [Ipv4Tuple::PROTO, Ipv4Tuple::SPORT, Ipv4Tuple::DPORT];
                Ok(FamilyRule::V4(Rule::new(self.with_ports(pattern, fields), priority, action)))
            }
            (IpNet::V6(src), IpNet::V6(dst)) => {
                let pattern = Pattern::<Ipv6Tuple>::all()
                    .with(&Ipv6Tuple::SRC, src.addr().to_bits(), src.netmask().to_bits())
                    .with(&Ipv6Tuple::DST, dst.addr().to_bits(), dst.netmask().to_bits());
                let fields = [Ipv6Tuple::PROTO, Ipv6Tuple::SPORT, Ipv6Tuple::DPORT];
                Ok(FamilyRule::V6(Rule::new(self.with_ports(pattern, fields), priority, action)))
            }
            (src, dst) => Err(Error::SelectorFamilies { src, dst }),
        }
    }

    fn with_ports<T: Tuple>(&self, pattern: Pattern<T>, fields: [Field; 3]) -> Pattern<T> {
        let given = [self.protocol.map(u16::from), self.source_port, self.destination_port];
        let masks = [0xff, 0xffff, 0xffff];
        let given = fields.iter().zip(given).zip(masks);
        given.fold(pattern, |pattern, ((field, value), mask)| match value {
            Some(value) => pattern.with(field, value.into(), mask),
            None => pattern,
        })
    }
}

impl FamilyRule {
    /// Whether a packet matches. Packets whose transport header is cut off match nothing.
    pub(crate) fn matches(&self, packet: &[u8]) -> bool {
        let version = packet.first().map(|first| first >> 4);
        match self {
            Self::V4(rule) => {
                version == Some(4) && Ipv4Tuple::of_packet(packet).is_ok_and(|tuple| rule.matches(&tuple))
            }
            Self::V6(rule) => {
                version == Some(6) && Ipv6Tuple::of_packet(packet).is_ok_and(|tuple| rule.matches(&tuple))
            }
        }
    }
}
