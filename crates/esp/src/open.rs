//! Opening: an ESP packet becomes the packet that is in it, where it lies (RFC 4303, 3.4).
//!
//! ```text
//! Arrival::read      what kind of packet it is, and the index that it carries
//! Opening::begin     its lengths, its sequence number (RFC 4303, 3.4.3)
//! open               tags of several at once, decryption, the window, padding, the inner header, congestion
//! ```

use std::net::IpAddr;
use std::sync::MutexGuard;

use subtle::ConstantTimeEq;

use crate::crypto::Suite;
use crate::crypto::gcm::Aead;
use crate::crypto::sha1::{self, Message};
use crate::fault::Fault;
use crate::ip::{
    self, ESP, FRAGMENT_HEADER, Family, Header, IPV4, IPV6, NEXT_IPV4, NEXT_IPV6, NEXT_NONE, PROTOCOL_ESP,
    PROTOCOL_FRAGMENT, PROTOCOL_UDP, UDP, be16, be32,
};
use crate::narrow;
use crate::packets::Packets;
use crate::sa::{Carried, Sa, TRAILER};
use crate::seal::{Scratch, nonce};
use crate::state::State;
use crate::window::Window;

/// The kind of a packet that came, as a tunnel sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A packet without ESP.
    Clear,
    /// An ESP packet.
    Esp(Envelope),
    /// A message of IKE in a UDP datagram for ESP (RFC 3948, 2.2): the key daemon's.
    Ike,
    /// A datagram that keeps a mapping of addresses alive (RFC 3948, 2.3).
    Keepalive,
    /// A fragment of an ESP packet, to be put together with others ([`Fragments`](crate::Fragments)).
    Fragment,
    /// A later fragment of a UDP datagram. It is of an ESP packet if its first one was.
    LaterFragment,
    /// An ESP packet whose lengths or checksum are wrong.
    Bad,
}

/// The outside of an ESP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The index of its security association.
    pub spi: u32,
    /// The tunnel's end.
    pub dst: IpAddr,
    low: u32,
    /// Where the ESP header begins, and where the packet ends.
    esp: u16,
    end: u16,
    congestion: u8,
    is_in_udp: bool,
}

impl Arrival {
    /// Reads a packet, which begins at its IP header. `is_port` says which UDP ports are for ESP, and
    /// `is_own` which addresses are ends of tunnels here: what is for another is [`Arrival::Clear`].
    #[inline]
    pub fn read(packet: &[u8], is_own: impl Fn(IpAddr) -> bool, is_port: impl Fn(u16) -> bool) -> Self {
        let (protocol, header) = match packet.first().map(|first| first >> 4) {
            Some(4) if packet.len() >= IPV4 => (packet[9], usize::from(packet[0] & 15) * 4),
            // Nothing but a fragment header may stand before ESP here.
            Some(6) if packet.len() >= IPV6 + FRAGMENT_HEADER && packet[6] == PROTOCOL_FRAGMENT => {
                (packet[IPV6], IPV6 + FRAGMENT_HEADER)
            }
            Some(6) if packet.len() >= IPV6 => (packet[6], IPV6),
            _ => return Self::Clear,
        };
        let is_udp = match protocol {
            PROTOCOL_ESP => false,
            PROTOCOL_UDP => true,
            _ => return Self::Clear,
        };
        let family = if packet[0] >> 4 == 4 { Family::V4 } else { Family::V6 };
        let dst = ip::destination(packet, family);
        let is_later = ip::is_later_fragment(packet, family);
        if is_udp && is_later != Some(true) {
            let port = packet.get(header..header + UDP).map(|udp| be16(udp, 2));
            if !port.is_some_and(&is_port) {
                return Self::Clear;
            }
        }
        if !is_own(dst) {
            return Self::Clear;
        }
        if let Some(is_later) = is_later {
            return Self::read_fragment(packet, header, is_udp, is_later);
        }
        Self::read_own(packet, header, is_udp, dst)
    }

    #[cold]
    fn read_fragment(packet: &[u8], header: usize, is_udp: bool, is_later: bool) -> Self {
        match Header::read(packet) {
            None => Self::Bad,
            Some(_) if is_udp && is_later => Self::LaterFragment,
            Some(outer)
                if is_udp && packet[..outer.len].get(header + UDP..header + UDP + 4) == Some(&[0; 4]) =>
            {
                Self::Ike
            }
            Some(_) => Self::Fragment,
        }
    }

