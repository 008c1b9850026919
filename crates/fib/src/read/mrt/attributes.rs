//! BGP path attributes. Only those with next hops and paths are read.
//!
//! ```text
//! | flags 1 | code 1 | n 1, or 2 where flags & 0x10 | value n |      3 NEXT_HOP, 14 MP_REACH_NLRI, 15 MP_UNREACH_NLRI
//! ```

use std::net::{IpAddr, Ipv6Addr};

use super::octets::Octets;
use crate::address::Family;
use crate::read::error::SkipReason;

const LONG: u8 = 0x10;

/// The attributes that change routes. For other attributes only the length is checked.
#[derive(Default)]
pub(super) struct Attributes<'b> {
    pub(super) next_hop: Option<IpAddr>,
    pub(super) reach: Option<Octets<'b>>,
    pub(super) unreach: Option<Octets<'b>>,
    path: Option<Octets<'b>>,
    /// The path with AS numbers of 4 octets, where the other one has 2.
    path_4: Option<Octets<'b>>,
}

impl<'b> Attributes<'b> {
    pub(super) fn split(attributes: &'b [u8]) -> Result<Self, SkipReason> {
        let mut attributes = Octets(attributes);
        let mut found = Self::default();
        while !attributes.is_empty() {
            let (flags, code) = (attributes.u8()?, attributes.u8()?);
            let len = if flags & LONG != 0 { attributes.u16()? } else { u16::from(attributes.u8()?) };
            let value = attributes.take(usize::from(len))?;
            match code {
                2 => found.path = Some(Octets(value)),
                17 => found.path_4 = Some(Octets(value)),
                3 => found.next_hop = next_hop(value)?,
                14 => found.reach = Some(Octets(value)),
                15 => found.unreach = Some(Octets(value)),
                _ => {}
            }
        }
        Ok(found)
    }

    /// The origin of the routes as text: the last AS of their path, or the set that the path ends in. The
    /// peer's AS if the path is empty.
    pub(super) fn origin(&self, width: AsWidth, peer: u32) -> Result<String, SkipReason> {
        /// The AS that stands for all that 2 octets don't hold (RFC 6793).
        const AS_TRANS: &str = "23456";
        let of = |path: Option<Octets<'_>>, width| path.map_or(Ok(None), |path| origin_of_path(path, width));
        let mut origin = of(self.path, width)?;
        if width == AsWidth::Two && origin.as_deref() == Some(AS_TRANS) {
            origin = of(self.path_4, AsWidth::Four)?.or(origin);
        }
        Ok(origin.unwrap_or_else(|| peer.to_string()))
    }
}

/// The next hop of a table's entry, if its attributes have one: NEXT_HOP for IPv4, MP_REACH_NLRI for IPv6.
pub(super) fn of_entry(attributes: &[u8], family: Family) -> Result<Option<IpAddr>, SkipReason> {
    let attributes = Attributes::split(attributes)?;
    let multi = attributes.reach.map_or(Ok(None), of_reach)?;
    Ok(match family {
        Family::V4 => attributes.next_hop.or(multi),
        Family::V6 => multi.or(attributes.next_hop),
    })
}

/// The octets of an AS number in AS_PATH.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AsWidth {
    Two,
    Four,
}

/// The origin of a path. `None` if it has no AS beside those of confederations.
fn origin_of_path(mut path: Octets<'_>, width: AsWidth) -> Result<Option<String>, SkipReason> {
    const SET: u8 = 1;
    const SEQUENCE: u8 = 2;
    /// A sequence and a set of ASes of a confederation (RFC 5065), which come before all others.
    const CONFEDERATION: std::ops::RangeInclusive<u8> = 3..=4;
    let mut origin = None;
    while !path.is_empty() {
        let (kind, count) = (path.u8()?, path.u8()?);
        let mut ases = Vec::new();
        for _ in 0..count {
            ases.push(match width {
                AsWidth::Two => u32::from(path.u16()?),
                AsWidth::Four => path.u32()?,
            });
        }
        match (kind, &ases[..]) {
            (SEQUENCE, [.., last]) => origin = Some(last.to_string()),
            (SET, [_, ..]) => {
                let set: Vec<_> = ases.iter().map(u32::to_string).collect();
                origin = Some(format!("{{{}}}", set.join(",")));
            }
            (SEQUENCE | SET, []) => {}
            (kind, _) if CONFEDERATION.contains(&kind) => {}
            _ => return Err(SkipReason::Record),
        }
    }
    Ok(origin)
}

