//! Where transitions lead, as numbers.

/// A bit of a target whose transition ends an entry.
pub const ACCEPTING: u32 = 1 << 31;
/// A target without a state: a leaf.
pub const LEAF: u32 = ACCEPTING - 1;

/// Converts a count that was checked against the limit of [`LEAF`] transitions, or an index below one.
pub(crate) fn number(count: usize) -> u32 {
    u32::try_from(count).expect("fewer than 2^31 transitions")
}
