//! Prefixes: an address with zero host bits, and a length. `ipnet` types convert to and from them, if they
//! have no host bits.

use std::fmt::{self, Debug, Display};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::address::{Address, Family, V4, V6};
use crate::next_hop::NextHop;

/// A prefix of family `A`. Prefixes are ordered by address, then by length, so that a prefix comes right
/// before all prefixes that it covers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix<A> {
    address: A,
    len: u8,
}

impl<A: Address> Prefix<A> {
    /// The prefix of length 0, which covers the whole address space.
    pub const DEFAULT: Self = Self { address: A::MIN, len: 0 };

    /// Makes a prefix. Fails if the length is over the family's or a host bit is set.
    pub fn new(address: A, len: u8) -> Result<Self, PrefixError> {
        if len > A::BITS {
            return Err(PrefixError::TooLong { len: u32::from(len), family: A::FAMILY });
        }
        if address.keep(len) != address {
            return Err(PrefixError::HostBits);
        }
        Ok(Self { address, len })
    }

    /// The prefix of length `len` that contains an address. Panics if `len` is over the family's.
    #[inline]
    pub fn around(address: A, len: u8) -> Self {
        assert!(len <= A::BITS, "a prefix length of {len} is over {}", A::BITS);
        Self { address: address.keep(len), len }
    }

    /// The single address as a prefix of full length.
    pub fn host(address: A) -> Self {
        Self { address, len: A::BITS }
    }

    /// The network address, which is also the first address covered.
    #[inline]
    pub fn address(self) -> A {
        self.address
    }

    /// The last address covered.
    #[inline]
    pub fn last(self) -> A {
        self.address.fill(self.len)
    }

    /// The values of octet `index` in the addresses that the prefix covers. Panics like [`Address::octet`].
    #[inline]
    pub fn octets(self, index: usize) -> std::ops::RangeInclusive<u8> {
        self.address.octet(index)..=self.last().octet(index)
    }

    /// Whether a longer route hides this prefix, so that its own route does not matter. `best` is the length
    /// and next hop of the longest route found.
    #[inline]
    pub fn is_hidden_by(self, best: Option<(u8, NextHop)>) -> bool {
        best.is_some_and(|(len, _)| len > self.len)
    }

    /// The length in bits.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // a length in bits, not a number of elements
    pub fn len(self) -> u8 {
        self.len
    }

    /// Whether the address lies inside.
    #[inline]
    pub fn contains(self, address: A) -> bool {
        address.keep(self.len) == self.address
    }

    /// Whether every address of `other` lies inside; a prefix covers itself.
    #[inline]
    pub fn covers(self, other: Self) -> bool {
        self.len <= other.len && self.contains(other.address)
    }

    /// The prefix one bit shorter, or `None` at length 0.
    pub fn parent(self) -> Option<Self> {
        self.len.checked_sub(1).map(|len| Self::around(self.address, len))
    }

    /// The prefix of the same length that differs in the last bit, or `None` at length 0.
    pub fn sibling(self) -> Option<Self> {
        let parent = self.parent()?;
        let upper = A::from_u128_low(parent.address.to_u128() | 1 << (A::BITS - self.len));
        let address = if upper == self.address { parent.address } else { upper };
        Some(Self { address, len: self.len })
    }
}

impl<A: Address> Display for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

impl<A: Address> Debug for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl<A: Address> FromStr for Prefix<A> {
    type Err = PrefixError;

    /// Parses `address/length`. A bare address is a prefix of full length.
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len)),
            None => (text, None),
        };
        let parsed = address.parse::<A>().map_err(|_| match address.parse::<std::net::IpAddr>() {
            Ok(ip) => PrefixError::WrongFamily { found: Family::of(ip), wanted: A::FAMILY },
            Err(_) => PrefixError::Address,
        })?;
        let len = match len {
            None => u32::from(A::BITS),
            Some(len) if !len.is_empty() && len.bytes().all(|b| b.is_ascii_digit()) => {
                len.parse::<u32>().unwrap_or(u32::MAX)
            }
            Some(_) => return Err(PrefixError::Length),
        };
        match u8::try_from(len) {
            Ok(len) => Self::new(parsed, len),
            Err(_) => Err(PrefixError::TooLong { len, family: A::FAMILY }),
        }
    }
}

