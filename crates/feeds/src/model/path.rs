//! [`Path`]: the ways on from a prefix, with one hop or several.

use std::fmt;
use std::net::IpAddr;

/// A next hop of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hop {
    /// The router to send to. `None` if the destination is on the link itself. An IPv4 route may have an IPv6
    /// router.
    pub gateway: Option<IpAddr>,
    /// The index of the interface to send by; 0 if the feed does not tell.
    pub interface: u32,
    /// The share of flows that take this hop, in proportion to the other hops of the path. At least 1.
    pub weight: u16,
    /// Whether the hop is out of use, because its interface is down.
    pub dead: bool,
    /// Whether packets need an encapsulation first, such as MPLS labels. The feed does not tell which.
    pub encapsulated: bool,
}

impl Hop {
    /// A hop to a router, by any interface.
    #[must_use]
    pub const fn via(gateway: IpAddr) -> Self {
        Self { gateway: Some(gateway), interface: 0, weight: 1, dead: false, encapsulated: false }
    }

    /// A hop to hosts on the link of an interface.
    #[must_use]
    pub const fn on_link(interface: u32) -> Self {
        Self { gateway: None, interface, weight: 1, dead: false, encapsulated: false }
    }

    /// Whether both lead to one place by one interface.
    pub(crate) fn leads_like(&self, other: &Self) -> bool {
        (self.gateway, self.interface) == (other.gateway, other.interface)
    }
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.gateway {
            Some(gateway) => write!(f, "via {gateway}")?,
            None => write!(f, "on link")?,
        }
        if self.interface != 0 {
            write!(f, " interface {}", self.interface)?;
        }
        if self.weight != 1 {
            write!(f, " weight {}", self.weight)?;
        }
        if self.encapsulated {
            write!(f, " encapsulated")?;
        }
        if self.dead {
            write!(f, " dead")?;
        }
        Ok(())
    }
}

/// The fate of packets that match a prefix (`RTN_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathKind {
    /// Packets go on by one of the hops.
    Unicast,
    /// Packets are for this host.
    Local,
    /// Packets are for all hosts of a link, this one included.
    Broadcast,
    /// Packets are for this host, which is one of several with the address.
    Anycast,
    /// Packets are for a group.
    Multicast,
    /// Packets are dropped silently.
    Blackhole,
    /// Packets are dropped, and the sender is told that the host is unreachable.
    Unreachable,
    /// Packets are dropped, and the sender is told that this is prohibited.
    Prohibit,
    /// The lookup goes on in another table.
    Throw,
}

/// The ways on from a prefix. Equal paths of one feed share their memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    /// The fate of the packets.
    pub kind: PathKind,
    /// The hops, in the order of the feed. Several are a group: each flow takes one, in proportion to the
    /// weights. Local paths name their interface as a hop; dropped packets have none.
    pub hops: Box<[Hop]>,
    /// The AS that announced the prefix, if the feed tells.
    pub origin_as: Option<u32>,
}

impl Path {
    /// A path of packets that go on by hops.
    #[must_use]
    pub fn unicast(hops: impl Into<Box<[Hop]>>) -> Self {
        Self { kind: PathKind::Unicast, hops: hops.into(), origin_as: None }
    }

    /// The hops that are in use.
    pub fn live_hops(&self) -> impl Iterator<Item = &Hop> {
        self.hops.iter().filter(|hop| !hop.dead)
    }

    /// Whether the path has a hop in use, or needs none.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.kind != PathKind::Unicast || self.live_hops().next().is_some()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        if self.kind != PathKind::Unicast {
            f.write_str(match self.kind {
                PathKind::Unicast => "unicast",
                PathKind::Local => "local",
                PathKind::Broadcast => "broadcast",
                PathKind::Anycast => "anycast",
                PathKind::Multicast => "multicast",
                PathKind::Blackhole => "blackhole",
                PathKind::Unreachable => "unreachable",
                PathKind::Prohibit => "prohibit",
                PathKind::Throw => "throw",
            })?;
            between = " ";
        }
        for hop in &self.hops {
            write!(f, "{between}{hop}")?;
            between = ", ";
        }
        self.origin_as.map_or(Ok(()), |origin| write!(f, "{between}AS{origin}"))
    }
}
