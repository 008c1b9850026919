//! [`Fib`]: the routes of a source, of both families, and their next hops.

use ipnet::IpNet;

use crate::address::{Address, Family, V4, V6};
use crate::next_hop::{NextHop, NextHops};
use crate::prefix::HostBits;
use crate::rib::Rib;
use crate::update::Update;

/// Routes of both families with one table of next hops.
#[derive(Clone, Debug, Default)]
pub struct Fib {
    /// IPv4 routes.
    pub v4: Rib<V4>,
    /// IPv6 routes.
    pub v6: Rib<V6>,
    /// The texts of the next-hop indexes of both families.
    pub next_hops: NextHops,
}

impl Fib {
    /// Number of prefixes of a family.
    pub fn len(&self, family: Family) -> usize {
        match family {
            Family::V4 => self.v4.len(),
            Family::V6 => self.v6.len(),
        }
    }

    /// Whether there is no route of either family.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// Applies an update of either family. Returns whether the table changed.
    pub fn apply(&mut self, update: &AnyUpdate) -> bool {
        match update {
            AnyUpdate::V4(update) => self.v4.apply(update),
            AnyUpdate::V6(update) => self.v6.apply(update),
        }
    }
}

/// An update of either family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnyUpdate {
    /// An update of an IPv4 prefix.
    V4(Update<V4>),
    /// An update of an IPv6 prefix.
    V6(Update<V6>),
}

impl AnyUpdate {
    /// Makes an announcement of a prefix with a next hop. Fails if the prefix has host bits.
    pub fn announce(prefix: impl Into<IpNet>, next_hop: NextHop) -> Result<Self, HostBits> {
        Ok(match prefix.into() {
            IpNet::V4(prefix) => Self::V4(Update::announce(prefix.try_into()?, next_hop)),
            IpNet::V6(prefix) => Self::V6(Update::announce(prefix.try_into()?, next_hop)),
        })
    }

    /// Makes a withdrawal of a prefix. Fails if the prefix has host bits.
    pub fn withdraw(prefix: impl Into<IpNet>) -> Result<Self, HostBits> {
        Ok(match prefix.into() {
            IpNet::V4(prefix) => Self::V4(Update::withdraw(prefix.try_into()?)),
            IpNet::V6(prefix) => Self::V6(Update::withdraw(prefix.try_into()?)),
        })
    }

    /// The family of its prefix.
    pub fn family(&self) -> Family {
        match self {
            Self::V4(_) => Family::V4,
            Self::V6(_) => Family::V6,
        }
    }
}

/// An address type with its part of a [`Fib`], for code that works for both families.
pub trait InFib: Address {
    /// The routes of this family.
    fn rib(fib: &Fib) -> &Rib<Self>;

    /// Takes the routes of this family, and the next hops.
    fn into_rib(fib: Fib) -> (Rib<Self>, NextHops);

    /// The update, if it has this family.
    fn update(update: &AnyUpdate) -> Option<Update<Self>>;

    /// Converts an update of this family.
    fn any(update: Update<Self>) -> AnyUpdate;
}

macro_rules! in_fib {
    ($address:ident, $field:ident) => {
        impl InFib for $address {
            fn rib(fib: &Fib) -> &Rib<Self> {
                &fib.$field
            }

            fn into_rib(fib: Fib) -> (Rib<Self>, NextHops) {
                (fib.$field, fib.next_hops)
            }

            fn update(update: &AnyUpdate) -> Option<Update<Self>> {
                match update {
                    AnyUpdate::$address(update) => Some(*update),
                    _ => None,
                }
            }

            fn any(update: Update<Self>) -> AnyUpdate {
                AnyUpdate::$address(update)
            }
        }
    };
}

in_fib!(V4, v4);
in_fib!(V6, v6);
