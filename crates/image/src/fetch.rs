//! [`prefetch`] and similar functions, for code that knows what it will read.

/// Prefetches an element that will be read soon. An index past the end is allowed.
#[inline(always)]
pub fn prefetch<T>(elements: &[T], at: usize) {
    prefetch_at(elements.as_ptr().wrapping_add(at).cast());
}

/// Prefetches all cache lines of an element that will be read soon.
#[inline(always)]
pub fn prefetch_all<T>(element: &T) {
    const LINE: usize = 64;
    let start = std::ptr::from_ref(element).cast::<u8>();
    (0..size_of::<T>()).step_by(LINE).for_each(|at| prefetch_at(start.wrapping_add(at)));
    if align_of::<T>() < LINE {
        // The element may end in a line that no step reaches.
        prefetch_at(start.wrapping_add(size_of::<T>().saturating_sub(1)));
    }
}

/// Prefetches the line of an address. Any address is allowed.
#[inline(always)]
pub fn prefetch_at(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    // SAFETY: a prefetch may be of any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Asks for the line of an address that will be read once, such as a key: it does not push out of the caches
/// what a table has there.
#[inline(always)]
pub fn prefetch_once_at(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    // SAFETY: a prefetch may be of any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_NTA, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_NTA>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
