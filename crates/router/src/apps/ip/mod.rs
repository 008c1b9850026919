//! [`Ip`]: forwards IPv4 (RFC 1812) and IPv6 (RFC 8200) by the longest prefix.
//!
//! ```text
//! pre_shade   EtherType, header, checksum, addresses ─► destinations of each family, in two lists
//! shade       two batches: one lookup of each family's table
//! post_shade  route ─┬─ next hop: addresses of the link, time to live, checksum ─► port
//!                    ├─ group: the same, chosen by the flow
//!                    ├─ the router itself, unresolved ─► the operating system
//!                    └─ none ─► dropped; the sender is told, at a limited rate
//! ```
//!
//! A frame of 64 bytes is one cache line. It is read in the first step and written in the last; between them
//! lies the lookup of a chunk, which is so small on a CPU that its lines stay in the nearest cache.

pub(super) mod icmp;
mod lookups;
mod near;
mod options;
mod own;
pub(super) mod v4;
mod v6;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use wirespeed::{IpReader, Labels, LabelsGuard, NextHop, Submitted, V4, V6};

use crate::header::{ETHERNET, IPV4, TYPE_IPV4, TYPE_IPV6, network};
use crate::{App, Chunk, Hop, Memory, Packet, PortId, PortTables, Reason, Route, Used, Verdict, narrow};
use icmp::{Fault, Limit};
use lookups::{At, Keys, Lookups, PLAIN};
use near::{NearHops, via};
use own::OwnSources;
pub use own::{Own, Owns};

/// Errors that a worker sends in a second, unless [`Ip::errors_per_second`] says otherwise: Linux's default.
pub(super) const ERRORS_PER_SECOND: u32 = 1000;

/// Forwards IPv4 and IPv6 packets: an [`App`].
#[derive(Debug)]
pub struct Ip<'t> {
    /// The tables of all ports, in their order, or one table for all.
    lookups: Vec<Lookups>,
    /// Where the tables may change, and the change that `lookups` has.
    tables: Option<(&'t PortTables, u64)>,
    routes: &'t Labels<Route>,
    /// Copies of the first of them.
    near: NearHops,
    /// What the router is at its ports.
    own: &'t Owns,
    /// The router's own addresses at each port, and the change of `own` that they are of.
    sources: (Vec<Arc<OwnSources>>, u64),
    /// Whether packets may come from these.
    sends: bool,
    limit: Limit,
    counts: Counts,
    /// Where the routes are noted that carried packets, and the number of chunks so far.
    used: Option<(&'t Used, usize)>,
    /// Memory of earlier chunks, used again.
    spare: Vec<Keys>,
}

/// The routes of chunks of up to so many frames are always noted, and those of every [`EACH`]th larger one: a
/// route that carries packets is noted within seconds, and a busy worker has no time for more.
const SMALL: usize = 32;
const EACH: usize = 16;

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    errors_sent: u64,
    errors_held: u64,
    fragments: u64,
}

/// A chunk whose keys are looked up.
#[derive(Debug)]
pub struct Pending<'t> {
    keys: Keys,
    /// Batches that were handed over; `None` where the CPU looks up at the end.
    v4: Option<Submitted<V4>>,
    v6: Option<Submitted<V6>>,
    /// Taken before the lookup, so that it resolves what the lookup finds.
    guard: LabelsGuard<'t, Route>,
}

impl<'t> Ip<'t> {
    /// Forwards by these tables. Their results are indexes of `routes`. `own` is what the router is at its
    /// ports.
    #[must_use]
    pub fn new(reader: &IpReader, routes: &'t Labels<Route>, own: &'t Owns) -> Self {
        Self::of(vec![Lookups::new(reader)], None, routes, own)
    }

    /// Forwards the packets of each port by the port's own table. The results of all tables are indexes of
    /// `routes`.
    ///
    /// Panics if there is no port.
    #[must_use]
    pub fn of_ports(tables: &'t PortTables, routes: &'t Labels<Route>, own: &'t Owns) -> Self {
        // Taken before the readers: a change between both is taken again.
        let version = tables.version();
        let lookups: Vec<_> = tables.readers().iter().map(Lookups::new).collect();
        assert!(!lookups.is_empty(), "a router has ports");
        Self::of(lookups, Some((tables, version)), routes, own)
    }

