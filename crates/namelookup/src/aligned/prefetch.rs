//! Prefetching a slot, or a result: the only unsafe code of these engines.

/// Asks for the cache line of an element, where there is one of that index.
#[inline]
pub(super) fn prefetch<T>(elements: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        #[allow(unsafe_code)]
        // SAFETY: a prefetch may be of any address, mapped or not; it changes nothing that a program can see.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(elements.as_ptr().wrapping_add(index).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (elements, index);
}
