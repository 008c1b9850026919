//! [`Ndn`]: forwards NDN Interests by name (NDN Packet Format 0.3; NDNLPv2).
//!
//! Interests lie in Ethernet frames of type 0x8624, or in UDP datagrams to port 6363, bare or in the Fragment
//! of a link packet. An Interest goes to the next hop of the longest prefix of its name, with one hop less if
//! it counts hops. This is the forwarding step alone: there is no table of pending Interests, so Data goes to
//! the operating system, where a forwarder keeps one.

use wirespeed::names::tlv::{Packet, PacketKind};
use wirespeed::names::{NameBatch, NameReader};
use wirespeed::{Labels, LabelsGuard, NextHop};

use crate::checksum::changed;
use crate::header::{IPV4, IPV6, TYPE_IPV4, TYPE_IPV6, be16, ipv6_payload, network};
use crate::{App, Chunk, Memory, Reason, Route, Verdict, narrow};

/// The EtherType of NDN.
const TYPE_NDN: u16 = 0x8624;
/// The UDP port of NDN.
const PORT_NDN: u16 = 6363;
const UDP: u8 = 17;
/// Bytes of a UDP header.
const UDP_HEADER: usize = 8;

/// Types of elements: a link packet and its fragment, and the hop limit of an Interest.
const LINK_PACKET: u64 = 0x64;
const FRAGMENT: u64 = 0x50;
const FRAGMENT_COUNT: u64 = 0x53;
const HOP_LIMIT: u64 = 0x22;

/// Forwards NDN Interests by name: an [`App`].
#[derive(Debug)]
pub struct Ndn<'t> {
    reader: NameReader,
    routes: &'t Labels<Route>,
    spare: Vec<Asked>,
    text: Vec<u8>,
}

/// The Interests of a chunk.
#[derive(Debug, Default)]
struct Asked {
    names: NameBatch,
    found: Vec<NextHop>,
    interests: Vec<Interest>,
}

#[derive(Clone, Copy, Debug)]
struct Interest {
    frame: u32,
    /// Where its hop limit is in the frame, and where the UDP header that covers it.
    hop_limit: Option<u16>,
    udp: Option<u16>,
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
        Self { reader, routes, spare: Vec::new(), text: Vec::new() }
    }

    /// Reads a frame. Its name goes to `asked` if it is an Interest; else the verdict is returned.
    fn read(&mut self, frame: &[u8], at: usize, asked: &mut Asked) -> Result<(), Verdict> {
        let cut = Verdict::Drop(Reason::Cut);
        let (packet, udp) = ndn(frame)?;
        let packet_at = bare(frame, packet).ok_or(cut)?;
        let bytes = &frame[packet_at.clone()];
        let parsed = Packet::parse(bytes).map_err(|_| cut)?;
        if parsed.kind == PacketKind::Data {
            return Err(Verdict::Kernel);
        }
        let hop_limit = hop_limit(bytes).map(|offset| packet_at.start + offset);
        if hop_limit.is_some_and(|limit| frame[limit] == 0) {
            return Err(Verdict::Drop(Reason::Expired));
        }
        let name = parsed.name.write_name(&mut self.text).map_err(|_| Verdict::Drop(Reason::Length))?;
        asked.names.push(name).map_err(|_| Verdict::Drop(Reason::Length))?;
        asked.interests.push(Interest {
            // Fewer than 2^32 frames, each shorter than 2^16.
            frame: narrow::u32(at),
            hop_limit: hop_limit.map(narrow::u16),
            udp: udp.map(narrow::u16),
        });
        Ok(())
    }
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

/// A number of variable length at the start of bytes, and its bytes.
fn number(bytes: &[u8]) -> Option<(u64, usize)> {
    match *bytes.first()? {
        253 => Some((u64::from(u16::from_be_bytes(*bytes.get(1..)?.first_chunk()?)), 3)),
        254 => Some((u64::from(u32::from_be_bytes(*bytes.get(1..)?.first_chunk()?)), 5)),
        255 => Some((u64::from_be_bytes(*bytes.get(1..)?.first_chunk()?), 9)),
        small => Some((small.into(), 1)),
    }
}

/// The element at an offset: its type, and where its value lies.
fn element(bytes: &[u8], at: usize) -> Option<(u64, std::ops::Range<usize>)> {
    let (kind, kind_bytes) = number(bytes.get(at..)?)?;
    let (length, length_bytes) = number(bytes.get(at + kind_bytes..)?)?;
    let start = at + kind_bytes + length_bytes;
    let end = start.checked_add(usize::try_from(length).ok()?).filter(|&end| end <= bytes.len())?;
    Some((kind, start..end))
}

/// Where the network packet lies: in the fragment of a link packet, or bare. `None` for a link packet that is
/// broken, or that is one of several fragments.
fn bare(frame: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
    let (kind, value) = element(frame, at)?;
    if kind != LINK_PACKET {
        return Some(at..value.end);
    }
    let mut at = value.start;
    let (mut found, mut is_part) = (None, false);
    while at < value.end {
        let (kind, inner) = element(&frame[..value.end], at)?;
        is_part |= kind == FRAGMENT_COUNT && frame[inner.clone()].iter().any(|&byte| byte > 1);
        if kind == FRAGMENT {
            found = Some(inner.clone());
        }
        at = inner.end;
    }
    found.filter(|_| !is_part)
}

/// Where the hop limit of an Interest is: one byte.
fn hop_limit(interest: &[u8]) -> Option<usize> {
    let (_, value) = element(interest, 0)?;
    let mut at = value.start;
    while at < value.end {
        let (kind, inner) = element(&interest[..value.end], at)?;
        if kind == HOP_LIMIT && inner.len() == 1 {
            return Some(inner.start);
        }
        at = inner.end;
    }
    None
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
        for at in 0..chunk.len() {
            if chunk.is_undecided(at)
                && let Err(verdict) = self.read(memory.bytes(&chunk.frames()[at]), at, &mut asked)
            {
                chunk.decide(at, verdict);
            }
        }
        Pending { asked, guard }
    }

    fn post_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory, pending: Pending<'t>) {
        let Pending { mut asked, guard } = pending;
        asked.found.resize(asked.interests.len(), NextHop::NONE);
        self.reader.lookup_batch(asked.names.names(), &mut asked.found);
        for (at, (interest, &found)) in asked.interests.iter().zip(&asked.found).enumerate() {
            let frame = interest.frame as usize;
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
            bytes[..12].copy_from_slice(hop.header());
            if let Some(limit) = interest.hop_limit {
                count_hop(bytes, limit.into(), interest.udp.map(usize::from));
            }
            chunk.decide(frame, Verdict::Out(hop.port()));
        }
        self.spare.push(asked);
    }
}