    fn of(
        lookups: Vec<Lookups>,
        tables: Option<(&'t PortTables, u64)>,
        routes: &'t Labels<Route>,
        own: &'t Owns,
    ) -> Self {
        // Taken before the sources: a change between both is taken again.
        let version = own.version();
        Self {
            lookups,
            tables,
            routes,
            near: NearHops::default(),
            own,
            sources: (own.sources(), version),
            sends: false,
            limit: Limit::new(ERRORS_PER_SECOND),
            counts: Counts::default(),
            used: None,
            spare: Vec::new(),
        }
    }

    /// Sends at most this many ICMP errors a second. 0 sends none.
    #[must_use]
    pub fn errors_per_second(mut self, errors: u32) -> Self {
        self.limit = Limit::new(errors);
        self
    }

    /// Takes packets from the router's own addresses, too: those that the application before this one makes,
    /// such as a gateway's tunnel packets.
    #[must_use]
    pub const fn behind_own_packets(mut self) -> Self {
        self.sends = true;
        self
    }

    /// Notes the routes that carry packets: of all small chunks, and of some large ones.
    #[must_use]
    pub const fn noting(mut self, used: &'t Used) -> Self {
        self.used = Some((used, 0));
        self
    }

    /// The tables of a port.
    fn lookups(&self, port: PortId) -> &Lookups {
        self.lookups.get(port.index()).unwrap_or(&self.lookups[0])
    }

    /// Takes the tables and the addresses that ports have now, if they changed.
    #[inline]
    fn refresh(&mut self) {
        let version = self.own.version();
        if version != self.sources.1 {
            self.sources = (self.own.sources(), version);
        }
        if let Some((tables, version)) = self.tables
            && tables.version() != version
        {
            let now = tables.version();
            let lookups: Vec<_> = tables.readers().iter().map(Lookups::new).collect();
            if !lookups.is_empty() {
                self.lookups = lookups;
            }
            self.tables = Some((tables, now));
        }
    }

    /// Checks a frame of any kind. Its key and its place go to `keys` if it is to be looked up.
    #[inline(never)]
    fn read(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        at: usize,
        keys: &mut Keys,
        own: Option<&OwnSources>,
        show: &mut impl FnMut(usize, Packet<'_>) -> Option<Verdict>,
    ) {
        let bytes = memory.bytes(&chunk.frames()[at]);
        let (kind, packet) = match network(bytes) {
            Ok(found) => found,
            Err(reason) => return chunk.decide(at, Verdict::Drop(reason)),
        };
        // A packet for one host in a frame for many goes no further, and nobody is told (RFC 1812, 5.3.4).
        let is_to_group = bytes[0] & 1 == 1;
        // Frames of a chunk are fewer than 2^32, and headers of a frame shorter than 2^16.
        let place = At { frame: narrow::u32(at), packet: narrow::u16(packet) };
        match kind {
            TYPE_IPV4 => match v4::check(&bytes[packet..]) {
                v4::Checked::LookUp(_) if is_to_group => chunk.decide(at, Verdict::Kernel),
                v4::Checked::BadOption(_) if is_to_group => chunk.decide(at, Verdict::Drop(Reason::Options)),
                v4::Checked::LookUp(_) if own.is_some_and(|own| own.has(v4::source(&bytes[packet..]))) => {
                    chunk.decide(at, Verdict::Drop(Reason::Martian));
                }
                v4::Checked::LookUp(key) => match show(at, Packet::V4(&bytes[packet..])) {
                    Some(verdict) => chunk.decide(at, verdict),
                    None => {
                        keys.v4.push(key);
                        keys.at_v4.push(place);
                    }
                },
                v4::Checked::Decided(verdict) => chunk.decide(at, verdict),
                v4::Checked::BadOption(byte) => {
                    chunk.decide(at, Verdict::Drop(Reason::Options));
                    self.tell_v4(chunk, memory, place, Fault::BadHeader(byte));
                }
            },
            TYPE_IPV6 => match v6::check(&bytes[packet..]) {
                v6::Checked::LookUp(_) if is_to_group => chunk.decide(at, Verdict::Kernel),
                v6::Checked::BeyondScope if is_to_group => chunk.decide(at, Verdict::Drop(Reason::Martian)),
                v6::Checked::LookUp(key) => match show(at, Packet::V6(&bytes[packet..])) {
                    Some(verdict) => chunk.decide(at, verdict),
                    None => {
                        keys.v6.push(key);
                        keys.at_v6.push(place);
                    }
                },
                v6::Checked::Decided(verdict) => chunk.decide(at, verdict),
                v6::Checked::BeyondScope => {
                    chunk.decide(at, Verdict::Drop(Reason::Martian));
                    self.tell_v6(chunk, memory, place, Fault::BeyondScope);
                }
            },
            // ARP and the like.
            _ => chunk.decide(at, Verdict::Kernel),
        }
    }

    /// Forwards a packet of IPv4 of any kind by its route.
    #[inline(never)]
    fn route_v4(&mut self, chunk: &mut Chunk, memory: &mut Memory, at: At, route: Option<&Route>) {
        let frame = at.frame as usize;
        let bytes = memory.bytes_mut(&chunk.frames()[frame]);
        let (link, packet) = bytes.split_at_mut(usize::from(at.packet));
        let hop = match route {
            Some(Route::Via(hop)) => hop,
            Some(Route::Group(group)) => group.of_flow(v4::flow(packet)),
            other => return self.refuse(chunk, memory, at, other, Self::tell_v4),
        };
        if v4::is_expired(packet) {
            chunk.decide(frame, Verdict::Drop(Reason::Expired));
            return self.tell_v4(chunk, memory, at, Fault::Expired);
        }
        if v4::total_length(packet) > hop.mtu() || v4::has_options(packet) {
            let hop = *hop;
            return self.route_slowly(chunk, memory, at, &hop);
        }
        link[..12].copy_from_slice(hop.header());
        v4::count_hop(packet);
        chunk.decide(frame, Verdict::Out(hop.port()));
    }

    /// Forwards a packet that has options, or that has to be cut for the link.
    #[cold]
    fn route_slowly(&mut self, chunk: &mut Chunk, memory: &mut Memory, at: At, hop: &Hop) {
        let frame = at.frame as usize;
        let own = self.address_v4(hop.port());
        let bytes = memory.bytes_mut(&chunk.frames()[frame]);
        let (link, packet) = bytes.split_at_mut(usize::from(at.packet));
        let is_too_big = v4::total_length(packet) > hop.mtu();
        if is_too_big && v4::dont_fragment(packet) {
            chunk.decide(frame, Verdict::Drop(Reason::TooBig));
            return self.tell_v4(chunk, memory, at, Fault::TooBig(hop.mtu()));
        }
        link[..12].copy_from_slice(hop.header());
        v4::count_hop(packet);
        let end = v4::header_length(packet);
        if let Some(own) = own.filter(|_| end > IPV4) {
            options::record(&mut packet[IPV4..end], own, milliseconds_of_day());
            v4::seal(packet);
        }
        chunk.decide(frame, Verdict::Out(hop.port()));
        if is_too_big {
            self.cut(chunk, memory, at, hop);
        }
    }

    /// Cuts a packet into fragments. The first one stays in the packet's own frame.
    fn cut(&mut self, chunk: &mut Chunk, memory: &mut Memory, at: At, hop: &Hop) {
        let frame = at.frame as usize;
        let whole = memory.bytes(&chunk.frames()[frame]).to_vec();
        let (link, packet) = whole.split_at(usize::from(at.packet));
        let payload = &packet[v4::header_length(packet)..usize::from(v4::total_length(packet))];
        for piece in v4::pieces(packet, hop.mtu()) {
            let header = v4::fragment_header(packet, &piece);
            let part = [link, &header, &payload[piece.clone()]].concat();
            if piece.start == 0 {
                // No longer than the frame was.
                chunk.frame_mut(frame).truncate(narrow::u16(part.len()));
                memory.bytes_mut(&chunk.frames()[frame]).copy_from_slice(&part);
            } else if let Some(made) = memory.copy_of(&part) {
                chunk.send(hop.port(), made);
            } else {
                // The receiver can't put the packet together; it asks again, as for any loss.
                self.counts.errors_held += 1;
                return;
            }
            self.counts.fragments += 1;
        }
    }

    /// Forwards a packet of IPv6 by its route.
    #[inline]
    fn route_v6(&mut self, chunk: &mut Chunk, memory: &mut Memory, at: At, route: Option<&Route>) {
        let frame = at.frame as usize;
        let bytes = memory.bytes_mut(&chunk.frames()[frame]);
        let (link, packet) = bytes.split_at_mut(usize::from(at.packet));
        let hop = match route {
            Some(Route::Via(hop)) => hop,
            Some(Route::Group(group)) => group.of_flow(v6::flow(packet)),
            other => return self.refuse(chunk, memory, at, other, Self::tell_v6),
        };
        if v6::is_expired(packet) {
            chunk.decide(frame, Verdict::Drop(Reason::Expired));
            return self.tell_v6(chunk, memory, at, Fault::Expired);
        }
        if v6::total_length(packet) > usize::from(hop.mtu()) {
            let mtu = hop.mtu();
            chunk.decide(frame, Verdict::Drop(Reason::TooBig));
            return self.tell_v6(chunk, memory, at, Fault::TooBig(mtu));
        }
        link[..12].copy_from_slice(hop.header());
        v6::count_hop(packet);
        chunk.decide(frame, Verdict::Out(hop.port()));
    }

    /// Decides about a packet that no next hop takes.
    #[cold]
    fn refuse(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        at: At,
        route: Option<&Route>,
        tell: impl FnOnce(&mut Self, &mut Chunk, &mut Memory, At, Fault),
    ) {
        let (reason, fault) = match route {
            Some(Route::Kernel) => return chunk.decide(at.frame as usize, Verdict::Kernel),
            Some(Route::Unresolved) => (Reason::Unresolved, None),
            Some(Route::Blackhole) => (Reason::Blackhole, None),
            Some(Route::Prohibited) => (Reason::Prohibited, Some(Fault::Prohibited)),
            Some(Route::Unreachable) => (Reason::Unreachable, Some(Fault::Unreachable)),
            // The callers forward the others.
            _ => (Reason::NoRoute, Some(Fault::Unreachable)),
        };
        chunk.decide(at.frame as usize, Verdict::Drop(reason));
        if let Some(fault) = fault {
            tell(self, chunk, memory, at, fault);
        }
    }

    /// The router's address at a port, or at any other.
    fn address_v4(&self, port: PortId) -> Option<Ipv4Addr> {
        self.own.find(port, |own| own.v4)
    }

    fn address_v6(&self, port: PortId) -> Option<Ipv6Addr> {
        self.own.find(port, |own| own.v6)
    }

    /// Tells the sender of a packet why it was not forwarded, if that is allowed.
    #[cold]
    fn tell_v4(&mut self, chunk: &mut Chunk, memory: &mut Memory, at: At, fault: Fault) {
        let packet = &memory.bytes(&chunk.frames()[at.frame as usize])[usize::from(at.packet)..];
        let Some(own) = self.address_v4(chunk.port()).filter(|_| icmp::may_answer_v4(packet)) else { return };
        if self.is_allowed() {
            let answer = icmp::error_v4(packet, fault, own);
            let (sender, _) = crate::header::ipv4_addresses(packet);
            let back = self.lookups(chunk.port()).v4.reader.lookup(sender);
            let flow = v4::flow(&answer);
            self.answer(chunk, memory, at, &answer, back, flow);
        }
    }

    #[cold]
    fn tell_v6(&mut self, chunk: &mut Chunk, memory: &mut Memory, at: At, fault: Fault) {
        let packet = &memory.bytes(&chunk.frames()[at.frame as usize])[usize::from(at.packet)..];
        let Some(own) = self.address_v6(chunk.port()).filter(|_| icmp::may_answer_v6(packet, fault)) else {
            return;
        };
        if self.is_allowed() {
            let answer = icmp::error_v6(packet, fault, own);
            let (sender, _) = crate::header::ipv6_addresses(packet);
            // A sender of the link is behind the port that its packet came from.
            let is_of_link = sender.is_unicast_link_local();
            let back = match is_of_link {
                true => NextHop::NONE,
                false => self.lookups(chunk.port()).v6.reader.lookup(sender),
            };
            let flow = v6::flow(&answer);
            self.answer(chunk, memory, at, &answer, back, flow);
        }
    }

    fn is_allowed(&mut self) -> bool {
        let is_allowed = self.limit.take(Instant::now());
        self.counts.errors_held += u64::from(!is_allowed);
        is_allowed
    }

    /// Sends an answer on the way back: by the route to the sender, or the way that the packet came, with its
    /// tags, if no next hop is known there.
    fn answer(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        at: At,
        answer: &[u8],
        back: NextHop,
        flow: u32,
    ) {
        let asked = memory.bytes(&chunk.frames()[at.frame as usize]);
        let label = self.routes.get(back);
        let hop = match label.as_deref() {
            Some(Route::Via(hop)) => Some(*hop),
            Some(Route::Group(group)) => Some(*group.of_flow(flow)),
            _ => None,
        };
        let mut link = asked[..usize::from(at.packet)].to_vec();
        let port = match hop {
            Some(hop) => {
                link[..12].copy_from_slice(hop.header());
                hop.port()
            }
            None => {
                link[..12].rotate_left(6);
                chunk.port()
            }
        };
        match memory.copy_of(&[&link[..], answer].concat()) {
            Some(made) => {
                chunk.send(port, made);
                self.counts.errors_sent += 1;
            }
            None => self.counts.errors_held += 1,
        }
    }
}

impl<'t> App for Ip<'t> {
    type Pending = Pending<'t>;

    fn pre_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory) -> Pending<'t> {
        self.pre_shade_shown(chunk, memory, |_, _| None)
    }

