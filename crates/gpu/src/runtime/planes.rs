//! [`Planes`]: the layout of a batch's keys in bytes, as `kernels/batch.cuh` reads them.

/// Keys of a number of bytes, in one or two planes.
///
/// ```text
/// 6 bytes:  k0 k0 k0 k0 │ k1 k1 k1 k1 │ …   (to 16 bytes)  k0 k0 │ k1 k1 │ …
///           first plane                                    second plane, at `low(count)`
/// ```
///
/// Keys of 3 and 6 bytes are split so that each plane consists of integers. All other keys lie in one plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Planes {
    first: usize,
    second: usize,
}

impl Planes {
    /// The planes of keys of this number of bytes.
    pub const fn of(key_bytes: usize) -> Self {
        match key_bytes {
            3 => Self { first: 2, second: 1 },
            6 => Self { first: 4, second: 2 },
            other => Self { first: other, second: 0 },
        }
    }

    /// Bytes of a key.
    pub const fn key_bytes(self) -> usize {
        self.first + self.second
    }

    /// Bytes of a key in the first plane and in the second.
    pub const fn widths(self) -> (usize, usize) {
        (self.first, self.second)
    }

    /// The offset of the second plane of `count` keys: after the first, at a multiple of 16 bytes. `None` if
    /// there is no second plane.
    pub const fn low(self, count: usize) -> Option<usize> {
        if self.second == 0 { None } else { Some((self.first * count).next_multiple_of(16)) }
    }

    /// Bytes of `count` keys from the start of the first plane to the end of the last. `None` if the number
    /// overflows.
    pub const fn bytes(self, count: usize) -> Option<usize> {
        // A count that passes this check is far from an overflow of the sums below.
        match count.checked_mul(4 * (self.first + self.second) + 32) {
            None => None,
            Some(_) => match self.low(count) {
                Some(low) => Some(low + self.second * count),
                None => Some(self.first * count),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_start_aligned_and_hold_all_bytes() {
        for key_bytes in [3, 4, 6, 8, 16, 40] {
            let planes = Planes::of(key_bytes);
            assert_eq!(planes.key_bytes(), key_bytes);
            for count in [0, 1, 7, 8, 1000] {
                let bytes = planes.bytes(count).unwrap();
                assert!(bytes >= key_bytes * count && bytes < key_bytes * count + 16);
                assert_eq!(planes.low(count).map_or(0, |low| low % 16), 0);
                assert_eq!(planes.low(count).is_some(), key_bytes == 3 || key_bytes == 6);
            }
        }
        assert_eq!(Planes::of(6).bytes(5), Some(32 + 10));
        assert_eq!(Planes::of(4).bytes(usize::MAX), None);
    }
}
