//! [`Attributes`]: values with a length and a type, one after the other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Fault;

pub(crate) const AF_INET: u8 = 2;
pub(crate) const AF_INET6: u8 = 10;

/// The length of an attribute's header: length, type.
const HEADER: usize = 4;
/// The bits of a type that are its number; the others say that the value has attributes itself, or its byte
/// order.
const NUMBER: u16 = 0x3fff;

/// An attribute's value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attribute<'a> {
    pub(super) number: u16,
    pub(super) value: &'a [u8],
}

/// The attributes of a message, or of another attribute. Ends after the first fault.
#[derive(Clone, Debug)]
pub(super) struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// The attributes after the fixed part of a message.
    pub(super) fn after(fixed: usize, body: &'a [u8]) -> Result<Self, Fault> {
        if body.len() < fixed {
            return Err(Fault::Truncated);
        }
        Ok(Self { rest: body.get(fixed.next_multiple_of(4)..).unwrap_or_default() })
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.rest);
        let (Some(length), Some(number)) = (u16_at(bytes, 0), u16_at(bytes, 2)) else {
            return Some(Err(Fault::Truncated));
        };
        let length = usize::from(length);
        if length < HEADER {
            return Some(Err(Fault::Malformed));
        }
        let Some(value) = bytes.get(HEADER..length) else { return Some(Err(Fault::Truncated)) };
        self.rest = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Ok(Attribute { number: number & NUMBER, value }))
    }
}

impl<'a> Attribute<'a> {
    pub(super) fn u32(&self) -> Result<u32, Fault> {
        u32_at(self.value, 0).ok_or(Fault::Truncated)
    }

    /// The address, whose length says its family.
    pub(super) fn ip(&self) -> Result<IpAddr, Fault> {
        ip(self.value).ok_or(Fault::Malformed)
    }

    /// The attributes that the value consists of.
    pub(super) fn nested(&self) -> Attributes<'a> {
        Attributes { rest: self.value }
    }
}

/// The address, whose length says its family.
pub(super) fn ip(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(bytes).into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).into())
}

/// The number in this host's byte order, as netlink has it.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

/// The number in this host's byte order, as netlink has it.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..)?.first_chunk().copied()?))
}