    fn pre_shade_shown(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        mut show: impl FnMut(usize, Packet<'_>) -> Option<Verdict>,
    ) -> Pending<'t> {
        /// Frames whose bytes are on their way while one is read.
        const AHEAD: usize = 24;
        self.refresh();
        let guard = self.routes.enter();
        let own = self.sources.0.get(chunk.port().index()).filter(|_| !self.sends).cloned();
        let own = own.as_deref();
        let mut keys = self.spare.pop().unwrap_or_default();
        keys.clear();
        chunk.frames().iter().take(AHEAD).for_each(|frame| memory.prefetch(frame));
        keys.v4.reserve(chunk.len());
        keys.at_v4.reserve(chunk.len());
        for at in 0..chunk.len() {
            if let Some(ahead) = chunk.frames().get(at + AHEAD) {
                memory.prefetch(ahead);
            }
            if !chunk.is_undecided(at) {
                continue;
            }
            let frame = &chunk.frames()[at];
            let checked = memory.first(frame).and_then(|bytes| {
                let key = v4::check_plain(bytes, frame.len())?;
                Some((key, own.is_some_and(|own| own.has(v4::source(&bytes[ETHERNET..])))))
            });
            match checked {
                Some((_, true)) => chunk.decide(at, Verdict::Drop(Reason::Martian)),
                Some((key, false)) => match show(at, Packet::V4(&memory.bytes(frame)[ETHERNET..])) {
                    Some(verdict) => chunk.decide(at, verdict),
                    None => {
                        keys.v4.push(key);
                        keys.at_v4.push(At { frame: narrow::u32(at), packet: PLAIN });
                    }
                },
                None => self.read(chunk, memory, at, &mut keys, own, &mut show),
            }
        }
        let lookups = self.lookups(chunk.port());
        Pending { v4: lookups.v4.submit(&keys.v4), v6: lookups.v6.submit(&keys.v6), keys, guard }
    }

