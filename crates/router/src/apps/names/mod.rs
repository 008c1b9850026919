//! [`Ndn`]: forwards NDN Interests by name, and Data back to who asked (NDN Packet Format 0.3; NDNLPv2).
//!
//! Interests lie in Ethernet frames of type 0x8624, or in UDP datagrams to port 6363, bare or in the Fragment
//! of a link packet. An Interest goes to the next hop of the longest prefix of its name, with one hop less if
//! it counts hops.
//!
//! With a table of pending Interests ([`Pit`]) Data in Ethernet frames goes back to each face that asked for
//! it, with the token that it asked with. Without one Data goes to the operating system, where a forwarder
//! may keep such a table. Interests in UDP keep their IP addresses, so their Data comes back by IP: it is the
//! operating system's in both cases.

mod link;
mod pit;

pub use pit::Pit;

use std::ops::Range;

use wirespeed::names::tlv::{ComponentType, Packet, PacketKind};
use wirespeed::names::{NameBatch, NameReader};
use wirespeed::{Labels, LabelsGuard, NextHop};

use crate::checksum::changed;
use crate::header::{IPV4, IPV6, TYPE_IPV4, TYPE_IPV6, be16, ipv6_payload, network};
use crate::{App, Chunk, Mac, Memory, PortId, Reason, Route, Verdict, narrow};
use link::{Fields, Link};
use pit::{Asked as Noted, Asker, Face, MOST_COMPONENTS};

use super::ip::Owns;

/// The EtherType of NDN.
const TYPE_NDN: u16 = 0x8624;
/// The UDP port of NDN.
const PORT_NDN: u16 = 6363;
const UDP: u8 = 17;
/// Bytes of a UDP header.
const UDP_HEADER: usize = 8;

/// Forwards NDN Interests by name: an [`App`].
#[derive(Debug)]
pub struct Ndn<'t> {
    reader: NameReader,
    routes: &'t Labels<Route>,
    /// The Interests that wait, and what the forwarder is at its ports.
    pending: Option<(&'t Pit, &'t Owns)>,
    counts: Counts,
    spare: Vec<Asked>,
    askers: Vec<Asker>,
    text: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    interests: u64,
    data: u64,
    /// Copies of Data, for faces but the first.
    copies: u64,
    lost_copies: u64,
}

/// The Interests of a chunk.
#[derive(Debug, Default)]
struct Asked {
    names: NameBatch,
    found: Vec<NextHop>,
    interests: Vec<Interest>,
    /// The frames of Data, and where it lies there.
    data: Vec<(u32, Range<usize>)>,
}

#[derive(Clone, Debug)]
struct Interest {
    frame: u32,
    /// Where it lies in the frame.
    packet: Range<u16>,
    /// The bytes of the link's header.
    link: u16,
    /// Where its hop limit is in the frame, and where the UDP header that covers it.
    hop_limit: Option<u16>,
    udp: Option<u16>,
    /// Who asks, and where the value of the name is in the frame; `None` if no Data comes back here.
    asker: Option<(Asker, Range<u16>)>,
}

/// A packet of NDN in a frame.
enum Read {
    Interest(Interest),
    /// Data in an Ethernet frame, for those who asked: where it lies.
    Data(Range<usize>),
}

/// A chunk of [`Ndn`] under way.
#[derive(Debug)]
pub struct Pending<'t> {
    asked: Asked,
    guard: LabelsGuard<'t, Route>,
}

impl<'t> Ndn<'t> {
    /// Forwards by a table whose results are indexes of `routes`. A [`Route::Group`] spreads names, so that
    /// equal names take one way.
    #[must_use]
    pub fn new(reader: NameReader, routes: &'t Labels<Route>) -> Self {
        Self {
            reader,
            routes,
            pending: None,
            counts: Counts::default(),
            spare: Vec::new(),
            askers: Vec::new(),
            text: Vec::new(),
        }
    }

    /// Keeps Interests of Ethernet frames in a table until their Data comes, which goes to all who asked. All
    /// workers share the table. `own` is what the forwarder is at its ports: frames with Data come from there
    /// if their Interest was sent to a group.
    ///
    /// Interests and Data then go on without a link packet around them, but for the token that a face asked
    /// with.
    #[must_use]
    pub const fn pending(mut self, pit: &'t Pit, own: &'t Owns) -> Self {
        self.pending = Some((pit, own));
        self
    }

