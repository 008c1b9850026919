//! [`prefetch`], which is all that a batch needs beyond safe code: the only unsafe code of this crate.

/// Prefetches memory that will be read soon, into the second-level cache and not the first, which measured
/// far better (the numbers are in `lookup.rs`).
#[inline]
pub(super) fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    // SAFETY: a prefetch may be of any address, every CPU of the architecture has it.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
