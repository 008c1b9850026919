//! Sealing: an inner packet becomes an ESP packet, where it lies (RFC 4303, 3.3).
//!
//! ```text
//! before               │ inner packet │
//! after  IP│UDP│ESP│IV │ inner packet │ 1 2 3 … │ length of padding, next header │ tag
//!                      └──────────────── encrypted ─────────────────────────────┘
//!              └────────────────── authentic ───────────────────────────────────┘
//! ```
//!
//! First each packet is checked and gets its headers ([`Sealing::begin`], [`Sealing::write`]). Then a list of
//! packets is encrypted ([`seal`]), so that tags of several are made at once.

use std::time::Instant;

use crate::crypto::Suite;
use crate::crypto::gcm::Aead;
use crate::crypto::sha1::{self, Message, Tag};
use crate::fault::Fault;
use crate::ip::{
    self, ESP, Family, Header, IPV6, NEXT_IPV4, NEXT_IPV6, Outer, PROTOCOL_ESP, PROTOCOL_UDP, UDP,
};
use crate::narrow::{self, halves};
use crate::packets::Packets;
use crate::path;
use crate::sa::{Sa, TRAILER, Taken};

/// The smallest link of IPv6: its packets of this size go through every tunnel (RFC 8200, 5).
const LEAST_V6: usize = path::LEAST_V6 as usize;

/// An inner packet that is to be sealed: the bytes that it needs around it.
#[derive(Clone, Copy, Debug)]
pub struct Sealing<'s> {
    sa: &'s Sa,
    inner: Header,
    /// Bytes of padding.
    padding: usize,
}

/// A packet with its headers, to be encrypted.
#[derive(Clone, Copy, Debug)]
pub struct Unsealed<'s> {
    /// The number of the packet among [`Packets`].
    pub at: usize,
    pub(crate) sa: &'s Sa,
    pub(crate) sequence: u64,
}

impl<'s> Sealing<'s> {
    /// Checks an inner packet, which begins at its IP header. Fails if it can't go through the tunnel, also
    /// if it is larger than the path takes. A packet of IPv4 that may be cut is to be cut then, to
    /// [`Sa::most_inner`] bytes, before its parts are sealed (RFC 4301, section 7).
    #[inline]
    pub fn begin(sa: &'s Sa, packet: &[u8]) -> Result<Self, Fault> {
        let sealing = Self::begin_large(sa, packet)?;
        let least = if sealing.inner.family == Family::V6 { LEAST_V6 } else { 0 };
        let fits = || sealing.inner.len <= sa.most_inner().max(least);
        if fits() || (sa.path.forget(Instant::now()) && fits()) { Ok(sealing) } else { Err(Fault::TooBig) }
    }

    /// Checks an inner packet like [`begin`](Self::begin), and takes one that is larger than the path takes:
    /// the sealed packet is to be cut then.
    #[inline]
    pub fn begin_large(sa: &'s Sa, packet: &[u8]) -> Result<Self, Fault> {
        let inner = Header::read(packet).ok_or(Fault::Inner)?;
        if inner.hops <= 1 {
            return Err(Fault::Expired);
        }
        if let Some(selector) = &sa.selector
            && !selector.matches(&packet[..inner.len])
        {
            return Err(Fault::Policy);
        }
        let padding = (inner.len + TRAILER).next_multiple_of(4) - inner.len - TRAILER;
        let sealing = Self { sa, inner, padding };
        if sealing.len() > u16::MAX.into() { Err(Fault::TooBig) } else { Ok(sealing) }
    }

    /// Bytes of the inner packet: what follows them in a frame is padding of the link.
    #[must_use]
    pub const fn inner(&self) -> usize {
        self.inner.len
    }

    /// Bytes that are needed before it.
    #[must_use]
    pub const fn head(&self) -> usize {
        self.sa.head()
    }

    /// Bytes that are needed behind it.
    #[must_use]
    pub const fn tail(&self) -> usize {
        self.padding + TRAILER + self.sa.suite.tag()
    }