/// The next hop of MP_REACH_NLRI in a table. It should start with the length of the next hop (RFC 6396,
/// 4.3.4), but often it has the form of a message: then a family comes first, whose first octet is 0.
fn of_reach(mut value: Octets<'_>) -> Result<Option<IpAddr>, SkipReason> {
    if value.0.first() == Some(&0) {
        let _family = value.take(3)?;
    }
    let len = value.u8()?;
    next_hop(value.take(usize::from(len))?)
}

/// An address of either family, or a global and a link-local address, of which the global one is taken.
pub(super) fn next_hop(value: &[u8]) -> Result<Option<IpAddr>, SkipReason> {
    Ok(match value.len() {
        0 => None,
        4 => Some(Octets(value).address(Family::V4)?),
        16 => Some(Octets(value).address(Family::V6)?),
        32 => {
            let (pair, _) = value.as_chunks::<16>();
            let mut pair = pair.iter().map(|octets| Ipv6Addr::from(*octets));
            let first = pair.next().ok_or(SkipReason::Record)?;
            let global =
                pair.find(|address| first.is_unicast_link_local() && !address.is_unicast_link_local());
            Some(global.unwrap_or(first).into())
        }
        _ => return Err(SkipReason::Record),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLOBAL: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

    #[test]
    fn of_two_next_hops_the_global_one_is_taken() {
        let mut local = GLOBAL;
        local[..4].copy_from_slice(&[0xfe, 0x80, 0, 0]);
        let expected = Some("2001:db8::1".parse().unwrap());
        assert_eq!(next_hop(&[GLOBAL, local].concat()), Ok(expected));
        assert_eq!(next_hop(&[local, GLOBAL].concat()), Ok(expected));
        assert_eq!(next_hop(&[]), Ok(None));
        assert_eq!(next_hop(&[1, 2, 3]), Err(SkipReason::Record));
    }

    #[test]
    fn both_forms_of_a_tables_mp_reach_are_read() {
        let expected = Some("2001:db8::1".parse().unwrap());
        let short = [&[0x80, 14, 17, 16][..], &GLOBAL].concat();
        let long = [&[0x90, 14, 0, 26, 0, 2, 1, 16][..], &GLOBAL, &[0, 32, 0x20, 1, 0xd, 0xb8]].concat();
        assert_eq!(of_entry(&short, Family::V6), Ok(expected));
        assert_eq!(of_entry(&long, Family::V6), Ok(expected));
        assert_eq!(of_entry(&long[..long.len() - 1], Family::V6), Err(SkipReason::Record));
    }

    #[test]
    fn origins_of_paths_of_both_widths() {
        let origin = |path: &[u8], width| Attributes::split(path).and_then(|path| path.origin(width, 9));
        let sequence = [0x40, 2, 10, 2, 2, 0, 0, 0, 1, 0, 1, 0, 0];
        assert_eq!(origin(&sequence, AsWidth::Four).unwrap(), "65536");
        let set = [0x40, 2, 12, 2, 1, 0, 7, 1, 2, 0, 1, 0, 2, 3, 0];
        assert_eq!(origin(&set, AsWidth::Two).unwrap(), "{1,2}");
        assert_eq!(origin(&[0x40, 2, 0], AsWidth::Four).unwrap(), "9");
        let trans = [0x40, 2, 4, 2, 1, 0x5b, 0xa0, 0xc0, 17, 6, 2, 1, 0, 1, 0, 0];
        assert_eq!(origin(&trans, AsWidth::Two).unwrap(), "65536");
        assert_eq!(origin(&[0x40, 2, 2, 9, 0], AsWidth::Two), Err(SkipReason::Record));
        assert_eq!(origin(&[0x40, 2, 3, 2, 2, 0], AsWidth::Two), Err(SkipReason::Record));
    }
}
