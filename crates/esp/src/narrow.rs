//! Numbers that are known to fit a narrower type, such as lengths of packets: a debug build checks each.

/// The number as a `u16`. The caller knows that it fits.
#[inline]
#[allow(clippy::cast_possible_truncation)] // that is what the caller knows
pub(crate) const fn u16(number: usize) -> u16 {
    debug_assert!(number <= u16::MAX as usize);
    number as u16
}

/// The number as a `u8`. The caller knows that it fits.
#[inline]
#[allow(clippy::cast_possible_truncation)] // that is what the caller knows
pub(crate) const fn u8(number: usize) -> u8 {
    debug_assert!(number <= u8::MAX as usize);
    number as u8
}

/// The lower and the upper half of a sequence number: what a packet carries, and what it does not.
#[inline]
#[allow(clippy::cast_possible_truncation)] // the halves are cut out
pub(crate) const fn halves(sequence: u64) -> (u32, u32) {
    (sequence as u32, (sequence >> 32) as u32)
}
