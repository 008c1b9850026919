//! IPv4 and IPv6 addresses as plain integers behind one trait.
//!
//! Engines and tables are generic over [`Address`]. [`V4`] and [`V6`] are transparent wrappers of `u32` and
//! `u128` in host order, so that a slice of keys can be cast from integers at no cost, and a shift by the
//! first stride is one instruction. Octets are counted from the most significant, as in writing.

use std::fmt::{self, Debug, Display};
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use bytemuck::{Pod, Zeroable};
use wirespeed_table::{BuildError, Domain};

use crate::next_hop::NextHop;
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::update::Update;

/// The two address families.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// 32-bit addresses.
    V4,
    /// 128-bit addresses.
    V6,
}

impl Family {
    /// The family of a standard-library address.
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// The longest prefix length of the family, in bits.
    pub const fn bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }

    /// The family's name in kernel names: `v4` or `v6`.
    pub const fn short_name(self) -> &'static str {
        match self {
            Self::V4 => "v4",
            Self::V6 => "v6",
        }
    }
}

impl Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// An address of one of the two families: an unsigned integer of [`BITS`](Self::BITS) bits, ordered as
/// written.
pub trait Address:
    Copy
    + Ord
    + Hash
    + Debug
    + Display
    + FromStr<Err = std::net::AddrParseError>
    + Default
    + Pod
    + Send
    + Sync
    + 'static
    + for<'k> Domain<
        Key<'k> = Self,
        Keys<'k> = &'k [Self],
        Found = NextHop,
        Result = NextHop,
        Source = Rib<Self>,
        Model = Rib<Self>,
        Update = Update<Self>,
        Change = Prefix<Self>,
        Error = BuildError,
    >
{
    /// The family.
    const FAMILY: Family;
    /// Width in bits.
    const BITS: u8;
    /// Width in octets.
    const OCTETS: usize;
    /// All bits zero.
    const MIN: Self;
    /// All bits one.
    const MAX: Self;

    /// Octet `index`, 0 the most significant. Panics when `index >= OCTETS`.
    fn octet(self, index: usize) -> u8;

    /// The first two octets as a number: the index into an engine's first level of 16 bits.
    fn first_16(self) -> u16;

    /// The `count` bits from bit `from` on, as a number, for a step of a multi-bit trie. `count` is from 1 to
    /// 32, and all bits lie inside the address.
    fn bits(self, from: u8, count: u8) -> u32;

    /// The address with octet `index` replaced. Panics when `index >= OCTETS`.
    #[must_use]
    fn with_octet(self, index: usize, octet: u8) -> Self;

    /// Keeps the first `len` bits and clears the others. `len` is from 0 to [`BITS`](Self::BITS).
    #[must_use]
    fn keep(self, len: u8) -> Self;

    /// Keeps the first `len` bits and sets the others: the last address of the prefix of that length.
    #[must_use]
    fn fill(self, len: u8) -> Self;

    /// Number of leading bits that two addresses share.
    fn common_bits(self, other: Self) -> u8;

    /// The integer, widened.
    fn to_u128(self) -> u128;

    /// The address whose integer is the low [`BITS`](Self::BITS) bits of `bits`.
    fn from_u128_low(bits: u128) -> Self;

    /// The next address, or `None` after the last.
    fn next(self) -> Option<Self>;

    /// The previous address, or `None` before the first.
    fn previous(self) -> Option<Self>;

    /// The address in the standard library's type.
    fn to_ip(self) -> IpAddr;

    /// Converts a standard-library address. `None` if it has the other family.
    fn from_ip(address: IpAddr) -> Option<Self>;
}

/// An IPv4 address, host order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct V4(pub u32);

/// An IPv6 address, host order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct V6(pub u128);

