//! [`Policy`]: what happens to the packets of a selector.

use std::net::IpAddr;

use crate::selector::Selector;

/// The direction of the packets that a policy is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Packets that go out: they are sealed.
    Out,
    /// Packets that came in, sealed or not, to be forwarded or taken.
    In,
}

/// A tunnel, as a policy names it: any security association between these addresses, with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Template {
    /// The tunnel's begin.
    pub src: IpAddr,
    /// The tunnel's end.
    pub dst: IpAddr,
    /// The number of the security association; 0 for any.
    pub reqid: u32,
    /// Its index; 0 for any.
    pub spi: u32,
}

/// The way of packets that a policy matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// They go through a tunnel. Packets that come in have come through it.
    Protect(Template),
    /// They pass in the clear.
    Pass,
    /// They are dropped.
    Discard,
}

/// A policy: the packets of a selector, and their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// The packets.
    pub selector: Selector,
    /// Their direction.
    pub direction: Direction,
    /// The place among other policies: the lowest number comes first, and among equals the older policy.
    pub priority: u32,
    /// The way of the packets.
    pub action: Action,
}