    #[inline]
    fn read_own(packet: &[u8], header: usize, is_udp: bool, dst: IpAddr) -> Self {
        let Some(outer) = Header::read(packet) else { return Self::Bad };
        let (mut esp, mut end) = (header, outer.len);
        if is_udp {
            // The datagram ends where its own length says.
            let Some(udp) = packet[..end].get(header..header + UDP) else { return Self::Bad };
            let len = usize::from(be16(udp, 4));
            if len < UDP || header + len > end {
                return Self::Bad;
            }
            (esp, end) = (header + UDP, header + len);
            match &packet[esp..end] {
                [0xff] => return Self::Keepalive,
                [0, 0, 0, 0, ..] => return Self::Ike,
                _ => {}
            }
        }
        if end < esp + ESP {
            return Self::Bad;
        }
        Self::Esp(Envelope {
            spi: be32(packet, esp),
            dst,
            low: be32(packet, esp + 4),
            // A packet has less than 2^16 bytes, but for one of IPv6 that is as long as it can be.
            esp: narrow::u16(esp),
            end: match u16::try_from(end) {
                Ok(end) => end,
                Err(_) => return Self::Bad,
            },
            congestion: outer.class & 3,
            is_in_udp: is_udp,
        })
    }
}

/// An ESP packet that is to be opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'s> {
    /// The number of the packet among [`Packets`].
    pub at: usize,
    pub(crate) sa: &'s Sa,
    pub(crate) envelope: Envelope,
    pub(crate) sequence: u64,
}

/// The inner packet: where it lies in the packet that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The place where it begins.
    pub start: usize,
    /// Bytes that it has.
    pub len: usize,
    /// Whether it is IPv4; else it is IPv6.
    pub is_ipv4: bool,
    /// Whether the other end of a tunnel in UDP sends from another address or port since this packet. It is
    /// newer than all before it, by its sequence number.
    pub is_moved: bool,
}

/// Packets of a list that are to be opened: packets in a row mostly come through one association, so this
/// keeps the last one and its window. Other threads wait for that window until this is dropped.
#[derive(Debug)]
pub struct Beginning<'s> {
    state: &'s State,
    last: Option<(&'s Sa, MutexGuard<'s, Window>)>,
}

impl<'s> Beginning<'s> {
    /// Begins a list, with the associations of a state.
    #[must_use]
    pub const fn new(state: &'s State) -> Self {
        Self { state, last: None }
    }

    /// Finds a packet's association and checks the packet, like [`Opening::begin`].
    #[inline]
    pub fn begin(&mut self, envelope: Envelope, at: usize) -> Result<Opening<'s>, Fault> {
        let is_of = |sa: &Sa| (sa.spi, sa.dst) == (envelope.spi, envelope.dst);
        let (sa, window) = match &self.last {
            Some((sa, window)) if is_of(sa) => (*sa, window),
            _ => {
                let sa = self.state.sa(envelope.dst, envelope.spi).ok_or(Fault::NoSa)?;
                // The window before is free first: no thread ever waits for one while it has another.
                self.last = None;
                sa.look_at_time();
                let (sa, window) = self.last.insert((sa, sa.window()));
                (*sa, &*window)
            }
        };
        Opening::begin_in(sa, window, envelope, at)
    }
}

impl<'s> Opening<'s> {
    /// Checks a packet's lengths and its sequence number, before any work is done for it. `at` is its number
    /// among [`Packets`].
    pub fn begin(sa: &'s Sa, envelope: Envelope, at: usize) -> Result<Self, Fault> {
        sa.look_at_time();
        Self::begin_in(sa, &sa.window(), envelope, at)
    }

    #[inline]
    fn begin_in(sa: &'s Sa, window: &Window, envelope: Envelope, at: usize) -> Result<Self, Fault> {
        sa.check()?;
        if envelope.is_in_udp != sa.ports.is_some() {
            return Err(Fault::Encapsulation);
        }
        let rest = usize::from(envelope.end - envelope.esp)
            .checked_sub(ESP + sa.suite.vector() + sa.suite.tag())
            .filter(|rest| *rest >= TRAILER && rest.is_multiple_of(4));
        rest.ok_or(Fault::Cut)?;
        let sequence = window.whole(envelope.low).filter(|&number| window.is_new(number));
        let sequence = sequence.ok_or(Fault::Replay)?;
        Ok(Self { at, sa, envelope, sequence })
    }

