//! [`HugeVec`]: a vector in huge pages, for the large arrays that a control plane keeps beside its images.
//!
//! An update touches a dozen random lines of such arrays. With small pages each line costs a TLB miss beside
//! its cache miss, and a walk of page tables that are themselves too large for the cache.

use std::ops::{Deref, DerefMut};

/// A vector that asks for huge pages when it is large enough to fill some. Growing copies the elements, so
/// that they stay in huge pages: moving pages, as `realloc` does for large blocks, would split them.
#[derive(Debug)]
pub struct HugeVec<T>(Vec<T>);

/// Size of a huge page on x86-64 and most other systems.
#[cfg(target_os = "linux")]
const HUGE_PAGE: usize = 2 << 20;

impl<T> HugeVec<T> {
    /// Makes an empty vector.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Makes an empty vector with this capacity.
    pub fn with_capacity(capacity: usize) -> Self {
        let vector = Vec::with_capacity(capacity);
        prefer_huge_pages(&vector);
        Self(vector)
    }

    /// Adds an element at the end.
    #[inline]
    pub fn push(&mut self, element: T) {
        self.reserve(1);
        self.0.push(element);
    }

    /// Reserves capacity for `more` elements. If the vector grows, its capacity at least doubles.
    #[inline]
    pub fn reserve(&mut self, more: usize) {
        if self.0.capacity() - self.0.len() < more {
            self.grow(more);
        }
    }

    /// Reserves capacity for exactly `more` elements if the vector grows.
    pub fn reserve_exact(&mut self, more: usize) {
        let wanted = self.0.len().saturating_add(more);
        if self.0.capacity() < wanted {
            self.move_to(wanted);
        }
    }

    /// Reserves capacity for `more` elements. If the vector grows, then by an eighth of its length at least:
    /// it keeps less free memory than after [`reserve`](Self::reserve), and is copied more often.
    #[inline]
    pub fn make_room(&mut self, more: usize) {
        if self.0.capacity() - self.0.len() < more {
            self.reserve_exact(more.max(self.0.len() / 8).max(16));
        }
    }

    /// Sets the capacity to what is there and `more` elements, unless it is nearly that.
    pub fn fit(&mut self, more: usize) {
        let wanted = self.0.len().saturating_add(more);
        if self.0.capacity() < wanted || self.0.capacity() / 16 > wanted / 15 {
            self.move_to(wanted);
        }
    }

    /// Makes the system allocate the memory of the whole capacity: the first use of a page takes thousands of
    /// cycles, and more in a virtual machine whose own memory is allocated on first use (half a gigabyte a
    /// second was measured).
    pub fn populate(&self) {
        populate(&self.0);
    }

    /// The capacity in elements.
    pub const fn capacity(&self) -> usize {
        self.0.capacity()
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        self.move_to(self.0.len().saturating_add(more).max(2 * self.0.capacity()));
    }

    #[inline(never)] // one copy for all crates
    fn move_to(&mut self, capacity: usize) {
        let mut grown = Self::with_capacity(capacity);
        grown.0.append(&mut self.0);
        *self = grown;
    }
}

impl<T: Copy> HugeVec<T> {
    /// Makes a vector of `len` equal elements.
    pub fn filled(element: T, len: usize) -> Self {
        let mut vector = Self::new();
        vector.resize(len, element);
        vector
    }

    /// Changes the length, and appends copies of `element` if the vector gets longer.
    pub fn resize(&mut self, len: usize, element: T) {
        self.reserve(len.saturating_sub(self.0.len()));
        self.0.resize(len, element);
    }

    /// Adds elements at the end.
    #[inline]
    pub fn extend_from_slice(&mut self, elements: &[T]) {
        self.reserve(elements.len());
        self.0.extend_from_slice(elements);
    }
}

impl<T> Default for HugeVec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone> Clone for HugeVec<T> {
    fn clone(&self) -> Self {
        let mut copy = Self::with_capacity(self.0.len());
        copy.0.extend_from_slice(&self.0);
        copy
    }
}

impl<T> Deref for HugeVec<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for HugeVec<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

/// Asks for huge pages if the vector's capacity fills some. Without huge pages the vector works, too, only
/// slower.
fn prefer_huge_pages<T>(vector: &Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        let start = vector.as_ptr().cast::<u8>();
        let skipped = start.align_offset(HUGE_PAGE);
        let bytes = (vector.capacity() * size_of::<T>()).saturating_sub(skipped) / HUGE_PAGE * HUGE_PAGE;
        if bytes > 0 {
            #[allow(unsafe_code)]
            // SAFETY: the range lies in the vector's memory, and the advice changes by which pages it is
            // mapped, not what it holds.
            unsafe {
                let _ = libc::madvise(start.add(skipped).cast_mut().cast(), bytes, libc::MADV_HUGEPAGE);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = vector;
}

/// Allocates the pages of a vector's unused capacity. If the system can't (Linux before 5.14), pages are
/// allocated on first use.
fn populate<T>(vector: &Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        /// Bytes of the largest page size of any system.
        const PAGE: usize = 1 << 16;
        let used = vector.len() * size_of::<T>();
        let start = vector.as_ptr().cast::<u8>().wrapping_add(used);
        let skipped = start.align_offset(PAGE);
        let bytes = (vector.capacity() * size_of::<T>() - used).saturating_sub(skipped) / PAGE * PAGE;
        if bytes > 0 {
            #[allow(unsafe_code)]
            // SAFETY: the range lies in the vector's memory behind its elements, and the advice maps pages,
            // which are zero, where there are none; it changes none that there are.
            unsafe {
                let _ = libc::madvise(start.add(skipped).cast_mut().cast(), bytes, libc::MADV_POPULATE_WRITE);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = vector;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_vector_that_grows() {
        let mut huge = HugeVec::new();
        let mut plain = Vec::new();
        for n in 0..600_000u64 {
            huge.push(n);
            plain.push(n);
        }
        huge.extend_from_slice(&[1, 2, 3]);
        huge.resize(huge.len() + 300_000, 7);
        huge.resize(huge.len() - 1, 9);
        plain.extend([1, 2, 3]);
        plain.resize(plain.len() + 299_999, 7);
        assert_eq!(huge[..], plain[..]);
        let mut copy = huge.clone();
        copy[5] = 8;
        assert_eq!((huge[5], copy[5], copy.len()), (5, 8, plain.len()));
        assert!(huge.capacity() >= huge.len());
        assert_eq!(HugeVec::filled(3u8, 5)[..], [3; 5]);
        assert!(HugeVec::<u8>::default().is_empty());
        copy.reserve_exact(1_000);
        assert_eq!((copy.capacity(), copy[5]), (copy.len() + 1_000, 8));
        copy.populate();
        copy.reserve_exact(999);
        assert_eq!(copy.capacity(), copy.len() + 1_000);
        copy.reserve_exact(copy.len());
        copy.fit(2_000);
        assert_eq!((copy.capacity(), copy[5]), (copy.len() + 2_000, 8));
        copy.fit(1_999);
        assert_eq!(copy.capacity(), copy.len() + 2_000, "it nearly fits");
        copy.fit(2_001);
        assert_eq!(copy.capacity(), copy.len() + 2_001);
        copy.make_room(2_001);
        assert_eq!(copy.capacity(), copy.len() + 2_001);
        copy.make_room(2_002);
        assert_eq!(copy.capacity(), copy.len() + copy.len() / 8);
    }
}
