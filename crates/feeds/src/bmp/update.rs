//! [`Update`]: a BGP UPDATE message (RFC 4271, section 4.3; RFC 4760; RFC 6793).

use std::net::IpAddr;

use super::fault::{Bytes, Fault};
use super::nlri::{Identifiers, Nlri, prefixes};

const UPDATE: u8 = 2;

const AS_PATH: u8 = 2;
const NEXT_HOP: u8 = 3;
const MP_REACH: u8 = 14;
const MP_UNREACH: u8 = 15;
const AS4_PATH: u8 = 17;

/// The attribute's length has two bytes.
const EXTENDED: u8 = 0x10;

const AS_SET: u8 = 1;
const AS_SEQUENCE: u8 = 2;

/// An UPDATE message, as far as unicast routes of IPv4 and IPv6 go.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Update {
    pub(crate) withdrawn: Vec<Nlri>,
    pub(crate) announced: Vec<(IpAddr, Vec<Nlri>)>,
    pub(crate) path: AsPath,
    /// Whether it has routes of other families.
    pub(crate) has_others: bool,
}

/// What counts of an AS path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AsPath {
    /// The number of ASes; a set is one.
    pub(crate) length: u16,
    /// The last AS. `None` for an empty path, or if a set of several is last.
    pub(crate) origin: Option<u32>,
}

/// Whether the prefixes of a peer have path identifiers, by family.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByFamily {
    pub(crate) v4: Identifiers,
    pub(crate) v6: Identifiers,
}

impl ByFamily {
    fn of(&mut self, is_v6: bool) -> &mut Identifiers {
        if is_v6 { &mut self.v6 } else { &mut self.v4 }
    }
}

impl Update {
    /// Whether the message says nothing but that a table was told whole (RFC 4724).
    pub(crate) fn is_end_of_rib(&self) -> bool {
        self.withdrawn.is_empty() && self.announced.is_empty() && !self.has_others
    }

    /// Reads a message, with its header. `None` if it is another BGP message.
    pub(crate) fn read(
        message: &[u8],
        two_byte_as: bool,
        identifiers: &mut ByFamily,
    ) -> Result<Option<Self>, Fault> {
        let mut bytes = Bytes::new(message, "an UPDATE that ends too early");
        bytes.take(16)?;
        let length = usize::from(bytes.u16()?);
        if bytes.u8()? != UPDATE {
            return Ok(None);
        }
        if length != message.len() {
            return Err(Fault("an UPDATE whose length is not that of its message"));
        }
        let mut update =
            Self { withdrawn: prefixes(bytes.counted()?, false, identifiers.of(false))?, ..Self::default() };
        let attributes = Bytes::new(bytes.counted()?, "path attributes that end too early");
        let announced = prefixes(bytes.rest(), false, identifiers.of(false))?;
        let next_hop = update.read_attributes(attributes, two_byte_as, identifiers)?;
        if !announced.is_empty() {
            let next_hop = next_hop.ok_or(Fault("routes without a next hop"))?;
            update.announced.push((next_hop, announced));
        }
        Ok(Some(update))
    }

    /// Reads the path attributes. Gives the next hop of the routes that are outside of them.
    fn read_attributes(
        &mut self,
        mut bytes: Bytes<'_>,
        two_byte_as: bool,
        identifiers: &mut ByFamily,
    ) -> Result<Option<IpAddr>, Fault> {
        let (mut next_hop, mut as4_path) = (None, None);
        while !bytes.is_empty() {
            let [flags, kind] = bytes.array()?;
            let value = if flags & EXTENDED != 0 {
                bytes.counted()?
            } else {
                let count = bytes.u8()?;
                bytes.take(usize::from(count))?
            };
            match kind {
                AS_PATH => self.path = as_path(value, two_byte_as)?,
                AS4_PATH => as4_path = Some(as_path(value, false)?),
                NEXT_HOP => next_hop = Some(Bytes::new(value, "a next hop that ends too early").ipv4()?),
                MP_REACH => self.read_reach(value, identifiers)?,
                MP_UNREACH => {
                    let mut bytes = Bytes::new(value, "MP_UNREACH that ends too early");
                    match family(&mut bytes)? {
                        Some(is_v6) => {
                            let withdrawn = prefixes(bytes.rest(), is_v6, identifiers.of(is_v6))?;
                            self.withdrawn.extend(withdrawn);
                        }
                        None => self.has_others = true,
                    }
                }
                _ => {}
            }
        }
        // Routers that know two bytes only leave the long numbers in an attribute of their own.
        if two_byte_as
            && let Some(as4_path) = as4_path
            && as4_path.length <= self.path.length
        {
            self.path.origin = as4_path.origin;
        }
        Ok(next_hop)
    }

    fn read_reach(&mut self, value: &[u8], identifiers: &mut ByFamily) -> Result<(), Fault> {
        let mut bytes = Bytes::new(value, "MP_REACH that ends too early");
        let Some(is_v6) = family(&mut bytes)? else {
            self.has_others = true;
            return Ok(());
        };
        let count = bytes.u8()?;
        let mut addresses = Bytes::new(bytes.take(usize::from(count))?, "a next hop that ends too early");
        let next_hop = match count {
            4 => addresses.ipv4()?,
            16 => addresses.ipv6()?,
            // The second one is link-local, and alone if the first one is not set.
            32 => {
                let (global, local) = (addresses.ipv6()?, addresses.ipv6()?);
                if global.is_unspecified() { local } else { global }
            }
            _ => return Err(Fault("a next hop of a length that no address has")),
        };
        // Reserved.
        bytes.u8()?;
        let announced = prefixes(bytes.rest(), is_v6, identifiers.of(is_v6))?;
        if !announced.is_empty() {
            self.announced.push((next_hop, announced));
        }
        Ok(())
    }
}

/// Whether the unicast routes that follow are of IPv6; `None` for other families.
fn family(bytes: &mut Bytes<'_>) -> Result<Option<bool>, Fault> {
    Ok(match bytes.array()? {
        [0, 1, 1] => Some(false),
        [0, 2, 1] => Some(true),
        _ => None,
    })
}

fn as_path(value: &[u8], two_byte_as: bool) -> Result<AsPath, Fault> {
    let mut bytes = Bytes::new(value, "an AS path that ends too early");
    let mut path = AsPath::default();
    while !bytes.is_empty() {
        let [kind, count] = bytes.array()?;
        let mut last = None;
        for _ in 0..count {
            last = Some(if two_byte_as { u32::from(bytes.u16()?) } else { bytes.u32()? });
        }
        match kind {
            AS_SEQUENCE => {
                path.length = path.length.saturating_add(u16::from(count));
                path.origin = last.or(path.origin);
            }
            AS_SET => {
                path.length = path.length.saturating_add(1);
                path.origin = last.filter(|_| count == 1);
            }
            // ASes of a confederation are one AS to the outside.
            3 | 4 => {}
            _ => return Err(Fault("an AS path with a segment of no known type")),
        }
    }
    Ok(path)
}
