//! BGP4MP and BGP4MP_ET (RFC 6396, 4.4; RFC 8050): received BGP messages, of which updates are taken.
//!
//! ```text
//! | µs 4 (ET) | peer AS 2/4 | own AS 2/4 | interface 2 | AFI 2 | peer 4/16 | own 4/16 | BGP message |
//! message: | marker 16 | length 2 | type 1 | n 2 | withdrawn n | m 2 | attributes m | announced to the end |
//! ```

use std::net::IpAddr;
use std::time::Duration;

use super::attributes::{AsWidth, Attributes, next_hop};
use super::octets::{Octets, family};
use super::{BGP4MP_ET, Record};
use crate::address::Family;
use crate::read::any_prefix::AnyPrefix;
use crate::read::error::{Fault, SkipReason};
use crate::read::report::Ledger;
use crate::read::updates::Updates;

const UPDATE: u8 = 2;
const UNICAST: u8 = 1;
const MARKER: [u8; 16] = [0xff; 16];

pub(super) fn read(record: &Record<'_>, updates: &mut Updates<'_>, ledger: &mut Ledger) -> Result<(), Fault> {
    let mut body = Octets(record.body);
    let mut time = Duration::from_secs(u64::from(record.time));
    if record.kind == BGP4MP_ET {
        time += Duration::from_micros(u64::from(body.u32()?));
    }
    let (long_as, add_path) = match record.subtype {
        1 => (false, false),
        4 => (true, false),
        8 => (false, true),
        9 => (true, true),
        // These are changes of state, and messages that the collector itself sent.
        _ => return Err(SkipReason::OtherRecord.into()),
    };
    let asn = |body: &mut Octets<'_>| if long_as { body.u32() } else { body.u16().map(u32::from) };
    let (peer_asn, _own_asn) = (asn(&mut body)?, asn(&mut body)?);
    if body.0.starts_with(&MARKER) {
        // Old Zebras omit the rest of the header before an OPEN message.
        return Err(SkipReason::OtherRecord.into());
    }
    let _interface = body.u16()?;
    let address_family = family(body.u16()?).ok_or(SkipReason::Record)?;
    let (peer_address, _own_address) = (body.address(address_family)?, body.address(address_family)?);
    let Some(update) = message(body)? else { return Err(SkipReason::OtherRecord.into()) };
    let peer = (peer_address, peer_asn);
    let width = if long_as { AsWidth::Four } else { AsWidth::Two };
    Changes { record, time, peer, width, add_path, updates, ledger }.take(&Update::split(update)?)
}

/// The body of an UPDATE message. `None` for a message of another type.
fn message(mut body: Octets<'_>) -> Result<Option<Octets<'_>>, SkipReason> {
    const HEADER: usize = 19;
    let _marker = body.take(MARKER.len())?;
    let length = usize::from(body.u16()?).checked_sub(HEADER).ok_or(SkipReason::Record)?;
    let kind = body.u8()?;
    let content = body.take(length)?;
    Ok((kind == UPDATE).then_some(Octets(content)))
}

/// The parts of an UPDATE message.
struct Update<'m> {
    withdrawn: &'m [u8],
    attributes: Attributes<'m>,
    announced: &'m [u8],
}

impl<'m> Update<'m> {
    fn split(mut message: Octets<'m>) -> Result<Self, SkipReason> {
        let len = message.u16()?;
        let withdrawn = message.take(usize::from(len))?;
        let len = message.u16()?;
        let attributes = Attributes::split(message.take(usize::from(len))?)?;
        Ok(Self { withdrawn, attributes, announced: message.0 })
    }
}

/// A message's changes, given to the caller.
struct Changes<'m, 'u> {
    record: &'m Record<'m>,
    time: Duration,
    /// The address and AS of the peer.
    peer: (IpAddr, u32),
    /// The octets of numbers in paths.
    width: AsWidth,
    add_path: bool,
    updates: &'m mut Updates<'u>,
    ledger: &'m mut Ledger,
}

impl Changes<'_, '_> {
    fn take(&mut self, update: &Update<'_>) -> Result<(), Fault> {
        self.withdraw(update.withdrawn, Family::V4)?;
        if let Some(mut value) = update.attributes.unreach
            && let Some(family) = self.unicast(&mut value)?
        {
            self.withdraw(value.0, family)?;
        }
        self.announce(update.announced, Family::V4, update.attributes.next_hop, &update.attributes)?;
        if let Some(mut value) = update.attributes.reach
            && let Some(family) = self.unicast(&mut value)?
        {
            let len = value.u8()?;
            let next_hop = next_hop(value.take(usize::from(len))?)?;
            let _reserved = value.u8()?;
            self.announce(value.0, family, next_hop, &update.attributes)?;
        }
        Ok(())
    }