    fn is_ready(&self, pending: &Pending<'t>) -> bool {
        pending.v4.as_ref().is_none_or(Submitted::is_ready)
            && pending.v6.as_ref().is_none_or(Submitted::is_ready)
    }

    fn post_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory, pending: Pending<'t>) {
        let Pending { mut keys, v4, v6, guard } = pending;
        let lookups = self.lookups(chunk.port());
        let v4 = lookups.v4.answers(v4, &keys.v4, &mut keys.found_v4);
        let v6 = lookups.v6.answers(v6, &keys.v6, &mut keys.found_v6);
        if v4 || v6 {
            chunk.set_by_gpu();
        }
        if let Some((used, chunks)) = &mut self.used {
            *chunks += 1;
            if chunk.len() <= SMALL || chunks.is_multiple_of(EACH) {
                keys.found_v4.iter().chain(&keys.found_v6).for_each(|&found| used.note(found));
            }
        }
        // After the lookup, so that the copies have the labels of all that it found.
        self.near.refresh(self.routes, &guard);
        for (&at, &found) in keys.at_v4.iter().zip(&keys.found_v4) {
            if !chunk.is_undecided(at.frame as usize) {
                continue;
            }
            if at.packet == PLAIN
                && let Some(hop) = self.near.get(found).or_else(|| via(guard.get(found)))
                && let Some(bytes) = memory.first_mut(&chunk.frames()[at.frame as usize])
                && v4::forward_plain(bytes, hop)
            {
                chunk.decide(at.frame as usize, Verdict::Out(hop.port()));
            } else {
                let packet = if at.packet == PLAIN { narrow::u16(ETHERNET) } else { at.packet };
                self.route_v4(chunk, memory, At { packet, ..at }, guard.get(found));
            }
        }
        for (&at, &found) in keys.at_v6.iter().zip(&keys.found_v6) {
            if chunk.is_undecided(at.frame as usize) {
                self.route_v6(chunk, memory, at, guard.get(found));
            }
        }
        self.spare.push(keys);
    }

    fn suited_to_gpu(&self) -> Option<usize> {
        self.lookups[0].suited_to_gpu()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("errors_sent", self.counts.errors_sent),
            ("errors_held", self.counts.errors_held),
            ("fragments", self.counts.fragments),
        ]
    }
}

/// Milliseconds since midnight, universal time: what the timestamp option records.
fn milliseconds_of_day() -> u32 {
    const DAY: u128 = 24 * 60 * 60 * 1000;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    (now % DAY) as u32
}
