//! [`AnyPrefix`]: a prefix of either family.

use std::fmt;
use std::net::IpAddr;

use crate::address::{Address, Family, V4, V6};
use crate::fib::AnyUpdate;
use crate::next_hop::NextHop;
use crate::prefix::{Prefix, PrefixError};
use crate::update::Update;

/// A prefix of either family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AnyPrefix {
    V4(Prefix<V4>),
    V6(Prefix<V6>),
}

impl AnyPrefix {
    /// The prefix of length 0 of a family.
    pub(crate) fn default_of(family: Family) -> Self {
        match family {
            Family::V4 => Self::V4(Prefix::DEFAULT),
            Family::V6 => Self::V6(Prefix::DEFAULT),
        }
    }

    /// Whether it covers another.
    pub(crate) fn covers(self, other: Self) -> bool {
        match (self, other) {
            (Self::V4(one), Self::V4(other)) => one.covers(other),
            (Self::V6(one), Self::V6(other)) => one.covers(other),
            _ => false,
        }
    }

    pub(super) fn family(self) -> Family {
        match self {
            Self::V4(_) => Family::V4,
            Self::V6(_) => Family::V6,
        }
    }

    pub(super) fn announce(self, next_hop: Option<NextHop>) -> AnyUpdate {
        match self {
            Self::V4(prefix) => AnyUpdate::V4(Update::Announce { prefix, next_hop }),
            Self::V6(prefix) => AnyUpdate::V6(Update::Announce { prefix, next_hop }),
        }
    }

    pub(super) fn withdraw(self) -> AnyUpdate {
        match self {
            Self::V4(prefix) => AnyUpdate::V4(Update::Withdraw { prefix }),
            Self::V6(prefix) => AnyUpdate::V6(Update::Withdraw { prefix }),
        }
    }
}

impl fmt::Display for AnyPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(prefix) => prefix.fmt(f),
            Self::V6(prefix) => prefix.fmt(f),
        }
    }
}

impl AnyPrefix {
    /// Makes a prefix of an address and a length, both checked.
    pub(super) fn from_ip(address: IpAddr, len: u32) -> Result<Self, PrefixError> {
        fn new<A: Address>(address: A, len: u32) -> Result<Prefix<A>, PrefixError> {
            Prefix::new(address, checked_len::<A>(len)?)
        }
        match address {
            IpAddr::V4(address) => new(address.into(), len).map(Self::V4),
            IpAddr::V6(address) => new(address.into(), len).map(Self::V6),
        }
    }

    /// The prefix of this length that contains an address.
    pub(super) fn around(address: IpAddr, len: u32) -> Result<Self, PrefixError> {
        fn around<A: Address>(address: A, len: u32) -> Result<Prefix<A>, PrefixError> {
            Ok(Prefix::around(address, checked_len::<A>(len)?))
        }
        match address {
            IpAddr::V4(address) => around(address.into(), len).map(Self::V4),
            IpAddr::V6(address) => around(address.into(), len).map(Self::V6),
        }
    }
}

fn checked_len<A: Address>(len: u32) -> Result<u8, PrefixError> {
    let fitting = u8::try_from(len).ok().filter(|&len| len <= A::BITS);
    fitting.ok_or(PrefixError::TooLong { len, family: A::FAMILY })
}
