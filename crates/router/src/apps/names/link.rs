//! [`Link`]: the network packet of a frame of NDN, bare or in a link packet (NDNLPv2), and the fields of an
//! Interest that forwarding needs.
//!
//! ```text
//! 64 0f                         link packet
//!    62 04 …                    PIT token, which goes back with the Data
//!    50 07 06 05 …              fragment: the whole network packet, or a part of it
//! ```
//!
//! A link packet that is not understood as a whole is refused, with a reason. Fields that its format allows
//! to pass over are passed over: types of 800 to 959 that are a multiple of four.

use std::ops::Range;

use crate::Reason;

/// Types of elements: a link packet and its fields.
const LINK_PACKET: u64 = 0x64;
const FRAGMENT: u64 = 0x50;
const SEQUENCE: u64 = 0x51;
const FRAGMENT_INDEX: u64 = 0x52;
const FRAGMENT_COUNT: u64 = 0x53;
const TOKEN: u64 = 0x62;
const NACK: u64 = 0x0320;
/// Types of link fields that may be passed over if they are a multiple of four.
const IGNORABLE: Range<u64> = 800..960;

/// Types of the fields of an Interest.
const MUST_BE_FRESH: u64 = 0x12;
const CAN_BE_PREFIX: u64 = 0x21;
const NONCE: u64 = 0x0a;
const LIFETIME: u64 = 0x0c;
const HOP_LIMIT: u64 = 0x22;

/// Bytes of a PIT token, at most (NDNLPv2).
pub(super) const LONGEST_TOKEN: usize = 32;

/// A network packet in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// The packet, from its type on.
    pub(super) packet: Range<usize>,
    /// The value of the token beside it.
    pub(super) token: Option<Range<usize>>,
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
fn element(bytes: &[u8], at: usize) -> Option<(u64, Range<usize>)> {
    let (kind, kind_bytes) = number(bytes.get(at..)?)?;
    let (length, length_bytes) = number(bytes.get(at + kind_bytes..)?)?;
    let start = at + kind_bytes + length_bytes;
    let end = start.checked_add(usize::try_from(length).ok()?).filter(|&end| end <= bytes.len())?;
    Some((kind, start..end))
}