macro_rules! address {
    ($name:ident, $int:ty, $std:ty, $variant:ident) => {
        #[allow(clippy::cast_possible_truncation)] // meant where bits are taken out; counts of bits fit in u8
        impl Address for $name {
            const FAMILY: Family = Family::$variant;
            const BITS: u8 = <$int>::BITS as u8;
            const OCTETS: usize = size_of::<$int>();
            const MIN: Self = Self(0);
            const MAX: Self = Self(<$int>::MAX);

            #[inline]
            fn octet(self, index: usize) -> u8 {
                // A shift is used because indexing the bytes would go through memory.
                assert!(index < Self::OCTETS);
                (self.0 >> (8 * (Self::OCTETS - 1 - index))) as u8
            }

            #[inline]
            fn first_16(self) -> u16 {
                (self.0 >> (Self::BITS - 16)) as u16
            }

            #[inline]
            fn bits(self, from: u8, count: u8) -> u32 {
                debug_assert!((1..=32).contains(&count) && from + count <= Self::BITS);
                // The left shift drops the bits before `from`.
                ((self.0 << from) >> (Self::BITS - count)) as u32
            }

            #[inline]
            fn with_octet(self, index: usize, octet: u8) -> Self {
                let mut bytes = self.0.to_be_bytes();
                bytes[index] = octet;
                Self(<$int>::from_be_bytes(bytes))
            }

            #[inline]
            fn keep(self, len: u8) -> Self {
                debug_assert!(len <= Self::BITS);
                Self(self.0 & !<$int>::MAX.checked_shr(u32::from(len)).unwrap_or(0))
            }

            #[inline]
            fn fill(self, len: u8) -> Self {
                debug_assert!(len <= Self::BITS);
                Self(self.0 | <$int>::MAX.checked_shr(u32::from(len)).unwrap_or(0))
            }

            #[inline]
            fn common_bits(self, other: Self) -> u8 {
                (self.0 ^ other.0).leading_zeros() as u8
            }

            #[inline]
            fn to_u128(self) -> u128 {
                u128::from(self.0)
            }

            #[inline]
            fn from_u128_low(bits: u128) -> Self {
                Self(bits as $int)
            }

            #[inline]
            fn next(self) -> Option<Self> {
                self.0.checked_add(1).map(Self)
            }

            #[inline]
            fn previous(self) -> Option<Self> {
                self.0.checked_sub(1).map(Self)
            }

            #[inline]
            fn to_ip(self) -> IpAddr {
                IpAddr::$variant(self.into())
            }

            #[inline]
            fn from_ip(address: IpAddr) -> Option<Self> {
                match address {
                    IpAddr::$variant(a) => Some(a.into()),
                    _ => None,
                }
            }
        }

        impl From<$std> for $name {
            #[inline]
            fn from(address: $std) -> Self {
                Self(<$int>::from(address))
            }
        }

        impl From<$int> for $name {
            /// Takes an integer in host order.
            #[inline]
            fn from(address: $int) -> Self {
                Self(address)
            }
        }

        impl From<$name> for $std {
            #[inline]
            fn from(address: $name) -> Self {
                Self::from(address.0)
            }
        }

        impl Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                Display::fmt(&<$std>::from(*self), f)
            }
        }

        impl Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = std::net::AddrParseError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse::<$std>().map(Self::from)
            }
        }
    };
}

address!(V4, u32, Ipv4Addr, V4);
address!(V6, u128, Ipv6Addr, V6);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_and_fill_at_the_ends_of_the_range() {
        assert_eq!(V4::MAX.keep(0), V4::MIN);
        assert_eq!(V4::MAX.keep(32), V4::MAX);
        assert_eq!(V4::MIN.fill(0), V4::MAX);
        assert_eq!(V4::MIN.fill(32), V4::MIN);
        assert_eq!(V6::MAX.keep(0), V6::MIN);
        assert_eq!(V6::MAX.keep(65), V6(!(u128::MAX >> 65)));
        assert_eq!(V6::MIN.fill(128), V6::MIN);
    }

    #[test]
    fn octets_count_from_the_front() {
        let a: V4 = "1.2.3.4".parse().unwrap();
        assert_eq!((0..4).map(|i| a.octet(i)).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(a.with_octet(3, 9).to_string(), "1.2.3.9");
        assert_eq!(a.first_16(), 0x0102);
        let b: V6 = "2001:db8::1".parse().unwrap();
        assert_eq!((b.octet(0), b.octet(1), b.octet(15)), (0x20, 0x01, 1));
        assert_eq!((a.bits(0, 32), a.bits(4, 4), a.bits(31, 1), a.bits(8, 16)), (a.0, 1, 0, 0x0203));
        assert_eq!((b.bits(0, 20), b.bits(16, 32), b.bits(127, 1)), (0x20010, 0x0db8_0000, 1));
        assert_eq!(b.first_16(), 0x2001);
    }

    #[test]
    fn common_bits_of_equal_addresses_is_the_width() {
        assert_eq!(V4(7).common_bits(V4(7)), 32);
        assert_eq!(V6(7).common_bits(V6(7)), 128);
        assert_eq!(V4(0).common_bits(V4(1 << 31)), 0);
    }
}