/// The reason why a text is not a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum PrefixError {
    /// The part before the slash is not an address.
    #[error("not an address")]
    Address,
    /// The address is of the other family.
    #[error("an {found} address where {wanted} is wanted")]
    WrongFamily {
        /// The family of the address.
        found: Family,
        /// The wanted family.
        wanted: Family,
    },
    /// The part after the slash is not a number.
    #[error("the prefix length is not a number")]
    Length,
    /// The length is over the family's.
    #[error("a prefix length of {len} is over {}, the longest for {family}", family.bits())]
    TooLong {
        /// The length in the text.
        len: u32,
        /// The family of the address.
        family: Family,
    },
    /// A bit past the length is set.
    #[error("host bits are set")]
    HostBits,
}

/// A prefix of `ipnet` that has host bits: `10.1.2.3/8`. [`IpNet::trunc`] clears them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("host bits are set in {}: without them it is {}", .0, .0.trunc())]
pub struct HostBits(pub IpNet);

macro_rules! ipnet {
    ($address:ty, $net:ty) => {
        impl TryFrom<$net> for Prefix<$address> {
            type Error = HostBits;

            /// Fails if a host bit is set, which `ipnet` allows.
            fn try_from(net: $net) -> Result<Self, HostBits> {
                Self::new(net.addr().into(), net.prefix_len()).map_err(|_| HostBits(net.into()))
            }
        }

        impl From<Prefix<$address>> for $net {
            fn from(prefix: Prefix<$address>) -> Self {
                <$net>::new_assert(prefix.address.into(), prefix.len)
            }
        }

        impl From<Prefix<$address>> for IpNet {
            fn from(prefix: Prefix<$address>) -> Self {
                <$net>::from(prefix).into()
            }
        }
    };
}

ipnet!(V4, Ipv4Net);
ipnet!(V6, Ipv6Net);

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(text: &str) -> Result<Prefix<V4>, PrefixError> {
        text.parse()
    }

    #[test]
    fn reads_and_writes() {
        assert_eq!(v4("10.0.0.0/8").unwrap().to_string(), "10.0.0.0/8");
        assert_eq!(v4("10.1.2.3").unwrap().to_string(), "10.1.2.3/32");
        assert_eq!("::/0".parse::<Prefix<V6>>().unwrap(), Prefix::DEFAULT);
    }

    #[test]
    fn refuses_with_the_reason() {
        assert_eq!(v4("10.0.0.0/33"), Err(PrefixError::TooLong { len: 33, family: Family::V4 }));
        assert_eq!(
            v4("10.0.0.0/99999999999"),
            Err(PrefixError::TooLong { len: u32::MAX, family: Family::V4 })
        );
        assert_eq!(v4("10.0.0.1/8"), Err(PrefixError::HostBits));
        assert_eq!(v4("10.0.0/8"), Err(PrefixError::Address));
        assert_eq!(v4("10.0.0.0/"), Err(PrefixError::Length));
        assert_eq!(v4("10.0.0.0/+8"), Err(PrefixError::Length));
        assert_eq!(v4("::/0"), Err(PrefixError::WrongFamily { found: Family::V6, wanted: Family::V4 }));
    }

    #[test]
    fn family_tree() {
        let p = v4("10.128.0.0/9").unwrap();
        assert_eq!(p.parent(), v4("10.0.0.0/8").ok());
        assert_eq!(p.sibling(), v4("10.0.0.0/9").ok());
        assert_eq!(p.sibling().unwrap().sibling(), Some(p));
        assert_eq!(Prefix::<V4>::DEFAULT.sibling(), None);
        assert!(p.parent().unwrap().covers(p) && !p.covers(p.parent().unwrap()) && p.covers(p));
        assert_eq!(p.last().to_string(), "10.255.255.255");
    }

    #[test]
    fn ipnet_there_and_back() {
        let net: Ipv4Net = "10.1.2.3/8".parse().unwrap();
        let error = Prefix::try_from(net).unwrap_err();
        assert_eq!(error.to_string(), "host bits are set in 10.1.2.3/8: without them it is 10.0.0.0/8");
        let prefix = Prefix::try_from(net.trunc()).unwrap();
        assert_eq!((prefix.to_string().as_str(), Ipv4Net::from(prefix)), ("10.0.0.0/8", net.trunc()));
        let net: Ipv6Net = "2001:db8::1/64".parse().unwrap();
        assert_eq!(Prefix::try_from(net), Err(HostBits(net.into())));
        assert_eq!(Prefix::try_from(net.trunc()).unwrap().to_string(), "2001:db8::/64");
    }
}
