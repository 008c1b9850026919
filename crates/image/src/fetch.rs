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

/// Writes functions that prefetch the line of an address, each with a hint of the CPU.
macro_rules! prefetches {
    ($($(#[$doc:meta])* $name:ident $hint:ident)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name(address: *const u8) {
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code)]
            // SAFETY: a prefetch may be of any address, and every CPU of the architecture has it.
            unsafe {
                use std::arch::x86_64::{$hint, _mm_prefetch};
                _mm_prefetch::<$hint>(address.cast());
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = address;
        }
    )*};
}

prefetches! {
    /// Prefetches the line of an address. Any address is allowed.
    prefetch_at _MM_HINT_T0
    /// Prefetches the line of an address into the second-level cache, and not into the first. Any address is
    /// allowed.
    prefetch_outer_at _MM_HINT_T1
    /// Prefetches the line of an address that will be read once, such as a key. The line does not replace
    /// lines of a table in the caches. Any address is allowed.
    prefetch_once_at _MM_HINT_NTA
}
