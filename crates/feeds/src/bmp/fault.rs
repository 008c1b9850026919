//! [`Fault`]: why a message can't be read. [`Bytes`]: bytes that are taken from the front.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why a message can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault(pub(crate) &'static str);

/// Bytes in network order that are taken from the front.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a> {
    rest: &'a [u8],
    /// What they are, for the fault if they end too early.
    short: Fault,
}

impl<'a> Bytes<'a> {
    pub(super) const fn new(rest: &'a [u8], short: &'static str) -> Self {
        Self { rest, short: Fault(short) }
    }

    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(self.short)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(self.short)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Fault> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn ipv4(&mut self) -> Result<IpAddr, Fault> {
        self.array::<4>().map(|bytes| Ipv4Addr::from(bytes).into())
    }

    pub(super) fn ipv6(&mut self) -> Result<IpAddr, Fault> {
        self.array::<16>().map(|bytes| Ipv6Addr::from(bytes).into())
    }

    /// The bytes that a length of two bytes announces.
    pub(super) fn counted(&mut self) -> Result<&'a [u8], Fault> {
        let count = self.u16()?;
        self.take(usize::from(count))
    }
}
