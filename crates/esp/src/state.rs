//! [`State`]: the associations and policies of a moment, and what they decide about a packet.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::mapping::{Ends, Mapping};
use crate::path::TooLarge;
use crate::policy::{Action, Direction, Policy, Template};
use crate::sa::Sa;

/// One state of the associations and policies.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(crate) sas: FxHashMap<(IpAddr, u32), Arc<Sa>>,
    /// The associations in the order in which they came: a policy takes the newest.
    pub(crate) order: Vec<Arc<Sa>>,
    ends: FxHashSet<IpAddr>,
    ports: Vec<u16>,
    /// The other ends of tunnels in UDP, and the associations whose packets follow them.
    mappings: FxHashMap<Ends, Arc<Mapping>>,
    followers: Vec<Arc<Sa>>,
    pub(crate) policies: FxHashMap<u32, Resolved>,
    /// Whether packets without a policy are dropped.
    pub(crate) discards_out: bool,
    pub(crate) discards_in: bool,
}

/// A policy with the association that its packets go out through.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub(crate) policy: Policy,
    pub(crate) sa: Option<Arc<Sa>>,
}

/// The decision about a packet that goes out.
#[derive(Clone, Copy, Debug)]
pub enum Outbound<'s> {
    /// The packet passes in the clear.
    Pass,
    /// The packet goes through a tunnel.
    Protect(&'s Sa),
    /// A tunnel is wanted that there is no association for.
    Unkeyed,
    /// The packet is dropped.
    Discard,
}

/// The decision about a packet that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inbound {
    /// The packet goes on.
    Accept,
    /// The packet came in the clear, and a policy wants it protected.
    Unprotected,
    /// The packet is dropped: it came through another tunnel than its policy says, or its policy discards it.
    Discard,
}

/// The UDP port of ESP and IKE behind address translation (RFC 3948).
const PORT: u16 = 4500;

impl State {
    /// The association of a packet that came, by destination and index.
    #[inline]
    #[must_use]
    pub fn sa(&self, dst: IpAddr, spi: u32) -> Option<&Sa> {
        self.sas.get(&(dst, spi)).map(|sa| &**sa).filter(|sa| sa.direction != Some(Direction::Out))
    }

    /// A reference of one's own to an association, if it is still one of these.
    #[cfg(feature = "gpu")]
    pub(crate) fn shared(&self, sa: &Sa) -> Option<Arc<Sa>> {
        self.sas.get(&(sa.dst, sa.spi)).filter(|known| std::ptr::eq(&***known, sa)).cloned()
    }

    /// The associations, oldest first.
    pub fn sas(&self) -> impl Iterator<Item = &Sa> {
        self.order.iter().map(|sa| &**sa)
    }

    /// Whether an address is the end of a tunnel.
    #[inline]
    #[must_use]
    pub fn is_end(&self, address: IpAddr) -> bool {
        self.ends.contains(&address)
    }

    /// The UDP ports that are for ESP, in order.
    #[must_use]
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Whether a UDP port is one for ESP.
    #[inline]
    #[must_use]
    pub fn is_port(&self, port: u16) -> bool {
        self.ports.binary_search(&port).is_ok()
    }

    /// Learns from a packet that came, if it is an ICMP error which tells that the path of a tunnel takes
    /// smaller packets only. Returns whether it was one. The packet that it quotes must be one that an
    /// association sent lately, by its addresses, its ports, its index and its sequence number, and it must
    /// be larger than the size that is told. Such errors are under no seal, so one who sees packets can forge
    /// one and make packets small, down to what every path takes. That holds for ten minutes.
    #[inline]
    pub fn learn(&self, packet: &[u8]) -> bool {
        let Some(told) = TooLarge::read(packet) else { return false };
        let is_sender = |sa: &&Arc<Sa>| {
            (sa.spi, sa.src, sa.peer()) == (told.spi, told.src, (told.dst, told.ports))
                && sa.direction != Some(Direction::In)
        };
        let sa = self.sas.get(&(told.dst, told.spi)).filter(is_sender);
        let sa = sa.or_else(|| self.followers.iter().find(is_sender));
        let Some(sa) = sa.filter(|sa| sa.sent_lately(told.low)) else { return false };
        sa.path.learn(told.mtu, Instant::now());
        true
    }

    /// Whether a policy, or an association that carries its packets, is for some ports. Then a packet of it
    /// is not cut before it is sealed: later fragments have no ports, and would not be taken at the other
    /// end.
    #[must_use]
    pub fn is_for_ports(&self, policy: u32, sa: &Sa) -> bool {
        let policy = self.policies.get(&policy).map(|known| known.policy.selector);
        policy.into_iter().chain(sa.config.selector).any(|selector| selector.has_ports())
    }