    /// Bytes of the sealed packet.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.head() + self.inner.len + self.tail()
    }

    /// Whether the sealed packet has no byte: never.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The largest packet that the path takes, where the sealed packet is larger: then it is to be cut, by
    /// its sender if it is IPv6 (RFC 8200, 4.5), and by any router if it is IPv4.
    #[must_use]
    pub fn cut_to(&self) -> Option<u16> {
        let path_mtu = self.sa.path_mtu();
        (self.len() > path_mtu.into()).then_some(path_mtu)
    }

    /// Whether the outer packet is IPv4.
    #[must_use]
    pub const fn is_ipv4(&self) -> bool {
        self.sa.dst.is_ipv4()
    }

    /// Whether two packets go through one security association: they can share [`take`](Self::take).
    #[must_use]
    pub fn is_beside(&self, other: &Self) -> bool {
        std::ptr::eq(self.sa, other.sa)
    }

    /// Takes sequence numbers for so many packets of its association, to be written in a row. That is faster
    /// than one by one.
    #[must_use]
    pub fn take(&self, count: usize) -> Taken<'s> {
        self.sa.take(count)
    }

    /// Takes a sequence number, and writes the packet like [`write_next`](Self::write_next).
    pub fn write(self, at: usize, packet: &mut [u8]) -> Result<Unsealed<'s>, Fault> {
        self.write_next(at, packet, &mut self.take(1))
    }

    /// Writes headers and trailer around the inner packet, which begins [`head`](Self::head) bytes behind the
    /// start of `packet`, with the next of the numbers. `at` is the packet's number among [`Packets`]. The
    /// inner packet loses a hop: the tunnel begins at a router.
    ///
    /// Fails if the security association has come to its end.
    ///
    /// Panics if `packet` has not [`len`](Self::len) bytes, or if the numbers are of another association.
    #[inline]
    pub fn write_next(
        self,
        at: usize,
        packet: &mut [u8],
        numbers: &mut Taken<'s>,
    ) -> Result<Unsealed<'s>, Fault> {
        let (sa, inner) = (self.sa, self.inner);
        assert_eq!(packet.len(), self.len(), "the caller has made it as long as it will be");
        assert!(std::ptr::eq(sa, numbers.sa()), "numbers of another association");
        let sequence = numbers.next(inner.len)?;
        let (low, _) = halves(sequence);
        let is_v4 = inner.family == Family::V4;
        let (dst, ports) = sa.peer();
        Outer {
            src: sa.src,
            dst,
            protocol: if ports.is_some() { PROTOCOL_UDP } else { PROTOCOL_ESP },
            len: packet.len(),
            // In normal mode congestion is copied like the rest (RFC 6040, 4.1).
            class: inner.class,
            // What is too large for the path is cut there.
            is_whole: inner.is_whole && packet.len() <= sa.path_mtu().into(),
            id: halves(sequence).0.to_be_bytes().last_chunk().map_or(0, |&id| u16::from_be_bytes(id)),
        }
        .write(packet);
        let esp = sa.outer();
        if let Some(ports) = ports {
            let len = narrow::u16(packet.len() - (esp - UDP));
            let header = [ports.src.to_be_bytes(), ports.dst.to_be_bytes(), len.to_be_bytes(), [0, 0]];
            packet[esp - UDP..esp].copy_from_slice(header.as_flattened());
        }
        packet[esp..esp + 4].copy_from_slice(&sa.spi.to_be_bytes());
        packet[esp + 4..esp + ESP].copy_from_slice(&low.to_be_bytes());
        packet[esp + ESP..sa.head()].copy_from_slice(&sa.vector(sequence)[..sa.suite.vector()]);
        let end = sa.head() + inner.len;
        ip::count_hop(&mut packet[sa.head()..end], inner.family);
        let trailer = &mut packet[end..end + self.padding + TRAILER];
        trailer.iter_mut().zip(1..).for_each(|(byte, number)| *byte = number);
        trailer[self.padding] = narrow::u8(self.padding);
        trailer[self.padding + 1] = if is_v4 { NEXT_IPV4 } else { NEXT_IPV6 };
        Ok(Unsealed { at, sa, sequence })
    }
}

impl Unsealed<'_> {
    /// Where the frame begins in its packet: at the ESP header.
    #[cfg(feature = "gpu")]
    pub(crate) fn start(&self) -> usize {
        self.sa.outer()
    }

    /// The upper half of the sequence number, if it has one.
    #[cfg(feature = "gpu")]
    pub(crate) fn high(&self) -> Option<u32> {
        self.sa.high(self.sequence)
    }

    /// Writes what covers the sealed bytes.
    #[cfg(feature = "gpu")]
    pub(crate) fn finish(&self, packet: &mut [u8]) {
        finish(self.sa, packet);
    }

    /// The input of its tag, if that is made apart from the encryption.
    fn message<'m>(&'m self, packet: &'m [u8]) -> Option<Message<'m>> {
        let bytes = &packet[self.sa.outer()..packet.len() - self.sa.suite.tag()];
        Some(Message { key: self.sa.suite.hmac()?, bytes, high: self.sa.high(self.sequence) })
    }
}

