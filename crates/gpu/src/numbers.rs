//! Results of kernels: numbers of 1, 2 or 4 bytes, little-endian. Names and tuples share this code.

use bytemuck::cast_slice_mut;

/// Reads results of `bytes` bytes each. Panics if the number of results is not the length of `to`.
pub fn unpack(results: &[u8], bytes: usize, to: &mut [u32]) {
    assert_eq!(results.len(), bytes * to.len(), "a result for each key");
    match bytes {
        1 => to.iter_mut().zip(results).for_each(|(to, &result)| *to = result.into()),
        2 => {
            let (results, _) = results.as_chunks::<2>();
            to.iter_mut().zip(results).for_each(|(to, &result)| *to = u16::from_le_bytes(result).into());
        }
        _ => cast_slice_mut(to).copy_from_slice(results),
    }
}