    /// Reads a frame that came in at a port. The name of an Interest goes to the batch.
    fn read(
        &mut self,
        frame: &[u8],
        at: usize,
        port: PortId,
        now: u64,
        names: &mut NameBatch,
    ) -> Result<Read, Verdict> {
        let cut = Verdict::Drop(Reason::Cut);
        let (packet, udp) = ndn(frame)?;
        let link_header = packet;
        let Link { packet, token } = Link::open(frame, packet).map_err(Verdict::Drop)?;
        let bytes = &frame[packet.clone()];
        let parsed = Packet::parse(bytes).map_err(|_| cut)?;
        let pending = self.pending.filter(|_| udp.is_none());
        if parsed.kind == PacketKind::Data {
            return if pending.is_some() { Ok(Read::Data(packet)) } else { Err(Verdict::Kernel) };
        }
        let fields = Fields::of(bytes).ok_or(cut)?;
        let hop_limit = fields.hop_limit.map(|offset| packet.start + offset);
        if hop_limit.is_some_and(|limit| frame[limit] == 0) {
            return Err(Verdict::Drop(Reason::Expired));
        }
        let asker = match pending {
            None => None,
            Some((_, own)) => {
                let components = parsed.name.components();
                let is_digest = components.clone().last().is_some_and(|last| last.kind() == DIGEST);
                let is_deep = fields.can_be_prefix && components.count() > MOST_COMPONENTS;
                if is_digest || is_deep || parsed.name.is_empty() {
                    return Err(Verdict::Drop(Reason::Unanswerable));
                }
                let face = face(port, &frame[..link_header], own).ok_or(Verdict::Drop(Reason::Length))?;
                let mut asker = Asker::new(face, &frame[token.unwrap_or(0..0)], now, fields.lifetime);
                (asker.can_be_prefix, asker.must_be_fresh) = (fields.can_be_prefix, fields.must_be_fresh);
                asker.nonce = fields.nonce;
                let name = parsed.name.as_value();
                let start = packet.start + (name.as_ptr().addr() - bytes.as_ptr().addr());
                let name = narrow::u16(start)..narrow::u16(start + name.len());
                Some((asker, name))
            }
        };
        let name = parsed.name.write_name(&mut self.text).map_err(|_| Verdict::Drop(Reason::Length))?;
        names.push(name).map_err(|_| Verdict::Drop(Reason::Length))?;
        Ok(Read::Interest(Interest {
            // Fewer than 2^32 frames, each shorter than 2^16.
            frame: narrow::u32(at),
            packet: narrow::u16(packet.start)..narrow::u16(packet.end),
            link: narrow::u16(link_header),
            hop_limit: hop_limit.map(narrow::u16),
            udp: udp.map(narrow::u16),
            asker,
        }))
    }

    /// Decides about a frame with Data.
    fn answer(&mut self, chunk: &mut Chunk, memory: &mut Memory, at: usize, packet: &Range<usize>, now: u64) {
        if chunk.is_undecided(at) {
            let verdict = self.give(chunk, memory, at, packet, now);
            chunk.decide(at, verdict);
        }
    }

    /// Sends Data to all who asked for it.
    fn give(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        at: usize,
        packet: &Range<usize>,
        now: u64,
    ) -> Verdict {
        let Some((pit, _)) = self.pending else { return Verdict::Kernel };
        let bytes = memory.bytes(&chunk.frames()[at]);
        let from: [u8; 6] = std::array::from_fn(|byte| bytes[6 + byte]);
        // It was read before.
        let Ok(parsed) = Packet::parse(&bytes[packet.clone()]) else { return Verdict::Drop(Reason::Cut) };
        self.askers.clear();
        pit.answer(&parsed.name, now, &mut self.askers);
        // Whoever sends Data has it.
        let port = chunk.port();
        self.askers.retain(|asker| asker.face.port != port || asker.face.link()[..6] != from);
        let Some((first, others)) = self.askers.split_first() else {
            return Verdict::Drop(Reason::Unsolicited);
        };
        for asker in others {
            let data = &memory.bytes(&chunk.frames()[at])[packet.clone()];
            let whole = [asker.face.link(), &before(asker, data.len()), data].concat();
            match memory.copy_of(&whole) {
                Some(copy) => {
                    chunk.send(asker.face.port, copy);
                    self.counts.copies += 1;
                }
                None => self.counts.lost_copies += 1,
            }
        }
        let header = [first.face.link(), &before(first, packet.len())].concat();
        if !rewrite(chunk, memory, at, packet, &header) {
            return Verdict::Drop(Reason::NoBuffer);
        }
        self.counts.data += 1;
        Verdict::Out(first.face.port)
    }