/// Memory that [`seal`] uses again.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) tags: Vec<Tag>,
    /// The outcome of each packet's decryption.
    pub(crate) texts: Vec<Result<bool, Fault>>,
}

/// Encrypts packets where they lie, and writes their tags.
///
/// Panics if a packet is shorter than it was when its headers were written.
pub fn seal<P: Packets + ?Sized>(unsealed: &[Unsealed<'_>], packets: &mut P, scratch: &mut Scratch) {
    let mut has_tags_apart = false;
    for &Unsealed { at, sa, sequence } in unsealed {
        let packet = packets.packet_mut(at);
        let text = &mut packet[sa.head()..];
        let vector = sa.vector(sequence);
        match &sa.suite {
            Suite::Gcm { gcm, salt } => {
                let (beside, len) = sa.beside(sequence);
                gcm.seal(nonce(salt, vector), &beside[..len], text);
                finish(sa, packet);
            }
            Suite::CtrSha1 { ctr, nonce, .. } => {
                let end = text.len() - sha1::TAG;
                ctr.apply(**nonce, vector, &mut text[..end]);
                has_tags_apart = true;
            }
            Suite::NullSha1 { .. } => has_tags_apart = true,
        }
    }
    if !has_tags_apart {
        return;
    }
    let apart = |unsealed: &&Unsealed<'_>| unsealed.sa.suite.hmac().is_some();
    {
        let messages: Vec<Message<'_>> =
            unsealed.iter().filter_map(|unsealed| unsealed.message(packets.packet(unsealed.at))).collect();
        scratch.tags.resize(messages.len(), [0; sha1::TAG]);
        sha1::tags(&messages, &mut scratch.tags);
    }
    for (unsealed, tag) in unsealed.iter().filter(apart).zip(&scratch.tags) {
        let packet = packets.packet_mut(unsealed.at);
        let end = packet.len() - sha1::TAG;
        packet[end..].copy_from_slice(tag);
        finish(unsealed.sa, packet);
    }
}

/// The nonce of AES-GCM (RFC 4106, 4).
#[inline]
pub(crate) fn nonce(salt: &[u8; 4], vector: [u8; 8]) -> [u8; 12] {
    // Whole words: the cipher reads eight bytes at once, and would wait for two writes that they come from.
    let bytes = u128::from(u64::from_le_bytes(vector)) << 32 | u128::from(u32::from_le_bytes(*salt));
    bytes.to_le_bytes().first_chunk().copied().unwrap_or_default()
}

/// Writes what covers the sealed bytes: the checksum of UDP in IPv6. In IPv4 there is none (RFC 3948, 2.1).
fn finish(sa: &Sa, packet: &mut [u8]) {
    if sa.ports.is_some() && !sa.dst.is_ipv4() {
        let sum = ip::udp_checksum(packet);
        packet[IPV6 + 6..IPV6 + 8].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Keys, SaConfig, Secret};

    #[test]
    fn large_packets_are_taken_again_once_what_was_learned_is_old() {
        let [src, dst] = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().unwrap());
        let sa = Sa::new(&SaConfig::new(256, src, dst, Keys::Gcm(Secret::new(vec![7; 20])))).unwrap();
        let mut inner = vec![0; 1000];
        inner[..10].copy_from_slice(&[0x45, 0, 3, 0xe8, 0, 0, 0x40, 0, 64, 17]);
        let sum = wirespeed_checksum::checksum(&inner[..20]);
        inner[10..12].copy_from_slice(&sum.to_be_bytes());
        let begun = || Sealing::begin(&sa, &inner).map(|sealing| sealing.inner());
        assert_eq!(begun(), Ok(1000));
        let now = Instant::now();
        sa.path.learn(700, now);
        assert_eq!(begun(), Err(Fault::TooBig));
        let Some(long_ago) = now.checked_sub(Duration::from_secs(600)) else { return };
        sa.path.learn(600, long_ago);
        assert_eq!((begun(), sa.path_mtu()), (Ok(1000), 1500));
    }
}
