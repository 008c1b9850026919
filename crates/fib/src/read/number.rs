//! Addresses that are decimal numbers, as `ip_from` and `ip_to` of IP2Location have them.
//!
//! ```text
//! 16777216 ─► 1.0.0.0        42540766411282592856903984951653826560 ─► 2001:db8::
//! ```
//!
//! A number up to 4,294,967,295 may be of either family, so the caller has to know it. Digits after a leading
//! zero may be octal, and no other form than digits is taken.

use std::net::IpAddr;

use crate::address::Family;

/// Parses the number of an address of a family, in decimal. `None` for a number that the family does not
/// have, for a leading zero, a sign, and any other text.
///
/// ```
/// use wirespeed_fib::{Family, read::address_of_number};
///
/// assert_eq!(address_of_number(b"16777216", Family::V4), "1.0.0.0".parse().ok());
/// assert_eq!(address_of_number(b"16777216", Family::V6), "::100:0".parse().ok());
/// assert_eq!(address_of_number(b"016777216", Family::V4), None);
/// assert_eq!(address_of_number(b"4294967296", Family::V4), None);
/// ```
#[must_use]
pub fn address_of_number(text: &[u8], family: Family) -> Option<IpAddr> {
    match family {
        Family::V4 => {
            number(text).and_then(|number| u32::try_from(number).ok()).map(|bits| IpAddr::V4(bits.into()))
        }
        Family::V6 => number(text).map(|bits| IpAddr::V6(bits.into())),
    }
}

/// Whether a text is a number, as an address of either family or with a flaw.
pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses a number without a leading zero.
pub(super) fn number(text: &[u8]) -> Option<u128> {
    let mut number: u128 = 0;
    for byte in text {
        let digit = Some(byte.wrapping_sub(b'0')).filter(|digit| *digit < 10)?;
        number = number.checked_mul(10)?.checked_add(digit.into())?;
    }
    (text == b"0" || text.first().is_some_and(|first| *first != b'0')).then_some(number)
}