    /// The security association.
    #[must_use]
    pub const fn sa(&self) -> &'s Sa {
        self.sa
    }

    /// Where the text begins, and where the tag ends.
    #[inline]
    fn span(&self) -> (usize, usize) {
        let esp = usize::from(self.envelope.esp);
        (esp + ESP + self.sa.suite.vector(), self.envelope.end.into())
    }

    /// The input of its tag, if that is made apart from the decryption.
    fn message<'m>(&'m self, packet: &'m [u8]) -> Option<Message<'m>> {
        let (_, end) = self.span();
        let bytes = &packet[self.envelope.esp.into()..end - self.sa.suite.tag()];
        Some(Message { key: self.sa.suite.hmac()?, bytes, high: self.sa.high(self.sequence) })
    }

    /// Where the frame lies in its packet: from the ESP header to the end of the tag.
    #[cfg(feature = "gpu")]
    pub(crate) fn frame(&self) -> std::ops::Range<usize> {
        self.envelope.esp.into()..self.envelope.end.into()
    }

    /// The upper half of the sequence number, if it has one.
    #[cfg(feature = "gpu")]
    pub(crate) fn high(&self) -> Option<u32> {
        self.sa.high(self.sequence)
    }

    /// Decrypts a packet whose tag was checked, finds the inner packet and counts it. If anything is wrong
    /// the bytes of the packet are overwritten from the ESP payload on.
    #[cfg(feature = "gpu")]
    pub(crate) fn finish(
        &self,
        packet: &mut [u8],
        is_right: bool,
        decrypt: impl FnOnce(&mut [u8]) -> Result<(), Fault>,
    ) -> Result<Opened, Fault> {
        let text = self.text(packet, is_right, decrypt);
        let text = text.and_then(|()| self.note(&mut self.sa.window(), packet));
        self.end(packet, text, &mut self.sa.carried_here())
    }

    /// Decrypts a packet whose tag was checked.
    #[inline]
    fn text(
        &self,
        packet: &mut [u8],
        is_right: bool,
        decrypt: impl FnOnce(&mut [u8]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.sa.check()?;
        if !is_right {
            return Err(Fault::Tag);
        }
        decrypt(packet)
    }

    /// Notes the number of a packet that is authentic, and where it is from if it is the newest. Returns
    /// whether that is another place than before. Fails if the number is not new any more.
    #[inline]
    fn note(&self, window: &mut Window, packet: &[u8]) -> Result<bool, Fault> {
        let is_newest = self.sequence > window.top();
        if !window.note(self.sequence) {
            return Err(Fault::Replay);
        }
        let mapping = self.sa.came.get().filter(|_| is_newest);
        Ok(mapping.is_some_and(|mapping| {
            let family = if packet[0] >> 4 == 4 { Family::V4 } else { Family::V6 };
            mapping.see((ip::source(packet, family), be16(packet, usize::from(self.envelope.esp) - UDP)))
        }))
    }

    /// Finds the inner packet of what was decrypted, or overwrites it.
    #[inline]
    fn end(
        &self,
        packet: &mut [u8],
        text: Result<bool, Fault>,
        carried: &mut Carried<'_>,
    ) -> Result<Opened, Fault> {
        let outcome = text.and_then(|is_moved| Ok(Opened { is_moved, ..self.inner(packet, carried)? }));
        if outcome.is_err() {
            packet[self.span().0..].fill(0);
        }
        outcome
    }

    /// Decrypts a packet whose tag is right, or is checked with the decryption.
    #[inline]
    fn decrypt(&self, packet: &mut [u8]) -> Result<(), Fault> {
        let (start, end) = self.span();
        let (before, text) = packet[..end].split_at_mut(start);
        let vector = || before.last_chunk::<8>().copied().unwrap_or_default();
        match &self.sa.suite {
            Suite::Gcm { gcm, salt } => {
                let (beside, len) = self.sa.beside(self.sequence);
                if !gcm.open(nonce(salt, vector()), &beside[..len], text) {
                    return Err(Fault::Tag);
                }
            }
            Suite::CtrSha1 { ctr, nonce, .. } => {
                let end = text.len() - sha1::TAG;
                ctr.apply(**nonce, vector(), &mut text[..end]);
            }
            Suite::NullSha1 { .. } => {}
        }
        Ok(())
    }

    /// Finds the inner packet in what was decrypted.
    fn inner(&self, packet: &mut [u8], carried: &mut Carried<'_>) -> Result<Opened, Fault> {
        let (start, end) = self.span();
        let text = &mut packet[start..end - self.sa.suite.tag()];
        // At least a trailer is there: `begin` has seen it.
        let (rest, trailer) = text.split_at_mut(text.len() - TRAILER);
        let (padding, next) = (usize::from(trailer[0]), trailer[1]);
        let payload = rest.len().checked_sub(padding).ok_or(Fault::Padding)?;
        if !rest[payload..].iter().zip(1_u8..).all(|(&byte, number)| byte == number) {
            return Err(Fault::Padding);
        }
        let family = match next {
            NEXT_IPV4 => Family::V4,
            NEXT_IPV6 => Family::V6,
            NEXT_NONE => return Err(Fault::Dummy),
            _ => return Err(Fault::NextHeader),
        };
        // A packet that is shorter than the payload was padded to hide its length (RFC 4303, 2.7).
        let inner = Header::read(&rest[..payload]).filter(|inner| inner.family == family);
        let inner = inner.ok_or(Fault::Inner)?;
        if let Some(selector) = &self.sa.selector
            && !selector.matches(&rest[..inner.len])
        {
            return Err(Fault::Policy);
        }
        if let Some(congestion) = congestion(inner.class & 3, self.envelope.congestion)? {
            ip::set_congestion(rest, family, congestion);
        }
        carried.add(inner.len)?;
        Ok(Opened { start, len: inner.len, is_ipv4: family == Family::V4, is_moved: false })
    }
}