    /// Notes who asks, and says what becomes of the Interest if it does not go on.
    fn note(&self, bytes: &[u8], interest: &Interest, now: u64) -> Option<Verdict> {
        let ((pit, _), (asker, name)) = self.pending.zip(interest.asker.as_ref())?;
        match pit.ask(&bytes[name.start.into()..name.end.into()], *asker, now) {
            Noted::Forward => None,
            Noted::Waits => Some(Verdict::Drop(Reason::Pending)),
            Noted::Loop => Some(Verdict::Drop(Reason::Loop)),
            Noted::Full => Some(Verdict::Drop(Reason::PitFull)),
        }
    }
}

/// The type of a component that is the digest of a Data packet.
const DIGEST: ComponentType = ComponentType::IMPLICIT_SHA256_DIGEST;

/// Where the answer to a frame goes. The header of its link has both addresses first.
fn face(port: PortId, link: &[u8], own: &Owns) -> Option<Face> {
    let (to, from) = (link.first_chunk::<6>()?, link.get(6..12)?);
    let back = if Mac(*to).is_group() { own.find(port, |own| Some(own.mac))?.0 } else { *to };
    Face::new(port, &[from, &back, link.get(12..)?].concat())
}

/// The header of a link packet before Data, if the face asked with a token.
fn before(asker: &Asker, data: usize) -> Vec<u8> {
    match asker.token() {
        [] => Vec::new(),
        token => link::header(token, data),
    }
}

/// Puts a header before the packet of a frame, in the place of all that was there, and takes off what was
/// behind it. `false` says that there is no room.
fn rewrite(chunk: &mut Chunk, memory: &mut Memory, at: usize, packet: &Range<usize>, header: &[u8]) -> bool {
    let frame = chunk.frame_mut(at);
    frame.truncate(narrow::u16(packet.end));
    frame.strip_front(narrow::u16(packet.start));
    let is_there = frame.grow_front(narrow::u16(header.len()));
    if is_there {
        memory.bytes_mut(&chunk.frames()[at])[..header.len()].copy_from_slice(header);
    }
    is_there
}

/// Where the NDN packet of a frame begins, and the UDP header before it. Frames of other protocols are the
/// operating system's.
fn ndn(frame: &[u8]) -> Result<(usize, Option<usize>), Verdict> {
    let (kind, at) = network(frame).map_err(Verdict::Drop)?;
    let packet = &frame[at..];
    let udp = match kind {
        TYPE_NDN => return Ok((at, None)),
        TYPE_IPV4 if packet.len() >= IPV4 && packet[9] == UDP && be16(packet, 6) & 0x3fff == 0 => {
            at + usize::from(packet[0] & 15) * 4
        }
        TYPE_IPV6 if packet.len() >= IPV6 => match ipv6_payload(packet) {
            Some(payload) if payload.protocol == UDP && !payload.is_later_fragment => at + payload.at,
            _ => return Err(Verdict::Kernel),
        },
        _ => return Err(Verdict::Kernel),
    };
    let is_ndn = frame.len() >= udp + UDP_HEADER && be16(frame, udp + 2) == PORT_NDN;
    if is_ndn { Ok((udp + UDP_HEADER, Some(udp))) } else { Err(Verdict::Kernel) }
}

/// Takes one off a hop limit, and changes the checksum of the UDP header with it.
fn count_hop(frame: &mut [u8], limit: usize, udp: Option<usize>) {
    let old = frame[limit];
    frame[limit] = old - 1;
    let Some(udp) = udp else { return };
    let sum = be16(frame, udp + 6);
    // 0 says that there is no checksum.
    if sum != 0 {
        // The byte is the upper or the lower half of a word, by its distance from the header.
        let word =
            |byte: u8| if (limit - udp).is_multiple_of(2) { u16::from(byte) << 8 } else { u16::from(byte) };
        let new = match changed(sum, word(old), word(old - 1)) {
            0 => 0xffff,
            new => new,
        };
        frame[udp + 6..udp + 8].copy_from_slice(&new.to_be_bytes());
    }
}

