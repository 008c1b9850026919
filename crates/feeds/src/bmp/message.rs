//! [`Messages`]: the messages of BMP (RFC 7854, section 4; RFC 8671; RFC 9069).

use std::fmt;
use std::net::IpAddr;

use super::fault::{Bytes, Fault};
use super::open::{AddPath, add_path};

const VERSION: u8 = 3;
/// The length of the common header: version, length, type.
const HEADER: usize = 6;
/// The longest message: a route mirroring of BGP messages of 64 KiB.
const LONGEST: u32 = 1 << 20;

/// A BMP message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    /// The router tells its name.
    Initiation {
        name: Option<&'a [u8]>,
    },
    PeerUp(Peer, AddPath),
    PeerDown(Peer),
    /// A BGP message of a peer, with its header.
    Routes(Peer, &'a [u8]),
    /// The router ends the connection.
    Termination,
    /// Statistics, mirrored messages, and kinds that are not known.
    Other,
}

/// The peer that a message is about, and the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) view: Option<View>,
    /// Which VRF of the router the peer belongs to; 0 for none.
    pub(crate) distinguisher: u64,
    pub(crate) address: IpAddr,
    pub(crate) asn: u32,
    /// Whether AS paths have numbers of two bytes.
    pub(crate) two_byte_as: bool,
}

/// A table of a router that BMP shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum View {
    /// The routes that the router chose (RFC 9069).
    LocRib,
    /// The routes of a peer after the router's import policy.
    PostPolicy,
    /// The routes of a peer as they came.
    PrePolicy,
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LocRib => "loc-rib",
            Self::PostPolicy => "post-policy",
            Self::PrePolicy => "pre-policy",
        })
    }
}

/// The messages of a connection, as long as whole ones are there. Ends after a violation.
#[derive(Debug)]
pub(crate) struct Messages<'a> {
    rest: &'a [u8],
    consumed: usize,
}

impl<'a> Messages<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, consumed: 0 }
    }

    /// The bytes of the messages so far.
    pub(crate) const fn consumed(&self) -> usize {
        self.consumed
    }
}

/// A message's type and content.
pub(crate) type Raw<'a> = (u8, &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Raw<'a>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let &[version, ..] = self.rest else { return None };
        let mut violation = (version != VERSION).then_some(Fault("a version other than 3"));
        let header = self.rest.first_chunk::<HEADER>().copied();
        if let Some([_, length @ .., _]) = header {
            let length = u32::from_be_bytes(length);
            if length > LONGEST {
                violation = violation.or(Some(Fault("a message of more than a mebibyte")));
            } else if usize::try_from(length).is_ok_and(|length| length < HEADER) {
                violation = violation.or(Some(Fault("a message that is shorter than its header")));
            }
        }
        if let Some(violation) = violation {
            self.rest = &[];
            return Some(Err(violation));
        }
        let [_, length @ .., kind] = header?;
        let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
        let (message, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        self.consumed += length;
        Some(Ok((kind, &message[HEADER..])))
    }
}

/// Reads a message.
pub(crate) fn read((kind, body): Raw<'_>) -> Result<Message<'_>, Fault> {
    let mut bytes = Bytes::new(body, "a message that ends too early");
    Ok(match kind {
        0 => Message::Routes(peer(&mut bytes)?, bytes.rest()),
        2 => Message::PeerDown(peer(&mut bytes)?),
        3 => {
            let peer = peer(&mut bytes)?;
            // The local address and both ports.
            bytes.take(20)?;
            let (sent, received) = (bgp_message(&mut bytes)?, bgp_message(&mut bytes)?);
            Message::PeerUp(peer, add_path(sent, received)?)
        }
        4 => Message::Initiation { name: name(bytes)? },
        5 => Message::Termination,
        _ => Message::Other,
    })
}

/// Reads the header of a message about a peer.
fn peer(bytes: &mut Bytes<'_>) -> Result<Peer, Fault> {
    const IPV6: u8 = 0x80;
    const POST_POLICY: u8 = 0x40;
    const TWO_BYTE_AS: u8 = 0x20;
    const OUT: u8 = 0x10;
    let [kind, flags] = bytes.array()?;
    let distinguisher = u64::from_be_bytes(bytes.array()?);
    let is_loc_rib = kind == 3;
    let address = if flags & IPV6 != 0 && !is_loc_rib {
        bytes.ipv6()?
    } else {
        bytes.take(12)?;
        bytes.ipv4()?
    };
    let asn = bytes.u32()?;
    // The BGP identifier and the time.
    bytes.take(12)?;
    let view = match kind {
        3 => Some(View::LocRib),
        0..=2 if flags & OUT != 0 => None,
        0..=2 if flags & POST_POLICY != 0 => Some(View::PostPolicy),
        0..=2 => Some(View::PrePolicy),
        _ => None,
    };
    let two_byte_as = !is_loc_rib && flags & TWO_BYTE_AS != 0;
    Ok(Peer { view, distinguisher, address, asn, two_byte_as })
}

/// Takes a BGP message, with its header.
fn bgp_message<'a>(bytes: &mut Bytes<'a>) -> Result<&'a [u8], Fault> {
    let length = bytes.rest().get(16..18).and_then(|length| length.try_into().ok()).map(u16::from_be_bytes);
    bytes.take(usize::from(length.ok_or(Fault("a BGP message that is shorter than its header"))?))
}

/// The router's name.
fn name(mut bytes: Bytes<'_>) -> Result<Option<&[u8]>, Fault> {
    const SYS_NAME: u16 = 2;
    let mut name = None;
    while !bytes.is_empty() {
        let kind = bytes.u16()?;
        let value = bytes.counted()?;
        if kind == SYS_NAME {
            name = Some(value);
        }
    }
    Ok(name)
}
