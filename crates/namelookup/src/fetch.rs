//! [`prefetch`], for code that knows what it will read, and [`same()`], which reads only the bytes that it
//! must.

pub(crate) use wirespeed_image::prefetch;

/// Whether two short slices of bytes are equal. The C library's `memcmp` loads whole vectors and masks the
/// bytes after the end. If a slice ends with its cache line, this waits for the next line, which was not
/// prefetched.
#[inline]
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    let len = a.len();
    if len != b.len() {
        return false;
    }
    match len {
        // It compares whole words, and the last word at the end, which may overlap.
        8.. => {
            let differs = |at: usize| word(a, at) ^ word(b, at);
            (0..len - 8).step_by(8).fold(differs(len - 8), |any, at| any | differs(at)) == 0
        }
        4.. => (half(a, 0) ^ half(b, 0)) | (half(a, len - 4) ^ half(b, len - 4)) == 0,
        _ => a.iter().eq(b),
    }
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[inline]
fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_same_if_no_byte_differs() {
        for len in 0..50 {
            let a: Vec<u8> = (0..len).collect();
            assert!(same(&a, &a.clone()));
            assert!(!same(&a, &[&a[..], &[0]].concat()));
            for at in 0..a.len() {
                let mut b = a.clone();
                b[at] ^= 0x80;
                assert!(!same(&a, &b), "byte {at} of {len}");
            }
        }
    }
}
