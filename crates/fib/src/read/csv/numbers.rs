//! Numbers of addresses in a file, all of one family.
//!
//! ```text
//! ip_from,ip_to,country_code          IP2Location's files have no such line: it has to be added
//! 16777216,16777471,US
//! ```
//!
//! IP2Location has IPv4 in a file of its own, and again as IPv4-mapped addresses in that of IPv6. A larger
//! number than 4294967295 is of IPv6 for certain; a smaller one is of either family. So a file that has both
//! is not read until the caller states the family.

use std::net::IpAddr;

use crate::address::Family;
use crate::read::error::{End, Place, ReadError, SkipReason};
use crate::read::number::{address_of_number, number};

/// The families of the numbers so far.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    stated: Option<Family>,
    /// Whether a range may be of numbers without a stated family.
    is_of_addresses: bool,
    /// Whether there was one of IPv4, and of IPv6.
    were: [bool; 2],
}

impl Numbers {
    pub(super) fn new(stated: Option<Family>, is_of_addresses: bool) -> Self {
        Self { stated, is_of_addresses, were: [false; 2] }
    }

    /// The address of a number of the stated family.
    pub(super) fn address(&self, cell: &str) -> Result<IpAddr, SkipReason> {
        let family = self.stated.ok_or(SkipReason::NumberFamily)?;
        let address = address_of_number(cell.as_bytes(), family).ok_or(SkipReason::AddressNumber)?;
        Ok(address.to_canonical())
    }

    /// The ends of a range. IPv4-mapped ones are of IPv4.
    pub(super) fn range(&mut self, first: &str, last: &str) -> Result<(IpAddr, IpAddr), SkipReason> {
        if self.stated.is_none() && !self.is_of_addresses {
            return Err(SkipReason::NumberFamily);
        }
        // The last one is the larger one.
        let largest = number(last.as_bytes()).ok_or(SkipReason::AddressNumber)?;
        let of_size = if largest <= u32::MAX.into() { Family::V4 } else { Family::V6 };
        let family = self.stated.unwrap_or(of_size);
        let end = |cell: &str| address_of_number(cell.as_bytes(), family).ok_or(SkipReason::AddressNumber);
        let ends = (end(first)?, end(last)?);
        if ends.0 > ends.1 {
            return Err(SkipReason::Range);
        }
        self.were[family as usize] = true;
        Ok((ends.0.to_canonical(), ends.1.to_canonical()))
    }

    /// Refuses the file if its numbers are of two families. This ends every reading: those before may be
    /// wrong, too.
    pub(super) fn check(&self, name: &str, place: Place) -> Result<(), End> {
        match self.were {
            [true, true] => Err(ReadError::Columns {
                name: name.to_owned(),
                place,
                what:
                    "numbers up to 4294967295 and larger ones are addresses of one file: state their family"
                        .into(),
            }
            .into()),
            _ => Ok(()),
        }
    }
}
