//! [`Trace`]: keys, and counts of the addresses and packets that were passed over.

use std::fmt;

use super::error::TraceError;
use crate::address::{Address, Family};

/// The keys of a trace, with counts of what was passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trace<A> {
    /// The keys, in the order of the source.
    pub keys: Vec<A>,
    /// Addresses of the other family, passed over.
    pub other_family: u64,
    /// Packets without an IP destination, or cut off before it.
    pub not_ip: u64,
    /// The place of an error in the source and the error. Everything before it was read.
    pub damage: Option<String>,
}

impl<A> Default for Trace<A> {
    fn default() -> Self {
        Self { keys: Vec::new(), other_family: 0, not_ip: 0, damage: None }
    }
}

impl<A: Address> fmt::Display for Trace<A> {
    /// Writes a line: the number of keys, and the counts of what was passed over.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} addresses", self.keys.len(), A::FAMILY)?;
        if self.other_family > 0 {
            write!(f, ", {} of the other family skipped", self.other_family)?;
        }
        if self.not_ip > 0 {
            write!(f, ", {} packets that are not IP skipped", self.not_ip)?;
        }
        self.damage.as_ref().map_or(Ok(()), |damage| write!(f, "; {damage}"))
    }
}

impl<A: Address> Trace<A> {
    /// Takes an address, or counts it if it has the other family.
    pub(super) fn take(&mut self, address: std::net::IpAddr) {
        match A::from_ip(address) {
            Some(key) => self.keys.push(key),
            None => self.other_family += 1,
        }
    }

    /// The trace. Fails if it has no key.
    pub(super) fn checked(self, name: &str) -> Result<Self, TraceError> {
        let (name, wanted) = (name.to_owned(), A::FAMILY);
        match self {
            Self { keys, .. } if !keys.is_empty() => Ok(Self { keys, ..self }),
            Self { other_family: 1.., .. } => {
                let found = if wanted == Family::V4 { Family::V6 } else { Family::V4 };
                Err(TraceError::WrongFamily { name, found, wanted })
            }
            Self { damage: Some(why), .. } => Err(TraceError::Empty { name, wanted, why: Some(why) }),
            Self { not_ip: 0, .. } => Err(TraceError::Empty { name, wanted, why: None }),
            Self { not_ip, .. } => {
                let why = Some(format!("none of its {not_ip} packets is IP"));
                Err(TraceError::Empty { name, wanted, why })
            }
        }
    }
}
