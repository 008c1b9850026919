//! [`Planes`]: how the bytes of a batch's keys lie, as `kernels/batch.cuh` reads them.

/// Keys of so many bytes, in one plane or two.
///
/// ```text
/// 6 bytes:  k0 k0 k0 k0 │ k1 k1 k1 k1 │ …   (to 16 bytes)  k0 k0 │ k1 k1 │ …
///           first plane                                    second plane, at `low(count)`
/// ```
///
/// Keys of 3 and 6 bytes are split so that each plane is of integers; all others lie in one plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Planes {
    first: usize,
    second: usize,
}

impl Planes {
    /// The planes of keys of so many bytes.
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

    /// Where the second plane of so many keys starts: after the first, at 16 bytes. `None` where there is
    /// none.
    pub const fn low(self, count: usize) -> Option<usize> {
        if self.second == 0 { None } else { Some((self.first * count).next_multiple_of(16)) }
    }

    /// Bytes of so many keys from the start of the first plane to the end of the last. `None` past what
    /// memory there can be.
    pub const fn bytes(self, count: usize) -> Option<usize> {
        // Whatever passes this is far from where the sums below could overflow.
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