    /// The family of a multiprotocol attribute, if its routes are taken.
    fn unicast(&mut self, value: &mut Octets<'_>) -> Result<Option<Family>, SkipReason> {
        let (afi, safi) = (value.u16()?, value.u8()?);
        let family = family(afi).filter(|_| safi == UNICAST);
        if family.is_none() {
            self.ledger.pass(SkipReason::OtherFamily, self.record.place);
        }
        Ok(family)
    }

    fn withdraw(&mut self, list: &[u8], family: Family) -> Result<(), Fault> {
        for (prefix, id) in prefixes(list, family, self.add_path)? {
            if self.is_wanted(prefix)? {
                let left = id.and_then(|id| self.updates.paths.withdrawn(self.peer, prefix, id));
                match left {
                    Some(_) => self.updates.announce(Some(self.time), prefix, left, self.ledger)?,
                    None => self.updates.withdraw(Some(self.time), prefix, self.ledger)?,
                }
            }
        }
        Ok(())
    }

    fn announce(
        &mut self,
        list: &[u8],
        family: Family,
        next_hop: Option<IpAddr>,
        attributes: &Attributes<'_>,
    ) -> Result<(), Fault> {
        for (prefix, id) in prefixes(list, family, self.add_path)? {
            let next_hop = next_hop.ok_or(SkipReason::NextHopMissing)?;
            if self.is_wanted(prefix)? {
                let mut next_hop = match self.updates.origins {
                    true => self.updates.hop(attributes.origin(self.width, self.peer.1)?.as_bytes())?,
                    false => self.updates.hop_address(next_hop)?,
                };
                if let Some(id) = id {
                    next_hop = self.updates.paths.announced(self.peer, prefix, id, next_hop);
                }
                self.updates.announce(Some(self.time), prefix, Some(next_hop), self.ledger)?;
            }
        }
        Ok(())
    }

    fn is_wanted(&mut self, prefix: AnyPrefix) -> Result<bool, Fault> {
        let (address, asn) = self.peer;
        let wanted = self.updates.takes(address, asn, prefix.family())?;
        if !wanted {
            self.ledger.pass(SkipReason::OtherPeer, self.record.place);
        }
        Ok(wanted)
    }
}

/// A prefix, and the id of its path where the list has ids.
type Path = (AnyPrefix, Option<u32>);

/// The prefixes of a list.
///
/// Collectors have written lists with path ids (RFC 7911) in records whose subtype does not say so. If a list
/// is not valid without ids, or has several default routes, which no peer sends, it is read with ids if that
/// is valid.
fn prefixes(list: &[u8], family: Family, add_path: bool) -> Result<Vec<Path>, SkipReason> {
    let plain = prefixes_as(list, family, add_path);
    let is_plausible = |prefixes: &Vec<Path>| {
        prefixes.iter().filter(|&&(prefix, _)| prefix == AnyPrefix::default_of(family)).count() < 2
    };
    match plain {
        Ok(prefixes) if add_path || is_plausible(&prefixes) => Ok(prefixes),
        plain if add_path => plain,
        plain => prefixes_as(list, family, true).or(plain),
    }
}

fn prefixes_as(list: &[u8], family: Family, with_ids: bool) -> Result<Vec<Path>, SkipReason> {
    let mut list = Octets(list);
    let mut prefixes = Vec::new();
    while !list.is_empty() {
        let id = if with_ids { Some(list.u32()?) } else { None };
        prefixes.push((list.prefix(family)?, id));
    }
    Ok(prefixes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(list: &[u8], add_path: bool) -> Result<String, SkipReason> {
        let prefixes = prefixes(list, Family::V4, add_path)?;
        Ok(prefixes.iter().map(|(prefix, _)| prefix.to_string()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_default_route_among_others_is_one() {
        let list = [0, 8, 10, 16, 10, 1];
        assert_eq!(text(&list, false).unwrap(), "0.0.0.0/0 10.0.0.0/8 10.1.0.0/16");
        assert_eq!(text(&[8, 10, 0], false).unwrap(), "10.0.0.0/8 0.0.0.0/0");
    }

    #[test]
    fn path_ids_are_found_said_or_not() {
        let list = [0, 0, 0, 1, 24, 10, 1, 2, 0, 0, 0, 2, 8, 10];
        assert_eq!(text(&list, true).unwrap(), "10.1.2.0/24 10.0.0.0/8");
        assert_eq!(text(&list, false).unwrap(), "10.1.2.0/24 10.0.0.0/8");
        assert!(matches!(text(&[40, 10], false), Err(SkipReason::Prefix(_))));
    }
}