/// A number of 1, 2, 4 or 8 bytes.
fn whole(bytes: &[u8]) -> Option<u64> {
    matches!(bytes.len(), 1 | 2 | 4 | 8)
        .then(|| bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

impl Link {
    /// Finds the network packet of a frame, whose packet begins at an offset.
    pub(super) fn open(frame: &[u8], at: usize) -> Result<Self, Reason> {
        let (kind, value) = element(frame, at).ok_or(Reason::Cut)?;
        if kind != LINK_PACKET {
            return Ok(Self { packet: at..value.end, token: None });
        }
        let (mut at, mut packet, mut token) = (value.start, None, None);
        let (mut is_part, mut is_nack) = (false, false);
        while at < value.end {
            let (kind, inner) = element(&frame[..value.end], at).ok_or(Reason::Cut)?;
            at = inner.end;
            if packet.is_some() {
                // The fragment is the last field.
                return Err(Reason::LinkField);
            }
            let number = || whole(&frame[inner.clone()]).ok_or(Reason::LinkField);
            match kind {
                FRAGMENT => packet = Some(inner),
                SEQUENCE if inner.len() == 8 => {}
                FRAGMENT_INDEX => is_part |= number()? > 0,
                FRAGMENT_COUNT => is_part |= number()? != 1,
                TOKEN if token.is_none() && (1..=LONGEST_TOKEN).contains(&inner.len()) => token = Some(inner),
                NACK => is_nack = true,
                other if IGNORABLE.contains(&other) && other.is_multiple_of(4) => {}
                _ => return Err(Reason::LinkField),
            }
        }
        match packet.filter(|packet| !packet.is_empty()) {
            _ if is_nack => Err(Reason::Nack),
            _ if is_part => Err(Reason::Fragment),
            None => Err(Reason::Idle),
            Some(packet) => Ok(Self { packet, token }),
        }
    }
}

/// The fields of an Interest behind its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) can_be_prefix: bool,
    pub(super) must_be_fresh: bool,
    pub(super) nonce: Option<u32>,
    /// Milliseconds.
    pub(super) lifetime: Option<u64>,
    /// Where the hop limit is in the Interest: one byte.
    pub(super) hop_limit: Option<usize>,
}

impl Fields {
    /// Reads an Interest, from its type on. `None` if an element ends past the Interest, or has a length that
    /// it can't have.
    pub(super) fn of(interest: &[u8]) -> Option<Self> {
        let (_, value) = element(interest, 0)?;
        let (mut at, mut fields) = (value.start, Self::default());
        while at < value.end {
            let (kind, inner) = element(&interest[..value.end], at)?;
            at = inner.end;
            let bytes = &interest[inner.clone()];
            match kind {
                CAN_BE_PREFIX => fields.can_be_prefix = true,
                MUST_BE_FRESH => fields.must_be_fresh = true,
                NONCE => fields.nonce = Some(u32::from_be_bytes(bytes.try_into().ok()?)),
                LIFETIME => fields.lifetime = Some(whole(bytes)?),
                HOP_LIMIT if bytes.len() == 1 => fields.hop_limit = Some(inner.start),
                HOP_LIMIT => return None,
                _ => {}
            }
        }
        Some(fields)
    }
}

/// The header of a link packet with a token, for a network packet of so many bytes: what goes before it.
pub(super) fn header(token: &[u8], packet: usize) -> Vec<u8> {
    let mut fields = Vec::with_capacity(48);
    push(&mut fields, TOKEN, token.len());
    fields.extend_from_slice(token);
    push(&mut fields, FRAGMENT, packet);
    let mut header = Vec::with_capacity(fields.len() + 4);
    push(&mut header, LINK_PACKET, fields.len() + packet);
    header.extend(fields);
    header
}

/// Writes the type and the length of an element. Both fit 16 bits: a frame has no more bytes.
fn push(bytes: &mut Vec<u8>, kind: u64, length: usize) {
    for number in [kind, length as u64] {
        match number {
            // Below 253.
            0..253 => bytes.push(crate::narrow::u8(usize::try_from(number).unwrap_or(0))),
            _ => {
                bytes.push(253);
                bytes.extend(crate::narrow::u16(usize::try_from(number).unwrap_or(0)).to_be_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An element whose type and value are short.
    fn short(kind: u8, value: &[u8]) -> Vec<u8> {
        [&[kind, u8::try_from(value.len()).unwrap()][..], value].concat()
    }

    fn opened(fields: &[Vec<u8>]) -> Result<(Vec<u8>, Option<Vec<u8>>), Reason> {
        let frame = [vec![9; 3], short(0x64, &fields.concat()), vec![0; 4]].concat();
        let link = Link::open(&frame, 3)?;
        Ok((frame[link.packet].to_vec(), link.token.map(|token| frame[token].to_vec())))
    }

    #[test]
    fn packets_are_bare_or_in_link_packets() {
        let data = short(6, &[7, 3, 8, 1, b'a']);
        let bare = [&data[..], &[0, 0]].concat();
        assert_eq!(Link::open(&bare, 0), Ok(Link { packet: 0..data.len(), token: None }));
        let fragment = short(0x50, &data);
        let token = short(0x62, &[1, 2, 3]);
        assert_eq!(opened(std::slice::from_ref(&fragment)), Ok((data.clone(), None)));
        let whole =
            [short(0x51, &[0; 8]), short(0x52, &[0]), short(0x53, &[1]), token.clone(), fragment.clone()];
        assert_eq!(opened(&whole), Ok((data.clone(), Some(vec![1, 2, 3]))));
        // A congestion mark may be passed over.
        let mark = vec![0xfd, 0x03, 0x40, 1, 1];
        assert_eq!(opened(&[mark, fragment]), Ok((data, None)));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let fragment = short(0x50, &short(6, &[7, 0]));
        let token = short(0x62, &[1]);
        let nack = vec![0xfd, 0x03, 0x20, 5, 0xfd, 0x03, 0x21, 1, 50];
        let unknown = vec![0xfd, 0x03, 0x41, 1, 1];
        for (fields, reason) in [
            (vec![nack, fragment.clone()], Reason::Nack),
            (vec![short(0x53, &[2]), fragment.clone()], Reason::Fragment),
            (vec![short(0x53, &[1, 0]), fragment.clone()], Reason::Fragment),
            (vec![short(0x52, &[1]), fragment.clone()], Reason::Fragment),
            (vec![], Reason::Idle),
            (vec![vec![0xfd, 0x03, 0x44, 1, 1]], Reason::Idle),
            (vec![short(0x50, &[])], Reason::Idle),
            (vec![unknown, fragment.clone()], Reason::LinkField),
            (vec![short(0x54, &[1]), fragment.clone()], Reason::LinkField),
            (vec![short(0x51, &[1]), fragment.clone()], Reason::LinkField),
            (vec![short(0x53, &[1, 1, 1]), fragment.clone()], Reason::LinkField),
            (vec![token.clone(), token.clone(), fragment.clone()], Reason::LinkField),
            (vec![short(0x62, &[]), fragment.clone()], Reason::LinkField),
            (vec![short(0x62, &[7; 33]), fragment.clone()], Reason::LinkField),
            (vec![fragment.clone(), token], Reason::LinkField),
            (vec![fragment.clone(), fragment], Reason::LinkField),
            (vec![vec![0x50, 9, 1]], Reason::Cut),
        ] {
            assert_eq!(opened(&fields), Err(reason), "{fields:02x?}");
        }
        for frame in
            [&[][..], &[0x64], &[0x64, 9, 1], &[253, 1], &[5, 255, 255, 255, 255, 255, 255, 255, 255, 255]]
        {
            assert_eq!(Link::open(frame, 0), Err(Reason::Cut), "{frame:02x?}");
        }
    }

    #[test]
    fn fields_of_interests_are_read() {
        let name = short(7, &short(8, b"a"));
        let interest = |fields: &[u8]| short(5, &[&name[..], fields].concat());
        let plain = interest(&[]);
        assert_eq!(Fields::of(&plain), Some(Fields::default()));
        let all = interest(&[0x21, 0, 0x12, 0, 10, 4, 1, 2, 3, 4, 12, 2, 1, 0, 0x22, 1, 9]);
        let expected = Fields {
            can_be_prefix: true,
            must_be_fresh: true,
            nonce: Some(0x0102_0304),
            lifetime: Some(256),
            hop_limit: Some(all.len() - 1),
        };
        assert_eq!(Fields::of(&all), Some(expected));
        for wrong in [
            &[10, 3, 1, 2, 3][..],
            &[10, 5, 1, 2, 3, 4, 5],
            &[12, 3, 0, 0, 1],
            &[12, 0],
            &[0x22, 2, 1, 1],
            &[10, 9, 1],
        ] {
            assert_eq!(Fields::of(&interest(wrong)), None, "{wrong:02x?}");
        }
    }

    #[test]
    fn headers_are_read_back() {
        for length in [0, 3, 200, 252, 253, 1400] {
            // An element of this length whose type is that of Data.
            let mut body = Vec::new();
            push(&mut body, 6, length);
            body.extend(vec![7; length]);
            for token in [&[1][..], &[9; 32]] {
                let frame = [header(token, body.len()), body.clone()].concat();
                let link = Link::open(&frame, 0).unwrap();
                assert_eq!((&frame[link.packet.clone()], link.packet.end), (&body[..], frame.len()));
                assert_eq!(&frame[link.token.unwrap()], token);
            }
        }
    }
}