/// The congestion field of a packet that leaves a tunnel, if it is another than before (RFC 6040, 4.2).
fn congestion(inner: u8, outer: u8) -> Result<Option<u8>, Fault> {
    /// Values of the field: no support, support of either kind, and congestion.
    const NOT: u8 = 0;
    const SECOND: u8 = 1;
    const FIRST: u8 = 2;
    const CONGESTED: u8 = 3;
    match (inner, outer) {
        (NOT, CONGESTED) => Err(Fault::Congestion),
        (FIRST | SECOND, CONGESTED) => Ok(Some(CONGESTED)),
        (FIRST, SECOND) => Ok(Some(SECOND)),
        _ => Ok(None),
    }
}

/// Opens packets where they lie. The outcome of each goes to the same place of `outcomes`. The bytes of a
/// packet that fails are overwritten from the ESP payload on, so that nothing of it gets out.
///
/// Panics if a packet is shorter than it was when its opening began.
pub fn open<P: Packets + ?Sized>(
    openings: &[Opening<'_>],
    packets: &mut P,
    scratch: &mut Scratch,
    outcomes: &mut Vec<Result<Opened, Fault>>,
) {
    {
        let messages: Vec<Message<'_>> =
            openings.iter().filter_map(|opening| opening.message(packets.packet(opening.at))).collect();
        scratch.tags.resize(messages.len(), [0; sha1::TAG]);
        sha1::tags(&messages, &mut scratch.tags);
    }
    outcomes.clear();
    scratch.texts.clear();
    let mut tags = scratch.tags.iter();
    for opening in openings {
        let packet = packets.packet_mut(opening.at);
        let (_, end) = opening.span();
        let right = opening.sa.suite.hmac().and_then(|_| tags.next());
        let is_right = right.is_none_or(|right| right[..].ct_eq(&packet[end - sha1::TAG..end]).into());
        let text = opening.text(packet, is_right, |packet| opening.decrypt(packet));
        scratch.texts.push(text.map(|()| false));
    }
    // Threads share windows and counters of associations: one step for packets in a row, and none meanwhile.
    let mut texts = &mut scratch.texts[..];
    for run in openings.chunk_by(|one, other| std::ptr::eq(one.sa, other.sa)) {
        let (of_run, rest) = texts.split_at_mut(run.len());
        texts = rest;
        let mut window = run[0].sa.window();
        for (opening, text) in run.iter().zip(&mut *of_run).filter(|(_, text)| text.is_ok()) {
            *text = opening.note(&mut window, packets.packet(opening.at));
        }
        drop(window);
        let mut carried = run[0].sa.carried_here();
        for (opening, &mut text) in run.iter().zip(of_run) {
            outcomes.push(opening.end(packets.packet_mut(opening.at), text, &mut carried));
        }
    }
}