    /// Decides about a packet that goes out, by the number of its policy; 0 for none.
    #[inline]
    #[must_use]
    pub fn outbound(&self, policy: u32) -> Outbound<'_> {
        match self.policies.get(&policy) {
            None if policy == 0 && !self.discards_out => Outbound::Pass,
            // A policy that is gone: the next packets are decided by what there is then.
            None => Outbound::Discard,
            Some(Resolved { policy, sa }) => match policy.action {
                Action::Pass => Outbound::Pass,
                Action::Discard => Outbound::Discard,
                Action::Protect(_) => sa.as_deref().map_or(Outbound::Unkeyed, Outbound::Protect),
            },
        }
    }

    /// Decides about a packet that came in, by the number of its policy (0 for none) and the association
    /// that it came through. A packet of a tunnel that no policy is for is discarded (RFC 4301, section 5.2,
    /// step 4): the other end of the tunnel may not send from any address.
    #[inline]
    #[must_use]
    pub fn inbound(&self, policy: u32, through: Option<&Sa>) -> Inbound {
        let action = match self.policies.get(&policy) {
            Some(known) => known.policy.action,
            None if policy == 0 && !self.discards_in && through.is_none() => Action::Pass,
            None => Action::Discard,
        };
        match (action, through) {
            (Action::Pass, _) => Inbound::Accept,
            (Action::Discard, _) => Inbound::Discard,
            (Action::Protect(_), None) => Inbound::Unprotected,
            (Action::Protect(template), Some(sa)) if template.is_met(sa) => Inbound::Accept,
            (Action::Protect(_), Some(_)) => Inbound::Discard,
        }
    }

    pub(crate) fn insert(&mut self, sa: Arc<Sa>) {
        self.sas.insert((sa.dst, sa.spi), Arc::clone(&sa));
        self.order.push(sa);
    }

    /// Puts an association in the place of the one with its destination and index.
    pub(crate) fn change(&mut self, sa: Arc<Sa>) {
        let of = (sa.dst, sa.spi);
        if let Some(place) = self.order.iter_mut().find(|other| (other.dst, other.spi) == of) {
            *place = Arc::clone(&sa);
        }
        self.sas.insert(of, sa);
    }

    pub(crate) fn remove(&mut self, dst: IpAddr, spi: u32) -> Option<Arc<Sa>> {
        let sa = self.sas.remove(&(dst, spi))?;
        self.order.retain(|other| !Arc::ptr_eq(other, &sa));
        Some(sa)
    }

    /// Derives what follows from associations and policies.
    pub(crate) fn resolve(&mut self) {
        let came = self.order.iter().filter(|sa| sa.direction != Some(Direction::Out));
        self.ends = came.map(|sa| sa.dst).collect();
        self.ports = self.order.iter().filter_map(|sa| Some(sa.ports?.dst)).collect();
        if !self.ports.is_empty() {
            self.ports.push(PORT);
        }
        self.ports.sort_unstable();
        self.ports.dedup();
        let known = std::mem::take(&mut self.mappings);
        for (sa, ports) in self.order.iter().filter_map(|sa| Some((sa, sa.ports?))) {
            let (src, dst) = ((sa.src, ports.src), (sa.dst, ports.dst));
            for (of, ends) in [(&sa.goes, [src, dst]), (&sa.came, [dst, src])] {
                let known = || known.get(&ends).cloned().unwrap_or_else(|| Arc::new(Mapping::new(ends)));
                let mapping = self.mappings.entry(ends).or_insert_with(known);
                of.get_or_init(|| Arc::clone(mapping));
            }
        }
        self.followers = self.order.iter().filter(|sa| sa.config.nat_follow).cloned().collect();
        // The newest of each tunnel: with the number that a policy asks for, and of any.
        let mut newest: FxHashMap<(IpAddr, IpAddr, u32), &Arc<Sa>> = FxHashMap::default();
        for sa in self.order.iter().filter(|sa| sa.direction != Some(Direction::In)) {
            newest.insert((sa.src, sa.dst, sa.reqid), sa);
            newest.insert((sa.src, sa.dst, 0), sa);
        }
        for resolved in self.policies.values_mut() {
            let Action::Protect(template) = resolved.policy.action else { continue };
            resolved.sa = match template.spi {
                0 => newest.get(&(template.src, template.dst, template.reqid)).map(|sa| Arc::clone(sa)),
                spi => self
                    .sas
                    .get(&(template.dst, spi))
                    .filter(|sa| template.is_met(sa) && sa.direction != Some(Direction::In))
                    .cloned(),
            };
        }
    }
}

impl Template {
    /// Whether an association is what the policy asks for.
    fn is_met(&self, sa: &Sa) -> bool {
        (self.src, self.dst) == (sa.src, sa.dst)
            && (self.reqid == 0 || self.reqid == sa.reqid)
            && (self.spi == 0 || self.spi == sa.spi)
    }
}