impl<'t> App for Ndn<'t> {
    type Pending = Pending<'t>;

    fn pre_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory) -> Pending<'t> {
        let guard = self.routes.enter();
        let mut asked = self.spare.pop().unwrap_or_default();
        asked.names.clear();
        asked.interests.clear();
        asked.data.clear();
        let (port, now) = (chunk.port(), self.pending.map_or(0, |(pit, _)| pit.now()));
        for at in (0..chunk.len()).filter(|&at| chunk.is_undecided(at)).collect::<Vec<_>>() {
            match self.read(memory.bytes(&chunk.frames()[at]), at, port, now, &mut asked.names) {
                Ok(Read::Interest(interest)) => asked.interests.push(interest),
                // Fewer than 2^32 frames.
                Ok(Read::Data(packet)) => asked.data.push((narrow::u32(at), packet)),
                Err(verdict) => chunk.decide(at, verdict),
            }
        }
        Pending { asked, guard }
    }

    fn post_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory, pending: Pending<'t>) {
        let Pending { mut asked, guard } = pending;
        asked.found.resize(asked.interests.len(), NextHop::NONE);
        self.reader.lookup_batch(asked.names.names(), &mut asked.found);
        let now = self.pending.map_or(0, |(pit, _)| pit.now());
        // In the order of frames, as far as Data is concerned: an Interest may come right before its Data.
        let mut data = asked.data.drain(..).peekable();
        for (at, (interest, &found)) in asked.interests.iter().zip(&asked.found).enumerate() {
            let frame = interest.frame as usize;
            while let Some((of, packet)) = data.next_if(|&(of, _)| of < interest.frame) {
                self.answer(chunk, memory, of as usize, &packet, now);
            }
            if !chunk.is_undecided(frame) {
                continue;
            }
            let hop = match guard.get(found) {
                Some(Route::Via(hop)) => hop,
                Some(Route::Group(group)) => {
                    let name = asked.names.names().name(at);
                    group.of_flow(crate::flow_hash(name.as_bytes(), 0, 0))
                }
                other => {
                    let verdict = match other {
                        Some(Route::Kernel) => Verdict::Kernel,
                        Some(Route::Unresolved) => Verdict::Drop(Reason::Unresolved),
                        Some(Route::Blackhole) => Verdict::Drop(Reason::Blackhole),
                        Some(Route::Unreachable) => Verdict::Drop(Reason::Unreachable),
                        Some(Route::Prohibited) => Verdict::Drop(Reason::Prohibited),
                        _ => Verdict::Drop(Reason::NoRoute),
                    };
                    chunk.decide(frame, verdict);
                    continue;
                }
            };
            let bytes = memory.bytes_mut(&chunk.frames()[frame]);
            if let Some(verdict) = self.note(bytes, interest, now) {
                chunk.decide(frame, verdict);
                continue;
            }
            bytes[..12].copy_from_slice(hop.header());
            if let Some(limit) = interest.hop_limit {
                count_hop(bytes, limit.into(), interest.udp.map(usize::from));
            }
            if interest.asker.is_some() && interest.packet.start != interest.link {
                // A token is of one link alone.
                let header = bytes[..interest.link.into()].to_vec();
                let packet = interest.packet.start.into()..interest.packet.end.into();
                // The header was there, before more.
                rewrite(chunk, memory, frame, &packet, &header);
            }
            self.counts.interests += 1;
            chunk.decide(frame, Verdict::Out(hop.port()));
        }
        data.for_each(|(of, packet)| self.answer(chunk, memory, of as usize, &packet, now));
        self.spare.push(asked);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let Counts { interests, data, copies, lost_copies } = self.counts;
        let mut counters = vec![("interests", interests)];
        if self.pending.is_some() {
            counters.extend([("data", data), ("data_copies", copies), ("lost_copies", lost_copies)]);
        }
        counters
    }
}
