//! Results of kernels: numbers of 1, 2 or 4 bytes, little-endian.

use bytemuck::cast_slice_mut;

use crate::simd;

/// Reads results of `bytes` bytes each. Panics if the number of results is not the length of `to`.
pub fn unpack(results: &[u8], bytes: usize, to: &mut [u32]) {
    assert_eq!(results.len(), bytes * to.len(), "a result for each key");
    // Vectors are written faster from the start of a line on.
    let head = to.as_ptr().align_offset(64).min(to.len());
    match bytes {
        1 => {
            let done = head + simd::widen_1(&results[head..], &mut to[head..]);
            let mut widen = |part: std::ops::Range<usize>| {
                to[part.clone()].iter_mut().zip(&results[part]).for_each(|(to, &result)| *to = result.into());
            };
            widen(0..head);
            widen(done..results.len());
        }
        2 => {
            let done = head + simd::widen_2(&results[2 * head..], &mut to[head..]);
            let (results, _) = results.as_chunks::<2>();
            let mut widen = |part: std::ops::Range<usize>| {
                let results = results[part.clone()].iter().map(|&result| u16::from_le_bytes(result));
                to[part].iter_mut().zip(results).for_each(|(to, result)| *to = result.into());
            };
            widen(0..head);
            widen(done..results.len());
        }
        _ => cast_slice_mut(to).copy_from_slice(results),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_widths() {
        let mut to = [0; 2];
        unpack(&[7, 255], 1, &mut to);
        assert_eq!(to, [7, 255]);
        unpack(&[1, 2, 255, 255], 2, &mut to);
        assert_eq!(to, [0x0201, 0xffff]);
        unpack(&[1, 0, 0, 1, 0, 0, 0, 255], 4, &mut to);
        assert_eq!(to, [0x0100_0001, 0xff00_0000]);
        unpack(&[], 1, &mut []);
    }

    /// Results around whole vectors, so many that they are written past the caches, and at any place.
    #[test]
    fn many_results() {
        let numbers: Vec<u32> = (0..300_000u32).map(|n| n.wrapping_mul(0x9e37_79b9) >> 8).collect();
        for (bytes, mask) in [(1, 0xff), (2, 0xffff), (4, u32::MAX)] {
            let results: Vec<u8> =
                numbers.iter().flat_map(|number| number.to_le_bytes()[..bytes].to_vec()).collect();
            for len in [1, 15, 16, 17, 33, 1000, 299_990] {
                for start in [0, 1, 5] {
                    let mut to = vec![0xeeee_eeee; len + 7];
                    unpack(&results[bytes * start..][..bytes * len], bytes, &mut to[start..start + len]);
                    let right = numbers[start..][..len].iter().map(|number| number & mask);
                    assert!(to[start..start + len].iter().copied().eq(right), "{len} of {bytes} bytes");
                    let rest = to[..start].iter().chain(&to[start + len..]);
                    assert!(rest.copied().all(|number| number == 0xeeee_eeee), "no more is written");
                }
            }
        }
    }
}
