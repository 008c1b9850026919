//! [`Octets`]: the body of a record, read from the front. A part that does not fit is [`SkipReason::Record`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::address::{Address, Family, V4, V6};
use crate::prefix::{Prefix, PrefixError};
use crate::read::any_prefix::AnyPrefix;
use crate::read::error::SkipReason;

#[derive(Clone, Copy, Debug)]
pub(super) struct Octets<'b>(pub(super) &'b [u8]);

impl<'b> Octets<'b> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, n: usize) -> Result<&'b [u8], SkipReason> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or(SkipReason::Record)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SkipReason> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(SkipReason::Record)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, SkipReason> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, SkipReason> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, SkipReason> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn address(&mut self, family: Family) -> Result<IpAddr, SkipReason> {
        Ok(match family {
            Family::V4 => Ipv4Addr::from(self.array::<4>()?).into(),
            Family::V6 => Ipv6Addr::from(self.array::<16>()?).into(),
        })
    }

    /// A prefix as in BGP's NLRI: a length in bits and the octets for it. Bits of the last octet after the
    /// length are ignored.
    pub(super) fn prefix(&mut self, family: Family) -> Result<AnyPrefix, SkipReason> {
        let len = self.u8()?;
        if len > family.bits() {
            return Err(PrefixError::TooLong { len: u32::from(len), family }.into());
        }
        let octets = self.take(usize::from(len.div_ceil(8)))?;
        Ok(match family {
            Family::V4 => AnyPrefix::V4(around(octets, len)),
            Family::V6 => AnyPrefix::V6(around(octets, len)),
        })
    }
}

fn around<A: Address>(octets: &[u8], len: u8) -> Prefix<A> {
    let address =
        octets.iter().enumerate().fold(A::MIN, |address, (at, &octet)| address.with_octet(at, octet));
    Prefix::around(address, len)
}

/// Families by their number in BGP.
pub(super) fn family(afi: u16) -> Option<Family> {
    match afi {
        1 => Some(Family::V4),
        2 => Some(Family::V6),
        _ => None,
    }
}

const _: () = assert!(V4::OCTETS == 4 && V6::OCTETS == 16);
