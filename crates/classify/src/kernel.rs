//! Constants and functions that the programs of all engines of rules share.

/// The bytes of a result that holds every number up to the largest, and one number above, for "a larger
/// number".
pub const fn result_bytes(largest: u64) -> usize {
    match largest {
        0..0xff => 1,
        0xff..0xffff => 2,
        _ => 4,
    }
}

/// What fits in shared memory.
pub(crate) fn few(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_hold_the_largest_number_and_one_above() {
        assert_eq!([0, 254, 255, 65_534, 65_535, 1 << 40].map(result_bytes), [1, 1, 2, 2, 4, 4]);
    }
}
